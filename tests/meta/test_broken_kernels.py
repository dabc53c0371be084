"""Kernels that are broken on purpose, put through the same protocols as the honest ones: each is caught.

Every row breaks the C kernel of one op in one way that happens to kernels. The honest kernel under the same claim
passes, so that nothing is caught for another reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import fuelvk as fv
from fuelvk.base.dtypes import DType
from fuelvk.graph.registry import find_op
from fuelvk.graph.types import OpEntry
from fuelvk.kernels.types import BackendImpl, FusedKernelRegistry, PrecisionGuarantee
from fuelvk.registry import default_kernel_registry
from fuelvk.runtime.devices import Device
from fuelvk.verify.cases import oracle, samples
from fuelvk.verify.compare import compare, same_bits
from fuelvk.verify.harness import run_impl
from fuelvk.verify.suite import Suite

Array = np.ndarray[Any, Any]
Kernel = Callable[..., None]
F32 = DType.F32


def wrong_index(kernel: Kernel, inputs: Any, outputs: Any, layouts: Any, params: Any) -> None:
    """The last element of every row is read from the first column."""
    x = inputs[0].copy()
    if x.ndim and x.shape[-1] > 1:
        x[..., -1] = x[..., 0]
    kernel((x, *inputs[1:]), outputs, layouts, params, None)


def dropped_tail(kernel: Kernel, inputs: Any, outputs: Any, layouts: Any, params: Any) -> None:
    """What is left after whole groups of 64 is never written."""
    kernel(inputs, outputs, layouts, params, None)
    flat = outputs[0].reshape(-1)
    flat[flat.size // 64 * 64 :] = 0


def truncating_cast(kernel: Kernel, inputs: Any, outputs: Any, layouts: Any, params: Any) -> None:
    """F32 to BF16 by dropping bits."""
    bits = inputs[0].view(np.uint32) >> 16
    outputs[0][...] = bits.astype(np.uint16).view(outputs[0].dtype)


_LEFT_BEHIND = np.zeros(1 << 12, np.float32)


def missing_barrier(kernel: Kernel, inputs: Any, outputs: Any, layouts: Any, params: Any) -> None:
    """The second half of the partial sums is read before it is written: what an earlier workgroup left is added."""
    kernel(inputs, outputs, layouts, params, None)
    flat = outputs[0].reshape(-1)
    count = min(flat.size, _LEFT_BEHIND.size)
    before = _LEFT_BEHIND[:count].copy()
    _LEFT_BEHIND[:count] = flat[:count]
    flat[:count] = flat[:count] + np.float32(2.0**-23) * np.where(np.isfinite(before), before, 0)


def wrong_mask(kernel: Kernel, inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any]) -> None:
    """Causal attention that does not see its own key."""
    shifted = dict(params)
    if params["causal"]:
        keys = params["k_len"] if params["k_len"] is not None else inputs[1].shape[2]
        offset = params["causal_offset"] if params["causal_offset"] is not None else keys - inputs[0].shape[2]
        shifted["causal_offset"] = offset - 1
    kernel(inputs, outputs, layouts, shifted, None)


def half_accumulation(kernel: Kernel, inputs: Any, outputs: Any, layouts: Any, params: Any) -> None:
    """Products added in F16."""
    a, b = (x.astype(np.float16) for x in inputs[:2])
    if a.ndim < 2 or b.ndim < 2 or 0 in outputs[0].shape:
        kernel(inputs, outputs, layouts, params, None)
        return
    total = np.zeros(outputs[0].shape, np.float16)
    for k in range(a.shape[-1]):
        total = total + a[..., :, k : k + 1] * b[..., k : k + 1, :]
    outputs[0][...] = total


def neighbours(kernel: Kernel, inputs: Any, outputs: Any, layouts: Any, params: Any) -> None:
    """A row's maximum is taken over the whole batch: right within the bound, and dependent on the neighbours."""
    x = inputs[0]
    kernel(inputs, outputs, layouts, params, None)
    if x.size > 64 and np.isfinite(x).all() and x.max() > x.reshape(-1)[: x.shape[-1]].max():
        outputs[0].view(np.uint32)[...] += np.uint32(1)


def contracted(kernel: Kernel, inputs: Any, outputs: Any, layouts: Any, params: Any) -> None:
    """Multiply and add rounded once: more accurate, and other bits than the canonical ones."""
    wide = inputs[0].astype(np.float64) * np.float64(np.float32(params["mul"])) + np.float64(
        np.float32(params["add"])
    )
    outputs[0][...] = wide.astype(np.float32)


