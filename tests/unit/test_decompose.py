"""Decompositions against the float64 oracle of the fused op, over all of its samples and dtypes."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from fuelvk.base.dtypes import DType
from fuelvk.graph import ir
from fuelvk.graph.registry import builder, default_fused_op_registry
from fuelvk.graph.types import Family, FusedOpEntry, Sample
from tests.support.interpret import evaluate

Array = np.ndarray[Any, Any]

# What a decomposition may be off, in unit roundoffs of the accumulator relative to the row's largest number, and of
# the output type. It rounds in between, so it is held to less than a kernel.
ACCUMULATOR_ROUNDOFFS = 4000
CASES = [
    (op, dtypes, sample)
    for op in default_fused_op_registry()
    for dtypes in op.dtypes
    for sample in (op.sample_inputs(dtypes, np.random.default_rng(5)) if op.sample_inputs else ())
]


@pytest.mark.parametrize(
    ("op", "dtypes", "sample"), CASES, ids=[f"{o.name}-{d[0].key}-{s.label}" for o, d, s in CASES]
)
def test_decomposition(op: FusedOpEntry, dtypes: tuple[DType, ...], sample: Sample) -> None:
    inputs, params = op.bind(sample.inputs, sample.params)
    values = tuple(None if a is None else ir.constant(a) for a in inputs)
    expected_shapes = op.shape_rule(tuple(None if v is None else v.shape for v in values), params)
    parts = op.decompose(builder(), values, params)
    assert tuple(p.shape for p in parts) == expected_shapes
    assert tuple(p.dtype for p in parts) == op.dtype_rule(
        tuple(None if v is None else v.dtype for v in values), params
    )
    got = evaluate(parts)[0]
    assert got is not None
    wanted = _oracle(op, inputs, params)
    with np.errstate(all="ignore"):
        rounded = wanted.astype(got.dtype).astype(np.longdouble)
        close = got.astype(np.longdouble)
    finite = np.isfinite(rounded)
    assert (np.isnan(close) == np.isnan(rounded)).all(), "NaN in other places"
    assert (close[~finite & ~np.isnan(rounded)] == rounded[~finite & ~np.isnan(rounded)]).all()
    if finite.any():
        size = _size(op, inputs, np.abs(rounded[finite]).max())
        u_in, u_out = dtypes[0].accumulator.unit_roundoff, dtypes[-1].unit_roundoff
        error = np.abs(close[finite] - wanted[finite])
        allowed = (
            ACCUMULATOR_ROUNDOFFS * u_in * size + 2 * u_out * np.abs(rounded[finite]) + _least(got.dtype)
        )
        assert (error <= allowed).all(), float(error.max())


def _oracle(op: FusedOpEntry, inputs: tuple[Array | None, ...], params: dict[str, Any]) -> Array:
    module = importlib.import_module(f"cpu_reference.numpy.{op.name}")
    with np.errstate(all="ignore"):
        return np.asarray(module.reference(*inputs, **params))


def _size(op: FusedOpEntry, inputs: tuple[Array | None, ...], largest: float) -> float:
    """Returns the size errors are relative to: a product's and a gradient's is that of its terms."""
    if op.family is Family.BACKWARD and inputs[1] is not None:
        g = np.abs(inputs[1].astype(np.float64))
        return float(max(largest, 16 * g[np.isfinite(g)].max(initial=0.0)))
    if op.name != "fused_linear":
        return float(largest)
    with np.errstate(all="ignore"):
        a, b = (np.abs(np.asarray(x, dtype=np.float64)) for x in inputs[:2])
        terms = np.where(np.isfinite(a), a, 0) @ np.where(np.isfinite(b), b, 0)
    return float(max(largest, terms.max(initial=0.0)))


def _least(dtype: np.dtype[Any]) -> float:
    import ml_dtypes

    return 2 * float(ml_dtypes.finfo(dtype).smallest_subnormal)
