"""Exponentials, logarithms, sine and cosine, and the functions of neural networks made of them."""

from __future__ import annotations

import math

from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.graph import rules
from fuelvk.graph.ir import Builder, Value
from fuelvk.graph.samples import function_samples, unary_errors
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


def _parts(inputs: Values, grads: Values) -> tuple[Value, Value]:
    """Returns the input and the gradient, which are always there."""
    (x,), (dy,) = inputs, grads
    assert x is not None
    assert dy is not None
    return x, dy


def _scaled(g: Builder, dy: Value, slope: Value, dtype: DType) -> Gradients:
    """Returns ``dy * slope``, with ``slope`` in the accumulator's type, rounded to ``dtype`` once."""
    return (rules.narrow(g, g.mul(rules.wide(g, dy), slope), dtype),)


def _exp2(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    x, dy = _parts(inputs, grads)
    y = g.exp2(rules.wide(g, x))
    return _scaled(g, dy, g.mul(y, g.constant(math.log(2), y.dtype)), x.dtype)


def _expm1(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    x, dy = _parts(inputs, grads)
    return (g.mul(dy, g.exp(x)),)


def _log(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    x, dy = _parts(inputs, grads)
    return (g.div(dy, x),)


def _log2(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    x, dy = _parts(inputs, grads)
    wide = rules.wide(g, x)
    return (
        rules.narrow(
            g,
            g.div(rules.wide(g, dy), g.mul(wide, g.constant(math.log(2), wide.dtype))),
            x.dtype,
        ),
    )


def _log1p(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    x, dy = _parts(inputs, grads)
    wide = rules.wide(g, x)
    quotient = g.div(rules.wide(g, dy), g.add(wide, g.constant(1.0, wide.dtype)))
    return (rules.narrow(g, quotient, x.dtype),)


def _sin(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    x, dy = _parts(inputs, grads)
    return (g.mul(dy, g.cos(x)),)


def _cos(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    x, dy = _parts(inputs, grads)
    return (g.mul(dy, g.neg(g.sin(x))),)


def _sigmoid(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    """``s(x) s(-x)``: 1 - s(x) would lose the tail."""
    x, dy = _parts(inputs, grads)
    x_wide = rules.wide(g, x)
    return _scaled(g, dy, g.mul(g.sigmoid(x_wide), g.sigmoid(g.neg(x_wide))), x.dtype)


def _softplus(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    x, dy = _parts(inputs, grads)
    return (g.mul(dy, g.sigmoid(x)),)


def _held(g: Builder, x: Value, limit: float) -> Value:
    """Returns ``x`` in its accumulator's type within +-limit, where a slope has reached its end in every type."""
    wide = rules.wide(g, x)
    held: Value = g.minimum(g.maximum(wide, g.constant(-limit, wide.dtype)), g.constant(limit, wide.dtype))
    return held


def _gate_slope(g: Builder, x: Value, gate: Value, gate_slope: Value | None) -> Value:
    """The slope of ``x s(w)``, s the sigmoid and w' = ``gate_slope`` (None: 1): ``s + x s(w) s(-w) w'``."""
    opened = g.sigmoid(gate)
    change = g.mul(x, g.mul(opened, g.sigmoid(g.neg(gate))))
    if gate_slope is not None:
        change = g.mul(change, gate_slope)
    result: Value = g.add(opened, change)
    return result


def _silu(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    x, dy = _parts(inputs, grads)
    held = _held(g, x, 800.0 if x.dtype is DType.F64 else 110.0)
    return _scaled(g, dy, _gate_slope(g, held, held, None), x.dtype)


def _gelu(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    """gelu is ``x s(w)`` with ``w = sqrt(8/pi) (x + 0.044715 x^3)``."""
    x, dy = _parts(inputs, grads)
    held = _held(g, x, 40.0)

    def number(value: float) -> Value:
        return g.constant(value, held.dtype)

    root, cube = math.sqrt(8 / math.pi), 0.044715
    square = g.sqr(held)
    gate = g.mul(held, g.add(number(root), g.mul(square, number(root * cube))))
    gate_slope = g.add(number(root), g.mul(square, number(3 * root * cube)))
    return _scaled(g, dy, _gate_slope(g, held, gate, gate_slope), x.dtype)


def _entry(
    name: str, backward: Backward, doc: str, domain: tuple[float, float], shift: float = 0.0
) -> PrimitiveEntry:
    return PrimitiveEntry(
        id=PrimitiveId(name),
        family=Family.TRANSCENDENTAL,
        args=(Arg("x"),),
        shape_rule=rules.like_first,
        dtype_rule=rules.uniform(name, ("x",), FLOATS),
        dtypes=rules.rows(FLOATS, 1),
        backward=backward,
        sample_inputs=function_samples(domain=domain, shift=shift),
        error_inputs=unary_errors(name),
        doc=doc,
    )


OPS = (
    _entry("cos", _cos, "Cosine of x radians.", (-12.0, 12.0)),
    _entry("erf", _erf, "2/sqrt(pi) times the integral of exp(-t^2) from 0 to x.", (-6.0, 6.0)),
    _entry("exp", _exp, "e^x; exp(-inf) is 0.", (-105.0, 89.0)),
    _entry("exp2", _exp2, "2^x; exp2(-inf) is 0.", (-151.0, 129.0)),
    _entry("expm1", _expm1, "e^x - 1, accurate near 0.", (-20.0, 89.0)),
    _entry(
        "gelu", _gelu, "x/2 * (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))); gelu(-inf) is -0.", (-10.0, 10.0)
    ),
    _entry("gelu_erf", _gelu_erf, "x * (1 + erf(x/sqrt(2)))/2; gelu(-inf) is -0.", (-14.0, 14.0)),
    _entry("log", _log, "Natural logarithm; -inf at both zeros, NaN below.", (0.2, 8.0), 10.0),
    _entry("log1p", _log1p, "log(1 + x), accurate near 0; -inf at -1, NaN below.", (-0.95, 8.0), 10.0),
    _entry("log2", _log2, "Binary logarithm; -inf at both zeros, NaN below.", (0.2, 8.0), 10.0),
    _entry("sigmoid", _sigmoid, "1/(1 + e^-x); sigmoid(-inf) is 0.", (-104.0, 20.0)),
    _entry("silu", _silu, "x/(1 + e^-x); silu(-inf) is -0.", (-110.0, 20.0)),
    _entry("sin", _sin, "Sine of x radians.", (-12.0, 12.0)),
    _entry("softplus", _softplus, "log(1 + e^x).", (-104.0, 20.0)),
    _entry("tanh", _tanh, "Hyperbolic tangent.", (-10.0, 10.0)),
)
