"""SOFTMAX_LAST_DIM_BACKWARD: y * (g - sum(g*y)) over the last axis, y the softmax."""

from __future__ import annotations

from fuelvk.base.dtypes import FLOATS
from fuelvk.graph import rules
from fuelvk.graph.ir import Builder, Value
from fuelvk.graph.ops._row_gradients import (
    DTYPES,
    gradient_errors,
    gradient_samples,
    gradient_shape,
    softmax_of,
)
from fuelvk.graph.patterns import Capture, Match, P, Pattern
from fuelvk.graph.registry import FusedOps
from fuelvk.graph.types import DECOMPOSE, Arg, Family, FusedOpEntry, Params, Values

NAME = "softmax_last_dim_backward"
LAST = {"axes": (-1,), "keepdims": True}


def _pattern() -> P:
    y, g = Capture("y"), Capture("g")
    return P("mul", y, P("sub", g, P("sum", P("mul", g, y), when=rules.last_axis_kept)))


def _build(match: Match) -> tuple[tuple[Value | None, ...], dict[str, object]] | None:
    y, g = match.values["y"], match.values["g"]
    return ((y, g), {}) if y.shape == g.shape else None


def decompose(g: Builder, inputs: Values, params: Params) -> tuple[Value, ...]:
    """Returns the formula in the accumulator type, rounded once at the end."""
    y, dy = inputs
    assert y is not None
    assert dy is not None
    w, d = rules.wide(g, y), rules.wide(g, dy)
    return (rules.narrow(g, g.mul(w, g.sub(d, g.sum(g.mul(d, w), **LAST))), y.dtype),)


OP = FusedOpEntry(
    id=FusedOps.SOFTMAX_LAST_DIM_BACKWARD,
    family=Family.BACKWARD,
    args=(Arg("y"), Arg("g")),
    shape_rule=gradient_shape(NAME, "y"),
    dtype_rule=rules.uniform(NAME, ("y", "g"), FLOATS),
    dtypes=DTYPES,
    pattern=Pattern((_pattern(),), _build),
    decompose=decompose,
    backward=DECOMPOSE,
    sample_inputs=gradient_samples(softmax_of, eps=False),
    error_inputs=gradient_errors(NAME, "y", eps=False),
    doc="y * (g - sum(g*y)) over the last axis: the gradient of a softmax y under the output's gradient g.",
)
