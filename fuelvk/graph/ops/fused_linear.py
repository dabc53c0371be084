"""FUSED_LINEAR: a @ b + bias."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.base.errors import DTypeError, ShapeError
from fuelvk.base.shapes import Shape
from fuelvk.graph import rules
from fuelvk.graph.ir import Builder, Value
from fuelvk.graph.patterns import Capture, Match, P, Pattern
from fuelvk.graph.registry import FusedOps, builder
from fuelvk.graph.samples import label, normal, ones
from fuelvk.graph.types import Arg, ErrorSample, Family, FusedOpEntry, Params, Sample, Shapes, Values


def _shape(shapes: Shapes, params: Params) -> tuple[Shape, ...]:
    a, b = rules.given(shapes[0]), rules.given(shapes[1])
    rules.need_rank("fused_linear", "a", a, 2)
    rules.need_rank("fused_linear", "b", b, 2)
    result = rules.matmul_shape("fused_linear", a, b)
    rules.need_shape("fused_linear", "bias", shapes[2], (b[-1],), "one number per column of b")
    return (result,)


def as_vector(value: Value, extent: int) -> Value | None:
    """Returns a value of shape (n,), (1, .., n) or a broadcast of one as a vector of ``extent``, or None."""
    node = value.node
    while node.op.name in ("broadcast_to", "reshape") and node.inputs[0] is not None:
        inner = node.inputs[0]
        if inner.ndim == 0 or inner.shape[-1] != extent or value.shape[-1:] != (extent,):
            break
        value, node = inner, inner.node
    if value.shape[-1:] != (extent,) or any(n != 1 for n in value.shape[:-1]):
        return None
    return rules.reshaped(builder(), value, (extent,))


def _build(match: Match) -> tuple[tuple[Value | None, ...], dict[str, object]] | None:
    a, b = match.values["a"], match.values["b"]
    if a.ndim < 2 or b.ndim < 2:
        return None
    bias = as_vector(match.values["bias"], b.shape[-1])
    return None if bias is None else ((a, b, bias), {})


def decompose(g: Builder, inputs: Values, params: Params) -> tuple[Value, ...]:
    """Returns product plus bias in the accumulator type, rounded once at the end."""
    a, b, bias = inputs
    assert a is not None
    assert b is not None
    if bias is None:
        return (g.matmul(a, b),)
    product = g.matmul(rules.wide(g, a), rules.wide(g, b))
    return (rules.narrow(g, g.add(product, rules.wide(g, bias)), a.dtype),)


def backward(
    g: Builder, inputs: Values, outputs: tuple[Value, ...], grads: Values, params: Params
) -> tuple[Value | None, ...]:
    """``g b^T``, ``a^T g`` and the sum of g over all rows."""
    (a, b, bias), (dy,) = inputs, grads
    assert a is not None
    assert b is not None
    assert dy is not None
    da, db = rules.matmul_gradients(g, a, b, dy)
    return da, db, None if bias is None else rules.sum_to(g, dy, bias.shape)


LINEAR_SHAPES: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((1, 1), (1, 1)),
    ((7, 5), (5, 3)),
    ((63, 65), (65, 64)),
    ((65, 127), (127, 33)),
    ((1, 1025), (1025, 5)),
    ((2, 3, 4), (4, 5)),
    ((2, 3, 4), (2, 4, 5)),
    ((2, 1, 3, 4), (3, 4, 5)),
    ((3, 0), (0, 4)),
    ((0, 3), (3, 4)),
    ((129, 16), (16, 1)),
)


def sample_inputs(dtypes: tuple[DType, ...], rng: np.random.Generator) -> Iterable[Sample]:
    dtype = dtypes[0]
    for index, (left, right) in enumerate(LINEAR_SHAPES):
        a, b, bias = (normal(rng, s, dtype) for s in (left, right, right[-1:]))
        yield Sample((a, b, bias), {}, f"{label(left)}-{label(right)}-bias")
        if index % 3 == 1:
            yield Sample((a, b, None), {}, f"{label(left)}-{label(right)}")
    a, b, bias = normal(rng, (4, 70), dtype), normal(rng, (70, 6), dtype), normal(rng, (6,), dtype)
    a[1, 3], a[2, 0], b[5, 4], bias[0] = np.nan, np.inf, -np.inf, np.inf
    yield Sample((a, b, bias), {}, "nan_inf")
    big = (normal(rng, (3, 33), dtype, scale=180.0), normal(rng, (33, 4), dtype, scale=180.0))
    yield Sample((*big, normal(rng, (4,), dtype, scale=1e3)), {}, "large")  # products beyond the largest F16


def error_inputs() -> Iterable[ErrorSample]:
    a, b, f64 = ones((2, 3)), ones((3, 4)), DType.F64
    yield ErrorSample(
        (a, ones((4, 4)), None), {}, ShapeError, r"fused_linear.*\(2, 3\).*\(4, 4\)", "contracted"
    )
    yield ErrorSample((ones((3,)), b, None), {}, ShapeError, "fused_linear.*a has the wrong rank", "vector_a")
    yield ErrorSample((a, ones((3,)), None), {}, ShapeError, "fused_linear.*b has the wrong rank", "vector_b")
    yield ErrorSample((a, b, ones((3,))), {}, ShapeError, r"bias.*\(4,\)", "bias_extent")
    yield ErrorSample((a, b, ones((1, 4))), {}, ShapeError, r"bias.*\(4,\)", "bias_rank")
    yield ErrorSample(
        (ones((2, 2, 3)), ones((3, 3, 4)), None), {}, ShapeError, "fused_linear.*batch", "batch"
    )
    yield ErrorSample(
        (a, b, ones((4,), f64)), {}, DTypeError, "fused_linear.*f32.*bias is f64", "mixed_dtypes"
    )
    yield ErrorSample(
        (ones((2, 3), DType.I32), ones((3, 4), DType.I32), None), {}, DTypeError, "i32", "integers"
    )


OP = FusedOpEntry(
    id=FusedOps.FUSED_LINEAR,
    family=Family.FORWARD,
    args=(Arg("a"), Arg("b"), Arg("bias", optional=True)),
    shape_rule=_shape,
    dtype_rule=rules.uniform("fused_linear", ("a", "b", "bias"), FLOATS),
    dtypes=rules.rows(FLOATS, 3),
    pattern=Pattern((P("add", P("matmul", Capture("a"), Capture("b")), Capture("bias")),), _build),
    decompose=decompose,
    backward=backward,
    sample_inputs=sample_inputs,
    error_inputs=error_inputs,
    doc="a @ b + bias; batch axes broadcast; with no k the result is the bias.",
)
