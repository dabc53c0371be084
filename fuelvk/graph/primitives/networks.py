"""log_softmax, batch norm, and the piecewise linear stand-ins of sigmoid and swish."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from fuelvk.base.dtypes import DType
from fuelvk.base.errors import DTypeError, ParameterError, ShapeError
from fuelvk.base.shapes import Shape
from fuelvk.graph import rules
from fuelvk.graph.ir import Builder, Value
from fuelvk.graph.ops import softmax_last_dim
from fuelvk.graph.primitives._images import Gradients, Outputs, Rng, entry
from fuelvk.graph.samples import label, normal, ones, positive, specials
from fuelvk.graph.types import ErrorSample, Family, Param, Params, Sample, Shapes, Values

# --- log_softmax ------------------------------------------------------------------------------------------------


def _rows_shape(shapes: Shapes, params: Params) -> tuple[Shape, ...]:
    x = rules.given(shapes[0])
    rules.need_rank("log_softmax", "x", x, 1)
    return (x,)


def _log_softmax(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    """``g - exp(y) * sum(g)``."""
    (y,), (dy,) = outputs, grads
    assert dy is not None
    wide = rules.wide(g, dy)
    total = g.sum(wide, axes=(-1,), keepdims=True)
    return (rules.narrow(g, g.sub(wide, g.mul(g.exp(rules.wide(g, y)), total)), y.dtype),)


def _log_softmax_errors() -> Iterable[ErrorSample]:
    yield ErrorSample((ones(()),), {}, ShapeError, "log_softmax.*rank", "scalar")
    yield ErrorSample((ones((2, 3), DType.I32),), {}, DTypeError, "log_softmax.*i32", "integers")


# --- batch_norm -------------------------------------------------------------------------------------------------

_VECTORS = ("scale", "bias", "mean", "var")


def _batch_norm_shape(shapes: Shapes, params: Params) -> tuple[Shape, ...]:
    x = rules.given(shapes[0])
    rules.need_rank("batch_norm", "x", x, 2)
    for name, shape in zip(_VECTORS, shapes[1:], strict=True):
        rules.need_shape("batch_norm", name, shape, (x[1],), "one for each channel, axis 1 of x")
    return (x,)


def _batch_norm(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    """With r = 1/sqrt(var + eps), d = x - mean and sums over all axes but the channels:

    ``dx = g*scale*r``, ``dscale = sum(g*d)*r``, ``dbias = sum(g)``, ``dmean = -scale*r*sum(g)`` and
    ``dvar = -scale*r^3*sum(g*d)/2``.
    """
    x, scale, _, mean, var = inputs
    (dy,) = grads
    assert x is not None
    assert scale is not None
    assert mean is not None
    assert var is not None
    assert dy is not None
    along = (1, x.shape[1], *(1,) * (x.ndim - 2))
    axes = tuple(a for a in range(x.ndim) if a != 1)
    wide = [rules.wide(g, v) for v in (x, scale, mean, var, dy)]
    shaped, grad = wide[0], wide[4]
    factor, middle, spread = wide[1:4]
    r = g.rsqrt(g.add(spread, g.constant(params["eps"], spread.dtype)))
    gain = g.mul(factor, r)
    total = g.sum(grad, axes=axes)
    moment = g.mul(g.sum(g.mul(grad, g.sub(shaped, rules.reshaped(g, middle, along))), axes=axes), r)
    half = g.constant(-0.5, r.dtype)
    found = (
        g.mul(grad, rules.reshaped(g, gain, along)),
        moment,
        total,
        g.neg(g.mul(gain, total)),
        g.mul(g.mul(g.mul(gain, r), moment), half),
    )
    return tuple(rules.narrow(g, v, x.dtype) for v in found)


def _batch_norm_samples(dtypes: tuple[DType, ...], rng: Rng) -> Iterable[Sample]:
    dtype = dtypes[0]

    def vectors(channels: int) -> tuple[np.ndarray[Any, Any], ...]:
        signed = (normal(rng, (channels,), dtype) for _ in range(3))
        return (*signed, positive(rng, (channels,), dtype))

    shapes = (
        (1, 1),
        (5, 3),
        (2, 3, 7),
        (2, 5, 4, 3),
        (1, 2, 33, 31),
        (2, 3, 2, 3, 2),
        (0, 3, 2),
        (2, 0, 2),
        (2, 3, 0),
        (70, 65),
    )
    for shape in shapes:
        yield Sample((normal(rng, shape, dtype, scale=3.0), *vectors(shape[1])), {}, label(shape))
    x = normal(rng, (2, 3, 5), dtype)
    yield Sample((x, *vectors(3)), {"eps": 0.25}, "eps_quarter")
    flat = (*vectors(3)[:3], np.zeros(3, dtype.numpy))
    yield Sample((x, *flat), {"eps": 1e-3}, "zero_variance-constant_rows")
    values = specials(dtype)
    alone = np.tile(values, (2, 3, 1))
    calm = ((0.75, -0.5, 0.25), (0.5, -1.0, 0.0), (0.25, 0.5, -1.0), (4.0, 2.0, 1.5))
    yield Sample((alone, *(np.array(v).astype(dtype.numpy) for v in calm)), {}, "specials")
    odd = np.array([np.inf, np.nan, -1.0, 0.0, 4.0, 1.0]).astype(dtype.numpy)
    plain = [normal(rng, (6,), dtype) for _ in range(3)]
    yield Sample((normal(rng, (2, 6, 3), dtype), *plain, odd), {"eps": 0.0}, "specials_variance")


def _batch_norm_errors() -> Iterable[ErrorSample]:
    x, v = ones((2, 3, 4)), ones((3,))
    good = (x, v, v, v, v)
    yield ErrorSample((ones((3,)), v, v, v, v), {}, ShapeError, "batch_norm.*rank", "rank")
    for index, name in enumerate(_VECTORS, 1):
        wrong = (*good[:index], ones((4,)), *good[index + 1 :])
        yield ErrorSample(wrong, {}, ShapeError, f"batch_norm: {name} has the wrong shape", f"{name}_shape")
    yield ErrorSample(good, {"eps": -1.0}, ParameterError, "eps is not acceptable", "eps_negative")
    yield ErrorSample(
        (*good[:4], ones((3,), DType.F64)), {}, DTypeError, "one dtype.*f32.*f64", "mixed_dtypes"
    )
    yield ErrorSample(
        tuple(ones(a.shape, DType.I32) for a in good), {}, DTypeError, "batch_norm.*i32", "integers"
    )


# --- hard_sigmoid, hard_swish -----------------------------------------------------------------------------------


def _inside(g: Builder, t: Value, low: float, high: float, slope: Value) -> Value:
    """Returns ``slope`` where low < t < high, 0 elsewhere, NaN for NaN."""
    zero = g.constant(0.0, t.dtype)
    held = g.where(g.greater_equal(t, g.constant(high, t.dtype)), zero, slope)
    held = g.where(g.less_equal(t, g.constant(low, t.dtype)), zero, held)
    result: Value = g.where(g.equal(t, t), held, t)
    return result


def _hard_sigmoid(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    """``alpha*g`` where the line is between 0 and 1, else 0."""
    (x,), (dy,) = inputs, grads
    assert x is not None
    assert dy is not None
    t = g.affine(rules.wide(g, x), mul=params["alpha"], add=params["beta"])
    slope = _inside(g, t, 0.0, 1.0, g.constant(params["alpha"], t.dtype))
    return (rules.narrow(g, g.mul(rules.wide(g, dy), slope), x.dtype),)


def _hard_swish(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    """0 up to -3, 1 from 3 on, ``(2x + 3)/6`` between."""
    (x,), (dy,) = inputs, grads
    assert x is not None
    assert dy is not None
    w = rules.wide(g, x)
    line = g.div(g.affine(w, mul=2.0, add=3.0), g.constant(6.0, w.dtype))
    above = g.where(g.greater_equal(w, g.constant(3.0, w.dtype)), g.constant(1.0, w.dtype), line)
    slope = g.where(g.less_equal(w, g.constant(-3.0, w.dtype)), g.constant(0.0, w.dtype), above)
    return (rules.narrow(g, g.mul(rules.wide(g, dy), slope), x.dtype),)


def _hard_samples(*choices: dict[str, float]) -> Any:
    def samples(dtypes: tuple[DType, ...], rng: Rng) -> Iterable[Sample]:
        dtype = dtypes[0]
        for shape in ((), (0,), (1,), (3, 5), (63,), (1025,)):
            yield Sample((normal(rng, shape, dtype, scale=3.0),), {}, f"normal-{label(shape)}")
        for params in choices:
            named = "_".join(f"{k}{v}" for k, v in params.items()) or "default"
            yield Sample((specials(dtype),), dict(params), f"specials-{named}")
            yield Sample((normal(rng, (130,), dtype, scale=2.0),), dict(params), f"normal-{named}")
        ends = np.array([-3.0, 3.0, -2.5, 2.5, -4.0, 4.0])
        near = np.concatenate([ends, np.nextafter(ends, 0), np.nextafter(ends, 9 * ends)])
        yield Sample((near.astype(dtype.numpy),), {}, "ends-constant_rows")

    return samples


def _hard_errors(op: str) -> Any:
    def errors() -> Iterable[ErrorSample]:
        x = ones((2,))
        yield ErrorSample((ones((2,), DType.I32),), {}, DTypeError, f"{op}.*i32", "integers")
        if op == "hard_sigmoid":
            yield ErrorSample(
                (x,), {"alpha": math.nan}, ParameterError, "alpha is not acceptable", "nan_alpha"
            )
            yield ErrorSample((x,), {"beta": math.inf}, ParameterError, "beta is not acceptable", "inf_beta")
            yield ErrorSample((x,), {"alpha": "1"}, ParameterError, "alpha has the wrong type", "text")

    return errors


def _finite(value: float) -> str | None:
    return None if math.isfinite(value) else "a finite number"


OPS = (
    entry(
        "log_softmax", ("x",), (), _rows_shape, softmax_last_dim.sample_inputs, _log_softmax_errors,
        "(x - max) - log(sum exp(x - max)) over the last axis; a row of all -inf, or with a NaN or +inf, is NaN.",
        backward=_log_softmax,
        family=Family.NORM,
    ),
    entry(
        "batch_norm", ("x", *_VECTORS), (Param("eps", "float", default=1e-5, check=rules.finite_not_negative),),
        _batch_norm_shape, _batch_norm_samples, _batch_norm_errors,
        "((x - mean) / sqrt(var + eps)) * scale + bias, one number of each for every channel, axis 1 of x.",
        backward=_batch_norm,
    ),
    entry(
        "hard_sigmoid", ("x",),
        (Param("alpha", "float", default=0.2, check=_finite), Param("beta", "float", default=0.5, check=_finite)),
        rules.like_first,
        _hard_samples({}, {"alpha": 1 / 6, "beta": 0.5}, {"alpha": -1.5, "beta": 0.1}, {"alpha": 0.0, "beta": 0.25}),
        _hard_errors("hard_sigmoid"),
        "alpha*x + beta held between 0 and 1; the product is rounded, then the sum, in the accumulator.",
        backward=_hard_sigmoid,
        family=Family.POINTWISE,
    ),
    entry(
        "hard_swish", ("x",), (), rules.like_first, _hard_samples({}), _hard_errors("hard_swish"),
        "x * (t/6), t = x + 3 held between 0 and 6, each step rounded; -0 up to -3, -inf included.",
        backward=_hard_swish,
        family=Family.POINTWISE,
    ),
)  # fmt: skip
