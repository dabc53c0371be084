"""Float execution modes put into modules as they are loaded."""

from __future__ import annotations

import dataclasses
import struct

import pytest

from fuelvk.base.errors import FormatError
from fuelvk.vulkan.features import FloatControls
from fuelvk.vulkan.modules import float_widths, with_float_controls

EVERYTHING = FloatControls(1, 1, frozenset({16, 32, 64}), frozenset({16, 32, 64}), frozenset({16, 32, 64}))
DENORM, ZERO, RTE = 4459, 4461, 4462


def _instruction(op: int, *operands: int) -> list[int]:
    return [(1 + len(operands)) << 16 | op, *operands]


def _text(value: str) -> list[int]:
    raw = value.encode() + b"\0"
    raw += b"\0" * (-len(raw) % 4)
    return list(struct.unpack(f"<{len(raw) // 4}I", raw))


def _module(widths: tuple[int, ...] = (32,), entries: int = 2, version: int = 0x00010300) -> bytes:
    words = [0x07230203, version, 0, 100, 0, *_instruction(17, 1)]
    words += _instruction(14, 0, 1)
    for entry in range(entries):
        words += _instruction(15, 5, 10 + entry, *_text(f"entry{entry}"))
    for entry in range(entries):
        words += _instruction(16, 10 + entry, 17, 64, 1, 1)
    for number, width in enumerate(widths):
        words += _instruction(22, 50 + number, width)
    words += _instruction(54, 1, 10, 0, 60)
    return struct.pack(f"<{len(words)}I", *words)


def _parse(spirv: bytes) -> list[tuple[int, tuple[int, ...]]]:
    words = struct.unpack(f"<{len(spirv) // 4}I", spirv)
    out, at = [], 5
    while at < len(words):
        length = words[at] >> 16
        out.append((words[at] & 0xFFFF, words[at + 1 : at + length]))
        at += length
    assert at == len(words)
    return out


def _modes(spirv: bytes) -> set[tuple[int, int, int]]:
    return {(a[0], a[1], a[2]) for op, a in _parse(spirv) if op == 16 and len(a) == 3}


def test_every_entry_and_width_gets_every_mode() -> None:
    patched = with_float_controls(_module((32, 16)), EVERYTHING)
    assert _modes(patched) == {(e, m, w) for e in (10, 11) for m in (DENORM, ZERO, RTE) for w in (16, 32)}
    order = [op for op, _ in _parse(patched)]
    assert order == sorted(order, key=[17, 10, 14, 15, 16, 22, 54].index)
    assert {a[0] for op, a in _parse(patched) if op == 17} == {1, 4464, 4466, 4467}
    assert [a for op, a in _parse(patched) if op == 10] == [tuple(_text("SPV_KHR_float_controls"))]


def test_twice_is_once() -> None:
    once = with_float_controls(_module((32, 64)), EVERYTHING)
    assert with_float_controls(once, EVERYTHING) == once


def test_the_extension_is_core_from_1_4_on() -> None:
    patched = with_float_controls(_module(version=0x00010400), EVERYTHING)
    assert all(op != 10 for op, _ in _parse(patched)) and _modes(patched)


def test_nothing_offered_or_no_floats_leaves_the_module_alone() -> None:
    nothing = FloatControls(1, 1, frozenset(), frozenset(), frozenset())
    assert with_float_controls(_module(), nothing) == _module()
    assert with_float_controls(_module(()), EVERYTHING) == _module(())
    assert float_widths(_module((64, 16))) == {64, 16}


@pytest.mark.parametrize(
    ("independence", "offered", "widths", "expected"),
    [
        (1, {32}, (16, 32), {32}),  # independent
        (2, {32}, (16, 32), set()),  # all the same or none
        (2, {16, 32}, (16, 32), {16, 32}),
        (0, {32, 64}, (16, 32, 64), {32}),  # only 32 bits may differ
        (0, {16, 64}, (16, 32, 64), {16, 64}),
        (0, {16, 32, 64}, (16, 32), {16, 32}),
    ],
)
def test_independence(
    independence: int, offered: set[int], widths: tuple[int, ...], expected: set[int]
) -> None:
    controls = dataclasses.replace(
        EVERYTHING,
        rounding_independence=independence,
        rounding_rte=frozenset(offered),
        denorm_preserve=frozenset(),
        signed_zero_inf_nan=frozenset(),
    )
    patched = with_float_controls(_module(widths, entries=1), controls)
    assert {width for _, mode, width in _modes(patched) if mode == RTE} == expected


@pytest.mark.parametrize("damage", [b"", b"SPIR" * 10, _module()[:-2], _module()[:-4], bytes(40)])
def test_damage_is_named(damage: bytes) -> None:
    with pytest.raises(FormatError, match="SPIR-V module"):
        with_float_controls(damage, EVERYTHING)
