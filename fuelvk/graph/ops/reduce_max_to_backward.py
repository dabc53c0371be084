"""REDUCE_MAX_TO_BACKWARD: the gradient of a maximum, shared equally among ties.

A window of x is what one element of g broadcasts to. Every element that equals the window's maximum gets g over the
number of those, the others +0; a window that holds a NaN gets NaN everywhere.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator

import numpy as np

from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.base.errors import DTypeError, ShapeError
from fuelvk.base.shapes import Shape, broadcast_axes, broadcast_shapes, normalize_axes
from fuelvk.graph import rules
from fuelvk.graph.ir import Builder, Node, Value
from fuelvk.graph.patterns import Capture, Match, P, Pattern, Scalar
from fuelvk.graph.registry import FusedOps
from fuelvk.graph.samples import label, normal, ones
from fuelvk.graph.types import Arg, ErrorSample, Family, FusedOpEntry, Params, Sample, Shapes, Values

NAME = "reduce_max_to_backward"


def _shape(shapes: Shapes, params: Params) -> tuple[Shape, ...]:
    x, g = rules.given(shapes[0]), rules.given(shapes[1])
    try:
        fits = broadcast_shapes(x, g) == x
    except ShapeError:
        fits = False
    if not fits:
        raise ShapeError(
            f"{NAME}: g does not broadcast to x",
            seen=f"g{g}",
            allowed=f"x{x} with some axes 1, or without leading ones",
        )
    return (x,)


def _kept(node: Node) -> bool:
    return bool(node.params["keepdims"])


def _patterns() -> Iterator[P]:
    """Yields the decomposition as it is written: ties compared either way, counted by choosing 1 or by a cast."""
    for swapped, cast in itertools.product((False, True), repeat=2):
        x, g = Capture("x"), Capture("g")
        top = P("max", x, when=_kept)
        hit = P("equal", top, x) if swapped else P("equal", x, top)
        ones_at = P("cast", hit) if cast else P("where", hit, Scalar("one", 1.0), Scalar("none", 0.0))
        shared = P("where", hit, P("div", g, P("sum", ones_at, when=_kept)), Scalar("zero", 0.0))
        yield P("where", P("equal", top, top), shared, top)


def _build(match: Match) -> tuple[tuple[Value | None, ...], dict[str, object]] | None:
    """Refuses where the count goes over other axes than the maximum, or g has another shape than that leaves."""
    x, g = match.values["x"], match.values["g"]
    tops, counts = ({n for n in match.covered if n.op.name == op} for op in ("max", "sum"))
    axes = {normalize_axes(n.params["axes"], x.ndim) for n in (*tops, *counts)}
    if len(axes) != 1 or math.copysign(1.0, match.scalars["zero"]) < 0:
        return None
    (reduced,) = axes
    kept = tuple(1 if i in reduced else n for i, n in enumerate(x.shape))
    return ((x, g), {}) if g.shape == kept else None


def decompose(g: Builder, inputs: Values, params: Params) -> tuple[Value, ...]:
    """Returns comparison, count, quotient and choice in the accumulator type, rounded once at the end."""
    x, dy = inputs
    assert x is not None
    assert dy is not None
    kept = (1,) * (x.ndim - dy.ndim) + dy.shape
    over = {"axes": broadcast_axes(kept, x.shape), "keepdims": True}
    w, d = rules.wide(g, x), rules.wide(g, rules.reshaped(g, dy, kept))
    one, zero = (g.constant(v, w.dtype) for v in (1.0, 0.0))
    top = g.max(w, **over)
    hit = g.equal(w, top)
    shared = g.where(hit, g.div(d, g.sum(g.where(hit, one, zero), **over)), zero)
    return (rules.narrow(g, g.where(g.equal(top, top), shared, top), x.dtype),)


def backward(
    g: Builder, inputs: Values, outputs: tuple[Value, ...], grads: Values, params: Params
) -> tuple[Value | None, ...]:
    """For x zeros (it only chooses); for g the mean of the ties' gradients, by the op itself under a gradient of 1."""
    (x, dy), (grad,) = inputs, grads
    assert x is not None
    assert dy is not None
    assert grad is not None
    weights = g.reduce_max_to_backward(x, rules.full(g, 1.0, dy.shape, dy.dtype))
    terms = g.mul(rules.wide(g, weights), rules.wide(g, grad))
    return rules.full(g, 0.0, x.shape, x.dtype), rules.narrow(g, rules.sum_to(g, terms, dy.shape), dy.dtype)


