"""Matrix product by NumPy's shapes (canonical order: blocks of 64 k, ops.md section 9)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.base.errors import DTypeError, ShapeError
from fuelvk.base.shapes import Shape
from fuelvk.graph import rules
from fuelvk.graph.ir import Builder, Value
from fuelvk.graph.samples import label, normal, ones
from fuelvk.graph.types import (
    Arg,
    ErrorSample,
    Family,
    Params,
    PrimitiveEntry,
    PrimitiveId,
    Sample,
    Shapes,
    Values,
)


def _shape(shapes: Shapes, params: Params) -> tuple[Shape, ...]:
    return (rules.matmul_shape("matmul", rules.given(shapes[0]), rules.given(shapes[1])),)


def _backward(
    g: Builder, inputs: Values, outputs: tuple[Value, ...], grads: Values, params: Params
) -> tuple[Value | None, ...]:
    (a, b), (dy,) = inputs, grads
    assert a is not None
    assert b is not None
    assert dy is not None
    return rules.matmul_gradients(g, a, b, dy)


MATMUL_SHAPES: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((1, 1), (1, 1)),
    ((3,), (3,)),
    ((5,), (5, 7)),
    ((2, 3, 5), (5,)),
    ((7, 5), (5, 3)),
    ((63, 64), (64, 65)),
    ((65, 63), (63, 66)),
    ((17, 129), (129, 31)),
    ((4, 1025), (1025, 3)),
    ((2, 3, 4, 5), (2, 3, 5, 6)),
    ((2, 1, 4, 5), (3, 5, 6)),
    ((3, 4, 5), (5, 2)),
    ((4, 0), (0, 3)),
    ((0, 3), (3, 2)),
    ((1, 200), (200, 1)),
    ((33, 8), (8, 130)),
)


def _samples(dtypes: tuple[DType, ...], rng: np.random.Generator) -> Iterable[Sample]:
    dtype = dtypes[0]
    for left, right in MATMUL_SHAPES:
        inputs = (normal(rng, left, dtype), normal(rng, right, dtype))
        yield Sample(inputs, {}, f"{label(left)}-{label(right)}")
    a, b = normal(rng, (5, 70), dtype), normal(rng, (70, 9), dtype)
    a[1, 3], a[2, 0], b[5, 4] = np.nan, np.inf, -np.inf
    yield Sample((a, b), {}, "nan_inf")
    big = (normal(rng, (3, 33), dtype, scale=180.0), normal(rng, (33, 4), dtype, scale=180.0))
    yield Sample(big, {}, "large")  # products beyond the largest F16


def _errors() -> Iterable[ErrorSample]:
    x = ones((2, 3))
    yield ErrorSample((x, ones((4, 2))), {}, ShapeError, r"matmul.*\(2, 3\).*\(4, 2\)", "contracted")
    yield ErrorSample((x, ones(())), {}, ShapeError, "matmul.*rank", "scalar")
    yield ErrorSample((ones((2, 2, 3)), ones((3, 3, 2))), {}, ShapeError, "matmul.*batch", "batch")
    yield ErrorSample((x, ones((3, 2), DType.F64)), {}, DTypeError, "matmul.*f32.*f64", "mixed_dtypes")
    yield ErrorSample(
        (ones((2, 3), DType.I32), ones((3, 2), DType.I32)), {}, DTypeError, "matmul.*i32", "integers"
    )


OPS = (
    PrimitiveEntry(
        id=PrimitiveId("matmul"),
        family=Family.MATMUL,
        args=(Arg("a"), Arg("b")),
        shape_rule=_shape,
        dtype_rule=rules.uniform("matmul", ("a", "b"), FLOATS),
        dtypes=rules.rows(FLOATS, 2),
        backward=_backward,
        sample_inputs=_samples,
        error_inputs=_errors,
        doc="Matrix product; batch axes broadcast, a 1-d operand is a row on the left and a column on the right.",
    ),
)
