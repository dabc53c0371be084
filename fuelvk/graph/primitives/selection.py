"""Movement that keeps, fills or picks elements: triu, tril, masked_fill, index_select, gather."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from fuelvk.base.dtypes import DType
from fuelvk.base.errors import DTypeError, IndexOutOfRangeError, ParameterError, ShapeError
from fuelvk.base.shapes import Shape, broadcast_shapes, normalize_axis
from fuelvk.graph import rules
from fuelvk.graph.ir import Builder
from fuelvk.graph.primitives._moving import (
    ALL,
    INDEXED,
    Gradients,
    Outputs,
    Rng,
    index_errors,
    indexed_dtype,
    indices_inside,
    moving,
    need_held,
)
from fuelvk.graph.samples import label, normal, ones, specials
from fuelvk.graph.types import (
    Backward,
    DTypes,
    ErrorSample,
    Param,
    Params,
    PrimitiveEntry,
    Sample,
    Shapes,
    Values,
)

# --- triu, tril -------------------------------------------------------------------------------------------------


def _triangle_shape(op: str) -> Callable[[Shapes, Params], tuple[Shape, ...]]:
    def rule(shapes: Shapes, params: Params) -> tuple[Shape, ...]:
        x = rules.given(shapes[0])
        rules.need_rank(op, "x", x, 2)
        return (x,)

    return rule


def _triangle_backward(op: str) -> Backward:
    def backward(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
        return (getattr(g, op)(grads[0], k=params["k"]),)

    return backward


def _triangle_samples(dtypes: tuple[DType, ...], rng: Rng) -> Iterable[Sample]:
    dtype = dtypes[0]
    cases: tuple[tuple[tuple[int, ...], int], ...] = (
        ((1, 1), 0),
        ((0, 3), 0),
        ((3, 0), 1),
        ((4, 4), 0),
        ((2, 3, 5), 1),
        ((2, 5, 3), -2),
        ((65, 63), 0),
        ((3, 1025), 7),
        ((7, 7), -7),
        ((7, 7), 7),
        ((4, 6), 2**40),
        ((4, 6), -(2**40)),
    )
    for shape, k in cases:
        yield Sample((normal(rng, shape, dtype),), {"k": k}, f"{label(shape)}-k{k}")
    row = specials(dtype)
    yield Sample((np.stack([row, row]),), {}, "specials")


def _triangle_errors(op: str) -> Callable[[], Iterable[ErrorSample]]:
    def errors() -> Iterable[ErrorSample]:
        yield ErrorSample((ones((3,)),), {}, ShapeError, f"{op}.*rank", "vector")
        yield ErrorSample((ones((3, 3)),), {"k": 0.5}, ParameterError, "k has the wrong type", "fraction")

    return errors


def _triangle(op: str, side: str) -> PrimitiveEntry:
    return moving(
        op,
        ("x",),
        (Param("k", "int", default=0),),
        _triangle_shape(op),
        _triangle_backward(op),
        _triangle_samples,
        _triangle_errors(op),
        f"x with zeros {side} diagonal k of its last two axes; k counts to the right.",
    )


# --- masked_fill ------------------------------------------------------------------------------------------------


def _fill_shape(shapes: Shapes, params: Params) -> tuple[Shape, ...]:
    x, mask = rules.given(shapes[0]), rules.given(shapes[1])
    try:
        fits = broadcast_shapes(x, mask) == x
    except ShapeError:
        fits = False
    if not fits:
        raise ShapeError(
            "masked_fill: the mask does not broadcast to x",
            seen=f"x{x} and mask{mask}",
            allowed="mask extents of x's or 1",
        )
    return (x,)


def _fill_dtype(dtypes: DTypes, params: Params) -> tuple[DType, ...]:
    rules.need_dtype("masked_fill", "mask", dtypes[1], (DType.BOOL,))
    assert dtypes[0] is not None
    return (dtypes[0],)


def _fill_check(shapes: Shapes, dtypes: DTypes, params: Params) -> None:
    need_held("masked_fill", dtypes[0], params["value"])


def _fill_backward(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    return g.masked_fill(grads[0], inputs[1], value=0), None


def _fill_samples(dtypes: tuple[DType, ...], rng: Rng) -> Iterable[Sample]:
    dtype = dtypes[0]
    values = (0.1, -1e-3, math.inf, -math.inf, math.nan, 70001.0) if dtype.is_float else (1,)
    cases: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
        ((), ()),
        ((0,), (0,)),
        ((1,), (1,)),
        ((7,), ()),
        ((3, 5), (5,)),
        ((3, 5), (3, 1)),
        ((2, 3, 1, 5, 2, 3), (2, 1, 1, 5, 1, 3)),
        ((2, 0, 3), (3,)),
        ((33, 31), (33, 31)),
        ((1025,), (1025,)),
        ((3001,), (3001,)),
    )
    for shape, masked in cases:
        mask = rng.integers(0, 2, masked).astype(np.bool_)
        yield Sample(
            (normal(rng, shape, dtype), mask), {"value": values[0]}, f"{label(shape)}-mask{label(masked)}"
        )
    x = specials(dtype)
    for value in values:
        yield Sample((x, np.arange(x.size) % 3 == 0), {"value": value}, f"specials-{value}")


def _fill_errors() -> Iterable[ErrorSample]:
    x, mask = ones((2, 3)), np.ones((2, 3), np.bool_)
    yield ErrorSample((x, mask), {}, ParameterError, "masked_fill needs parameter value", "no_value")
    yield ErrorSample((x, ones((2, 3))), {"value": 0}, DTypeError, "mask is f32", "float_mask")
    yield ErrorSample((x, mask[:, :2]), {"value": 0}, ShapeError, "mask does not broadcast", "shapes")
    yield ErrorSample((x[0], mask), {"value": 0}, ShapeError, "mask does not broadcast", "larger_mask")
    bytes_ = ones((2, 3), DType.U8)
    for bad in (256, -1, 0.5, math.nan):
        yield ErrorSample((bytes_, mask), {"value": bad}, ParameterError, "u8 does not hold", f"u8_{bad}")


# --- index_select -----------------------------------------------------------------------------------------------


def _select_shape(shapes: Shapes, params: Params) -> tuple[Shape, ...]:
    x, indices = rules.given(shapes[0]), rules.given(shapes[1])
    rules.need_rank("index_select", "x", x, 1)
    rules.need_rank("index_select", "indices", indices, 1, 1)
    axis = normalize_axis(params["axis"], len(x), "index_select")
    return ((*x[:axis], indices[0], *x[axis + 1 :]),)


def _select_backward(
    g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params
) -> Gradients:
    """Adds each gradient row to the row it came from, duplicates in the order of their indices."""
    (x, indices), (dy,) = inputs, grads
    assert x is not None
    assert dy is not None
    return g.index_add(rules.full(g, 0.0, x.shape, x.dtype), indices, dy, axis=params["axis"]), None


def _select_samples(dtypes: tuple[DType, ...], rng: Rng) -> Iterable[Sample]:
    dtype, index = dtypes[0], dtypes[1]
    cases: tuple[tuple[tuple[int, ...], int, int], ...] = (
        ((1,), 0, 1),
        ((7,), -1, 12),
        ((5, 3), 0, 0),
        ((5, 0), 0, 4),
        ((31, 65), 0, 17),
        ((3, 5, 7), 1, 9),
        ((2, 3, 11), -1, 33),
        ((9, 1025), 0, 3),
    )
    for shape, axis, count in cases:
        picks = rng.integers(0, shape[axis], count).astype(index.numpy)
        yield Sample(
            (normal(rng, shape, dtype), picks), {"axis": axis}, f"{label(shape)}-axis{axis}-pick{count}"
        )
    ends = np.array([6, 0, 6, 6, 0], dtype=index.numpy)
    yield Sample((normal(rng, (7, 2), dtype), ends), {"axis": 0}, "ends_and_duplicates")


def _select_errors() -> Iterable[ErrorSample]:
    yield from index_errors("index_select", np.array([0, 1]))
    x, good = ones((3, 4)), np.array([0, 1])
    yield ErrorSample((x, np.array([[0]])), {"axis": 0}, ShapeError, "indices.*rank", "indices_rank")
    yield ErrorSample((x[0, 0], good), {"axis": 0}, ShapeError, "index_select.*rank", "scalar_x")
    empty = (ones((0, 4)), good)
    yield ErrorSample(empty, {"axis": 0}, IndexOutOfRangeError, "the axis is empty", "empty_axis")


# --- gather -----------------------------------------------------------------------------------------------------


def _gather_shape(shapes: Shapes, params: Params) -> tuple[Shape, ...]:
    x, indices = rules.given(shapes[0]), rules.given(shapes[1])
    rules.need_rank("gather", "x", x, 1)
    rules.need_rank("gather", "indices", indices, len(x), len(x))
    axis = normalize_axis(params["axis"], len(x), "gather")
    try:
        rest = broadcast_shapes((*x[:axis], 1, *x[axis + 1 :]), (*indices[:axis], 1, *indices[axis + 1 :]))
    except ShapeError:
        raise ShapeError(
            "gather: x and indices do not broadcast",
            seen=f"x{x} and indices{indices}",
            allowed=f"equal extents or 1 on every axis but {axis}",
        ) from None
    return ((*rest[:axis], indices[axis], *rest[axis + 1 :]),)


def _gather_backward(
    g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params
) -> Gradients:
    """Adds each gradient to the element it came from, duplicates in the order of their indices."""
    (x, indices), (dy,) = inputs, grads
    assert x is not None
    assert indices is not None
    assert dy is not None
    axis = normalize_axis(params["axis"], x.ndim)
    whole = (*dy.shape[:axis], x.shape[axis], *dy.shape[axis + 1 :])
    nothing = rules.full(g, 0.0, whole, dy.dtype)
    total = g.scatter_add(nothing, rules.broadcasted(g, indices, dy.shape), dy, axis=axis)
    return rules.sum_to(g, total, x.shape), None


def _gather_samples(dtypes: tuple[DType, ...], rng: Rng) -> Iterable[Sample]:
    dtype, index = dtypes[0], dtypes[1]
    cases: tuple[tuple[tuple[int, ...], tuple[int, ...], int], ...] = (
        ((1,), (1,), 0),
        ((7,), (12,), -1),
        ((5, 3), (4, 3), 0),
        ((5, 3), (0, 3), 0),
        ((5, 0), (4, 0), 0),
        ((4, 65), (4, 17), 1),
        ((3, 5, 7), (3, 9, 7), 1),
        ((3, 5, 7), (3, 2, 1), 1),
        ((1, 5, 7), (3, 2, 7), -2),
        ((2, 3, 2, 4, 2, 3, 2), (2, 1, 2, 5, 2, 1, 2), 3),
        ((9, 1025), (3, 1025), 0),
    )
    for shape, picked, axis in cases:
        picks = rng.integers(0, shape[axis], picked).astype(index.numpy)
        named = f"{label(shape)}-axis{axis}-pick{label(picked)}"
        yield Sample((normal(rng, shape, dtype), picks), {"axis": axis}, named)
    ends = np.array([[6, 0], [0, 6], [6, 6]], dtype=index.numpy)
    yield Sample((normal(rng, (7, 2), dtype), ends), {"axis": 0}, "ends_and_duplicates")


def _gather_errors() -> Iterable[ErrorSample]:
    x, good = ones((3, 4)), np.zeros((2, 4), np.int64)
    yield from index_errors("gather", good)
    yield ErrorSample((x, good[0]), {"axis": 0}, ShapeError, "gather: indices has the wrong rank", "rank")
    yield ErrorSample((x, good[:, :3]), {"axis": 0}, ShapeError, "gather.*do not broadcast", "shapes")


OPS = (
    _triangle("triu", "below"),
    _triangle("tril", "above"),
    moving(
        "masked_fill",
        ("x", "mask"),
        (Param("value", "number"),),
        _fill_shape,
        _fill_backward,
        _fill_samples,
        _fill_errors,
        "x, but value where the mask holds, which broadcasts to x. Floats take the nearest number, F8E4M3 "
        "saturated; the others refuse what they do not hold.",
        dtype_rule=_fill_dtype,
        dtypes=tuple((d, DType.BOOL, d) for d in ALL),
        check=_fill_check,
    ),
    moving(
        "index_select",
        ("x", "indices"),
        (Param("axis", "int"),),
        _select_shape,
        _select_backward,
        _select_samples,
        _select_errors,
        "The entries of x at the given indices of one axis; an index outside [0, n) is refused.",
        dtype_rule=indexed_dtype("index_select"),
        dtypes=INDEXED,
        value_check=indices_inside("index_select"),
    ),
    moving(
        "gather",
        ("x", "indices"),
        (Param("axis", "int"),),
        _gather_shape,
        _gather_backward,
        _gather_samples,
        _gather_errors,
        "The elements of x at the given indices of one axis, as numpy.take_along_axis; an index outside [0, n) "
        "is refused.",
        dtype_rule=indexed_dtype("gather"),
        dtypes=INDEXED,
        value_check=indices_inside("gather"),
    ),
)
