"""Pointwise functions of one input with numbers as parameters: affine, clamp, powi."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.base.errors import DTypeError, ParameterError
from fuelvk.graph import rules
from fuelvk.graph.ir import Builder, Value
from fuelvk.graph.samples import SampleInputs, label, normal, ones, specials
from fuelvk.graph.types import (
    Arg,
    DTypes,
    ErrorSample,
    Family,
    Param,
    Params,
    PrimitiveEntry,
    PrimitiveId,
    Sample,
    Shapes,
    Values,
)

Gradients = tuple[Value | None, ...]
Outputs = tuple[Value, ...]
MOST_EXPONENT = 2**31 - 1


def _samples(choices: Sequence[Mapping[str, Any]]) -> SampleInputs:
    """Shapes under the first parameters, then the special values and a row under each of them."""

    def samples(dtypes: tuple[DType, ...], rng: np.random.Generator) -> Iterable[Sample]:
        dtype = dtypes[0]
        for shape in ((), (0,), (1,), (3, 5), (2, 0, 3), (63,), (257,), (1025,)):
            x = normal(rng, shape, dtype, scale=3.0)
            yield Sample((x,), dict(choices[0]), f"normal-{label(shape)}")
        for params in choices:
            named = "_".join(f"{k}{v}" for k, v in params.items()) or "default"
            yield Sample((specials(dtype),), dict(params), f"specials-{named}")
            yield Sample((normal(rng, (130,), dtype),), dict(params), f"normal-{named}")

    return samples


def _affine(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    (dy,) = grads
    assert dy is not None
    return (g.affine(dy, mul=params["mul"], add=0.0),)


def _affine_errors() -> Iterable[ErrorSample]:
    x = ones((2,))
    yield ErrorSample((x,), {"mul": 1.0}, ParameterError, "affine needs parameter add", "no_add")
    yield ErrorSample((x,), {"mul": "2", "add": 0}, ParameterError, "mul has the wrong type", "text")
    flags = ones((2,), DType.BOOL)
    yield ErrorSample((flags,), {"mul": 1, "add": 0}, DTypeError, "affine.*bool", "bool")


def _clamp_check(shapes: Shapes, dtypes: DTypes, params: Params) -> None:
    low, high = params["min"], params["max"]
    if low is not None and high is not None and low > high:
        raise ParameterError("clamp: min is above max", seen=f"min={low}, max={high}", allowed="min <= max")


def _clamp(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    """The gradient where x lies within the bounds, ends included; 0 outside, NaN at NaN."""
    (x,), (dy,) = inputs, grads
    assert x is not None
    assert dy is not None
    v, zero = rules.wide(g, x), g.constant(0.0, x.dtype)
    result: Value = g.where(g.equal(v, v), dy, x)
    if params["min"] is not None:
        result = g.where(g.less(v, g.constant(params["min"], v.dtype)), zero, result)
    if params["max"] is not None:
        result = g.where(g.greater(v, g.constant(params["max"], v.dtype)), zero, result)
    return (result,)


def _clamp_errors() -> Iterable[ErrorSample]:
    x = ones((2,))
    yield ErrorSample(
        (x,), {"min": 2.0, "max": 1.0}, ParameterError, "clamp: min is above max", "min_above_max"
    )
    yield ErrorSample((x,), {"min": math.nan}, ParameterError, "min is not acceptable.*NaN", "nan_min")
    yield ErrorSample((x,), {"max": math.nan}, ParameterError, "max is not acceptable.*NaN", "nan_max")
    yield ErrorSample((ones((2,), DType.I32),), {"min": 0}, DTypeError, "clamp.*i32", "integers")


def exponent_range(value: int) -> str | None:
    return None if abs(value) <= MOST_EXPONENT else f"an integer from {-MOST_EXPONENT} to {MOST_EXPONENT}"


def _powi(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    """``exp * x^(exp-1) * dy``, as the fused op of its own."""
    return (g.powi_backward(inputs[0], grads[0], exp=params["exp"]),)


def _powi_errors() -> Iterable[ErrorSample]:
    x = ones((2,))
    yield ErrorSample((x,), {}, ParameterError, "powi needs parameter exp", "no_exp")
    yield ErrorSample((x,), {"exp": 0.5}, ParameterError, "exp has the wrong type", "fraction")
    yield ErrorSample((x,), {"exp": 2**31}, ParameterError, "exp is not acceptable", "exponent_range")
    yield ErrorSample((ones((2,), DType.I32),), {"exp": 2}, DTypeError, "powi.*i32", "integers")


def _entry(
    name: str, params: tuple[Param, ...], choices: Sequence[Mapping[str, Any]], **more: Any
) -> PrimitiveEntry:
    return PrimitiveEntry(
        id=PrimitiveId(name),
        family=Family.POINTWISE,
        args=(Arg("x"),),
        params=params,
        shape_rule=rules.like_first,
        dtype_rule=rules.uniform(name, ("x",), FLOATS),
        dtypes=rules.rows(FLOATS, 1),
        sample_inputs=_samples(choices),
        **more,
    )


OPS = (
    _entry(
        "affine",
        (Param("mul", "float"), Param("add", "float")),
        (
            {"mul": -2.5, "add": 0.75},
            {"mul": 1.0, "add": 0.0},
            {"mul": 0.1, "add": -0.1},
            {"mul": 0.0, "add": 3.0},
        ),
        backward=_affine,
        error_inputs=_affine_errors,
        doc="mul*x + add: the product is rounded, then the sum, in the accumulator.",
    ),
    _entry(
        "clamp",
        (
            Param("min", "float", default=None, optional=True, check=rules.not_nan),
            Param("max", "float", default=None, optional=True, check=rules.not_nan),
        ),
        (
            {"min": -1.0, "max": 2.5},
            {"min": 0.1},
            {"max": 0.3},
            {},
            {"min": 0.0, "max": 0.0},
            {"min": -math.inf, "max": math.inf},
        ),
        check=_clamp_check,
        backward=_clamp,
        error_inputs=_clamp_errors,
        doc="min where x is below it, max where x is above it, else x, NaN too; a bound of None is none.",
    ),
    _entry(
        "powi",
        (Param("exp", "int", check=exponent_range),),
        tuple({"exp": e} for e in (3, 0, 1, 2, -1, -2, 13, -7, 64)),
        backward=_powi,
        error_inputs=_powi_errors,
        doc=(
            "x to an integer power by binary exponentiation. Let n be the magnitude of exp, p = 1 and s = x; for the "
            "bits of n from the lowest: where it is set p = p*s, and while higher bits remain s = s*s, each product "
            "rounded in the accumulator. The result is p, for a negative exp the correctly rounded 1/p; x^0 is 1."
        ),
    ),
)
