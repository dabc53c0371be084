"""RMS_NORM_LAST_DIM_BACKWARD: r*(g - x*sum(g*x)/(n*(ms + eps))), r = 1/sqrt(ms + eps)."""

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

NAME = "rms_norm_last_dim_backward"


def _alternatives() -> Iterator[P]:
    x, g = Capture("x"), Capture("g")
    for root in roots(x):
        xh = P("div", x, root)
        yield P("div", P("sub", g, P("mul", xh, mean_of(P("mul", g, xh)))), root)


def decompose(g: Builder, inputs: Values, params: Params) -> tuple[Value, ...]:
    """Returns the formula in the accumulator type, rounded once at the end."""
    x, dy = inputs
    assert x is not None
    assert dy is not None
    w, d = rules.wide(g, x), rules.wide(g, dy)
    root = g.sqrt(g.add(g.mean(g.sqr(w), **LAST), g.constant(params["eps"], w.dtype)))
    xh = g.div(w, root)
    inner = g.sub(d, g.mul(xh, g.mean(g.mul(d, xh), **LAST)))
    return (rules.narrow(g, g.div(inner, root), x.dtype),)


OP = FusedOpEntry(
    id=FusedOps.RMS_NORM_LAST_DIM_BACKWARD,
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
    doc="r*(g - x*sum(g*x)/(n*(ms + eps))), r = 1/sqrt(ms + eps); weights are the caller's.",
)
