"""Pooling over the last two axes, and its gradients.

Taps count in row-major order of the kernel; sums over them go in blocks of 64 taps, from 0 within a block, blocks added
in order; a division comes last. A gradient is gathered by each element of x from the windows that hold it, in the order
of the taps at which they do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from fuelvk.base.dtypes import DType
from fuelvk.base.errors import DTypeError, ParameterError, ShapeError
from fuelvk.base.shapes import Shape
from fuelvk.graph import rules
from fuelvk.graph.ir import Builder, Value
from fuelvk.graph.primitives._images import (
    Gradients,
    Outputs,
    Rng,
    at_least_one,
    distinct,
    entry,
    not_negative,
    pooled_shape,
)
from fuelvk.graph.samples import SampleInputs, label, normal, ones, specials
from fuelvk.graph.types import ErrorSample, Family, Param, Params, Sample, ShapeRule, Shapes, Values

_WINDOW = (
    Param("kernel", "pair", check=at_least_one),
    Param("stride", "pair", default=None, optional=True, check=at_least_one),
    Param("padding", "pair", default=(0, 0), check=not_negative),
)
_DILATION = Param("dilation", "pair", default=(1, 1), check=at_least_one)
_CEIL = Param("ceil_mode", "bool", default=False)
_INCLUDE = Param("count_include_pad", "bool", default=True)
_SIZE = Param("size", "pair", check=not_negative)
_MAX = (*_WINDOW, _DILATION, _CEIL)
_AVG = (*_WINDOW, _CEIL, _INCLUDE)


def _pooled(op: str) -> ShapeRule:
    return lambda shapes, params: (pooled_shape(op, rules.given(shapes[0]), params),)


def _max_backward_shape(shapes: Shapes, params: Params) -> tuple[Shape, ...]:
    x, g = (rules.given(s) for s in shapes)
    op = "max_pool2d_backward"
    rules.need_shape(op, "g", g, pooled_shape(op, x, params), "the shape of what is pooled")
    return (x,)


def _avg_backward_shape(shapes: Shapes, params: Params) -> tuple[Shape, ...]:
    (g,) = (rules.given(s) for s in shapes)
    op = "avg_pool2d_backward"
    rules.need_rank(op, "g", g, 2)
    x = (*g[:-2], *params["size"])
    rules.need_shape(op, "g", g, pooled_shape(op, x, params), "the shape of what is pooled")
    return (x,)


def _global_shape(shapes: Shapes, params: Params) -> tuple[Shape, ...]:
    x = rules.given(shapes[0])
    rules.need_rank("global_avg_pool2d", "x", x, 2)
    return ((*x[:-2], 1, 1),)


# --- gradients --------------------------------------------------------------------------------------------------


def _max(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    return (g.max_pool2d_backward(inputs[0], grads[0], **params),)


def _avg(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    (x,) = inputs
    assert x is not None
    return (g.avg_pool2d_backward(grads[0], size=x.shape[-2:], **params),)


def _avg_backward(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    return (g.avg_pool2d(grads[0], **{k: v for k, v in params.items() if k != "size"}),)


def _global(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    (x,), (dy,) = inputs, grads
    assert x is not None
    assert dy is not None
    count = g.constant(float(math.prod(x.shape[-2:])), x.dtype.accumulator)
    share: Value = rules.narrow(g, g.div(rules.wide(g, dy), count), x.dtype)
    return (rules.broadcasted(g, share, x.shape),)


# --- samples ----------------------------------------------------------------------------------------------------

_Case = tuple[tuple[int, ...], dict[str, Any]]
# Shapes and parameters that mean something to both; the dilated ones to max alone.
_CASES: tuple[_Case, ...] = (
    ((1, 1), {"kernel": 1}),
    ((5, 7), {"kernel": (2, 3)}),
    ((2, 3, 9, 8), {"kernel": 3, "stride": 2, "padding": 1}),
    ((2, 3, 9, 8), {"kernel": 3, "stride": 2, "padding": 1, "ceil_mode": True}),
    ((1, 2, 6, 6), {"kernel": 3, "stride": 1}),
    ((1, 4, 5), {"kernel": 2, "stride": (1, 3)}),
    ((1, 1, 7, 7), {"kernel": (3, 2), "stride": (3, 2), "padding": (1, 0), "ceil_mode": True}),
    ((2, 2, 3), {"kernel": 3, "stride": 2, "ceil_mode": True}),
    ((1, 1, 11, 12), {"kernel": (8, 9), "stride": (3, 2), "padding": (4, 3)}),
    ((1, 1, 13, 17), {"kernel": (13, 17)}),
    ((0, 3, 4, 4), {"kernel": 2}),
    ((2, 0, 4, 4), {"kernel": 2}),
    ((3, 17, 19), {"kernel": 2, "stride": 2, "padding": 1}),
    ((1, 2, 37, 35), {"kernel": 3, "stride": 1, "padding": 1}),
)
_DILATED: tuple[_Case, ...] = (
    ((2, 9, 8), {"kernel": 3, "dilation": 2}),
    ((1, 1, 12, 11), {"kernel": (2, 3), "stride": (2, 1), "padding": (1, 2), "dilation": (3, 2)}),
    ((1, 1, 12, 11), {"kernel": 3, "stride": 2, "padding": 1, "dilation": (2, 3), "ceil_mode": True}),
)
_EXCLUDED: tuple[_Case, ...] = (
    ((2, 9, 8), {"kernel": 3, "stride": 2, "padding": 1, "count_include_pad": False}),
    ((2, 9, 8), {"kernel": 3, "stride": 2, "padding": 1, "ceil_mode": True, "count_include_pad": False}),
)


def _named(shape: Shape, params: Mapping[str, Any]) -> str:
    words = [f"{k}{v if not isinstance(v, tuple) else 'x'.join(map(str, v))}" for k, v in params.items()]
    return f"{label(shape)}-{'-'.join(words)}"


def _special(dtype: DType) -> np.ndarray[Any, Any]:
    """The special values, each with ordinary neighbours, and windows of infinities alone."""
    values = specials(dtype)
    x = np.ones((4, values.size * 2), dtype.numpy)
    x[1, ::2] = values
    x[2:, :6] = -np.inf
    x[3, 7:12] = np.nan
    x[0, -4:] = -0.0
    return x


def _x_samples(more: tuple[_Case, ...], draw: Callable[..., np.ndarray[Any, Any]]) -> SampleInputs:
    def samples(dtypes: tuple[DType, ...], rng: Rng) -> Iterable[Sample]:
        for shape, params in (*_CASES, *more):
            yield Sample((draw(rng, shape, dtypes[0]),), dict(params), _named(shape, params))
        yield Sample((_special(dtypes[0]),), {"kernel": 2}, "specials")
        ties = np.round(normal(rng, (2, 8, 9), dtypes[0]).astype(np.float64)).astype(dtypes[0].numpy)
        yield Sample((ties,), {"kernel": 3, "stride": 1, "padding": 1}, "ties")

    return samples


def _max_backward_samples(dtypes: tuple[DType, ...], rng: Rng) -> Iterable[Sample]:
    dtype = dtypes[0]
    for shape, params in (*_CASES, *_DILATED):
        pooled = _shape_of("max_pool2d", shape, params)
        inputs = (distinct(rng, shape, dtype), normal(rng, pooled, dtype))
        yield Sample(inputs, dict(params), _named(shape, params))
    x = _special(dtype)
    g = normal(rng, (3, x.shape[1] - 1), dtype)
    yield Sample((x, g), {"kernel": 2, "stride": 1}, "specials")
    ties = np.round(normal(rng, (2, 8, 9), dtype).astype(np.float64)).astype(dtype.numpy)
    yield Sample((ties, normal(rng, (2, 8, 9), dtype)), {"kernel": 3, "stride": 1, "padding": 1}, "ties")


def _avg_backward_samples(dtypes: tuple[DType, ...], rng: Rng) -> Iterable[Sample]:
    for shape, params in (*_CASES, *_EXCLUDED):
        g = normal(rng, _shape_of("avg_pool2d", shape, params), dtypes[0])
        yield Sample((g,), {"size": shape[-2:], **params}, _named(shape, params))
    x = _special(dtypes[0])
    yield Sample((x,), {"size": (x.shape[0] + 1, x.shape[1] + 1), "kernel": 2, "stride": 1}, "specials")


def _shape_of(op: str, shape: Shape, params: Mapping[str, Any]) -> Shape:
    listed = _MAX if op == "max_pool2d" else _AVG
    converted = {p.name: p.convert(op, params[p.name]) if p.name in params else p.default for p in listed}
    return pooled_shape(op, shape, converted)


def _global_samples(dtypes: tuple[DType, ...], rng: Rng) -> Iterable[Sample]:
    dtype = dtypes[0]
    for shape in (
        (1, 1),
        (2, 3, 7, 7),
        (3, 5, 13),
        (1, 2, 64, 65),
        (0, 2, 3, 3),
        (2, 0, 3, 3),
        (2, 3, 0),
        (1, 2, 130, 129),
    ):
        yield Sample((normal(rng, shape, dtype, shift=0.5),), {}, label(shape))
    values = specials(dtype)
    alone = np.zeros((values.size, 2, 3), dtype.numpy)
    alone[:, 1, 1] = values
    yield Sample((alone,), {}, "specials_one_per_image")


# --- refusals ---------------------------------------------------------------------------------------------------


def _window_errors(
    op: str, inputs: Callable[..., tuple[Any, ...]], more: dict[str, Any]
) -> Iterable[ErrorSample]:
    x = ones((1, 4, 4))
    good = inputs(x)
    cases: tuple[tuple[dict[str, Any], type[Exception], str, str], ...] = (
        ({}, ParameterError, f"{op} needs parameter kernel", "no_kernel"),
        ({"kernel": 0}, ParameterError, "kernel is not acceptable", "kernel_zero"),
        ({"kernel": (2, 2, 2)}, ParameterError, "kernel has the wrong type", "kernel_triple"),
        ({"kernel": 2, "stride": 0}, ParameterError, "stride is not acceptable", "stride_zero"),
        ({"kernel": 2, "padding": -1}, ParameterError, "padding is not acceptable", "padding_negative"),
        ({"kernel": 5}, ShapeError, f"{op}: the kernel is larger than the padded input", "kernel_large"),
        ({"kernel": 2, "padding": 2}, ParameterError, f"{op}: a window lies in the padding", "all_padding"),
    )
    for params, error, match, name in cases:
        yield ErrorSample(good, {**more, **params}, error, match, name)
    yield ErrorSample(
        inputs(ones((1, 4, 4), DType.I32)), {**more, "kernel": 2}, DTypeError, f"{op}.*i32", "integers"
    )
    yield ErrorSample(inputs(ones((4,))), {**more, "kernel": 2}, ShapeError, f"{op}.*rank", "rank")


def _max_errors() -> Iterable[ErrorSample]:
    yield from _window_errors("max_pool2d", lambda x: (x,), {})
    bad = {"kernel": 2, "dilation": 0}
    yield ErrorSample((ones((4, 4)),), bad, ParameterError, "dilation is not acceptable", "dilation_zero")
    bad = {"kernel": 2, "dilation": 3, "padding": 1}
    yield ErrorSample((ones((2, 2)),), bad, ParameterError, "a window lies in the padding", "taps_astride")
    yield ErrorSample((ones((3, 0, 4)),), {"kernel": 2, "padding": 1}, ShapeError, "not empty", "no_rows")


def _avg_errors() -> Iterable[ErrorSample]:
    yield from _window_errors("avg_pool2d", lambda x: (x,), {})
    dilated = {"kernel": 2, "dilation": 2}
    yield ErrorSample((ones((4, 4)),), dilated, Exception, "has no parameter dilation", "dilation")


def _max_backward_errors() -> Iterable[ErrorSample]:
    yield from _window_errors("max_pool2d_backward", lambda x: (x, x), {})
    wrong = (ones((1, 4, 4)), ones((1, 3, 2)))
    yield ErrorSample(wrong, {"kernel": 2}, ShapeError, "g has the wrong shape", "gradient_shape")
    mixed = (ones((1, 4, 4)), ones((1, 2, 2), DType.F64))
    yield ErrorSample(mixed, {"kernel": 2}, DTypeError, "one dtype.*f32.*f64", "mixed_dtypes")


def _avg_backward_errors() -> Iterable[ErrorSample]:
    yield from _window_errors("avg_pool2d_backward", lambda x: (x,), {"size": (4, 4)})
    g = ones((1, 2, 2))
    yield ErrorSample((g,), {"kernel": 2}, ParameterError, "needs parameter size", "no_size")
    wrong = {"kernel": 2, "size": (7, 4)}
    yield ErrorSample((g,), wrong, ShapeError, "g has the wrong shape", "gradient_shape")


def _global_errors() -> Iterable[ErrorSample]:
    yield ErrorSample((ones((4,)),), {}, ShapeError, "global_avg_pool2d.*rank", "rank")
    yield ErrorSample((ones((2, 2), DType.I32),), {}, DTypeError, "global_avg_pool2d.*i32", "integers")


_RULES = (
    "Windows as PyTorch counts them; in ceil mode one that would start in the padding behind x is dropped; stride None "
    "is the kernel. A window without an element of x is refused."
)

OPS = (
    entry(
        "max_pool2d", ("x",), _MAX, _pooled("max_pool2d"), _x_samples(_DILATED, distinct), _max_errors,
        f"Largest element of each window over the last two axes; padding takes no part, NaN wins, +0 over -0. {_RULES}",
        backward=_max,
    ),
    entry(
        "avg_pool2d", ("x",), _AVG, _pooled("avg_pool2d"), _x_samples(_EXCLUDED, normal), _avg_errors,
        "Sum of each window over the last two axes, divided by its elements within the padded input, or within x where "
        f"count_include_pad is False. {_RULES}",
        backward=_avg,
    ),
    entry(
        "global_avg_pool2d", ("x",), (), _global_shape, _global_samples, _global_errors,
        "Mean over the last two axes, which stay as 1; NaN over nothing.",
        backward=_global,
    ),
    entry(
        "max_pool2d_backward", ("x", "g"), _MAX, _max_backward_shape, _max_backward_samples, _max_backward_errors,
        "Gradient of max_pool2d: that of a window goes to its first NaN, or else to the first of its largest elements, "
        "in row-major order (+0 and -0 are equal).",
        family=Family.BACKWARD,
    ),
    entry(
        "avg_pool2d_backward", ("g",), (_SIZE, *_AVG), _avg_backward_shape, _avg_backward_samples, _avg_backward_errors,
        "Gradient of avg_pool2d of an x whose last two axes are size: each window shares its own equally.",
        backward=_avg_backward,
        family=Family.BACKWARD,
    ),
)  # fmt: skip
