"""Precision claims: what each constant says, and that the bounds hold for plain float32 arithmetic."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import fuelvk as fv
import fuelvk.fused as facade
from fuelvk.base.dtypes import DType
from fuelvk.graph import ir
from fuelvk.graph.registry import builder, default_fused_op_registry, find_op
from fuelvk.graph.types import FusedOpEntry
from fuelvk.kernels import attention_bounds, bounds, claims, row_bounds, row_claims
from fuelvk.kernels.types import Audit, Bound, BoundInputs, PrecisionGuarantee
from tests.support.interpret import evaluate

CPU = sorted(n for n in facade.__all__ if n.endswith("_CPU_PRECISION"))
VULKAN = {
    "VULKAN_BYTE_LEVEL_PRECISION": (0, 0.0, 0.0),
    "VULKAN_CAST_PRECISION": (0, None, None),
    "VULKAN_FLOAT_POINTWISE_PRECISION": (1, None, None),
    "VULKAN_HALF_POINTWISE_PRECISION": (1, None, None),
    "VULKAN_TRANSCENDENTAL_PRECISION": (4, None, None),
    "VULKAN_MATMUL_PRECISION": (None, None, None),
    "VULKAN_MATMUL_TENSORCORE_PRECISION": (None, None, None),
    "VULKAN_QMATMUL_PRECISION": (None, None, None),
}


@pytest.mark.parametrize("name", CPU)
def test_cpu_constants_claim_repeatability_only(name: str) -> None:
    claim: PrecisionGuarantee = getattr(facade, name)
    assert claim.bit_stable_on_same_hardware
    assert not claim.has_bound
    assert claim.audit is Audit.NO_STATIC_BOUND


@pytest.mark.parametrize(("name", "numbers"), VULKAN.items())
def test_vulkan_constants(name: str, numbers: tuple[float | None, ...]) -> None:
    claim: PrecisionGuarantee = getattr(facade, name)
    assert claim.bit_stable_on_same_hardware
    assert (claim.max_ulp, claim.max_relative, claim.max_absolute) == numbers


def test_every_note_is_its_own() -> None:
    notes = [getattr(facade, n).notes for n in (*CPU, *VULKAN)]
    assert len(CPU) == 16
    assert len(set(notes)) == 24
    assert all(len(n) > 40 for n in notes)


def test_states_are_told_apart() -> None:
    assert PrecisionGuarantee.UNAUDITED.audit is Audit.UNAUDITED
    assert PrecisionGuarantee.none("looked").audit is Audit.NO_STATIC_BOUND
    assert PrecisionGuarantee.none("looked").notes == "looked"
    assert PrecisionGuarantee.REFERENCE.max_ulp == 0
    assert not PrecisionGuarantee.PRIMITIVE_DETERMINISTIC_CPU.has_bound


STRICT = {
    n: getattr(m, n) for m in (claims, row_claims) for n in sorted(m.__all__) if n.startswith("STRICT_")
}


@pytest.mark.parametrize("claim", STRICT.values(), ids=STRICT.keys())
def test_strict_claims(claim: PrecisionGuarantee) -> None:
    assert claim.canonical
    assert claim.batch_invariant
    assert claim.bit_stable_on_same_hardware
    assert claim.has_bound
    assert claim.summary().endswith("strict")


def _one_ulp(call: BoundInputs) -> np.ndarray[Any, Any]:
    """What a claim of one ULP and no bound of its own allows."""
    least = float(ml_dtypes.finfo(call.dtype.numpy).smallest_subnormal)  # type: ignore[no-untyped-call]
    return np.maximum(2 * call.dtype.unit_roundoff * np.abs(call.reference), least)


BOUNDS: dict[str, Bound] = {
    "reduce_max_to_backward": _one_ulp,
    "affine": bounds.affine,
    "powi": bounds.power,
    "softmax_last_dim": row_bounds.softmax,
    "fused_linear": bounds.dot_product,
    "rms_norm_last_dim": row_bounds.rms_norm,
    "layer_norm_last_dim": row_bounds.layer_norm,
    "softmax_last_dim_backward": row_bounds.softmax_backward,
    "rms_norm_last_dim_backward": row_bounds.rms_norm_backward,
    "layer_norm_last_dim_backward": row_bounds.layer_norm_backward,
    "fused_softmax_cross_entropy": row_bounds.cross_entropy(DType.F64),
    "fused_softmax_cross_entropy_backward": row_bounds.cross_entropy_backward,
    "rope": row_bounds.rope,
    "powi_backward": bounds.power_backward,
    "inplace_affine": bounds.affine,
    "flash_attn": bounds.attention,
    "flash_attn_backward_q": attention_bounds.gradient_q,
    "flash_attn_backward_k": attention_bounds.gradient_k,
    "flash_attn_backward_v": attention_bounds.gradient_v,
    "paged_attn": attention_bounds.paged_attention,
    "matmul": bounds.blocked_product,
    "sum": bounds.tree_sum,
    "mean": bounds.tree_mean,
    "scatter_add": bounds.accumulation,
    "index_add": bounds.accumulation,
    "cumsum": bounds.running_sum,
    "prod": bounds.tree_product,
}
CASES = [
    (name, dtype, sample)
    for name in BOUNDS
    for dtype in (DType.F32, DType.F16, DType.BF16)
    for op in (find_op(name),)
    if op is not None and op.sample_inputs is not None
    for sample in op.sample_inputs(next(r for r in op.dtypes if r[0] is dtype), np.random.default_rng(8))
]


@pytest.mark.parametrize(
    ("name", "dtype", "sample"), CASES, ids=[f"{n}-{d.key}-{s.label}" for n, d, s in CASES]
)
def test_bound_is_finite_and_wide_enough(name: str, dtype: DType, sample: Any) -> None:
    """A bound is nowhere NaN where the result is finite, and nothing computed exactly and rounded once breaks it."""
    op = find_op(name)
    assert op is not None
    inputs, params = op.bind(sample.inputs, sample.params)
    dtype = next(row for row in op.dtypes if row[0] is dtype)[-1]
    module = importlib.import_module(f"cpu_reference.numpy.{name}")
    with np.errstate(all="ignore"):
        reference = np.asarray(module.reference(*inputs, **params))
        rounded = reference.astype(dtype.numpy).astype(np.float64)
    wide = tuple(None if x is None else np.asarray(x, dtype=np.float64) for x in inputs)
    allowed = BOUNDS[name](BoundInputs(wide, params, np.asarray(reference, dtype=np.float64), dtype))
    finite = np.isfinite(rounded)
    allowed = np.broadcast_to(allowed, reference.shape)
    assert not np.isnan(allowed[finite]).any()
    assert (allowed[finite] >= 0).all()
    if dtype is not DType.F32:
        assert (
            np.abs(rounded[finite] - np.asarray(reference, dtype=np.float64)[finite]) <= allowed[finite]
        ).all()


@pytest.mark.parametrize("cols", [1, 64, 65, 1000])
def test_bounds_hold_for_naive_float32(cols: int) -> None:
    """Summing one after another is a deeper order than the canonical one up to 64 columns; any order is within gamma_K."""
    rng = np.random.default_rng(cols)
    a, b = (
        rng.standard_normal((4, cols)).astype(np.float32),
        rng.standard_normal((cols, 5)).astype(np.float32),
    )
    total = np.zeros((4, 5), np.float32)
    for k in range(cols):
        total = total + a[:, k : k + 1] * b[k : k + 1]
    exact = a.astype(np.float64) @ b.astype(np.float64)
    inputs = BoundInputs((a.astype(np.float64), b.astype(np.float64)), {}, exact, DType.F32)
    error = np.abs(total - exact)
    assert (error <= bounds.dot_product(inputs)).all()
    size = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
    assert (bounds.dot_product(inputs) <= 1.02 * cols * 2.0**-24 * size + 1e-40).all()


def test_a_bound_catches_a_wrong_order_of_magnitude() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 257))
    y = np.exp(x - x.max(-1, keepdims=True))
    y /= y.sum(-1, keepdims=True)
    allowed = row_bounds.softmax(BoundInputs((x,), {}, y, DType.F32))
    assert (allowed < 1e-5 * y.max()).all()
    assert (allowed > 2.0**-26 * y).all()


def _fused() -> list[FusedOpEntry]:
    return list(default_fused_op_registry())


@pytest.mark.parametrize("op", _fused(), ids=lambda e: e.name)
def test_float32_decomposition_is_near_its_bound(op: FusedOpEntry) -> None:
    """The decomposition in float32 rounds more often than a kernel; it stays within eight bounds.

    Softmax far from the maximum is left out: the decomposition rounds the difference that the kernel does not.
    """
    assert op.sample_inputs is not None
    for sample in op.sample_inputs(op.dtypes[0], np.random.default_rng(2)):
        if (op.name, sample.label) == ("softmax_last_dim", "far_apart"):
            continue
        inputs, params = op.bind(sample.inputs, sample.params)
        module = importlib.import_module(f"cpu_reference.numpy.{op.name}")
        with np.errstate(all="ignore"):
            exact = np.asarray(module.reference(*inputs, **params), dtype=np.float64)
        values = tuple(None if x is None else ir.constant(x) for x in inputs)
        got = evaluate(op.decompose(builder(), values, params))[0]
        assert got is not None
        wide = tuple(None if x is None else np.asarray(x, dtype=np.float64) for x in inputs)
        bound = {**BOUNDS, "fused_softmax_cross_entropy": row_bounds.cross_entropy(DType.F32)}[op.name]
        allowed = bound(BoundInputs(wide, params, exact, DType.F32))
        finite = np.isfinite(exact) & np.isfinite(got)
        error = np.abs(got[finite] - exact[finite])
        assert (error <= 8 * np.broadcast_to(allowed, exact.shape)[finite]).all(), sample.label


@pytest.mark.parametrize("op", ["rms_norm_last_dim", "layer_norm_last_dim"])
@pytest.mark.parametrize("dtype", ["f32", "bf16", "f64"])
def test_a_norm_says_for_which_rows_it_holds(op: str, dtype: str) -> None:
    """Rows beyond the domain are far off; the claim in words says so, wherever it is shown."""
    row = np.array([[1, -2, 3, -1]], np.float64) * (1e200 if dtype == "f64" else 1e30)
    x = row.astype(DType.of(dtype).numpy)
    weights = () if op.startswith("rms") else (None, None)
    with np.errstate(all="ignore"):
        off = np.asarray(fv.call(op, x, *weights, device="cpu", eps=0.0), np.float64)
    assert not np.abs(off).max() > 0.5, "the norm holds here now: widen the domain"
    chosen = next(r for r in fv.explain(op, dtype=dtype, device="cpu").routes if r.verdict == "chosen")
    assert "for rows whose" in chosen.claim
    assert "1e19/sqrt(n)" in chosen.claim
    rows = [
        line
        for line in (Path(__file__).parents[2] / "docs/exactness.md").read_text().splitlines()
        if f"| {op} | cpu.c |" in line
    ]
    assert rows
    assert all("for rows whose" in line for line in rows)
