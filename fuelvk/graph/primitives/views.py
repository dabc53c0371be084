"""Views: they relabel the elements of their input and have no kernel.

``view_rule`` gives the result's layout, or None where only a copy of the input can be seen that way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from fuelvk.base.dtypes import DType
from fuelvk.base.errors import ParameterError, ShapeError
from fuelvk.base.shapes import Layout, Shape, broadcast_shapes, elements, normalize_axis
from fuelvk.graph import rules
from fuelvk.graph.ir import Builder, Value
from fuelvk.graph.samples import SampleInputs, label, normal, ones
from fuelvk.graph.types import (
    REQUIRED,
    Arg,
    Backward,
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
    ViewRule,
)

ALL = tuple(DType)
Gradients = tuple[Value | None, ...]
Outputs = tuple[Value, ...]
Rng = np.random.Generator
ErrorInputs = Callable[[], Iterable[ErrorSample]]


def resolve_reshape(shape: Shape, wanted: Sequence[int]) -> Shape:
    """Returns ``wanted`` with its one -1 (if any) worked out; raises ShapeError or ParameterError."""
    unknown = [i for i, n in enumerate(wanted) if n == -1]
    if len(unknown) > 1 or any(n < -1 for n in wanted):
        raise ParameterError(
            "reshape: shape is not acceptable", asked=tuple(wanted), allowed="extents >= 0, one -1"
        )
    total, known = elements(shape), math.prod(n for n in wanted if n != -1)
    if (unknown and (known == 0 or total % known)) or (not unknown and known != total):
        raise ShapeError(
            "reshape: the number of elements would change",
            asked=tuple(wanted),
            seen=f"x{shape}, {total} elements",
            allowed=f"extents whose product is {total}",
        )
    return tuple(total // known if n == -1 else n for n in wanted)


def resolve_axes(axes: Sequence[int] | None, rank: int) -> Shape:
    """Returns a permutation of the axes counted from the front; None reverses."""
    if axes is None:
        return tuple(reversed(range(rank)))
    order = tuple(normalize_axis(a, rank, "transpose") for a in axes)
    if sorted(order) != list(range(rank)):
        raise ParameterError(
            "transpose: axes is no permutation", asked=tuple(axes), allowed=f"each of {rank} axes once"
        )
    return order


def resolve_slice(shape: Shape, params: Params) -> tuple[Shape, Shape, Shape]:
    """Returns starts, steps and the resulting shape: per axis the indices of ``range(start, stop, step)``.

    Nothing counts from the end (with a negative step, a stop of -1 takes index 0 along), and nothing is
    clamped.
    """
    starts, stops = params["starts"], params["stops"]
    steps = params["steps"] if params["steps"] is not None else (1,) * len(shape)
    if not len(starts) == len(stops) == len(steps) == len(shape):
        raise ParameterError(
            "slice: starts, stops and steps have one entry per axis",
            seen=f"{len(starts)}, {len(stops)} and {len(steps)} for x{shape}",
            allowed=f"{len(shape)} each",
        )
    result = []
    for axis, (n, start, stop, step) in enumerate(zip(shape, starts, stops, steps, strict=True)):
        if step == 0:
            raise ParameterError("slice: a step is 0", seen=steps, allowed="positive or negative steps")
        picked = range(start, stop, step)
        if picked and not (0 <= picked[0] < n and 0 <= picked[-1] < n):
            raise ParameterError(
                f"slice: axis {axis} has no such indices",
                asked=f"{start}:{stop}:{step}",
                allowed=f"indices 0 to {n - 1}",
            )
        result.append(len(picked))
    return starts, steps, tuple(result)


# --- reshape ----------------------------------------------------------------------------------------------------


def _reshape_shape(shapes: Shapes, params: Params) -> tuple[Shape, ...]:
    return (resolve_reshape(rules.given(shapes[0]), params["shape"]),)


def _reshape_view(layout: Layout, params: Params) -> Layout | None:
    return layout.reshape(resolve_reshape(layout.shape, params["shape"]))


def _reshape_backward(
    g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params
) -> Gradients:
    (x,), (dy,) = inputs, grads
    assert x is not None
    assert dy is not None
    return (rules.reshaped(g, dy, x.shape),)


def _reshape_samples(dtypes: tuple[DType, ...], rng: Rng) -> Iterable[Sample]:
    cases: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
        ((), (1, 1)),
        ((6,), (2, 3)),
        ((2, 3, 4), (-1,)),
        ((2, 3, 4), (6, -1)),
        ((4, 1), ()),
        ((0, 3), (3, 0)),
        ((5, 1, 7), (35,)),
    )
    for shape, wanted in cases:
        if elements(shape) == elements(wanted) or -1 in wanted:
            yield Sample(
                (normal(rng, shape, dtypes[0]),), {"shape": wanted}, f"{label(shape)}-to-{label(wanted)}"
            )


def _reshape_errors() -> Iterable[ErrorSample]:
    x = ones((2, 3))
    yield ErrorSample((x,), {"shape": (4, 2)}, ShapeError, "reshape.*number of elements", "count")
    yield ErrorSample((x,), {"shape": (-1, 4)}, ShapeError, "reshape.*number of elements", "indivisible")
    yield ErrorSample((x,), {"shape": (-1, -1)}, ParameterError, "reshape.*one -1", "two_unknown")
    yield ErrorSample((x,), {"shape": (-2, 3)}, ParameterError, "reshape.*extents", "negative")
    yield ErrorSample(
        (ones((0, 3)),), {"shape": (0, -1)}, ShapeError, "reshape.*number of elements", "ambiguous"
    )
    yield ErrorSample((x,), {}, ParameterError, "reshape needs parameter shape", "no_shape")


# --- transpose --------------------------------------------------------------------------------------------------


def _transpose_shape(shapes: Shapes, params: Params) -> tuple[Shape, ...]:
    x = rules.given(shapes[0])
    return (tuple(x[a] for a in resolve_axes(params["axes"], len(x))),)


def _transpose_view(layout: Layout, params: Params) -> Layout | None:
    return layout.transpose(resolve_axes(params["axes"], len(layout.shape)))


def _transpose_backward(
    g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params
) -> Gradients:
    (dy,) = grads
    assert dy is not None
    order = resolve_axes(params["axes"], dy.ndim)
    return (g.transpose(dy, axes=tuple(order.index(i) for i in range(dy.ndim))),)


def _transpose_samples(dtypes: tuple[DType, ...], rng: Rng) -> Iterable[Sample]:
    for shape, axes in (
        ((3, 5), None),
        ((2, 3, 4), (0, 2, 1)),
        ((2, 3, 4, 5), (-1, 0, 2, 1)),
        ((0, 3), (1, 0)),
        ((), ()),
    ):
        name = "reversed" if axes is None else "_".join(map(str, axes)) or "none"
        yield Sample((normal(rng, shape, dtypes[0]),), {"axes": axes}, f"{label(shape)}-{name}")


def _transpose_errors() -> Iterable[ErrorSample]:
    x = ones((2, 3))
    yield ErrorSample((x,), {"axes": (0, 0)}, ParameterError, "transpose.*permutation", "repeated")
    yield ErrorSample((x,), {"axes": (0,)}, ParameterError, "transpose.*permutation", "too_few")
    yield ErrorSample((x,), {"axes": (0, 2)}, ParameterError, "transpose.*axis out of range", "range")


# --- broadcast_to -----------------------------------------------------------------------------------------------


def _broadcast_shape(shapes: Shapes, params: Params) -> tuple[Shape, ...]:
    x, wanted = rules.given(shapes[0]), tuple(params["shape"])
    if any(n < 0 for n in wanted):
        raise ParameterError("broadcast_to: shape is not acceptable", asked=wanted, allowed="extents >= 0")
    try:
        fits = broadcast_shapes(x, wanted) == wanted
    except ShapeError:
        fits = False
    if not fits:
        raise ShapeError(
            "broadcast_to: x does not broadcast to this shape",
            asked=wanted,
            seen=f"x{x}",
            allowed="equal extents, or 1 in x, counted from the last axis",
        )
    return (wanted,)


def _broadcast_view(layout: Layout, params: Params) -> Layout | None:
    return layout.broadcast_to(params["shape"])


def _broadcast_backward(
    g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params
) -> Gradients:
    (x,), (dy,) = inputs, grads
    assert x is not None
    assert dy is not None
    return (rules.sum_to(g, dy, x.shape),)


def _broadcast_samples(dtypes: tuple[DType, ...], rng: Rng) -> Iterable[Sample]:
    for shape, wanted in (
        ((), (2, 3)),
        ((3,), (4, 3)),
        ((2, 1, 5), (3, 2, 4, 5)),
        ((1,), (0,)),
        ((1, 3), (1, 3)),
    ):
        yield Sample(
            (normal(rng, shape, dtypes[0]),), {"shape": wanted}, f"{label(shape)}-to-{label(wanted)}"
        )


def _broadcast_errors() -> Iterable[ErrorSample]:
    x = ones((2, 3))
    yield ErrorSample((x,), {"shape": (3, 3)}, ShapeError, "broadcast_to.*does not broadcast", "extent")
    yield ErrorSample((x,), {"shape": (3,)}, ShapeError, "broadcast_to.*does not broadcast", "rank")
    yield ErrorSample((x,), {"shape": (1, 3)}, ShapeError, "broadcast_to.*does not broadcast", "shrinks")
    yield ErrorSample((x,), {"shape": (2, -3)}, ParameterError, "broadcast_to.*extents", "negative")


# --- slice ------------------------------------------------------------------------------------------------------


def _slice_shape(shapes: Shapes, params: Params) -> tuple[Shape, ...]:
    return (resolve_slice(rules.given(shapes[0]), params)[2],)


def _slice_view(layout: Layout, params: Params) -> Layout | None:
    starts, steps, shape = resolve_slice(layout.shape, params)
    if 0 in shape:
        return Layout.of(shape)  # a start may lie outside the buffer when nothing is read
    return layout.slice(starts, steps, shape)


def _along(value: Value, axis: int, start: int, stop: int, step: int) -> dict[str, tuple[int, ...]]:
    """Returns slice parameters that touch one axis only."""
    return {
        "starts": tuple(start if i == axis else 0 for i in range(value.ndim)),
        "stops": tuple(stop if i == axis else n for i, n in enumerate(value.shape)),
        "steps": tuple(step if i == axis else 1 for i in range(value.ndim)),
    }


def _slice_backward(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    """Puts the gradient back axis by axis: turned round, spread by the step, padded with zeros to the
    extent.
    """
    (x,), (dy,) = inputs, grads
    assert x is not None
    assert dy is not None
    starts, steps, shape = resolve_slice(x.shape, params)
    if 0 in shape:
        return (rules.full(g, 0.0, x.shape, x.dtype),)
    for axis, (extent, start, step, count) in enumerate(zip(x.shape, starts, steps, shape, strict=True)):
        if step < 0:
            dy = g.slice(dy, **_along(dy, axis, count - 1, -1, -1))
            start, step = start + (count - 1) * step, -step
        if step > 1 and count > 1:
            lead, rest = dy.shape[:axis], dy.shape[axis + 1 :]
            spread = g.reshape(dy, shape=(*lead, count, 1, *rest))
            gaps = rules.full(g, 0.0, (*lead, count, step - 1, *rest), x.dtype)
            spread = g.reshape(g.concat(spread, gaps, axis=axis + 1), shape=(*lead, count * step, *rest))
            dy = g.slice(spread, **_along(spread, axis, 0, (count - 1) * step + 1, 1))
        before, after = start, extent - start - dy.shape[axis]
        parts = [
            rules.full(g, 0.0, (*dy.shape[:axis], n, *dy.shape[axis + 1 :]), x.dtype) if n else None
            for n in (before, after)
        ]
        kept = [p for p in (parts[0], dy, parts[1]) if p is not None]
        dy = g.concat(*kept, axis=axis) if len(kept) > 1 else dy
    return (dy,)


def _slice_samples(dtypes: tuple[DType, ...], rng: Rng) -> Iterable[Sample]:
    cases: tuple[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...] | None], ...] = (
        ((7,), (2,), (5,), None),
        ((7,), (6,), (-1,), (-1,)),
        ((10,), (1,), (10,), (3,)),
        ((10,), (8,), (0,), (-3,)),
        ((4, 5), (1, 0), (3, 5), (1, 2)),
        ((4, 5), (0, 0), (4, 0), None),
        ((3, 4, 5), (2, 1, 4), (-1, 3, 0), (-1, 1, -2)),
        ((), (), (), None),
    )
    for shape, starts, stops, steps in cases:
        params = {"starts": starts, "stops": stops, "steps": steps}
        text = "_".join(
            f"{a}.{b}.{c}" for a, b, c in zip(starts, stops, steps or (1,) * len(shape), strict=True)
        )
        yield Sample((normal(rng, shape, dtypes[0]),), params, f"{label(shape)}-{text or 'whole'}")


def _slice_errors() -> Iterable[ErrorSample]:
    x = ones((4,))
    yield ErrorSample(
        (x,), {"starts": 0, "stops": 5}, ParameterError, "slice.*axis 0.*indices 0 to 3", "beyond"
    )
    yield ErrorSample((x,), {"starts": -1, "stops": 3}, ParameterError, "slice.*axis 0", "negative_start")
    yield ErrorSample(
        (x,), {"starts": 0, "stops": 4, "steps": 0}, ParameterError, "slice.*step is 0", "zero_step"
    )
    yield ErrorSample((x,), {"starts": (0, 0), "stops": (4, 1)}, ParameterError, "slice.*per axis", "rank")


def _view(
    name: str,
    params: tuple[Param, ...],
    shape_rule: ShapeRule,
    view_rule: ViewRule,
    backward: Backward,
    samples: tuple[SampleInputs, ErrorInputs],
    doc: str,
) -> PrimitiveEntry:
    return PrimitiveEntry(
        id=PrimitiveId(name),
        family=Family.VIEW,
        args=(Arg("x"),),
        params=params,
        shape_rule=shape_rule,
        dtype_rule=rules.uniform(name, ("x",), ALL),
        dtypes=rules.rows(ALL, 1),
        view_rule=view_rule,
        backward=backward,
        sample_inputs=samples[0],
        error_inputs=samples[1],
        doc=doc,
    )


def _ints(name: str, *, optional: bool = False) -> Param:
    return Param(name, "ints", default=None if optional else REQUIRED, optional=optional)


OPS = (
    _view(
        "reshape", (_ints("shape"),), _reshape_shape, _reshape_view, _reshape_backward,
        (_reshape_samples, _reshape_errors), "The same elements in row-major order under another shape.",
    ),
    _view(
        "transpose", (_ints("axes", optional=True),), _transpose_shape, _transpose_view, _transpose_backward,
        (_transpose_samples, _transpose_errors), "Axes in another order; None reverses them.",
    ),
    _view(
        "broadcast_to", (_ints("shape"),), _broadcast_shape, _broadcast_view, _broadcast_backward,
        (_broadcast_samples, _broadcast_errors), "x repeated along axes of extent 1 and along new leading axes.",
    ),
    _view(
        "slice", (_ints("starts"), _ints("stops"), _ints("steps", optional=True)), _slice_shape, _slice_view,
        _slice_backward, (_slice_samples, _slice_errors),
        "Per axis the elements at range(start, stop, step); steps may be negative, nothing counts from the end.",
    ),
)  # fmt: skip
