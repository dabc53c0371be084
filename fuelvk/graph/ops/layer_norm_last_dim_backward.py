"""LAYER_NORM_LAST_DIM_BACKWARD: r*(g - mean(g) - xh*mean(g*xh)), xh = (x - mean)*r, r = 1/sqrt(var + eps)."""

from __future__ import annotations

from collections.abc import Iterator

from fuelvk.base.dtypes import FLOATS
from fuelvk.graph import rules
from fuelvk.graph.ir import Builder, Value
from fuelvk.graph.ops._norms import EPS, LAST, mean_of, roots
from fuelvk.graph.ops._row_gradients import (
    DTYPES,
    build_norm_gradient,
    gradient_errors,
    gradient_samples,
    gradient_shape,
)
from fuelvk.graph.patterns import Capture, P, Pattern
from fuelvk.graph.registry import FusedOps
from fuelvk.graph.types import DECOMPOSE, Arg, Family, FusedOpEntry, Params, Values

NAME = "layer_norm_last_dim_backward"


def _alternatives() -> Iterator[P]:
    x, g = Capture("x"), Capture("g")
    centred = P("sub", x, mean_of(x))
    for root in roots(centred):
        xh = P("div", centred, root)
        yield P("div", P("sub", P("sub", g, mean_of(g)), P("mul", xh, mean_of(P("mul", g, xh)))), root)


def decompose(g: Builder, inputs: Values, params: Params) -> tuple[Value, ...]:
    """Returns the formula in the accumulator type, rounded once at the end."""
    x, dy = inputs
    assert x is not None
    assert dy is not None
    w, d = rules.wide(g, x), rules.wide(g, dy)
    centred = g.sub(w, g.mean(w, **LAST))
    root = g.sqrt(g.add(g.mean(g.sqr(centred), **LAST), g.constant(params["eps"], w.dtype)))
    xh = g.div(centred, root)
    inner = g.sub(g.sub(d, g.mean(d, **LAST)), g.mul(xh, g.mean(g.mul(d, xh), **LAST)))
    return (rules.narrow(g, g.div(inner, root), x.dtype),)


OP = FusedOpEntry(
    id=FusedOps.LAYER_NORM_LAST_DIM_BACKWARD,
    family=Family.BACKWARD,
    args=(Arg("x"), Arg("g")),
    params=(EPS,),
    shape_rule=gradient_shape(NAME, "x"),
    dtype_rule=rules.uniform(NAME, ("x", "g"), FLOATS),
    dtypes=DTYPES,
    pattern=Pattern(tuple(_alternatives()), build_norm_gradient),
    decompose=decompose,
    backward=DECOMPOSE,
    sample_inputs=gradient_samples(lambda x, dtype: x, eps=True),
    error_inputs=gradient_errors(NAME, "x", eps=True),
    doc="r*(g - mean(g) - xh*mean(g*xh)), xh = (x - mean)*r, r = 1/sqrt(var + eps); weights are the caller's.",
)
