"""Movement of elements: copy, index_select, concat. Kernels go by element size, not by dtype."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from fuelvk.base.dtypes import INDICES, DType
from fuelvk.base.errors import DTypeError, IndexOutOfRangeError, ParameterError, ShapeError
from fuelvk.base.shapes import Shape, normalize_axis
from fuelvk.graph import rules
from fuelvk.graph.ir import Builder, Value
from fuelvk.graph.samples import label, normal, ones, specials
from fuelvk.graph.types import (
    Arg,
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


def _copy_backward(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    return (grads[0],)


def _copy_samples(dtypes: tuple[DType, ...], rng: Rng) -> Iterable[Sample]:
    dtype = dtypes[0]
    for shape in ((), (0,), (1,), (3, 5), (63,), (65,), (1025,)):
        yield Sample((normal(rng, shape, dtype),), {}, label(shape))
    yield Sample((specials(dtype),), {}, "specials")


# --- index_select -----------------------------------------------------------------------------------------------


def _select_shape(shapes: Shapes, params: Params) -> tuple[Shape, ...]:
    x, indices = rules.given(shapes[0]), rules.given(shapes[1])
    rules.need_rank("index_select", "x", x, 1)
    rules.need_rank("index_select", "indices", indices, 1, 1)
    axis = normalize_axis(params["axis"], len(x), "index_select")
    return ((*x[:axis], indices[0], *x[axis + 1 :]),)


def _select_dtype(dtypes: DTypes, params: Params) -> tuple[DType, ...]:
    rules.need_dtype("index_select", "indices", dtypes[1], INDICES)
    assert dtypes[0] is not None
    return (dtypes[0],)


def _select_backward(
    g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params
) -> Gradients:
    """Adds each gradient row to the row it came from: a product with the one-hot matrix of the indices.

    Duplicates are added in the product's order. An infinite or NaN gradient spreads along its column.
    """
    (x, indices), (dy,) = inputs, grads
    assert x is not None
    assert indices is not None
    assert dy is not None
    axis = normalize_axis(params["axis"], x.ndim)
    extent, count = x.shape[axis], indices.shape[0]
    index_type = DType.I32 if indices.dtype is DType.U32 else indices.dtype
    places = g.constant(np.arange(extent, dtype=index_type.numpy).reshape(-1, 1))
    hit = g.equal(places, g.reshape(rules.narrow(g, indices, index_type), shape=(1, count)))
    one_hot = g.where(hit, g.constant(1.0, x.dtype), g.constant(0.0, x.dtype))
    order = (axis, *(i for i in range(x.ndim) if i != axis))
    back = tuple(order.index(i) for i in range(x.ndim))
    front = g.transpose(dy, axes=order)
    rest = front.shape[1:]
    flat = g.reshape(front, shape=(count, int(np.prod(rest, dtype=np.int64))))
    return g.transpose(g.reshape(g.matmul(one_hot, flat), shape=(extent, *rest)), axes=back), None


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
    x, good = ones((3, 4)), np.array([0, 1])
    yield ErrorSample((x, good), {}, ParameterError, "index_select needs parameter axis", "no_axis")
    yield ErrorSample((x, good), {"axis": 2}, ParameterError, "index_select.*axis out of range", "axis_range")
    yield ErrorSample((x, np.array([[0]])), {"axis": 0}, ShapeError, "indices.*rank", "indices_rank")
    yield ErrorSample((x, ones((2,))), {"axis": 0}, DTypeError, "indices is f32", "float_indices")
    yield ErrorSample((x[0, 0], good), {"axis": 0}, ShapeError, "index_select.*rank", "scalar_x")
    for bad in (-1, 3, 2**31 - 1):
        indices = np.array([0, bad])
        yield ErrorSample((x, indices), {"axis": 0}, IndexOutOfRangeError, "index_select.*3", f"index_{bad}")


# --- concat -----------------------------------------------------------------------------------------------------


def _concat_shape(shapes: Shapes, params: Params) -> tuple[Shape, ...]:
    first = rules.given(shapes[0])
    rules.need_rank("concat", "xs[0]", first, 1)
    axis = normalize_axis(params["axis"], len(first), "concat")
    for index, shape in enumerate(shapes):
        other = rules.given(shape)
        if len(other) != len(first) or any(
            a != b for i, (a, b) in enumerate(zip(first, other, strict=True)) if i != axis
        ):
            raise ShapeError(
                "concat: the inputs differ on another axis than the joined one",
                seen=f"xs[0]{first} and xs[{index}]{other}",
                allowed=f"one rank, and equal extents on every axis but {axis}",
            )
    total = sum(rules.given(s)[axis] for s in shapes)
    return ((*first[:axis], total, *first[axis + 1 :]),)


def _concat_backward(
    g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params
) -> Gradients:
    (dy,) = grads
    assert dy is not None
    axis = normalize_axis(params["axis"], dy.ndim)
    result: list[Value | None] = []
    at = 0
    for x in inputs:
        assert x is not None
        starts = tuple(at if i == axis else 0 for i in range(dy.ndim))
        stops = tuple(s + n for s, n in zip(starts, x.shape, strict=True))
        result.append(g.slice(dy, starts=starts, stops=stops))
        at += x.shape[axis]
    return tuple(result)


def _concat_samples(dtypes: tuple[DType, ...], rng: Rng) -> Iterable[Sample]:
    dtype = dtypes[0]
    cases: tuple[tuple[tuple[tuple[int, ...], ...], int], ...] = (
        (((3,),), 0),
        (((1,), (1,)), 0),
        (((0,), (5,), (0,)), -1),
        (((2, 3), (2, 5)), 1),
        (((2, 3), (4, 3), (1, 3)), 0),
        (((2, 1, 3), (2, 63, 3)), 1),
        (((2, 3, 7), (2, 3, 65), (2, 3, 1), (2, 3, 2)), -1),
        (((1025,), (127,)), 0),
    )
    for shapes, axis in cases:
        inputs = tuple(normal(rng, s, dtype) for s in shapes)
        yield Sample(inputs, {"axis": axis}, f"{'-'.join(map(label, shapes))}-axis{axis}")
    yield Sample(tuple(normal(rng, (2, 3), dtype) for _ in range(9)), {"axis": 1}, "nine_inputs")


def _concat_errors() -> Iterable[ErrorSample]:
    x = ones((2, 3))
    yield ErrorSample((), {"axis": 0}, ParameterError, "concat needs input xs", "no_inputs")
    yield ErrorSample((x, ones((2, 4))), {"axis": 0}, ShapeError, r"concat.*\(2, 4\)", "other_axis")
    yield ErrorSample((x, ones((2,))), {"axis": 0}, ShapeError, "concat.*rank", "ranks")
    yield ErrorSample((x, x), {"axis": 2}, ParameterError, "concat.*axis out of range", "axis_range")
    yield ErrorSample(
        (x, ones((2, 3), DType.F16)), {"axis": 0}, DTypeError, "concat.*f32.*f16", "mixed_dtypes"
    )
    yield ErrorSample((x, None), {"axis": 0}, ParameterError, "xs may not be None", "missing_input")


OPS = (
    PrimitiveEntry(
        id=PrimitiveId("copy"),
        family=Family.MOVEMENT,
        args=(Arg("x"),),
        shape_rule=rules.like_first,
        dtype_rule=rules.uniform("copy", ("x",), ALL),
        dtypes=rules.rows(ALL, 1),
        backward=_copy_backward,
        sample_inputs=_copy_samples,
        doc="The same elements in a contiguous buffer of their own.",
    ),
    PrimitiveEntry(
        id=PrimitiveId("index_select"),
        family=Family.MOVEMENT,
        args=(Arg("x"), Arg("indices")),
        params=(Param("axis", "int"),),
        shape_rule=_select_shape,
        dtype_rule=_select_dtype,
        dtypes=tuple((d, i, d) for d in ALL for i in INDICES),
        backward=_select_backward,
        sample_inputs=_select_samples,
        error_inputs=_select_errors,
        doc="The entries of x at the given indices of one axis; an index outside [0, n) is refused.",
    ),
    PrimitiveEntry(
        id=PrimitiveId("concat"),
        family=Family.MOVEMENT,
        args=(Arg("xs", variadic=True),),
        params=(Param("axis", "int"),),
        shape_rule=_concat_shape,
        dtype_rule=rules.uniform("concat", ("xs",), ALL),
        dtypes=rules.rows(ALL, 1),
        backward=_concat_backward,
        sample_inputs=_concat_samples,
        error_inputs=_concat_errors,
        doc="The inputs one after another along an axis.",
    ),
)
