"""Backward rules against central differences in float64, and the shape of what autograd builds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from cpu_reference.numpy.fused_softmax_cross_entropy import reference as cross_entropy
from fuelvk.base.dtypes import DType
from fuelvk.base.errors import ShapeError, UnsupportedError
from fuelvk.graph import ir
from fuelvk.graph.autograd import gradients
from fuelvk.graph.registry import builder, default_fused_op_registry, default_primitive_registry, find_op
from fuelvk.graph.types import DECOMPOSE, NOT_DIFFERENTIABLE, OpEntry, Sample
from tests.support.interpret import evaluate

Array = np.ndarray[Any, Any]
STEP = 1e-5
DIFFERENCE_ERROR = (
    2e-6  # of a central difference: step^2 times a third derivative, and rounding over the step
)
ACCEPTED = (DType.F64, DType.BOOL)
PROBES = 12
F32_RESULTS = ("fused_softmax_cross_entropy",)
MOST_ELEMENTS = 4000
NOT_SMOOTH = (
    "subnormals",
    "far_apart",
    "zeros-eps_zero",
    "constant_rows",
    "tied",
    "130x2",
)  # steep or undefined derivatives


def _smooth(array: Array, op: str) -> bool:
    """Leaves out inputs at which a derivative does not exist or a difference cannot be taken."""
    limit = 300 if op == "cast" else 60
    return bool((np.abs(array) < limit).all()) and (op not in ("sqrt", "rsqrt") or bool((array > 0.1).all()))


def _no_ties(op: str, arrays: Sequence[Array]) -> bool:
    if op in ("maximum", "minimum"):
        gap = np.abs(arrays[0] - arrays[1])
        return bool((gap > 10 * STEP).all())
    if op in ("abs", "relu", "sign", "step"):
        return bool((np.abs(arrays[0]) > 10 * STEP).all())
    if op == "max_pool2d":
        return bool((np.diff(np.sort(arrays[0], axis=None)) > 10 * STEP).all())
    if op in ("hard_sigmoid", "hard_swish"):
        kinks = {"hard_sigmoid": (2.5, 3.0, 0.6, 1 / 15), "hard_swish": (3.0,)}[op]
        return all(bool((np.abs(np.abs(arrays[0]) - end) > 10 * STEP).all()) for end in kinks)
    if op == "clamp":
        return all(bool((np.abs(arrays[0] - end) > 10 * STEP).all()) for end in (-1.0, 0.0, 0.1, 0.3, 2.5))
    if op in ("recip", "powi"):
        return bool((np.abs(arrays[0]) > 0.3).all())
    if op == "div":
        return bool((np.abs(arrays[1]) > 0.3).all())
    return True


def _cases() -> Iterator[tuple[OpEntry, Sample]]:
    for op in (*default_primitive_registry(), *default_fused_op_registry()):
        if op.backward is NOT_DIFFERENTIABLE or op.sample_inputs is None:
            continue
        row = next((r for r in op.dtypes if r[0] in ACCEPTED and r[-1] is DType.F64), None)
        if row is None:  # a result that is F32 whatever goes in: see test_cross_entropy
            assert op.name in F32_RESULTS, op.name
            continue
        for sample in op.sample_inputs(row, np.random.default_rng(3)):
            floats = [a for a in sample.inputs if a is not None and a.dtype == np.float64]
            total = sum(a.size for a in floats)
            if not 0 < total <= MOST_ELEMENTS or not all(_smooth(a, op.name) for a in floats):
                continue
            if any(part in sample.label for part in NOT_SMOOTH):
                continue
            if _no_ties(
                op.name, np.broadcast_arrays(*floats) if op.name in ("maximum", "minimum") else floats
            ):
                yield op, sample


CASES = list(_cases())


def _apply(
    op: OpEntry, arrays: Sequence[Array | None], params: dict[str, Any]
) -> tuple[ir.Value, list[ir.Value | None]]:
    bound, converted = op.bind(tuple(arrays), params)
    leaves = [None if a is None else ir.constant(a) for a in bound]
    return ir.apply(op, tuple(leaves), converted)[0], leaves


@pytest.mark.parametrize(("op", "sample"), CASES, ids=[f"{o.name}-{s.label}" for o, s in CASES])
def test_against_differences(op: OpEntry, sample: Sample) -> None:
    rng = np.random.default_rng(11)
    output, leaves = _apply(op, sample.inputs, sample.params)
    if not output.dtype.is_float or 0 in output.shape:
        pytest.skip("nothing to differentiate")
    seed = rng.standard_normal(output.shape)
    wrt = [v for v in leaves if v is not None and v.dtype is DType.F64]
    found = evaluate(gradients([output], [ir.constant(seed)], wrt, builder()))
    for value, gradient in zip(wrt, found, strict=True):
        base = value.node.data
        gradient = np.zeros_like(base) if gradient is None else gradient
        picks = rng.permutation(base.size)[:PROBES]
        for pick in picks:
            expected = _difference(output, value, base, seed, int(pick))
            got = float(gradient.reshape(-1)[pick])
            assert abs(got - expected) <= DIFFERENCE_ERROR * max(
                1.0, abs(expected), float(np.abs(gradient).max())
            ), (
                pick,
                got,
                expected,
            )


def _difference(output: ir.Value, value: ir.Value, base: Array, seed: Array, pick: int) -> float:
    sides = []
    for sign in (1, -1):
        moved = base.copy()
        moved.reshape(-1)[pick] += sign * STEP
        result = evaluate([output], {value: moved})[0]
        assert result is not None
        sides.append(float((result * seed).sum()))
    return (sides[0] - sides[1]) / (2 * STEP)


def test_every_differentiable_op_is_tried() -> None:
    tried = {op.name for op, _ in CASES}
    wanted = {
        op.name
        for op in (*default_primitive_registry(), *default_fused_op_registry())
        if op.backward is not NOT_DIFFERENTIABLE and op.name not in F32_RESULTS
    }
    assert wanted <= tried


def _grad_of(name: str, x: Array, **params: Any) -> Array:
    value = ir.constant(x)
    output = getattr(builder(), name)(value, **params)
    seed = ir.constant(np.ones(output.shape, x.dtype))
    result = evaluate(gradients([output], [seed], [value], builder()))[0]
    assert result is not None
    return result


def test_extrema_share_among_ties() -> None:
    x = np.array([[3.0, 1.0, 3.0, 3.0], [np.nan, 1.0, 2.0, 5.0], [0.0, -0.0, -1.0, -2.0]])
    got = _grad_of("max", x, axes=(-1,))
    assert got[0].tolist() == [1 / 3, 0, 1 / 3, 1 / 3]
    assert np.isnan(got[1]).all()
    assert got[2].tolist() == [0.5, 0.5, 0, 0]
    got = _grad_of("min", -x, axes=(-1,))
    assert got[0].tolist() == [1 / 3, 0, 1 / 3, 1 / 3]
    assert np.isnan(got[1]).all()
    assert got[2].tolist() == [0.5, 0.5, 0, 0]


def test_a_product_with_zeros_has_a_gradient() -> None:
    x = np.array([[2.0, 3.0, 5.0, 7.0, 11.0], [2.0, 0.0, 5.0, 7.0, 11.0], [0.0, 3.0, -0.0, 7.0, 11.0]])
    got = _grad_of("prod", x, axes=(-1,))
    assert got[0].tolist() == [1155, 770, 462, 330, 210]
    assert got[1].tolist() == [0, 770, 0, 0, 0]
    assert got[2].tolist() == [0, 0, 0, 0, 0]
    assert _grad_of("prod", np.array([np.inf, 2.0, 3.0])).tolist() == [6, np.inf, np.inf]
    assert _grad_of("prod", np.array([[4.0]]), axes=(0,)).tolist() == [[1]]


def test_pointwise_extremum_gives_half_at_a_tie() -> None:
    a, b = ir.constant(np.array([1.0, 2.0, np.nan])), ir.constant(np.array([1.0, 1.0, 0.0]))
    output = builder().maximum(a, b)
    da, db = evaluate(gradients([output], [ir.constant(np.ones(3))], [a, b], builder()))
    assert da is not None
    assert db is not None
    assert da[:2].tolist() == [0.5, 1.0]
    assert db[:2].tolist() == [0.5, 0.0]
    assert np.isnan(da[2])


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
def test_gelu_derivative_at_its_limits(dtype: type) -> None:
    x = np.array([np.inf, -np.inf, 0.0, np.finfo(dtype).smallest_subnormal, 300.0, -300.0, np.nan], dtype)
    got = _grad_of("gelu_erf", x)
    assert got[:6].tolist() == [1, 0, 0.5, 0.5, 1, 0]
    assert np.isnan(got[6])


def test_gradient_through_shared_and_chained_values() -> None:
    g = builder()
    x = ir.constant(np.array([0.5, -1.5]))
    y = g.exp(x)
    z = g.add(g.mul(y, y), g.mul(x, y))
    dx, dy = evaluate(gradients([z], [ir.constant(np.ones(2))], [x, y], g))
    e = np.exp(np.array([0.5, -1.5]))
    assert dx is not None
    assert dy is not None
    np.testing.assert_allclose(dx, 2 * e * e + e + np.array([0.5, -1.5]) * e, rtol=1e-14)
    np.testing.assert_allclose(dy, 2 * e + np.array([0.5, -1.5]), rtol=1e-14)


def test_no_path_gives_none() -> None:
    g = builder()
    x, y = ir.constant(np.ones(2)), ir.constant(np.ones(2))
    assert gradients([g.exp(x)], [ir.constant(np.ones(2))], [y], g) == [None]
    assert gradients([g.exp(x)], [None], [x], g) == [None]
    flag = g.where(g.less(x, y), x, y)
    assert gradients([flag], [ir.constant(np.ones(2))], [x], g)[0] is not None


def test_refusals() -> None:
    g = builder()
    x = ir.constant(np.ones(2))
    with pytest.raises(ShapeError, match="gradient has another shape"):
        gradients([g.exp(x)], [ir.constant(np.ones(3))], [x], g)
    flag = g.less(x, x)
    with pytest.raises(UnsupportedError, match="less has no gradient"):
        gradients([flag], [ir.constant(np.ones(2, np.bool_))], [x], g)


def test_by_decomposition_equals_the_rule() -> None:
    """A fused op without a rule of its own is differentiated through its primitives, also when inputs depend on each other."""
    from dataclasses import replace

    op = find_op("softmax_last_dim")
    assert op is not None
    bare = replace(op, backward=DECOMPOSE)
    g = builder()
    x = ir.constant(np.random.default_rng(0).standard_normal((3, 5)))
    seed = ir.constant(np.random.default_rng(1).standard_normal((3, 5)))
    results: list[Array | None] = []
    for entry in (op, bare):
        y = ir.apply(entry, (g.mul(x, x),), {})[0]
        results += evaluate(gradients([y], [seed], [x], g))
    assert results[0] is not None
    np.testing.assert_allclose(results[0], results[1], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy(reduction: str) -> None:
    """The gradient against central differences of the float64 oracle; the op itself rounds its loss to F32."""
    rng = np.random.default_rng(4)
    x, targets = rng.standard_normal((5, 7)) * 3, np.array([0, 6, -100, 3, 3])
    params = {"reduction": reduction, "ignore_index": -100}
    seed = np.asarray(rng.standard_normal((5,) if reduction == "none" else ()), np.float32)
    value = ir.constant(x)
    loss = builder().fused_softmax_cross_entropy(value, ir.constant(targets), **params)
    found = evaluate(gradients([loss], [ir.constant(seed)], [value], builder()))[0]
    assert found is not None
    for place in np.ndindex(x.shape):
        sides = []
        for sign in (1, -1):
            moved = x.copy()
            moved[place] += sign * STEP
            sides.append(float((cross_entropy(moved, targets, **params) * seed).sum()))
        assert abs(found[place] - (sides[0] - sides[1]) / (2 * STEP)) < DIFFERENCE_ERROR
