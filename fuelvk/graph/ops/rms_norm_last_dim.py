"""RMS_NORM_LAST_DIM: x / sqrt(mean(x^2) + eps) * weight over the last axis."""

from __future__ import annotations

from fuelvk.base.dtypes import FLOATS
from fuelvk.graph import rules
from fuelvk.graph.ir import Builder, Value
from fuelvk.graph.ops._norms import (
    EPS,
    LAST,
    built,
    mean_of,
    norm_errors,
    norm_samples,
    norm_shape,
    normalised,
    scaled,
    vector_gradient,
)
from fuelvk.graph.patterns import Capture, Match, P, Pattern
from fuelvk.graph.patterns import match as find
from fuelvk.graph.registry import FusedOps
from fuelvk.graph.types import Arg, Family, FusedOpEntry, Params, Values

NAME = "rms_norm_last_dim"


def _alternatives() -> tuple[P, ...]:
    weight = Capture("weight")
    cores = tuple(normalised(Capture("x")))
    return (*(P("mul", core, weight) for core in cores), *cores)


_plain = built(("weight",))


def _build(match: Match) -> tuple[tuple[Value | None, ...], dict[str, object]] | None:
    """Leaves the rms norm of ``x - mean(x)`` to layer norm, whose id comes later."""
    x = Capture("x")
    return None if find(P("sub", x, mean_of(x)), match.values["x"]) is not None else _plain(match)


def decompose(g: Builder, inputs: Values, params: Params) -> tuple[Value, ...]:
    """Returns the formula in the accumulator type, rounded once at the end."""
    x, weight = inputs
    assert x is not None
    w = rules.wide(g, x)
    root = g.sqrt(g.add(g.mean(g.sqr(w), **LAST), g.constant(params["eps"], w.dtype)))
    return (rules.narrow(g, scaled(g, g.div(w, root), weight), x.dtype),)


def backward(
    g: Builder, inputs: Values, outputs: tuple[Value, ...], grads: Values, params: Params
) -> tuple[Value | None, ...]:
    """The gradient op of ``h = g*weight``; for the weight the sum over rows of g times the plain norm."""
    (x, weight), (dy,) = inputs, grads
    assert x is not None
    assert dy is not None
    w, d = rules.wide(g, x), rules.wide(g, dy)
    dx = g.rms_norm_last_dim_backward(w, scaled(g, d, weight), eps=params["eps"])
    if weight is None:
        return rules.narrow(g, dx, x.dtype), None
    xh = g.rms_norm_last_dim(w, None, eps=params["eps"])
    return rules.narrow(g, dx, x.dtype), vector_gradient(g, g.mul(d, xh), weight)


OP = FusedOpEntry(
    id=FusedOps.RMS_NORM_LAST_DIM,
    family=Family.NORM,
    args=(Arg("x"), Arg("weight", optional=True)),
    params=(EPS,),
    shape_rule=norm_shape(NAME, ("weight",)),
    dtype_rule=rules.uniform(NAME, ("x", "weight"), FLOATS),
    dtypes=rules.rows(FLOATS, 2),
    pattern=Pattern(_alternatives(), _build),
    decompose=decompose,
    backward=backward,
    sample_inputs=norm_samples(((True,), (False,))),
    error_inputs=norm_errors(NAME, ("weight",)),
    doc="x / sqrt(mean(x^2) + eps) * weight over the last axis.",
)