@dataclass(frozen=True)
class Break:
    """A way to break the kernel of an op, and the kinds of claims of which at least one must catch it."""

    op: str
    dtypes: tuple[DType, ...]
    how: Callable[..., None]
    caught_by: tuple[str, ...]


BREAKS = {
    "a wrong index": Break("exp", (F32, F32), wrong_index, ("ulp", "canonical")),
    "a wrong index in a row op": Break("softmax_last_dim", (F32, F32), wrong_index, ("bound", "canonical")),
    "a dropped tail": Break("add", (F32, F32, F32), dropped_tail, ("ulp", "canonical")),
    "a truncating cast": Break("cast", (F32, DType.BF16), truncating_cast, ("ulp", "canonical")),
    "a missing barrier": Break("sum", (F32, F32), missing_barrier, ("bit_stable",)),
    "a wrong mask": Break(
        "flash_attn", (F32, F32, F32, F32, DType.U32, F32), wrong_mask, ("bound", "canonical")
    ),
    "F16 accumulation": Break("matmul", (F32, F32, F32), half_accumulation, ("bound", "canonical")),
    "a row that sees its neighbours": Break("softmax_last_dim", (F32, F32), neighbours, ("batch_invariant",)),
    "a contracted multiply-add": Break("affine", (F32, F32), contracted, ("canonical",)),
}


def entry(name: str) -> OpEntry:
    found = find_op(name)
    assert found is not None
    return found


def honest(row: Break) -> BackendImpl:
    return next(
        impl
        for backend, impl in default_kernel_registry().impls_for(entry(row.op).id)
        if backend == "cpu" and impl.precision.canonical and impl.dtypes == row.dtypes
    )


def broken(row: Break) -> BackendImpl:
    original = honest(row)

    def kernel(
        inputs: Sequence[Any], outputs: Sequence[Any], layouts: Any, params: Any, context: Any
    ) -> None:
        with np.errstate(all="ignore"):
            row.how(original.kernel, inputs, outputs, layouts, params)

    return replace(original, name="broken", kernel=kernel)


def verdicts(row: Break, impl: BackendImpl) -> dict[str, bool]:
    registry = FusedKernelRegistry()
    registry.register(entry(row.op).id, "cpu", honest(row))
    if impl is not honest(row):
        registry.register(entry(row.op).id, "cpu", impl)
    records = fv.verify(row.op, device="cpu", suite=Suite(registry), dtype=row.dtypes[-1], level="full")
    return {r.claim: r.passed for r in records if r.impl == impl.name}


@pytest.mark.parametrize("name", BREAKS)
def test_it_is_caught(name: str) -> None:
    row = BREAKS[name]
    good = verdicts(row, honest(row))
    assert good and all(good.values()), good
    found = verdicts(row, broken(row))
    assert set(found) == set(good)
    for claim in row.caught_by:
        assert not found[claim], f"{name}: the claim {claim} passed"


@pytest.mark.parametrize("name", [n for n, row in BREAKS.items() if "canonical" in row.caught_by])
def test_the_matrix_turns_red(name: str, cpu: Device) -> None:
    """The checks of tests/matrix, on the samples of the op: parity or bytes."""
    row = BREAKS[name]
    op, original, wrong = entry(row.op), honest(row), broken(row)
    red = 0
    for sample in samples(op, original):
        want = run_impl(op, "cpu", original, sample.inputs, sample.params, cpu)[0]
        got = run_impl(op, "cpu", wrong, sample.inputs, sample.params, cpu)[0]
        _, params = op.bind(sample.inputs, sample.params)
        report = compare(
            got, oracle(op, sample)[0], wrong.precision, row.dtypes[-1], inputs=sample.inputs, params=params
        )
        red += not report.ok or same_bits(got, want) is not None
    assert red > 0


def test_a_claim_that_is_too_bold_fails() -> None:
    """A mean rounds more than once: claiming correct rounding is found out, and only that claim fails."""
    row = Break("mean", (F32, F32), wrong_index, ())
    bold = replace(honest(row), name="bold", precision=PrecisionGuarantee(True, max_ulp=0.5).strict())
    found = verdicts(row, bold)
    assert not found["ulp"]
    assert found["canonical"] and found["bit_stable"] and found["batch_invariant"]
