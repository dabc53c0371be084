"""Movement that keeps, fills, reverses or picks elements: triu, tril, flip, masked_fill, gather."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from fuelvk.base.dtypes import INDICES, DType
from fuelvk.base.errors import DTypeError, IndexOutOfRangeError, ParameterError, ShapeError
from fuelvk.base.shapes import Shape, broadcast_shapes, normalize_axes, normalize_axis
from fuelvk.graph import rules
from fuelvk.graph.ir import Builder, Value
from fuelvk.graph.samples import SampleInputs, label, normal, ones, specials
from fuelvk.graph.types import (
    Arg,
    Backward,
    DTypes,
    ErrorSample,
    Family,
    Param,
    Params,
    PrimitiveEntry,
    PrimitiveId,
    Sample,
    Shapes,
    Values,
)

ALL = tuple(DType)
Gradients = tuple[Value | None, ...]
Outputs = tuple[Value, ...]
Rng = np.random.Generator


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
    return PrimitiveEntry(
        id=PrimitiveId(op),
        family=Family.MOVEMENT,
        args=(Arg("x"),),
        params=(Param("k", "int", default=0),),
        shape_rule=_triangle_shape(op),
        dtype_rule=rules.uniform(op, ("x",), ALL),
        dtypes=rules.rows(ALL, 1),
        backward=_triangle_backward(op),
        sample_inputs=_triangle_samples,
        error_inputs=_triangle_errors(op),
        doc=f"x with zeros {side} diagonal k of its last two axes; k counts to the right.",
    )


# --- flip -------------------------------------------------------------------------------------------------------


def _flip_shape(shapes: Shapes, params: Params) -> tuple[Shape, ...]:
    x = rules.given(shapes[0])
    normalize_axes(params["axes"], len(x), "flip")
    return (x,)


def _flip_backward(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    return (g.flip(grads[0], axes=params["axes"]),)


def _flip_samples(dtypes: tuple[DType, ...], rng: Rng) -> Iterable[Sample]:
    cases: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
        ((), ()),
        ((0,), (0,)),
        ((1,), (0,)),
        ((7,), (-1,)),
        ((3, 4), (0,)),
        ((3, 4), (1,)),
        ((3, 4), ()),
        ((2, 3, 5), (0, 2)),
        ((2, 3, 4), (-1, 0, 1)),
        ((65, 31), (1,)),
        ((1025,), (0,)),
        ((2, 1, 3, 1, 2, 2), (5, 2)),
    )
    for shape, axes in cases:
        yield Sample(
            (normal(rng, shape, dtypes[0]),), {"axes": axes}, "-axis".join((label(shape), *map(str, axes)))
        )
    yield Sample((specials(dtypes[0]),), {"axes": 0}, "specials")


def _flip_errors() -> Iterable[ErrorSample]:
    x = ones((2, 3))
    yield ErrorSample((x,), {}, ParameterError, "flip needs parameter axes", "no_axes")
    yield ErrorSample((x,), {"axes": 2}, ParameterError, "flip.*axis out of range", "axis_range")
    yield ErrorSample((x,), {"axes": (0, -2)}, ParameterError, "flip.*repeated", "repeated")


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
    """Floats round any value; other types take what they hold."""
    dtype, value = dtypes[0], params["value"]
    assert dtype is not None
    if dtype.is_float:
        return
    low, high = 0, 1
    if dtype is not DType.BOOL:
        info = np.iinfo(dtype.numpy)
        low, high = int(info.min), int(info.max)
    if not (math.isfinite(value) and value == int(value) and low <= value <= high):
        raise ParameterError(
            f"masked_fill: {dtype.key} does not hold this value",
            seen=value,
            allowed=f"an integer from {low} to {high}",
        )


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


def _gather_dtype(dtypes: DTypes, params: Params) -> tuple[DType, ...]:
    rules.need_dtype("gather", "indices", dtypes[1], INDICES)
    assert dtypes[0] is not None
    return (dtypes[0],)


def _gather_backward(
    g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params
) -> Gradients:
    """Adds each gradient to the element it came from: where an index meets its place, summed over the indices.

    Duplicates are added in the order of a sum.
    """
    (x, indices), (dy,) = inputs, grads
    assert x is not None
    assert indices is not None
    assert dy is not None
    axis = normalize_axis(params["axis"], x.ndim)
    index_type = DType.I32 if indices.dtype is DType.U32 else indices.dtype
    order = (*(i for i in range(x.ndim) if i != axis), axis)
    back = tuple(order.index(i) for i in range(x.ndim))

    def columns(value: Value) -> Value:
        """The axis last, behind a new one of extent 1."""
        moved = g.transpose(value, axes=order)
        result: Value = g.reshape(moved, shape=(*moved.shape[:-1], 1, moved.shape[-1]))
        return result

    places = g.constant(np.arange(x.shape[axis], dtype=index_type.numpy).reshape(-1, 1))
    hit = g.equal(places, columns(rules.narrow(g, indices, index_type)))
    shared = g.where(hit, columns(dy), g.constant(0.0, dy.dtype))
    total = rules.narrow(g, g.sum(rules.wide(g, shared), axes=(-1,)), x.dtype)
    return rules.sum_to(g, g.transpose(total, axes=back), x.shape), None


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
    yield ErrorSample((x, good), {}, ParameterError, "gather needs parameter axis", "no_axis")
    yield ErrorSample((x, good), {"axis": 2}, ParameterError, "gather.*axis out of range", "axis_range")
    yield ErrorSample((x, good[0]), {"axis": 0}, ShapeError, "gather: indices has the wrong rank", "rank")
    yield ErrorSample((x, good[:, :3]), {"axis": 0}, ShapeError, "gather.*do not broadcast", "shapes")
    yield ErrorSample((x, ones((2, 4))), {"axis": 0}, DTypeError, "indices is f32", "float_indices")
    for bad in (-1, 3, 2**31 - 1):
        indices = np.array([[0, bad, 0, 0]])
        yield ErrorSample((x, indices), {"axis": 0}, IndexOutOfRangeError, "gather", f"index_{bad}")


def _entry(
    name: str,
    args: tuple[Arg, ...],
    param: Param,
    samples: SampleInputs,
    errors: Callable[[], Iterable[ErrorSample]],
    **more: object,
) -> PrimitiveEntry:
    return PrimitiveEntry(
        id=PrimitiveId(name),
        family=Family.MOVEMENT,
        args=args,
        params=(param,),
        sample_inputs=samples,
        error_inputs=errors,
        **more,  # type: ignore[arg-type]
    )


OPS = (
    _triangle("triu", "below"),
    _triangle("tril", "above"),
    _entry(
        "flip",
        (Arg("x"),),
        Param("axes", "ints"),
        _flip_samples,
        _flip_errors,
        shape_rule=_flip_shape,
        dtype_rule=rules.uniform("flip", ("x",), ALL),
        dtypes=rules.rows(ALL, 1),
        backward=_flip_backward,
        doc="x with the order of its elements reversed along the axes.",
    ),
    _entry(
        "masked_fill",
        (Arg("x"), Arg("mask")),
        Param("value", "number"),
        _fill_samples,
        _fill_errors,
        shape_rule=_fill_shape,
        dtype_rule=_fill_dtype,
        dtypes=tuple((d, DType.BOOL, d) for d in ALL),
        check=_fill_check,
        backward=_fill_backward,
        doc=(
            "x, but value where the mask holds, which broadcasts to x. Floats take the nearest number, F8E4M3 "
            "saturated; the others refuse what they do not hold."
        ),
    ),
    _entry(
        "gather",
        (Arg("x"), Arg("indices")),
        Param("axis", "int"),
        _gather_samples,
        _gather_errors,
        shape_rule=_gather_shape,
        dtype_rule=_gather_dtype,
        dtypes=tuple((d, i, d) for d in ALL for i in INDICES),
        backward=_gather_backward,
        doc=(
            "The elements of x at the given indices of one axis, as numpy.take_along_axis; an index outside [0, n) "
            "is refused."
        ),
    ),
)
