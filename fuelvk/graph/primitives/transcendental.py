"""Exponential, error function, tanh and the exact GELU."""

from __future__ import annotations

import math

from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.graph import rules
from fuelvk.graph.ir import Builder, Value
from fuelvk.graph.samples import unary_errors, unary_samples
from fuelvk.graph.types import Arg, Backward, Family, Params, PrimitiveEntry, PrimitiveId, Values

Gradients = tuple[Value | None, ...]
Outputs = tuple[Value, ...]


def _exp(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    return (g.mul(grads[0], outputs[0]),)


def _erf(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    (x,), (dy,) = inputs, grads
    assert x is not None
    assert dy is not None
    gauss = g.exp(g.neg(g.sqr(rules.wide(g, x))))
    slope = g.mul(gauss, g.constant(2 / math.sqrt(math.pi), gauss.dtype))
    return (rules.narrow(g, g.mul(rules.wide(g, dy), slope), x.dtype),)


def _tanh(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    y = outputs[0]
    return (g.mul(grads[0], g.sub(g.constant(1.0, y.dtype), g.sqr(y))),)


def _gelu_erf(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    """``Phi(x) + x*phi(x)``, with Phi read off the function itself: ``gelu(x)/x``.

    Beyond +-40 both factors have reached their limits in every float type, so x is held there and infinities
    give 1 and 0. Near zero, where the quotient would divide subnormals, ``Phi = 1/2 + x/sqrt(2 pi)`` errs by
    x^3/15.
    """
    (x,), (dy,) = inputs, grads
    assert x is not None
    assert dy is not None
    c = rules.wide(g, x)
    dtype = c.dtype

    def number(value: float) -> Value:
        return g.constant(value, dtype)

    c = g.minimum(g.maximum(c, number(-40.0)), number(40.0))
    near = g.less(g.abs(c), number(2.0**-18 if dtype is DType.F64 else 2.0**-10))
    slope = number(1 / math.sqrt(2 * math.pi))
    quotient = g.div(g.gelu_erf(c), g.where(near, number(1.0), c))
    cdf = g.where(near, g.add(number(0.5), g.mul(c, slope)), quotient)
    density = g.mul(g.exp(g.mul(g.sqr(c), number(-0.5))), slope)
    derivative = g.add(cdf, g.mul(c, density))
    return (rules.narrow(g, g.mul(rules.wide(g, dy), derivative), x.dtype),)


def _entry(name: str, backward: Backward, doc: str, domain: tuple[float, float]) -> PrimitiveEntry:
    return PrimitiveEntry(
        id=PrimitiveId(name),
        family=Family.TRANSCENDENTAL,
        args=(Arg("x"),),
        shape_rule=rules.like_first,
        dtype_rule=rules.uniform(name, ("x",), FLOATS),
        dtypes=rules.rows(FLOATS, 1),
        backward=backward,
        sample_inputs=unary_samples(domain=domain),
        error_inputs=unary_errors(name),
        doc=doc,
    )


OPS = (
    _entry("erf", _erf, "2/sqrt(pi) times the integral of exp(-t^2) from 0 to x.", (-6.0, 6.0)),
    _entry("exp", _exp, "e^x; exp(-inf) is 0.", (-105.0, 89.0)),
    _entry("gelu_erf", _gelu_erf, "x * (1 + erf(x/sqrt(2)))/2; gelu(-inf) is -0.", (-14.0, 14.0)),
    _entry("tanh", _tanh, "Hyperbolic tangent.", (-10.0, 10.0)),
)
