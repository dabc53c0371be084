"""LAYER_NORM_LAST_DIM: (x - mean) / sqrt(var + eps) * weight + bias over the last axis."""

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
from fuelvk.graph.patterns import Capture, P, Pattern
from fuelvk.graph.registry import FusedOps
from fuelvk.graph.types import Arg, Family, FusedOpEntry, Params, Values

NAME = "layer_norm_last_dim"


def _alternatives() -> tuple[P, ...]:
    x, weight, bias = Capture("x"), Capture("weight"), Capture("bias")
    cores = tuple(normalised(P("sub", x, mean_of(x))))
    weighted = tuple(P("mul", core, weight) for core in cores)
    return (*(P("add", c, bias) for c in (*weighted, *cores)), *weighted, *cores)


def _parts(g: Builder, x: Value, eps: float) -> tuple[Value, Value]:
    """Returns the normalised x and the root of the variance, both wide."""
    w = rules.wide(g, x)
    centred = g.sub(w, g.mean(w, **LAST))
    root = g.sqrt(g.add(g.mean(g.sqr(centred), **LAST), g.constant(eps, w.dtype)))
    return g.div(centred, root), root


def decompose(g: Builder, inputs: Values, params: Params) -> tuple[Value, ...]:
    """Returns the two-pass formula in the accumulator type, rounded once at the end."""
    x, weight, bias = inputs
    assert x is not None
    y = scaled(g, _parts(g, x, params["eps"])[0], weight)
    if bias is not None:
        y = g.add(y, rules.narrow(g, bias, y.dtype))
    return (rules.narrow(g, y, x.dtype),)


def backward(
    g: Builder, inputs: Values, outputs: tuple[Value, ...], grads: Values, params: Params
) -> tuple[Value | None, ...]:
    """The gradient op of ``h = g*weight``; weight and bias take the sums over rows of g times the plain norm and of
    g.
    """
    (x, weight, bias), (dy,) = inputs, grads
    assert x is not None
    assert dy is not None
    w, d = rules.wide(g, x), rules.wide(g, dy)
    dx = g.layer_norm_last_dim_backward(w, scaled(g, d, weight), eps=params["eps"])
    of_weight = None
    if weight is not None:
        xh = g.layer_norm_last_dim(w, None, None, eps=params["eps"])
        of_weight = vector_gradient(g, g.mul(d, xh), weight)
    return rules.narrow(g, dx, x.dtype), of_weight, vector_gradient(g, d, bias)


OP = FusedOpEntry(
    id=FusedOps.LAYER_NORM_LAST_DIM,
    family=Family.NORM,
    args=(Arg("x"), Arg("weight", optional=True), Arg("bias", optional=True)),
    params=(EPS,),
    shape_rule=norm_shape(NAME, ("weight", "bias")),
    dtype_rule=rules.uniform(NAME, ("x", "weight", "bias"), FLOATS),
    dtypes=rules.rows(FLOATS, 3),
    pattern=Pattern(_alternatives(), built(("weight", "bias"))),
    decompose=decompose,
    backward=backward,
    sample_inputs=norm_samples(((True, True), (False, False), (True, False), (False, True))),
    error_inputs=norm_errors(NAME, ("weight", "bias")),
    doc="(x - mean) / sqrt(var + eps) * weight + bias over the last axis; two passes, biased variance.",
)
