"""Movement that keeps every element: copy, flip, roll, concat. Kernels go by element size, not by dtype."""

from __future__ import annotations

from collections.abc import Iterable

from fuelvk.base.dtypes import DType
from fuelvk.base.errors import DTypeError, ParameterError, ShapeError
from fuelvk.base.shapes import Shape, normalize_axes, normalize_axis
from fuelvk.graph import rules
from fuelvk.graph.ir import Builder, Value
from fuelvk.graph.primitives._moving import Gradients, Outputs, Rng, moving
from fuelvk.graph.samples import label, normal, ones, specials
from fuelvk.graph.types import Arg, ErrorSample, Param, Params, Sample, Shapes, Values

# --- copy -------------------------------------------------------------------------------------------------------


def _copy_backward(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    return (grads[0],)


def _copy_samples(dtypes: tuple[DType, ...], rng: Rng) -> Iterable[Sample]:
    dtype = dtypes[0]
    for shape in ((), (0,), (1,), (3, 5), (63,), (65,), (1025,)):
        yield Sample((normal(rng, shape, dtype),), {}, label(shape))
    yield Sample((specials(dtype),), {}, "specials")


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


# --- roll -------------------------------------------------------------------------------------------------------


def resolve_roll(shape: Shape, params: Params) -> dict[int, int]:
    """Returns how far each rolled axis moves, from 0 to its extent - 1; raises ParameterError."""
    shifts, axes = params["shifts"], params["axes"]
    chosen = [normalize_axis(a, len(shape), "roll") for a in axes]
    normalize_axes(axes, len(shape), "roll")
    if len(shifts) not in (1, len(chosen)):
        raise ParameterError(
            "roll: shifts and axes differ in number",
            asked=f"{len(shifts)} shifts of {len(chosen)} axes",
            allowed="one shift for each axis, or one for all",
        )
    each = shifts * len(chosen) if len(shifts) == 1 else shifts
    return {a: s % shape[a] if shape[a] else 0 for a, s in zip(chosen, each, strict=True)}


def _roll_shape(shapes: Shapes, params: Params) -> tuple[Shape, ...]:
    x = rules.given(shapes[0])
    resolve_roll(x, params)
    return (x,)


def _roll_backward(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    return (g.roll(grads[0], shifts=tuple(-s for s in params["shifts"]), axes=params["axes"]),)


def _roll_samples(dtypes: tuple[DType, ...], rng: Rng) -> Iterable[Sample]:
    cases: tuple[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]], ...] = (
        ((), (3,), ()),
        ((0,), (3,), (0,)),
        ((1,), (-2,), (0,)),
        ((7,), (2,), (-1,)),
        ((7,), (-16,), (0,)),
        ((7,), (2**40 + 3,), (0,)),
        ((3, 4), (1,), (0, 1)),
        ((3, 4), (0, 4), (0, 1)),
        ((2, 3, 5), (1, -2), (0, 2)),
        ((2, 0, 3), (1,), (2,)),
        ((65, 31), (17,), (1,)),
        ((33, 3), (5,), (0,)),
        ((1025,), (513,), (0,)),
        ((2, 1, 3, 2, 2, 2, 3, 2), (1, 1, -1, 1), (7, 0, 6, 3)),
    )
    for shape, shifts, axes in cases:
        name = f"{label(shape)}-by{'_'.join(map(str, shifts))}-axis{'_'.join(map(str, axes))}"
        yield Sample((normal(rng, shape, dtypes[0]),), {"shifts": shifts, "axes": axes}, name)
    yield Sample((specials(dtypes[0]),), {"shifts": 3, "axes": 0}, "specials")


def _roll_errors() -> Iterable[ErrorSample]:
    x = ones((2, 3))
    yield ErrorSample((x,), {"axes": 0}, ParameterError, "roll needs parameter shifts", "no_shifts")
    yield ErrorSample((x,), {"shifts": 1}, ParameterError, "roll needs parameter axes", "no_axes")
    yield ErrorSample((x,), {"shifts": 1, "axes": 2}, ParameterError, "roll.*axis out of range", "axis_range")
    repeated = {"shifts": 1, "axes": (0, -2)}
    yield ErrorSample((x,), repeated, ParameterError, "roll: an axis is repeated", "repeated")
    unequal = {"shifts": (1, 2), "axes": 0}
    yield ErrorSample((x,), unequal, ParameterError, "roll.*2 shifts of 1 axes", "unequal")
    fraction = {"shifts": 0.5, "axes": 0}
    yield ErrorSample((x,), fraction, ParameterError, "shifts has the wrong type", "fraction")


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
    moving(
        "copy",
        ("x",),
        (),
        rules.like_first,
        _copy_backward,
        _copy_samples,
        None,
        "The same elements in a contiguous buffer of their own.",
    ),
    moving(
        "flip",
        ("x",),
        (Param("axes", "ints"),),
        _flip_shape,
        _flip_backward,
        _flip_samples,
        _flip_errors,
        "x with the order of its elements reversed along the axes.",
    ),
    moving(
        "roll",
        ("x",),
        (Param("shifts", "ints"), Param("axes", "ints")),
        _roll_shape,
        _roll_backward,
        _roll_samples,
        _roll_errors,
        "x with its elements moved towards higher indices by a shift along each axis, those beyond the end to the "
        "start, as numpy.roll; one shift may stand for all axes.",
    ),
    moving(
        "concat",
        (Arg("xs", variadic=True),),
        (Param("axis", "int"),),
        _concat_shape,
        _concat_backward,
        _concat_samples,
        _concat_errors,
        "The inputs one after another along an axis.",
    ),
)
