"""FUSED_SOFTMAX_CROSS_ENTROPY: logsumexp(x) - x_t per row, and its mean or sum."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.base.shapes import Shape
from fuelvk.graph import rules
from fuelvk.graph.ir import Builder, Node, Value
from fuelvk.graph.ops._cross_entropy import (
    IGNORED,
    PARAMS,
    cases,
    check_logits,
    check_targets,
    need_dtypes,
    refusals,
)
from fuelvk.graph.patterns import Capture, Match, P, Pattern
from fuelvk.graph.registry import FusedOps
from fuelvk.graph.types import Arg, DTypes, ErrorSample, Family, FusedOpEntry, Params, Sample, Shapes, Values

NAME = "fused_softmax_cross_entropy"
LAST = {"axes": (-1,), "keepdims": True}


def _shape(shapes: Shapes, params: Params) -> tuple[Shape, ...]:
    logits, targets = rules.given(shapes[0]), rules.given(shapes[1])
    check_logits(NAME, logits, targets)
    return (targets if params["reduction"] == "none" else (),)


def _dtypes(dtypes: DTypes, params: Params) -> tuple[DType, ...]:
    need_dtypes(NAME, *dtypes[:2])
    return (DType.F32,)


def _picks_last(node: Node) -> bool:
    source = node.inputs[0]
    return source is not None and node.params["axis"] in (-1, source.ndim - 1)


def _all_axes(node: Node) -> bool:
    source = node.inputs[0]
    return source is not None and node.params["axes"] is None and not node.params["keepdims"]


def _alternatives() -> tuple[P, ...]:
    """The losses as people write them, -log_softmax(x)[row, target], their mean and their sum."""
    picked = P("gather", P("log_softmax", Capture("x")), P("reshape", Capture("targets")), when=_picks_last)
    losses = P("neg", P("reshape", picked))
    return P("mean", losses, when=_all_axes), P("sum", losses, when=_all_axes), losses


def _build(match: Match) -> tuple[tuple[Value | None, ...], dict[str, object]] | None:
    """Takes F32 logits, whose losses are F32 in both forms; gather refuses the number that is ignored."""
    x, targets = match.values["x"], match.values["targets"]
    if x.dtype is not DType.F32 or targets.dtype is not DType.I64 or targets.shape != x.shape[:-1]:
        return None
    shape = next(node.shapes[0] for node in match.covered if node.op.name == "neg")
    if shape != targets.shape:
        return None
    names = {node.op.name for node in match.covered}
    reduction = "mean" if "mean" in names else "sum" if "sum" in names else "none"
    return (x, targets), {"reduction": reduction, "ignore_index": IGNORED}


def decompose(g: Builder, inputs: Values, params: Params) -> tuple[Value, ...]:
    """Returns the losses by log, exp and gather in the accumulator type; an ignored target picks column 0 and is
    masked.
    """
    x, targets = inputs
    assert x is not None
    assert targets is not None
    w = rules.wide(g, x)
    counts = g.not_equal(targets, g.constant(np.array(params["ignore_index"], np.int64)))
    safe = g.where(counts, targets, g.constant(np.array(0, np.int64)))
    largest = g.max(w, **LAST)
    own = g.gather(w, g.reshape(safe, shape=(*targets.shape, 1)), axis=-1)
    total = g.sum(g.exp(g.sub(w, largest)), **LAST)
    losses = g.reshape(g.add(g.sub(largest, own), g.log(total)), shape=targets.shape)
    losses = g.where(counts, losses, g.constant(0.0, w.dtype))
    if params["reduction"] != "none":
        losses = g.sum(losses)
    if params["reduction"] == "mean":
        losses = g.div(losses, g.sum(g.cast(counts, dtype=w.dtype)))
    return (rules.narrow(g, losses, DType.F32),)


def backward(
    g: Builder, inputs: Values, outputs: tuple[Value, ...], grads: Values, params: Params
) -> tuple[Value | None, ...]:
    """``(softmax - onehot) * mask * g / count``, as the op of its own; targets have none."""
    (x, targets), (dy,) = inputs, grads
    return g.fused_softmax_cross_entropy_backward(x, targets, dy, **params), None


def sample_inputs(dtypes: tuple[DType, ...], rng: np.random.Generator) -> Iterable[Sample]:
    for x, targets, params, name in cases(dtypes[0], rng):
        yield Sample((x, targets), params, name)


def error_inputs() -> Iterable[ErrorSample]:
    yield from refusals(NAME)


OP = FusedOpEntry(
    id=FusedOps.FUSED_SOFTMAX_CROSS_ENTROPY,
    family=Family.FORWARD,
    args=(Arg("logits"), Arg("targets")),
    params=PARAMS,
    shape_rule=_shape,
    dtype_rule=_dtypes,
    dtypes=tuple((dtype, DType.I64, DType.F32) for dtype in FLOATS),
    value_check=check_targets(NAME),
    pattern=Pattern(_alternatives(), _build),
    decompose=decompose,
    backward=backward,
    sample_inputs=sample_inputs,
    error_inputs=error_inputs,
    doc="(max - x_t) + log(sum exp(x - max)) per row in F64, 0 for ignore_index; mean over the rows that count.",
)
