"""The gradient of cross-entropy, which has no fused id of its own."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.base.errors import DTypeError, ShapeError
from fuelvk.base.shapes import Shape
from fuelvk.graph import rules
from fuelvk.graph.ir import Builder, Value
from fuelvk.graph.ops._cross_entropy import PARAMS, cases, check_logits, check_targets, need_dtypes, refusals
from fuelvk.graph.samples import ones
from fuelvk.graph.types import (
    Arg,
    DTypes,
    ErrorSample,
    Family,
    Params,
    PrimitiveEntry,
    PrimitiveId,
    Sample,
    Shapes,
    Values,
)

NAME = "fused_softmax_cross_entropy_backward"


def _shape(shapes: Shapes, params: Params) -> tuple[Shape, ...]:
    logits, targets = rules.given(shapes[0]), rules.given(shapes[1])
    check_logits(NAME, logits, targets)
    loss = targets if params["reduction"] == "none" else ()
    rules.need_shape(NAME, "g", shapes[2], loss, "the gradient of the loss")
    return (logits,)


def _dtypes(dtypes: DTypes, params: Params) -> tuple[DType, ...]:
    logits = need_dtypes(NAME, *dtypes[:2])
    rules.need_dtype(NAME, "g", dtypes[2], (DType.F32,))
    return (logits,)


def _backward(
    g: Builder, inputs: Values, outputs: tuple[Value, ...], grads: Values, params: Params
) -> tuple[Value | None, ...]:
    """The op is linear in g, and in the softmax, whose own gradient follows; targets have none."""
    (x, targets, factor), (dy,) = inputs, grads
    assert x is not None
    assert targets is not None
    assert factor is not None
    assert dy is not None
    w, d = rules.wide(g, x), rules.wide(g, dy)
    counts = g.not_equal(targets, g.constant(np.array(params["ignore_index"], np.int64)))
    rows = rules.narrow(g, factor, w.dtype)
    if params["reduction"] == "mean":
        rows = g.div(rows, g.sum(g.cast(counts, dtype=w.dtype)))
    rows = g.where(counts, rows, g.constant(0.0, w.dtype))
    scaled = g.mul(d, g.reshape(rows, shape=(*targets.shape, 1)))
    dx = g.softmax_last_dim_backward(g.softmax_last_dim(w), scaled)
    unit = g.fused_softmax_cross_entropy_backward(
        w, targets, rules.full(g, 1.0, factor.shape, DType.F32), **params
    )
    terms = g.mul(d, unit)
    total = g.sum(terms, axes=(-1,)) if params["reduction"] == "none" else g.sum(terms)
    return rules.narrow(g, dx, x.dtype), None, rules.narrow(g, total, DType.F32)


def _samples(dtypes: tuple[DType, ...], rng: np.random.Generator) -> Iterable[Sample]:
    for x, targets, params, name in cases(dtypes[0], rng):
        shape = targets.shape if params.get("reduction", "mean") == "none" else ()
        g = np.asarray(rng.standard_normal(shape), np.float32)
        yield Sample((x, targets, g), params, name)


def _errors() -> Iterable[ErrorSample]:
    g = np.ones((), np.float32)
    yield from refusals(NAME, g)
    x, t = ones((2, 3)), np.zeros((2,), np.int64)
    yield ErrorSample((x, t, ones((2,))), {}, ShapeError, f"{NAME}.*g.*gradient of the loss", "g_shape")
    yield ErrorSample((x, t, np.ones(())), {}, DTypeError, f"{NAME}.*g is f64", "g_dtype")


OPS = (
    PrimitiveEntry(
        id=PrimitiveId(NAME),
        family=Family.BACKWARD,
        args=(Arg("logits"), Arg("targets"), Arg("g")),
        params=PARAMS,
        shape_rule=_shape,
        dtype_rule=_dtypes,
        dtypes=tuple((dtype, DType.I64, DType.F32, dtype) for dtype in FLOATS),
        value_check=check_targets(NAME),
        backward=_backward,
        sample_inputs=_samples,
        error_inputs=_errors,
        doc="(softmax - onehot) * g / count, zeros in ignored rows; g is the gradient of the F32 loss.",
    ),
)
