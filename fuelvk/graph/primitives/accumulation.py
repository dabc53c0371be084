"""Running sums, and sums into places that indices name: cumsum, scatter_add, index_add.

Order of cumsum along an axis of n elements: blocks of 64 are summed one after another; every element of block k > 0 is
then the (k-1)th running sum of the blocks' totals, by the same rule, plus its own. Order of scatter_add and index_add:
an element of x, then the updates meant for it in increasing index along the axis, one addition each in the
accumulator's type (F32 for 16-bit types), rounded to the result's type once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from fuelvk.base.dtypes import FLOATS, INDICES, DType
from fuelvk.base.errors import DTypeError, IndexOutOfRangeError, ParameterError, ShapeError
from fuelvk.base.shapes import Shape, normalize_axis
from fuelvk.graph import rules
from fuelvk.graph.ir import Builder, Value
from fuelvk.graph.primitives._moving import refuse_outside
from fuelvk.graph.samples import SampleInputs, label, normal, ones, specials
from fuelvk.graph.types import (
    Arg,
    Backward,
    DTypeRule,
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
    ValueCheck,
    Values,
)

Gradients = tuple[Value | None, ...]
Outputs = tuple[Value, ...]
Rng = np.random.Generator


# --- cumsum -----------------------------------------------------------------------------------------------------


def _cumsum_shape(shapes: Shapes, params: Params) -> tuple[Shape, ...]:
    x = rules.given(shapes[0])
    rules.need_rank("cumsum", "x", x, 1)
    normalize_axis(params["axis"], len(x), "cumsum")
    return (x,)


def _cumsum_backward(
    g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params
) -> Gradients:
    """The sum of all gradients from an element on: a running sum from behind."""
    axis = params["axis"]
    return (g.flip(g.cumsum(g.flip(grads[0], axes=(axis,)), axis=axis), axes=(axis,)),)


def _cumsum_samples(dtypes: tuple[DType, ...], rng: Rng) -> Iterable[Sample]:
    dtype = dtypes[0]
    cases: tuple[tuple[tuple[int, ...], int], ...] = (
        ((1,), 0),
        ((0,), 0),
        ((7,), -1),
        ((3, 0, 2), 0),
        ((3, 64), 1),
        ((3, 65), 1),
        ((65, 3), 0),
        ((2, 3, 5), 1),
        ((2, 1025), -1),
        ((2, 130, 7), 1),
        ((5000,), 0),
        ((2, 1, 3, 2, 1, 2, 2, 3), 3),
    )
    for shape, axis in cases:
        yield Sample((normal(rng, shape, dtype, shift=0.25),), {"axis": axis}, f"{label(shape)}-axis{axis}")
    values = specials(dtype)
    alone = np.zeros((values.size, 70), dtype.numpy)
    alone[:, 66] = values
    yield Sample((alone,), {"axis": 1}, "specials_one_per_row")
    yield Sample((np.full((3, 66), -0.0, dtype.numpy),), {"axis": 1}, "negative_zeros")


def _cumsum_errors() -> Iterable[ErrorSample]:
    x = ones((2, 3))
    yield ErrorSample((x,), {}, ParameterError, "cumsum needs parameter axis", "no_axis")
    yield ErrorSample((x,), {"axis": 2}, ParameterError, "cumsum.*axis out of range", "axis_range")
    yield ErrorSample((x,), {"axis": (0, 1)}, ParameterError, "cumsum.*axis.*wrong type", "axes")
    yield ErrorSample((x[0, 0],), {"axis": 0}, ShapeError, "cumsum: x has the wrong rank", "scalar")
    yield ErrorSample((ones((2,), DType.I32),), {"axis": 0}, DTypeError, "cumsum.*i32", "integers")


# --- scatter_add, index_add -------------------------------------------------------------------------------------


def _dtype(op: str) -> DTypeRule:
    def rule(dtypes: DTypes, params: Params) -> tuple[DType, ...]:
        x, indices, updates = dtypes
        rules.need_dtype(op, "indices", indices, INDICES)
        return rules.uniform(op, ("x", "updates"), FLOATS)((x, updates), params)

    return rule


def _scatter_shape(shapes: Shapes, params: Params) -> tuple[Shape, ...]:
    x, indices, updates = (rules.given(s) for s in shapes)
    rules.need_rank("scatter_add", "x", x, 1)
    rules.need_rank("scatter_add", "indices", indices, len(x), len(x))
    rules.need_rank("scatter_add", "updates", updates, len(x), len(x))
    axis = normalize_axis(params["axis"], len(x), "scatter_add")
    fits = all(i <= u for i, u in zip(indices, updates, strict=True)) and all(
        i <= n for d, (i, n) in enumerate(zip(indices, x, strict=True)) if d != axis
    )
    if not fits:
        raise ShapeError(
            "scatter_add: there are more indices than places",
            seen=f"x{x}, indices{indices} and updates{updates}",
            allowed=f"indices no larger than updates on any axis, nor than x on any axis but {axis}",
        )
    return (x,)


def _index_shape(shapes: Shapes, params: Params) -> tuple[Shape, ...]:
    x, indices, updates = (rules.given(s) for s in shapes)
    rules.need_rank("index_add", "x", x, 1)
    rules.need_rank("index_add", "indices", indices, 1, 1)
    axis = normalize_axis(params["axis"], len(x), "index_add")
    expected = (*x[:axis], indices[0], *x[axis + 1 :])
    rules.need_shape(
        "index_add", "updates", updates, expected, "x's with as many entries as there are indices"
    )
    return (x,)


def _indices_inside(op: str) -> ValueCheck:
    def check(inputs: Sequence[Any], params: Params) -> None:
        x, indices, _ = inputs
        axis = normalize_axis(params["axis"], x.ndim, op)
        refuse_outside(op, indices, x.shape[axis], axis)

    return check


def _scatter_backward(
    g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params
) -> Gradients:
    """x has the gradient itself, an update that of its place, one that no index reaches zero."""
    (x, indices, updates), (dy,) = inputs, grads
    assert x is not None
    assert indices is not None
    assert updates is not None
    assert dy is not None
    axis = normalize_axis(params["axis"], x.ndim)
    start = (0,) * x.ndim
    reached = tuple(x.shape[d] if d == axis else n for d, n in enumerate(indices.shape))
    part = dy if reached == x.shape else g.slice(dy, starts=start, stops=reached)
    grad = g.gather(part, indices, axis=axis)
    for d, n in enumerate(updates.shape):
        if grad.shape[d] < n:
            rest = (*grad.shape[:d], n - grad.shape[d], *grad.shape[d + 1 :])
            grad = g.concat(grad, rules.full(g, 0.0, rest, grad.dtype), axis=d)
    return dy, None, grad


def _index_backward(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    return grads[0], None, g.index_select(grads[0], inputs[1], axis=params["axis"])


def _scatter_samples(dtypes: tuple[DType, ...], rng: Rng) -> Iterable[Sample]:
    dtype, index = dtypes[0], dtypes[1]
    cases: tuple[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], int], ...] = (
        ((1,), (1,), (1,), 0),
        ((7,), (40,), (40,), -1),
        ((7,), (0,), (3,), 0),
        ((0, 3), (0, 3), (0, 3), 0),
        ((5, 3), (4, 3), (4, 3), 0),
        ((5, 3), (4, 2), (6, 3), 0),
        ((4, 65), (4, 130), (4, 130), 1),
        ((3, 5, 7), (2, 9, 6), (3, 9, 7), 1),
        ((2, 3, 2, 4, 2, 3, 2), (2, 3, 1, 5, 2, 2, 2), (2, 3, 2, 5, 2, 3, 2), 3),
        ((9, 1025), (3, 1025), (3, 1025), 0),
    )
    for shape, picked, given, axis in cases if index is DType.I64 else cases[5:8]:
        picks = rng.integers(0, max(shape[axis], 1), picked).astype(index.numpy)
        yield Sample(
            (normal(rng, shape, dtype), picks, normal(rng, given, dtype)),
            {"axis": axis},
            f"{label(shape)}-axis{axis}-{label(picked)}of{label(given)}",
        )
    ends = np.array([[6, 0], [0, 6], [6, 6]], dtype=index.numpy)
    inputs = (normal(rng, (7, 2), dtype), ends, normal(rng, (3, 2), dtype))
    yield Sample(inputs, {"axis": 0}, "ends_and_duplicates")


def _index_samples(dtypes: tuple[DType, ...], rng: Rng) -> Iterable[Sample]:
    dtype, index = dtypes[0], dtypes[1]
    cases: tuple[tuple[tuple[int, ...], int, int], ...] = (
        ((1,), 0, 1),
        ((7,), -1, 40),
        ((5, 3), 0, 0),
        ((5, 0), 0, 4),
        ((31, 65), 0, 90),
        ((3, 5, 7), 1, 9),
        ((2, 3, 11), -1, 33),
        ((9, 1025), 0, 13),
        ((2, 4, 1, 3, 2), 1, 6),
    )
    for shape, axis, count in cases if index is DType.I64 else cases[4:6]:
        picks = rng.integers(0, shape[axis], count).astype(index.numpy)
        given = (*shape[:axis], count, *shape[axis % len(shape) + 1 :])
        yield Sample(
            (normal(rng, shape, dtype), picks, normal(rng, given, dtype)),
            {"axis": axis},
            f"{label(shape)}-axis{axis}-add{count}",
        )
    values = specials(dtype)
    picks = np.repeat(np.arange(values.size), 2).astype(index.numpy)
    updates = np.ravel(np.stack([values, values[::-1]], axis=1))
    yield Sample((np.zeros(values.size, dtype.numpy), picks, updates), {"axis": 0}, "specials")


def _indexed_errors(op: str) -> Callable[[], Iterable[ErrorSample]]:
    def errors() -> Iterable[ErrorSample]:
        x = ones((3, 4))
        scatters = op == "scatter_add"

        def picks(*values: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
            one = np.array(values, np.int64)
            return np.repeat(one[:, None], 4, axis=1) if scatters else one

        good, u = picks(0, 1), ones((2, 4))
        yield ErrorSample((x, good, u), {}, ParameterError, f"{op} needs parameter axis", "no_axis")
        yield ErrorSample((x, good, u), {"axis": 2}, ParameterError, f"{op}.*axis out of range", "axis_range")
        yield ErrorSample((x, good[None], u), {"axis": 0}, ShapeError, f"{op}: indices.*rank", "rank")
        short = "more indices than places" if scatters else "updates has the wrong shape"
        yield ErrorSample((x, good, u[:, :3]), {"axis": 0}, ShapeError, f"{op}.*{short}", "updates_shape")
        yield ErrorSample(
            (x, good.astype(np.float32), u), {"axis": 0}, DTypeError, "indices is f32", "float_indices"
        )
        mixed = ones((2, 4), DType.F16)
        yield ErrorSample((x, good, mixed), {"axis": 0}, DTypeError, f"{op}.*f32.*f16", "mixed_dtypes")
        whole = ones((3, 4), DType.I32)
        yield ErrorSample((whole, good, u), {"axis": 0}, DTypeError, f"{op}.*i32", "integers")
        yield ErrorSample((x[0, 0], good, u), {"axis": 0}, ShapeError, f"{op}: x.*rank", "scalar_x")
        for bad in (-1, 3, 2**31 - 1):
            yield ErrorSample((x, picks(0, bad), u), {"axis": 0}, IndexOutOfRangeError, op, f"index_{bad}")

    return errors


def _indexed(
    op: str, shape: ShapeRule, backward: Backward, samples: SampleInputs, doc: str
) -> PrimitiveEntry:
    return PrimitiveEntry(
        id=PrimitiveId(op),
        family=Family.REDUCTION,
        args=(Arg("x"), Arg("indices"), Arg("updates")),
        params=(Param("axis", "int"),),
        shape_rule=shape,
        dtype_rule=_dtype(op),
        dtypes=tuple((d, i, d, d) for d in FLOATS for i in INDICES),
        backward=backward,
        sample_inputs=samples,
        error_inputs=_indexed_errors(op),
        value_check=_indices_inside(op),
        doc=doc,
    )


OPS = (
    PrimitiveEntry(
        id=PrimitiveId("cumsum"),
        family=Family.REDUCTION,
        args=(Arg("x"),),
        params=(Param("axis", "int"),),
        shape_rule=_cumsum_shape,
        dtype_rule=rules.uniform("cumsum", ("x",), FLOATS),
        dtypes=rules.rows(FLOATS, 1),
        backward=_cumsum_backward,
        sample_inputs=_cumsum_samples,
        error_inputs=_cumsum_errors,
        doc="Running sums along an axis; the bits of one depend on the elements up to it alone.",
    ),
    _indexed(
        "scatter_add",
        _scatter_shape,
        _scatter_backward,
        _scatter_samples,
        "x with each update added where its index names a place along the axis, as torch.scatter_add; duplicates are "
        "added in index order; an index outside [0, n) is refused.",
    ),
    _indexed(
        "index_add",
        _index_shape,
        _index_backward,
        _index_samples,
        "x with entry k of updates along the axis added to entry indices[k]; duplicates are added in index order; an "
        "index outside [0, n) is refused.",
    ),
)
