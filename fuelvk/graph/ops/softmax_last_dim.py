"""SOFTMAX_LAST_DIM: exp(x - max) / sum exp(x - max) over the last axis."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.base.errors import DTypeError, ShapeError
from fuelvk.base.shapes import Shape
from fuelvk.graph import rules
from fuelvk.graph.ir import Builder, Value
from fuelvk.graph.patterns import Capture, Match, P, Pattern
from fuelvk.graph.registry import FusedOps
from fuelvk.graph.samples import TILE_EDGES, label, normal, ones, specials
from fuelvk.graph.types import Arg, ErrorSample, Family, FusedOpEntry, Params, Sample, Shapes, Values

LAST = {"axes": (-1,), "keepdims": True}


def _shape(shapes: Shapes, params: Params) -> tuple[Shape, ...]:
    x = rules.given(shapes[0])
    rules.need_rank("softmax_last_dim", "x", x, 1)
    return (x,)


def softmax_pattern(x: Capture | P) -> P:
    """Returns the primitives people write for a softmax of ``x``; the shared exp must be one value."""
    exp = P("exp", P("sub", x, P("max", x, when=rules.last_axis_kept)))
    return P("div", exp, P("sum", exp, when=rules.last_axis_kept))


def _build(match: Match) -> tuple[tuple[Value | None, ...], dict[str, object]] | None:
    return (match.values["x"],), {}


def decompose(g: Builder, inputs: Values, params: Params) -> tuple[Value, ...]:
    """Returns the formula in the accumulator type, rounded once at the end."""
    (x,) = inputs
    assert x is not None
    w = rules.wide(g, x)
    e = g.exp(g.sub(w, g.max(w, **LAST)))
    return (rules.narrow(g, g.div(e, g.sum(e, **LAST)), x.dtype),)


def backward(
    g: Builder, inputs: Values, outputs: tuple[Value, ...], grads: Values, params: Params
) -> tuple[Value | None, ...]:
    """``y * (g - sum(g*y))``, as the fused op of its own."""
    (y,), (dy,) = outputs, grads
    return (g.softmax_last_dim_backward(y, dy),)


def sample_inputs(dtypes: tuple[DType, ...], rng: np.random.Generator) -> Iterable[Sample]:
    dtype = dtypes[0]
    for cols in TILE_EDGES:
        yield Sample((normal(rng, (3, cols), dtype, scale=3.0),), {}, f"3x{cols}")
    for shape in ((5,), (2, 3, 4, 5), (0, 7), (3, 0), (130, 2)):
        yield Sample((normal(rng, shape, dtype),), {}, label(shape))
    yield Sample((normal(rng, (2, 200), dtype, scale=40.0),), {}, "far_apart")
    yield Sample((normal(rng, (2, 33), dtype, shift=200.0),), {}, "offset")
    yield Sample((np.zeros((2, 128), dtype.numpy),), {}, "all_equal")
    rows = normal(rng, (6, 70), dtype)
    rows[0, 3] = np.nan
    rows[1, :] = -np.inf
    rows[2, 5:60] = -np.inf
    rows[3, 66] = np.inf
    rows[4, :2] = (np.inf, -np.inf)
    yield Sample((rows,), {}, "nan_inf_rows")
    values = specials(dtype)
    yield Sample((np.repeat(values[:, None], 3, 1),), {}, "specials_constant_rows")
    tiny = np.array([[0.0, -87.0, -88.5, -103.0, -104.5, -200.0]]).astype(dtype.numpy)
    yield Sample((tiny,), {}, "subnormal_results")


def error_inputs() -> Iterable[ErrorSample]:
    yield ErrorSample((ones(()),), {}, ShapeError, "softmax_last_dim.*rank", "scalar")
    yield ErrorSample((ones((2, 3), DType.I32),), {}, DTypeError, "softmax_last_dim.*i32", "integers")


OP = FusedOpEntry(
    id=FusedOps.SOFTMAX_LAST_DIM,
    family=Family.FORWARD,
    args=(Arg("x"),),
    shape_rule=_shape,
    dtype_rule=rules.uniform("softmax_last_dim", ("x",), FLOATS),
    dtypes=rules.rows(FLOATS, 1),
    pattern=Pattern((softmax_pattern(Capture("x")),), _build),
    decompose=decompose,
    backward=backward,
    sample_inputs=sample_inputs,
    error_inputs=error_inputs,
    doc="exp(x - max) / sum exp(x - max) over the last axis; a row of all -inf, or with a NaN or +inf, is NaN.",
)
