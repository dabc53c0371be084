"""Sums, products, means and extrema over any axes.

The canonical order of a sum or product of n elements: up to 16384 of them by 64 partials, element i in partial
i mod 64, each taken in increasing i, joined p with p+32, then +16, +8, +4, +2, +1. More are cut into blocks of 16384,
whose results are joined by the same rule. Several axes count as one, flattened in their order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.base.errors import DTypeError, ParameterError, ShapeError
from fuelvk.base.shapes import Shape, normalize_axes
from fuelvk.graph import rules
from fuelvk.graph.ir import Builder, Value
from fuelvk.graph.samples import TILE_EDGES, SampleInputs, label, normal, ones, specials
from fuelvk.graph.types import (
    Arg,
    Backward,
    Check,
    DTypes,
    ErrorSample,
    Family,
    Param,
    Params,
    PrimitiveEntry,
    PrimitiveId,
    Sample,
    ShapeRule,
    Shapes,
    Values,
)

NUMBERS = (*FLOATS, DType.I64, DType.I32)
Gradients = tuple[Value | None, ...]
Outputs = tuple[Value, ...]


def reduced_shape(shape: Shape, axes: Shape, keepdims: bool) -> Shape:
    """Returns ``shape`` with ``axes`` (counted from the front) reduced to 1 or dropped."""
    if keepdims:
        return tuple(1 if i in axes else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def _shape(op: str) -> ShapeRule:
    def rule(shapes: Shapes, params: Params) -> tuple[Shape, ...]:
        x = rules.given(shapes[0])
        return (reduced_shape(x, normalize_axes(params["axes"], len(x), op), params["keepdims"]),)

    return rule


def _not_over_nothing(op: str) -> Check:
    """Integers have no infinity to stand for the extremum of nothing."""

    def check(shapes: Shapes, dtypes: DTypes, params: Params) -> None:
        x, dtype = rules.given(shapes[0]), dtypes[0]
        axes = normalize_axes(params["axes"], len(x), op)
        if dtype is not None and dtype.is_integer and 0 in (x[a] for a in axes):
            raise ShapeError(
                f"{op}: an integer extremum over nothing", seen=f"x{x} over axes {axes}", allowed="n >= 1"
            )

    return check


def _spread(g: Builder, x: Value, value: Value, params: Params) -> Value:
    """Returns a reduced value broadcast back to the shape of x."""
    axes = normalize_axes(params["axes"], x.ndim)
    return rules.broadcasted(g, rules.reshaped(g, value, reduced_shape(x.shape, axes, True)), x.shape)


def _sum(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    (x,), (dy,) = inputs, grads
    assert x is not None
    assert dy is not None
    return (_spread(g, x, dy, params),)


def _mean(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    (x,), (dy,) = inputs, grads
    assert x is not None
    assert dy is not None
    count = math.prod(x.shape[a] for a in normalize_axes(params["axes"], x.ndim))
    scaled = g.div(rules.wide(g, dy), g.constant(float(count), x.dtype.accumulator))
    return (_spread(g, x, rules.narrow(g, scaled, x.dtype), params),)


def _max(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    """Shared equally among ties; a window that holds a NaN gets NaN everywhere: the fused op of its own."""
    (x,), (dy,) = inputs, grads
    assert x is not None
    assert dy is not None
    kept = reduced_shape(x.shape, normalize_axes(params["axes"], x.ndim), True)
    return (g.reduce_max_to_backward(x, rules.reshaped(g, dy, kept)),)


def _min(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    """``min(x) = -max(-x)``: the two signs cancel in the gradient."""
    (x,) = inputs
    assert x is not None
    return _max(g, (g.neg(x),), outputs, grads, params)


def _prod(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    """Each element's gradient is the product of all others, zeros and infinities among them included.

    Halves are multiplied until one element is left, and the way is walked back: what a half was multiplied by
    multiplies its gradient.
    """
    (x,), (dy,) = inputs, grads
    assert x is not None
    assert dy is not None
    axes = normalize_axes(params["axes"], x.ndim)
    order = (*(i for i in range(x.ndim) if i not in axes), *axes)
    moved = g.transpose(rules.wide(g, x), axes=order)
    kept = tuple(x.shape[i] for i in range(x.ndim) if i not in axes)
    count = math.prod(x.shape[i] for i in axes)
    if 0 in x.shape:
        return (rules.full(g, 0.0, x.shape, x.dtype),)
    level = rules.reshaped(g, moved, (*kept, count))
    one = rules.full(g, 1.0, (*kept, 1), level.dtype)
    halves: list[tuple[Value, Value, int]] = []
    while level.shape[-1] > 1:
        n = level.shape[-1]
        even = g.concat(level, one, axis=-1) if n % 2 else level
        first, second = (_part(g, even, i * even.shape[-1] // 2, even.shape[-1] // 2) for i in (0, 1))
        halves.append((first, second, n))
        level = g.mul(first, second)
    grad = rules.reshaped(g, rules.wide(g, dy), (*kept, 1))
    for first, second, n in reversed(halves):
        both = g.concat(g.mul(grad, second), g.mul(grad, first), axis=-1)
        grad = _part(g, both, 0, n)
    shaped = rules.reshaped(g, grad, tuple(x.shape[i] for i in order))
    back = g.transpose(shaped, axes=tuple(order.index(i) for i in range(x.ndim)))
    return (rules.narrow(g, back, x.dtype),)


def _part(g: Builder, value: Value, start: int, count: int) -> Value:
    """Returns ``count`` elements of the last axis."""
    lead = value.shape[:-1]
    result: Value = g.slice(value, starts=(0,) * len(lead) + (start,), stops=(*lead, start + count))
    return result


def _draw(op: str, rng: np.random.Generator, shape: Shape, dtype: DType) -> np.ndarray[Any, Any]:
    """Returns random values; those of a product are near 1 or -1, so that it stays in range."""
    if op != "prod" or dtype.is_integer:
        return normal(rng, shape, dtype)
    values = np.exp2(rng.uniform(-0.4, 0.4, shape)) * rng.choice((-1.0, 1.0), shape)
    return np.asarray(values, dtype.numpy)


def _samples_of(op: str) -> SampleInputs:
    def samples(dtypes: tuple[DType, ...], rng: np.random.Generator) -> Iterable[Sample]:
        dtype = dtypes[0]
        last = {"axes": (-1,)}
        for cols in TILE_EDGES:
            x = _draw(op, rng, (3, cols), dtype)
            yield Sample((x if op == "prod" else (x + 1).astype(x.dtype),), last, f"3x{cols}-last")
        cases: tuple[tuple[tuple[int, ...], tuple[int, ...] | None, bool], ...] = (
            ((), None, False),
            ((7,), None, True),
            ((2, 3, 5), None, False),
            ((2, 3, 5), (1,), True),
            ((2, 3, 5), (0, -1), False),
            ((2, 70, 3), (-2,), False),
            ((64, 130), (0,), False),
            ((651, 34), (0,), False),
            ((2, 1, 3, 2, 1, 2, 2, 3), (1, 3, 6), False),
            ((2, 16385), (1,), False),
            ((16390, 3), (0,), False),
            ((2, 3, 0), (1,), False),
            ((4, 5), (), True),
        )
        for shape, axes, keepdims in cases:
            name = "all" if axes is None else "none" if not axes else "_".join(map(str, axes))
            params = {"axes": axes, "keepdims": keepdims}
            yield Sample(
                (_draw(op, rng, shape, dtype),), params, f"{label(shape)}-axes_{name}{'-kept' * keepdims}"
            )
        if dtype.is_float or op in ("sum", "prod"):
            yield Sample((normal(rng, (2, 0), dtype),), last, "over_nothing")
            over = {"axes": (1, 2), "keepdims": False}
            yield Sample((normal(rng, (2, 3, 0), dtype),), over, "2x3x0-axes_1_2")
        if dtype.is_float:
            values = specials(dtype)
            alone = np.full((values.size, 5), 1 if op == "prod" else 0, dtype.numpy)
            alone[:, 3] = values
            yield Sample((alone,), last, "specials_one_per_row")
            ties = np.array([[1.0, 1.0, -2.0], [0.0, -0.0, -0.0], [-0.0, -0.0, -0.0], [np.nan, 1, 2]])
            yield Sample((ties.astype(dtype.numpy),), last, "ties_signed_zeros_nan")

    return samples


def _errors(op: str, *, floats_only: bool) -> Iterable[ErrorSample]:
    x = ones((2, 3))
    yield ErrorSample((x,), {"axes": 2}, ParameterError, f"{op}.*axis out of range", "axis_range")
    yield ErrorSample((x,), {"axes": (0, -2)}, ParameterError, f"{op}.*repeated", "axis_repeated")
    yield ErrorSample((x,), {"axes": "last"}, ParameterError, f"{op}.*axes.*wrong type", "axes_type")
    yield ErrorSample((ones((2,), DType.BOOL),), {}, DTypeError, f"{op}.*bool", "bool")
    if floats_only:
        yield ErrorSample((ones((2,), DType.I32),), {}, DTypeError, f"{op}.*i32", "integers")
    elif op not in ("sum", "prod"):
        yield ErrorSample((ones((0,), DType.I32),), {}, ShapeError, f"{op}.*nothing", "integers_over_nothing")


# --- argmax, argmin ---------------------------------------------------------------------------------------------


def _arg_axes(op: str, params: Params, rank: int) -> Shape:
    axis = params["axis"]
    return normalize_axes(None if axis is None else (axis,), rank, op)


def _arg_shape(op: str) -> ShapeRule:
    def rule(shapes: Shapes, params: Params) -> tuple[Shape, ...]:
        x = rules.given(shapes[0])
        axes = _arg_axes(op, params, len(x))
        if 0 in (x[a] for a in axes):
            raise ShapeError(f"{op} over nothing", seen=f"x{x} over axes {axes}", allowed="n >= 1")
        return (reduced_shape(x, axes, params["keepdims"]),)

    return rule


def _arg_samples(dtypes: tuple[DType, ...], rng: np.random.Generator) -> Iterable[Sample]:
    dtype = dtypes[0]
    cases: tuple[tuple[tuple[int, ...], int | None, bool], ...] = (
        ((), None, False),
        ((), None, True),
        ((1,), 0, False),
        ((3, 65), -1, False),
        ((3, 65), None, True),
        ((2, 3, 5), 1, True),
        ((2, 70, 3), -2, False),
        ((3, 1025), 1, False),
        ((5, 1030), 0, False),
        ((2, 16385), 1, False),
        ((0, 3), 1, False),
        ((2, 1, 3, 2, 1, 2, 2, 3), 3, False),
    )
    for shape, axis, keepdims in cases:
        params = {"axis": axis, "keepdims": keepdims}
        name = f"{label(shape)}-axis_{'all' if axis is None else axis}{'-kept' * keepdims}"
        yield Sample((normal(rng, shape, dtype),), params, name)
    yield Sample((np.round(normal(rng, (4, 300), dtype) * 2),), {"axis": 1}, "ties")
    yield Sample((specials(dtype),), {"axis": None}, "specials")
    rows = np.array(
        [
            [0.0, -0.0, 0.0],
            [-0.0, 0.0, 0.0],
            [1, np.nan, np.nan],
            [np.nan, np.inf, -np.inf],
            [-np.inf] * 3,
            [np.inf] * 3,
        ]
    )
    yield Sample((rows.astype(dtype.numpy),), {"axis": 1}, "zeros_nan_infinities")


def _arg_errors(op: str) -> Callable[[], Iterable[ErrorSample]]:
    def errors() -> Iterable[ErrorSample]:
        x = ones((2, 3))
        yield ErrorSample((x,), {"axis": 2}, ParameterError, f"{op}.*axis out of range", "axis_range")
        yield ErrorSample((x,), {"axis": 0.5}, ParameterError, f"{op}.*axis.*wrong type", "axis_type")
        yield ErrorSample((ones((2, 0)),), {"axis": 1}, ShapeError, f"{op} over nothing", "nothing")
        yield ErrorSample((ones((0,)),), {}, ShapeError, f"{op} over nothing", "all_of_nothing")
        yield ErrorSample((ones((2,), DType.I32),), {}, DTypeError, f"{op}.*i32", "integers")

    return errors


def _arg_entry(op: str, which: str) -> PrimitiveEntry:
    return PrimitiveEntry(
        id=PrimitiveId(op),
        family=Family.REDUCTION,
        args=(Arg("x"),),
        params=(Param("axis", "int", default=None, optional=True), Param("keepdims", "bool", default=False)),
        shape_rule=_arg_shape(op),
        dtype_rule=rules.uniform(op, ("x",), FLOATS, DType.I64),
        dtypes=rules.rows(FLOATS, 1, DType.I64),
        sample_inputs=_arg_samples,
        error_inputs=_arg_errors(op),
        doc=(
            f"Index of the {which} element along an axis (None is the flattened array): the lowest among equals; "
            "NaN wins; refused over nothing."
        ),
    )


def _entry(
    op: str, backward: Backward, allowed: tuple[DType, ...], check: Check | None, doc: str
) -> PrimitiveEntry:
    return PrimitiveEntry(
        id=PrimitiveId(op),
        family=Family.REDUCTION,
        args=(Arg("x"),),
        params=(Param("axes", "ints", default=None, optional=True), Param("keepdims", "bool", default=False)),
        shape_rule=_shape(op),
        dtype_rule=rules.uniform(op, ("x",), allowed),
        dtypes=rules.rows(allowed, 1),
        check=check,
        backward=backward,
        sample_inputs=_samples_of(op),
        error_inputs=lambda: _errors(op, floats_only=allowed is FLOATS),
        doc=doc,
    )


OPS = (
    _entry("sum", _sum, NUMBERS, None, "Sum over axes (None is all), 0 over nothing; integers wrap."),
    _entry("prod", _prod, NUMBERS, None, "Product over axes (None is all), 1 over nothing; integers wrap."),
    _entry("mean", _mean, FLOATS, None, "Sum over axes divided by the count, NaN over nothing."),
    _entry("max", _max, NUMBERS, _not_over_nothing("max"), "Largest element; NaN wins; -inf over nothing."),
    _entry("min", _min, NUMBERS, _not_over_nothing("min"), "Smallest element; NaN wins; +inf over nothing."),
    _arg_entry("argmax", "largest"),
    _arg_entry("argmin", "smallest"),
)
