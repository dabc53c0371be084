"""Movement that puts an array into a larger one: pad, write_slice."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fuelvk.base.dtypes import DType
from fuelvk.base.errors import DTypeError, IndexOutOfRangeError, ParameterError, ShapeError
from fuelvk.base.shapes import Shape, normalize_axis
from fuelvk.graph import rules
from fuelvk.graph.ir import Builder, Value
from fuelvk.graph.primitives._moving import ALL, Gradients, Outputs, Rng, moving, need_held
from fuelvk.graph.samples import label, normal, ones, specials
from fuelvk.graph.types import Arg, DTypes, ErrorSample, Param, Params, Sample, Shapes, Values

PAD_MODES = ("constant", "reflect", "replicate")


# --- pad --------------------------------------------------------------------------------------------------------


def _mode(value: str) -> str | None:
    return None if value in PAD_MODES else " or ".join(PAD_MODES)


def _pad_shape(shapes: Shapes, params: Params) -> tuple[Shape, ...]:
    x, pads, mode = rules.given(shapes[0]), params["pads"], params["mode"]
    if len(pads) != len(x):
        raise ParameterError(
            "pad: pads has another number of pairs than x has axes",
            asked=f"{len(pads)} pairs",
            seen=f"x{x}",
            allowed=f"{len(x)} pairs (before, after)",
        )
    for axis, (extent, pair) in enumerate(zip(x, pads, strict=True)):
        most = {"constant": math.inf, "reflect": max(extent - 1, 0), "replicate": math.inf if extent else 0}
        if min(pair) < 0 or max(pair) > most[mode]:
            raise ParameterError(
                f"pad: pads of axis {axis} are not acceptable in mode {mode}",
                asked=pair,
                seen=f"x{x}",
                allowed="0 or more" if most[mode] == math.inf else f"0 to {most[mode]}",
            )
    return (tuple(before + n + after for n, (before, after) in zip(x, pads, strict=True)),)


def _pad_check(shapes: Shapes, dtypes: DTypes, params: Params) -> None:
    if params["mode"] == "constant":
        need_held("pad", dtypes[0], params["value"])


def _cut(g: Builder, value: Value, axis: int, start: int, stop: int, step: int = 1) -> Value:
    """Returns the elements of one axis at range(start, stop, step), all of the others."""
    each = range(value.ndim)
    result: Value = g.slice(
        value,
        starts=tuple(start if i == axis else 0 for i in each),
        stops=tuple(stop if i == axis else value.shape[i] for i in each),
        steps=tuple(step if i == axis else 1 for i in each),
    )
    return result


def _within(g: Builder, value: Value, axis: int, before: int, extent: int) -> Value:
    """Returns zeros of an extent along the axis with ``value`` from ``before`` on."""
    pair = (before, extent - before - value.shape[axis])
    result: Value = g.pad(value, pads=tuple(pair if i == axis else (0, 0) for i in range(value.ndim)))
    return result


def _pad_backward(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    """Axis by axis: what lies over x, plus what borders repeat of it, before and then after."""
    (x,), (dy,) = inputs, grads
    assert x is not None
    assert dy is not None
    mode = params["mode"]
    total = dy if mode == "constant" else rules.wide(g, dy)
    for axis, (n, (before, after)) in enumerate(zip(x.shape, params["pads"], strict=True)):
        if not before and not after:
            continue
        whole, end = total, before + n + after
        total = _cut(g, whole, axis, before, before + n)
        if mode == "constant" or not n:
            continue
        for size, first in ((before, 0), (after, before + n)):
            if not size:
                continue
            border = _cut(g, whole, axis, first + size - 1, first - 1, -1)
            place = 1 if first == 0 else n - 1 - size
            if mode == "replicate":
                border = g.sum(border, axes=(axis,), keepdims=True)
                place = 0 if first == 0 else n - 1
            total = g.add(total, _within(g, border, axis, place, n))
        assert end == whole.shape[axis]
    return (rules.narrow(g, total, x.dtype),)


_PADDED: tuple[tuple[tuple[int, ...], tuple[Any, ...], str], ...] = (
    ((), (), "constant"),
    ((0,), ((2, 3),), "constant"),
    ((2, 0), (1, (0, 3)), "constant"),
    ((5,), ((0, 0),), "constant"),
    ((7,), ((3, 2),), "constant"),
    ((3, 5), ((1, 0), (2, 3)), "constant"),
    ((31, 65), ((0, 1), (7, 0)), "constant"),
    ((2, 3, 2, 1, 2, 3, 1, 2), ((1, 0), 0, 0, (0, 2), 0, (1, 1), 0, (0, 1)), "constant"),
    ((1,), (0,), "reflect"),
    ((7,), ((6, 3),), "reflect"),
    ((3, 5), ((2, 1), (0, 4)), "reflect"),
    ((2, 3, 33), (0, (1, 2), (17, 32)), "reflect"),
    ((0, 3), (0, (2, 1)), "reflect"),
    ((2, 2, 3, 1, 1, 2, 2, 3), ((1, 0), 0, 1, 0, 0, 0, (0, 1), (2, 1)), "reflect"),
    ((1,), ((3, 2),), "replicate"),
    ((3, 5), ((4, 1), (0, 7)), "replicate"),
    ((31, 65), ((0, 2), (70, 1)), "replicate"),
    ((0, 3), (0, 1), "replicate"),
    ((1025,), ((1, 1),), "replicate"),
)


def _pad_samples(dtypes: tuple[DType, ...], rng: Rng) -> Iterable[Sample]:
    dtype = dtypes[0]
    for shape, pads, mode in _PADDED:
        value = 0.1 if dtype.is_float and len(shape) == 2 else 1
        params = {"pads": pads, "mode": mode} | ({"value": value} if mode == "constant" else {})
        text = "_".join(f"{p}" if isinstance(p, int) else f"{p[0]}.{p[1]}" for p in pads)
        yield Sample((normal(rng, shape, dtype),), params, f"{mode}-{label(shape)}-{text or 'none'}")
    yield Sample((specials(dtype),), {"pads": ((1, 2),)}, "specials")
    for value in (math.inf, -math.inf, math.nan, 70001.0) if dtype.is_float else ():
        yield Sample((specials(dtype),), {"pads": ((3, 2),), "value": value}, f"value_{value}")


def _pad_errors() -> Iterable[ErrorSample]:
    x = ones((2, 3))
    reflect = {"mode": "reflect"}
    rows: tuple[tuple[dict[str, Any], str, str], ...] = (
        ({}, "pad needs parameter pads", "no_pads"),
        ({"pads": ((1, 1),)}, "pad.*number of pairs.*1 pairs.*2 pairs", "too_few"),
        ({"pads": ((1, 1), (1, -1))}, r"pads of axis 1.*\(1, -1\).*0 or more", "negative"),
        ({"pads": ((1, 1), (1, 1, 1))}, "pads has the wrong type", "triple"),
        ({"pads": 1}, "pads has the wrong type", "number"),
        ({"pads": (0, 0), "mode": "wrap"}, "mode is not acceptable.*constant or reflect", "mode"),
        ({"pads": (0, (0, 3)), **reflect}, r"pads of axis 1.*mode reflect.*\(0, 3\).*0 to 2", "reflect_beyond"),
        ({"pads": ((2, 0), 0), **reflect}, r"pads of axis 0.*mode reflect.*0 to 1", "reflect_extent"),
    )  # fmt: skip
    for params, match, name in rows:
        yield ErrorSample((x,), params, ParameterError, match, name)
    none = ones((0, 3))
    for mode in ("reflect", "replicate"):
        params = {"pads": ((1, 0), 0), "mode": mode}
        yield ErrorSample((none,), params, ParameterError, f"axis 0.*mode {mode}.*0 to 0", f"{mode}_empty")
    for bad in (256, -1, 0.5, math.nan):
        params = {"pads": (1, 1), "value": bad}
        match = "pad: u8 does not hold"
        yield ErrorSample((ones((2, 3), DType.U8),), params, ParameterError, match, f"u8_{bad}")


# --- write_slice ------------------------------------------------------------------------------------------------


def _start_fits(axis: int, extent: int, count: int, start: int, *, wrap: bool) -> str | None:
    """Returns which starts are allowed when this one is not."""
    if start >= 0 and (wrap or start + count <= extent):
        return None
    return (
        "0 or more"
        if wrap
        else f"0 to {extent - count}, so that {count} entries fit the {extent} of axis {axis}"
    )


def _write_shape(shapes: Shapes, params: Params) -> tuple[Shape, ...]:
    x, update, position = rules.given(shapes[0]), rules.given(shapes[1]), shapes[2]
    rules.need_rank("write_slice", "x", x, 1)
    axis = normalize_axis(params["axis"], len(x), "write_slice")
    if len(update) != len(x) or (*update[:axis], *update[axis + 1 :]) != (*x[:axis], *x[axis + 1 :]):
        raise ShapeError(
            f"write_slice: update differs from x on another axis than {axis}",
            seen=f"x{x} and update{update}",
            allowed=f"one rank, and equal extents on every axis but {axis}",
        )
    if update[axis] > x[axis]:
        raise ShapeError(
            f"write_slice: update is longer than axis {axis}: it would overlap itself or overhang",
            seen=f"x{x} and update{update}",
            allowed=f"up to {x[axis]} entries",
        )
    rules.need_shape("write_slice", "position", position, (1,), "one number")
    if (position is None) == (params["start"] is None):
        raise ParameterError(
            "write_slice: the start is given once",
            seen="neither" if position is None else "both",
            allowed="parameter start, or input position (I64[1], read on the device)",
        )
    if params["start"] is not None:
        allowed = _start_fits(axis, x[axis], update[axis], params["start"], wrap=params["wrap"])
        if allowed is not None:
            raise ParameterError(
                "write_slice: start is not acceptable",
                asked=params["start"],
                seen=f"x{x} and update{update}",
                allowed=allowed,
                hint=None if params["start"] < 0 else "wrap=True goes on at the beginning of the axis",
            )
    return (x,)


def _write_dtype(dtypes: DTypes, params: Params) -> tuple[DType, ...]:
    rules.need_dtype("write_slice", "position", dtypes[2], (DType.I64,))
    return rules.uniform("write_slice", ("x", "update"), ALL)(dtypes[:2], params)


def _start_inside(inputs: Sequence[Any], params: Params) -> None:
    x, update, position = inputs
    if position is None:
        return
    axis, start = normalize_axis(params["axis"], x.ndim), int(position[0])
    allowed = _start_fits(axis, x.shape[axis], update.shape[axis], start, wrap=params["wrap"])
    if allowed is not None:
        raise IndexOutOfRangeError(
            f"write_slice: position is out of range of axis {axis}", seen=f"position {start}", allowed=allowed
        )


def _write_backward(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    """The gradient passes through to x but for what was overwritten, which goes to update."""
    (x, update, position), (dy,) = inputs, grads
    assert x is not None
    assert update is not None
    assert dy is not None
    axis = normalize_axis(params["axis"], x.ndim)
    extent, count, start = x.shape[axis], update.shape[axis], params["start"]
    zeros = rules.full(g, 0.0, update.shape, update.dtype)
    dx = g.write_slice(dy, zeros, position, **params)
    if position is None and start + count <= extent:
        return dx, _cut(g, dy, axis, start, start + count), None
    steps = np.arange(count, dtype=np.int64)
    if position is None:
        return dx, g.index_select(dy, g.constant((start + steps) % max(extent, 1)), axis=axis), None
    picked = g.add(g.broadcast_to(position, shape=(count,)), g.constant(steps))
    if params["wrap"] and extent:
        # The rest of a division in F64, exact for positions below 2^53.
        rounds = g.div(g.cast(picked, dtype=DType.F64), g.constant(float(extent), DType.F64))
        picked = g.sub(picked, g.mul(g.cast(rounds, dtype=DType.I64), g.constant(extent, DType.I64)))
    return dx, g.index_select(dy, picked, axis=axis), None


_WRITTEN: tuple[tuple[tuple[int, ...], int, int, int, bool], ...] = (
    ((1,), 0, 1, 0, False),
    ((7,), -1, 3, 0, False),
    ((7,), 0, 3, 4, False),
    ((7,), 0, 3, 6, True),
    ((7,), 0, 7, 5, True),
    ((7,), 0, 2, 7 * 2**35 + 6, True),
    ((5, 3), 0, 0, 5, False),
    ((5, 0), 0, 2, 1, False),
    ((0, 3), 0, 0, 0, True),
    ((4, 65), 1, 17, 20, False),
    ((3, 8, 7), 1, 5, 6, True),
    ((2, 3, 5, 16), -2, 2, 4, True),
    ((9, 1025), 0, 1, 3, False),
    ((2, 1, 3, 2, 5, 2, 1, 3), 4, 4, 3, True),
)


def _write_samples(dtypes: tuple[DType, ...], rng: Rng) -> Iterable[Sample]:
    dtype = dtypes[0]
    for shape, axis, count, start, wrap in _WRITTEN:
        at = axis % len(shape)
        x = normal(rng, shape, dtype)
        update = normal(rng, (*shape[:at], count, *shape[at + 1 :]), dtype)
        params: dict[str, Any] = {"axis": axis, "wrap": wrap}
        name = f"{label(shape)}-axis{axis}-{count}at{start}{'-wrap' * wrap}"
        yield Sample((x, update, None), {**params, "start": start}, name)
        yield Sample((x, update, np.array([start])), params, f"{name}-read")
    row = specials(dtype)
    yield Sample((row, row[:2], None), {"axis": 0, "start": 0}, "specials")


def _write_errors() -> Iterable[ErrorSample]:
    x, update = ones((4, 3)), ones((2, 3))
    given = {"axis": 0, "start": 0}
    p, s = ParameterError, ShapeError
    rows: tuple[tuple[tuple[Any, ...], dict[str, Any], type[Exception], str, str], ...] = (
        ((x, update), {"start": 0}, p, "write_slice needs parameter axis", "no_axis"),
        ((x, update), {"axis": 0}, p, "the start is given once.*neither", "no_start"),
        ((x, update, np.array([0])), given, p, "the start is given once.*both", "two_starts"),
        ((x, update), {"axis": 2, "start": 0}, p, "write_slice: axis out of range", "axis_range"),
        ((x, update), {"axis": 0, "start": 3}, p, "start.*asked: 3.*0 to 2.*wrap=True", "overhang"),
        ((x, update), {"axis": 0, "start": -1}, p, "start.*asked: -1", "negative"),
        ((x, update), {"axis": 0, "start": -1, "wrap": True}, p, "start.*asked: -1.*0 or more", "negative_wrap"),
        ((x, ones((2, 4))), given, s, "differs from x on another axis than 0", "other_axis"),
        ((x, ones((2,))), given, s, "differs from x", "rank"),
        ((x, ones((5, 3))), {**given, "wrap": True}, s, "longer than axis 0.*overlap.*up to 4", "overlap"),
        ((x, update, np.array([0, 1])), {"axis": 0}, s, "position has the wrong shape", "two_positions"),
        ((x, ones((2, 3), DType.F16)), given, DTypeError, "write_slice.*f32.*f16", "mixed_dtypes"),
        ((x, update, np.array([0], np.int32)), {"axis": 0}, DTypeError, "position is i32", "i32_position"),
        ((x[0, 0], update), given, s, "write_slice: x has the wrong rank", "scalar_x"),
    )  # fmt: skip
    for inputs, params, error, match, name in rows:
        yield ErrorSample(inputs, params, error, match, name)
    for bad, wrap in ((3, False), (-1, False), (-1, True), (2**32, False), (-(2**63), True)):
        match = rf"write_slice: position is out of range of axis 0.*position {bad}"
        params = {"axis": 0, "wrap": wrap}
        inputs = (x, update, np.array([bad]))
        yield ErrorSample(inputs, params, IndexOutOfRangeError, match, f"position_{bad}{'_wrap' * wrap}")


OPS = (
    moving(
        "pad",
        ("x",),
        (
            Param("pads", "pairs"),
            Param("mode", "str", default="constant", check=_mode),
            Param("value", "number", default=0),
        ),
        _pad_shape,
        _pad_backward,
        _pad_samples,
        _pad_errors,
        "x within a border of (before, after) elements on each axis: value, x mirrored at its first and last "
        "element (reflect), or those elements repeated (replicate). value is rounded as masked_fill does.",
        check=_pad_check,
    ),
    moving(
        "write_slice",
        ("x", "update", Arg("position", optional=True)),
        (
            Param("axis", "int"),
            Param("start", "int", default=None, optional=True),
            Param("wrap", "bool", default=False),
        ),
        _write_shape,
        _write_backward,
        _write_samples,
        _write_errors,
        "x with update written along an axis from start on, a parameter or the number in position (I64, shape (1,)), "
        "which is read on the device. With wrap entries go to their index modulo the axis' extent; without, an "
        "overhang is refused.",
        dtype_rule=_write_dtype,
        dtypes=tuple((d, d, DType.I64, d) for d in ALL),
        value_check=_start_inside,
    ),
)
