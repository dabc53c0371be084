"""POWI_BACKWARD: exp * x^(exp-1) * g."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.base.errors import DTypeError, ParameterError, ShapeError
from fuelvk.base.shapes import Shape
from fuelvk.graph import rules
from fuelvk.graph.ir import Builder, Value
from fuelvk.graph.patterns import Capture, Match, P, Pattern, Scalar
from fuelvk.graph.primitives.parametric import exponent_range
from fuelvk.graph.registry import FusedOps
from fuelvk.graph.samples import label, normal, ones, specials
from fuelvk.graph.types import (
    Arg,
    ErrorSample,
    Family,
    FusedOpEntry,
    Param,
    Params,
    Sample,
    Shapes,
    Values,
)

NAME = "powi_backward"


def _shape(shapes: Shapes, params: Params) -> tuple[Shape, ...]:
    x = rules.given(shapes[0])
    rules.need_shape(NAME, "g", shapes[1], x, "the gradient of an output that is like x")
    return (x,)


def _build(match: Match) -> tuple[tuple[Value | None, ...], dict[str, object]] | None:
    """Takes exp*x^(exp-1)*g only where the two exponents agree and the op's special cases do not apply."""
    x, g, factor = match.values["x"], match.values["g"], match.scalars["exp"]
    power = next(node for node in match.covered if node.op.name == "powi")
    fits = factor == power.params["exp"] + 1 and factor not in (0, 1) and x.shape == g.shape
    return ((x, g), {"exp": int(factor)}) if fits else None


def decompose(g: Builder, inputs: Values, params: Params) -> tuple[Value, ...]:
    """Returns the power, times exp, times g in the accumulator type, rounded once at the end."""
    x, dy = inputs
    assert x is not None
    assert dy is not None
    exponent = params["exp"]
    if exponent == 0:
        return (rules.full(g, 0.0, x.shape, x.dtype),)
    if exponent == 1:
        return (g.copy(dy),)
    power = g.powi(rules.wide(g, x), exp=exponent - 1)
    slope = g.mul(power, g.constant(float(exponent), power.dtype))
    return (rules.narrow(g, g.mul(slope, rules.wide(g, dy)), x.dtype),)


def backward(
    g: Builder, inputs: Values, outputs: tuple[Value, ...], grads: Values, params: Params
) -> tuple[Value | None, ...]:
    """For x ``exp*(exp-1)*x^(exp-2)*g*dy``, zeros for exp 0 and 1; for g ``exp*x^(exp-1)*dy``: both the op again."""
    (x, dx), (dy,), exponent = inputs, grads, params["exp"]
    assert x is not None
    assert dx is not None
    assert dy is not None
    of_g = g.powi_backward(x, dy, exp=exponent)
    if exponent in (0, 1):
        return rules.full(g, 0.0, x.shape, x.dtype), of_g
    inner = g.powi_backward(x, g.mul(dx, dy), exp=exponent - 1)
    return g.affine(inner, mul=float(exponent), add=0.0), of_g


def sample_inputs(dtypes: tuple[DType, ...], rng: np.random.Generator) -> Iterable[Sample]:
    dtype = dtypes[0]
    for shape in ((), (0,), (3, 5), (257,), (1025,)):
        yield Sample((normal(rng, shape, dtype), normal(rng, shape, dtype)), {"exp": 3}, label(shape))
    values = specials(dtype)
    for exponent in (0, 1, 2, 3, -1, -2, 7):
        for factor in (1.0, -1.0):
            pair = (values, np.full_like(values, factor))
            yield Sample(pair, {"exp": exponent}, f"specials-exp{exponent}-g{factor:g}")
        pair = (normal(rng, (130,), dtype), normal(rng, (130,), dtype))
        yield Sample(pair, {"exp": exponent}, f"normal-exp{exponent}")


def error_inputs() -> Iterable[ErrorSample]:
    x = ones((2, 3))
    yield ErrorSample((x, ones((3,))), {"exp": 2}, ShapeError, r"powi_backward.*g.*\(2, 3\)", "shapes")
    yield ErrorSample((x, x), {}, ParameterError, "powi_backward needs parameter exp", "no_exp")
    yield ErrorSample((x, x), {"exp": 0.5}, ParameterError, "exp has the wrong type", "fraction")
    yield ErrorSample((x, x), {"exp": 2**31}, ParameterError, "exp is not acceptable", "exponent_range")
    yield ErrorSample((x, ones((2, 3), DType.F16)), {"exp": 2}, DTypeError, "f32.*f16", "mixed_dtypes")


_X, _G = Capture("x"), Capture("g")

OP = FusedOpEntry(
    id=FusedOps.POWI_BACKWARD,
    family=Family.BACKWARD,
    args=(Arg("x"), Arg("g")),
    params=(Param("exp", "int", check=exponent_range),),
    shape_rule=_shape,
    dtype_rule=rules.uniform(NAME, ("x", "g"), FLOATS),
    dtypes=rules.rows(FLOATS, 2),
    pattern=Pattern((P("mul", P("mul", P("powi", _X), Scalar("exp")), _G),), _build),
    decompose=decompose,
    backward=backward,
    sample_inputs=sample_inputs,
    error_inputs=error_inputs,
    doc="exp * x^(exp-1) * g, the power as powi makes it; zeros for exp = 0, g for exp = 1, whatever x is.",
)
