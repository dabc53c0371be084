"""Shaders that are broken on purpose, compiled and run on the device like a kernel of one's own: each is caught.

``kernels/`` holds a right shader for each of five ops with its broken kinds beside it, as the kinds of one variant
table. The right one passes every claim under the same protocols, so that nothing is caught for another reason.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fuelvk as fv
from fuelvk.base.dtypes import DType
from fuelvk.base.shapes import elements
from fuelvk.graph import rules
from fuelvk.graph.registry import find_op
from fuelvk.graph.samples import normal
from fuelvk.graph.types import Arg, Family, OpEntry, PrimitiveEntry, PrimitiveId, Sample
from fuelvk.kernels.claims import STRICT_CORRECTLY_ROUNDED, STRICT_EXACT, STRICT_PRODUCT
from fuelvk.kernels.own import ShaderRef, VulkanContext, build_shaders, free, shader, vulkan_kernel
from fuelvk.kernels.types import (
    BackendImpl,
    BoundInputs,
    FusedKernelRegistry,
    PrecisionGuarantee,
    Registration,
    Shapes,
)
from fuelvk.registry import default_kernel_registry
from fuelvk.runtime.devices import Device, VulkanDevice
from fuelvk.verify.compare import compare, same_bits
from fuelvk.verify.harness import GuardError, run_impl
from fuelvk.verify.suite import Suite

pytestmark = [pytest.mark.build, pytest.mark.device]

Array = np.ndarray[Any, Any]
Parameters = Callable[[tuple[Any, ...], Mapping[str, Any]], tuple[int, bytes]]
F32, BF16 = DType.F32, DType.BF16


def flat(shapes: tuple[Any, ...], params: Mapping[str, Any]) -> tuple[int, bytes]:
    """Returns the workgroups of a kernel over elements, and its parameters but for the width of the grid."""
    n = elements(shapes[-1])
    return -(-n // 64), struct.pack("<I", n)


def by_rows(shapes: tuple[Any, ...], params: Mapping[str, Any]) -> tuple[int, bytes]:
    columns = shapes[0][-1]
    return elements(shapes[0][:-1]) if columns else 0, struct.pack("<2I", elements(shapes[0][:-1]), columns)


def by_matrices(shapes: tuple[Any, ...], params: Mapping[str, Any]) -> tuple[int, bytes]:
    n, (rows, columns) = elements(shapes[0]), shapes[0][-2:]
    diagonal = max(-rows, min(columns, params["k"]))
    return -(-n // 64), struct.pack("<3Ii", n, rows, columns, diagonal)


def by_product(shapes: tuple[Any, ...], params: Mapping[str, Any]) -> tuple[int, bytes]:
    (m, k), (_, n) = shapes[:2]
    return -(-m * n // 64), struct.pack("<3I", m, k, n)


def two_matrices(shapes: Shapes, params: Mapping[str, Any], capabilities: Any) -> str | None:
    return None if all(s is not None and len(s) == 2 for s in shapes) else "for two matrices"


def anything(shapes: Shapes, params: Mapping[str, Any], capabilities: Any) -> str | None:
    return None


def totals(dtypes: tuple[DType, ...], rng: np.random.Generator) -> list[Sample]:
    shapes = ((4, 64), (3, 65), (5, 200), (2, 1), (1, 1000), (9, 128))
    return [Sample((normal(rng, s, F32),), {}, f"rows-{'x'.join(map(str, s))}") for s in shapes]


def total_bound(b: BoundInputs) -> Array:
    """gamma_(n/64+6) sum |x|"""
    x = np.abs(np.asarray(b.inputs[0], np.float64))
    steps = x.shape[-1] / 64 + 7
    return np.broadcast_to(x.sum(-1, keepdims=True) * (steps * 2.0**-24 * 1.001), x.shape)


TOTAL = PrimitiveEntry(
    id=PrimitiveId("row_total"),
    family=Family.REDUCTION,
    args=(Arg("x"),),
    shape_rule=rules.like_first,
    dtype_rule=rules.uniform("row_total", ("x",), (F32,)),
    dtypes=((F32, F32),),
    sample_inputs=totals,
    doc="The total of its row in every element.",
)
TOTAL_CLAIM = PrecisionGuarantee(True, bound=total_bound, batch_invariant=True)


def named(name: str) -> OpEntry:
    found = find_op(name)
    assert found is not None
    return found


@dataclass(frozen=True)
class Subject:
    """A shader: the op it is for, what it claims, and how its dispatch follows from shapes and parameters."""

    op: OpEntry
    dtypes: tuple[DType, ...]
    claim: PrecisionGuarantee
    parameters: Parameters
    admits: Callable[..., str | None] = anything

    def row(self, ref: ShaderRef) -> Registration:
        def kernel(
            inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: VulkanContext
        ) -> None:
            count, words = self.parameters(tuple(x.shape for x in layouts), params)
            if count:
                groups = context.fold(count)
                buffers = (*inputs, outputs[0])
                write = 1 << len(inputs)
                context.dispatch(ref, groups, buffers, write, words + struct.pack("<I", groups[0]))

        return vulkan_kernel(
            self.op.id, self.dtypes, kernel, shaders=(ref,), cost=free, precision=self.claim, wrapper=__file__,
            admits=self.admits,
        )  # fmt: skip


SUBJECTS = {
    "square": Subject(named("sqr"), (F32, F32), STRICT_CORRECTLY_ROUNDED, flat),
    "narrow": Subject(named("cast"), (F32, BF16), STRICT_CORRECTLY_ROUNDED, flat),
    "total": Subject(TOTAL, (F32, F32), TOTAL_CLAIM, by_rows),
    "lower": Subject(named("tril"), (F32, F32), STRICT_EXACT, by_matrices),
    "product": Subject(named("matmul"), (F32, F32, F32), STRICT_PRODUCT, by_product, two_matrices),
}
#: What is broken -> the shader, its kind, and the claims that must fail.
BREAKS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "a wrong index": ("square", "index", ("ulp", "canonical")),
    "a dropped tail": ("square", "tail", ("ulp", "canonical")),
    "a write past the end": ("square", "end", ("ulp",)),
    "a truncating cast": ("narrow", "truncated", ("ulp", "canonical")),
    "a missing barrier": ("total", "barrier", ("bound",)),
    "a row that sees its neighbours": ("total", "neighbours", ("batch_invariant",)),
    "an output that is added to": ("total", "leftover", ("bit_stable",)),
    "a wrong mask": ("lower", "mask", ("ulp", "canonical")),
    "F16 accumulation": ("product", "half", ("bound", "canonical")),
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_shaders(Path(__file__).parent / "kernels", tmp_path_factory.mktemp("broken"))


def total_of_rows(x: Array) -> Array:
    wide = np.asarray(x, np.float64)
    return np.broadcast_to(wide.sum(-1, keepdims=True), wide.shape)


def prepared(built: Path, name: str, kind: str, gpu: VulkanDevice) -> tuple[Subject, BackendImpl, Suite]:
    """Returns a shader with its kernel and a suite of it and the C kernel; skips where the device cannot run it."""
    subject = SUBJECTS[name]
    row = subject.row(shader(built, f"broken/{name}", kind=kind))
    refused = shader(built, f"broken/{name}", kind=kind).select(gpu.capabilities)
    if isinstance(refused, str):
        pytest.skip(refused)
    if kind == "end" and gpu.capabilities.addressing == "ssbo":
        pytest.skip("robust access drops what is written past the end of a descriptor")
    registry = FusedKernelRegistry()
    reference = default_kernel_registry().canonical(subject.op.id, subject.dtypes)
    if reference is not None:
        registry.register(subject.op.id, "cpu", reference)
    registry.register(subject.op.id, "vulkan", row.impl)
    suite = Suite(registry, entries={TOTAL.id: TOTAL}, oracles={TOTAL.id: total_of_rows})
    return subject, row.impl, suite


def verdicts(built: Path, name: str, kind: str, gpu: VulkanDevice) -> dict[str, bool]:
    subject, _, suite = prepared(built, name, kind, gpu)
    records = fv.verify(
        subject.op.name, device=gpu, suite=suite, dtype=subject.dtypes[-1], level="full", claims=None
    )
    return {r.claim: r.passed for r in records if r.backend == "vulkan"}


@pytest.mark.parametrize("name", SUBJECTS)
def test_the_right_shader_keeps_every_claim(name: str, built: Path, gpu: VulkanDevice) -> None:
    found = verdicts(built, name, "good", gpu)
    assert found and all(found.values()), found


@pytest.mark.parametrize("what", BREAKS)
def test_the_broken_shader_is_caught(what: str, built: Path, gpu: VulkanDevice) -> None:
    name, kind, claims = BREAKS[what]
    found = verdicts(built, name, kind, gpu)
    for claim in claims:
        assert not found[claim], f"{what}: the claim {claim} passed ({found})"


@pytest.mark.parametrize("what", [w for w, row in BREAKS.items() if {"ulp", "bound"} & set(row[2])])
def test_the_matrix_turns_red(what: str, built: Path, gpu: VulkanDevice, cpu: Device) -> None:
    """The checks of tests/matrix, on the samples of the op: parity within the claim, bytes of the C kernel, guards."""
    name, kind, _ = BREAKS[what]
    subject, impl, suite = prepared(built, name, kind, gpu)
    reference = suite.canonical(subject.op, impl)
    red = 0
    for sample in suite.samples(subject.op, subject.dtypes):
        _, params = subject.op.bind(sample.inputs, sample.params)
        if subject.admits(tuple(x.shape for x in sample.inputs if x is not None), params, None) is not None:
            continue
        try:
            got = run_impl(subject.op, "vulkan", impl, sample.inputs, sample.params, gpu)[0]
        except GuardError:
            red += 1
            continue
        exact = suite.oracle(subject.op, sample)[0]
        report = compare(got, exact, impl.precision, subject.dtypes[-1], inputs=sample.inputs, params=params)
        red += not report.ok
        if reference is not None:
            want = run_impl(subject.op, "cpu", reference, sample.inputs, sample.params, cpu)[0]
            red += same_bits(got, want) is not None
    assert red > 0