_SHAPES: tuple[tuple[Shape, Shape], ...] = (
    *(((2, 3, 5), tuple(kept)) for kept in itertools.product((2, 1), (3, 1), (5, 1))),
    ((2, 3, 5), (3, 1)),
    ((2, 3, 5), (5,)),
    ((2, 3, 5), ()),
    ((), ()),
    ((1,), ()),
    ((2, 1, 3, 2, 1, 2, 2, 3), (2, 1, 1, 2, 1, 1, 2, 1)),
    ((2, 2, 3, 2, 2, 2, 2, 3), (1, 2, 1, 2, 1, 2, 1, 3)),
    ((3, 65), (3, 1)),
    ((3, 1025), (3, 1)),
    ((2, 16385), (1, 1)),
    ((70, 130), (1, 130)),
    ((1030, 3), (3,)),
    ((0,), (1,)),
    ((2, 0, 3), (2, 1, 3)),
    ((0, 3), (0, 1)),
)


def sample_inputs(dtypes: tuple[DType, ...], rng: np.random.Generator) -> Iterable[Sample]:
    dtype = dtypes[0]
    for shape, kept in _SHAPES:
        yield Sample(
            (normal(rng, shape, dtype), normal(rng, kept, dtype)), {}, f"{label(shape)}-g{label(kept)}"
        )
    for shape, kept in (((6, 7), (6, 1)), ((3, 300), (3, 1)), ((90, 70), (70,)), ((4, 5, 6), (5, 1))):
        tied = np.round(normal(rng, shape, dtype).astype(np.float64)).astype(dtype.numpy)
        yield Sample((tied, normal(rng, kept, dtype)), {}, f"tied-{label(shape)}-g{label(kept)}")
    inf, nan = np.inf, np.nan
    rows = np.array(
        [
            [0.0, -0.0, -1.0],
            [-0.0, -0.0, -0.0],
            [nan, 1.0, inf],
            [1.0, 2.0, nan],
            [inf, inf, -inf],
            [-inf, -inf, -inf],
        ]
    ).astype(dtype.numpy)
    least = np.finfo(np.float64).tiny if dtype is DType.F64 else 2.0**-126
    gradients = np.array([1.0, -3.0, nan, -inf, -0.0, least]).astype(dtype.numpy)
    every = np.broadcast_to(rows, (6, 6, 3)).copy()
    each = np.repeat(gradients, 6).reshape(6, 6, 1)
    yield Sample((every, each), {}, "tied-specials")
    turned = (every.transpose(2, 0, 1).copy(), each.reshape(6, 6).copy())
    yield Sample(turned, {}, "tied-specials_in_columns")


def error_inputs() -> Iterable[ErrorSample]:
    x = ones((2, 3))
    for g in ((3, 1), (2,), (1, 2, 3), (2, 3, 1), (0, 1)):
        yield ErrorSample(
            (x, ones(g)), {}, ShapeError, rf"{NAME}: g does not broadcast.*x\(2, 3\)", f"g_{label(g)}"
        )
    yield ErrorSample((ones((1, 3)), x), {}, ShapeError, f"{NAME}: g does not broadcast", "g_wider_than_x")
    yield ErrorSample((x, ones((2, 1), DType.F16)), {}, DTypeError, "f32.*f16", "mixed_dtypes")
    yield ErrorSample((ones((2,), DType.I32),) * 2, {}, DTypeError, f"{NAME}.*i32", "integers")


OP = FusedOpEntry(
    id=FusedOps.REDUCE_MAX_TO_BACKWARD,
    family=Family.BACKWARD,
    args=(Arg("x"), Arg("g")),
    shape_rule=_shape,
    dtype_rule=rules.uniform(NAME, ("x", "g"), FLOATS),
    dtypes=rules.rows(FLOATS, 2),
    pattern=Pattern(tuple(_patterns()), _build),
    decompose=decompose,
    backward=backward,
    sample_inputs=sample_inputs,
    error_inputs=error_inputs,
    doc=(
        "g shared equally among the ties for the largest x that an element of g broadcasts to, +0 elsewhere; NaN all "
        "over a window that holds one."
    ),
)
