"""INPLACE_AFFINE: mul*x + add, in x's own memory where x is nobody else's.

A Vulkan kernel gets one memory to read and to write where x is a result of the same plan (an intermediate value of a
lazy expression or of a compiled function), is whole, and every other reader of it runs before; a result of the plan
may be written that way too. Everywhere else the result has memory of its own and x stays as it is: where x is an
input of ``fv.call``, a Tensor that was computed before or is asked for together with the result (tensors are
immutable), a view of a part of an array, a value that is read again later, and on the CPU. So no call ever changes
what its caller holds.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.base.errors import DTypeError, ParameterError
from fuelvk.graph import rules
from fuelvk.graph.ir import Builder, Node, Value
from fuelvk.graph.patterns import Capture, Match, P, Pattern, Scalar, scalar_of
from fuelvk.graph.registry import FusedOps, find_op
from fuelvk.graph.samples import ones
from fuelvk.graph.types import Arg, ErrorSample, Family, FusedOpEntry, Param, Params, Sample, Values

NAME = "inplace_affine"


def _keeps_shape(node: Node) -> bool:
    """True where the number that is added or multiplied does not broadcast the other operand."""
    return any(v is not None and v.shape == node.shapes[0] and scalar_of(v) is None for v in node.inputs)


def _build(match: Match) -> tuple[tuple[Value | None, ...], dict[str, object]] | None:
    x = match.values["x"]
    return ((x,), dict(match.scalars)) if x.dtype in FLOATS else None


def decompose(g: Builder, inputs: Values, params: Params) -> tuple[Value, ...]:
    """Returns the primitive affine, which has the same canonical algorithm."""
    (x,) = inputs
    assert x is not None
    return (g.affine(x, mul=params["mul"], add=params["add"]),)


def backward(
    g: Builder, inputs: Values, outputs: tuple[Value, ...], grads: Values, params: Params
) -> tuple[Value | None, ...]:
    """``mul*g``."""
    (dy,) = grads
    assert dy is not None
    return (g.affine(dy, mul=params["mul"], add=0.0),)


def sample_inputs(dtypes: tuple[DType, ...], rng: np.random.Generator) -> Iterable[Sample]:
    affine = find_op("affine")
    assert affine is not None
    assert affine.sample_inputs is not None
    yield from affine.sample_inputs(dtypes, rng)
    yield Sample((np.ones((5,), dtypes[0].numpy),), {}, "defaults")


def error_inputs() -> Iterable[ErrorSample]:
    x = ones((2,))
    yield ErrorSample((x,), {"mul": "2"}, ParameterError, "mul has the wrong type", "text")
    yield ErrorSample((ones((2,), DType.I32),), {}, DTypeError, "inplace_affine.*i32", "integers")


OP = FusedOpEntry(
    id=FusedOps.INPLACE_AFFINE,
    family=Family.FORWARD,
    args=(Arg("x"),),
    params=(Param("mul", "float", default=1.0), Param("add", "float", default=0.0)),
    shape_rule=rules.like_first,
    dtype_rule=rules.uniform(NAME, ("x",), FLOATS),
    dtypes=rules.rows(FLOATS, 1),
    pattern=Pattern(
        (
            P(
                "add",
                P("mul", Capture("x"), Scalar("mul"), when=_keeps_shape),
                Scalar("add"),
                when=_keeps_shape,
            ),
        ),
        _build,
    ),
    decompose=decompose,
    backward=backward,
    destructive_input=0,
    sample_inputs=sample_inputs,
    error_inputs=error_inputs,
    doc="mul*x + add: the product is rounded, then the sum. Written over x where that is an intermediate value nobody "
    "else reads, never over an argument.",
)
