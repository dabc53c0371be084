"""Every strict shader forbids contraction of each float operation it makes: what its bits rest on."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from fuelvk.registry import default_kernel_registry
from fuelvk.shaderbuild import load_manifest
from fuelvk.shaderbuild.manifest import Variant

# Stems whose kernels claim no canonical bits.
NOT_STRICT = ("pointwise/functions_driver",)

DECORATE, EXT_INST = 71, 12
NO_CONTRACTION = 42
# Operations that a driver may join with another one: sums, differences, products, quotients, remainders, of matrices too.
ARITHMETIC = {129, 131, 133, 136, 140, 141, 142, 143, 144, 145, 146, 147, 148}
# Not joined with anything: OpFNegate changes a sign bit, which no later rounding can tell from a changed operand.
FUSED_MULTIPLY_ADD = 50  # of GLSL.std.450: contraction in so many words


def instructions(spirv: bytes) -> Iterator[tuple[int, tuple[int, ...]]]:
    words = struct.unpack(f"<{len(spirv) // 4}I", spirv)
    at = 5
    while at < len(words):
        length = words[at] >> 16
        yield words[at] & 0xFFFF, words[at + 1 : at + length]
        at += length


def unprotected(spirv: bytes) -> tuple[int, list[int]]:
    """Returns how many float operations a module makes, and the opcodes of those that may be contracted."""
    decorated, made = set(), []
    for opcode, operands in instructions(spirv):
        if opcode == DECORATE and operands[1] == NO_CONTRACTION:
            decorated.add(operands[0])
        elif opcode in ARITHMETIC or (opcode == EXT_INST and operands[3] == FUSED_MULTIPLY_ADD):
            made.append((opcode, operands[1]))
    return len(made), [opcode for opcode, result in made if opcode == EXT_INST or result not in decorated]


STEMS = sorted(set(load_manifest().stems) - set(NOT_STRICT))


def of_stem(stem: str) -> list[Variant]:
    return load_manifest().variants(stem)


@pytest.mark.parametrize("stem", STEMS)
def test_no_operation_of_a_strict_shader_may_be_contracted(stem: str) -> None:
    open_to_it = {v.name: found[:5] for v in of_stem(stem) if (found := unprotected(v.spirv())[1])}
    assert not open_to_it


def test_the_strict_functions_make_float_operations() -> None:
    counts = {v.name: unprotected(v.spirv())[0] for v in of_stem("pointwise/functions_exp")}
    assert counts and all(count > 100 for count in counts.values()), counts


def test_a_missing_decoration_is_seen() -> None:
    variant = of_stem("pointwise/functions_exp")[0]
    words = list(struct.unpack(f"<{len(variant.spirv()) // 4}I", variant.spirv()))
    at = 5
    while not (words[at] & 0xFFFF == DECORATE and words[at + 2] == NO_CONTRACTION):
        at += words[at] >> 16
    words[at + 2] = 0  # RelaxedPrecision
    assert len(unprotected(struct.pack(f"<{len(words)}I", *words))[1]) == 1


def test_what_is_not_strict_says_so() -> None:
    for _, backend, impl in default_kernel_registry():
        if backend == "vulkan" and impl.name in {f"vulkan.{s.rsplit('/', 1)[-1]}" for s in NOT_STRICT}:
            assert not impl.precision.canonical
            assert not impl.precision.batch_invariant
