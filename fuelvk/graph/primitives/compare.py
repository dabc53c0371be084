"""Comparisons and selection."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from fuelvk.base.dtypes import FLOATS, INTEGERS, DType
from fuelvk.base.errors import DTypeError, ShapeError
from fuelvk.graph import rules
from fuelvk.graph.ir import Builder, Value
from fuelvk.graph.samples import binary_errors, binary_samples, normal, ones, specials
from fuelvk.graph.types import (
    Arg,
    DTypes,
    ErrorSample,
    Family,
    Params,
    PrimitiveEntry,
    PrimitiveId,
    Sample,
    Values,
)

NUMBERS = (*FLOATS, *INTEGERS)


def _compare(name: str, doc: str) -> PrimitiveEntry:
    return PrimitiveEntry(
        id=PrimitiveId(name),
        family=Family.COMPARE,
        args=(Arg("a"), Arg("b")),
        shape_rule=rules.broadcast(name),
        dtype_rule=rules.uniform(name, ("a", "b"), NUMBERS, result=DType.BOOL),
        dtypes=rules.rows(NUMBERS, 2, DType.BOOL),
        sample_inputs=binary_samples,
        error_inputs=binary_errors(name),
        doc=doc,
    )


_branches = rules.uniform("where", ("a", "b"), NUMBERS)


def _where_dtype(dtypes: DTypes, params: Params) -> tuple[DType, ...]:
    rules.need_dtype("where", "cond", dtypes[0], (DType.BOOL,))
    return _branches(dtypes[1:], params)


def _where_backward(
    g: Builder, inputs: Values, outputs: tuple[Value, ...], grads: Values, params: Params
) -> tuple[Value | None, ...]:
    (cond, a, b), (dy,) = inputs, grads
    assert a is not None
    assert b is not None
    zero = g.constant(0.0, a.dtype)
    da = rules.sum_to(g, g.where(cond, dy, zero), a.shape)
    return None, da, rules.sum_to(g, g.where(cond, zero, dy), b.shape)


def _where_samples(dtypes: tuple[DType, ...], rng: np.random.Generator) -> Iterable[Sample]:
    dtype = dtypes[1]
    shapes = (
        ((), (), ()),
        ((1,), (0,), (1,)),
        ((65,), (65,), (65,)),
        ((3, 1), (1, 5), ()),
        ((2, 1, 4), (3, 1), (4,)),
        ((), (7,), (7,)),
        ((1025,), (), (1025,)),
    )
    for c, a, b in shapes:
        cond = normal(rng, c, DType.BOOL)
        inputs = (cond, normal(rng, a, dtype), normal(rng, b, dtype))
        yield Sample(inputs, {}, "-".join("x".join(map(str, s)) or "scalar" for s in (c, a, b)))
    values = specials(dtype)
    picks = np.arange(values.size) % 2 == 0
    yield Sample((picks, values, values[::-1].copy()), {}, "specials_selected_and_not")


def _where_errors() -> Iterable[ErrorSample]:
    x, c = ones((2,)), ones((2,), DType.BOOL)
    yield ErrorSample((x, x, x), {}, DTypeError, "where.*cond is f32.*bool", "cond_not_bool")
    yield ErrorSample(
        (c, x, ones((2,), DType.F64)), {}, DTypeError, "where.*one dtype.*f32.*f64", "mixed_dtypes"
    )
    yield ErrorSample((c, x, ones((3,))), {}, ShapeError, "where.*broadcast", "shapes")


OPS = (
    _compare("equal", "a == b; false where either is NaN."),
    _compare("not_equal", "a != b; true where either is NaN."),
    _compare("less", "a < b; false where either is NaN."),
    _compare("less_equal", "a <= b; false where either is NaN."),
    _compare("greater", "a > b; false where either is NaN."),
    _compare("greater_equal", "a >= b; false where either is NaN."),
    PrimitiveEntry(
        id=PrimitiveId("where"),
        family=Family.COMPARE,
        args=(Arg("cond"), Arg("a"), Arg("b")),
        shape_rule=rules.broadcast("where"),
        dtype_rule=_where_dtype,
        dtypes=tuple((DType.BOOL, d, d, d) for d in NUMBERS),
        backward=_where_backward,
        sample_inputs=_where_samples,
        error_inputs=_where_errors,
        doc="a where cond holds, else b; what is not selected is not touched.",
    ),
)
