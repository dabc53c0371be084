"""Pointwise arithmetic on one and two inputs."""

from __future__ import annotations

from fuelvk.base.dtypes import FLOATS, INTEGERS, DType
from fuelvk.graph import rules
from fuelvk.graph.ir import Builder, Value
from fuelvk.graph.samples import binary_errors, binary_samples, function_samples, unary_errors, unary_samples
from fuelvk.graph.types import Arg, Backward, Family, Params, PrimitiveEntry, PrimitiveId, Values

NUMBERS = (*FLOATS, *INTEGERS)
Gradients = tuple[Value | None, ...]
Outputs = tuple[Value, ...]


def _both(g: Builder, inputs: Values, da: Value, db: Value) -> Gradients:
    a, b = inputs
    assert a is not None
    assert b is not None
    return rules.sum_to(g, da, a.shape), rules.sum_to(g, db, b.shape)


def _add(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    (dy,) = grads
    assert dy is not None
    return _both(g, inputs, dy, dy)


def _sub(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    (dy,) = grads
    assert dy is not None
    return _both(g, inputs, dy, g.neg(dy))


def _mul(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    (a, b), (dy,) = inputs, grads
    return _both(g, inputs, g.mul(dy, b), g.mul(dy, a))


def _div(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    (_, b), (y,), (dy,) = inputs, outputs, grads
    da = g.div(dy, b)
    return _both(g, inputs, da, g.neg(g.mul(da, y)))


def _extremum(wins: str) -> Backward:
    """The winner takes the gradient, ties take half each, NaN gives NaN to both."""

    def backward(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
        (a, b), (y,), (dy,) = inputs, outputs, grads
        assert a is not None
        assert b is not None
        zero = g.constant(0.0, a.dtype)
        half = g.mul(dy, g.constant(0.5, a.dtype))
        compare = getattr(g, wins)
        nan = g.not_equal(y, y)
        da = g.where(compare(a, b), dy, g.where(compare(b, a), zero, half))
        db = g.where(compare(b, a), dy, g.where(compare(a, b), zero, half))
        return _both(g, inputs, g.where(nan, y, da), g.where(nan, y, db))

    return backward


def _neg(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    return (g.neg(grads[0]),)


def _abs(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    (x,), (dy,) = inputs, grads
    assert x is not None
    zero = g.constant(0.0, x.dtype)
    rest = g.mul(x, dy)  # 0 at zero, NaN at NaN
    return (g.where(g.greater(x, zero), dy, g.where(g.less(x, zero), g.neg(dy), rest)),)


def _sqr(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    (x,), (dy,) = inputs, grads
    assert x is not None
    return (g.mul(dy, g.mul(x, g.constant(2.0, x.dtype))),)


def _sqrt(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    (y,), (dy,) = outputs, grads
    return (g.div(g.mul(dy, g.constant(0.5, y.dtype)), y),)


def _rsqrt(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    (y,), (dy,) = outputs, grads
    assert dy is not None
    w = rules.wide(g, y)
    slope = g.mul(g.mul(w, g.sqr(w)), g.constant(-0.5, w.dtype))
    return (rules.narrow(g, g.mul(rules.wide(g, dy), slope), y.dtype),)


def _recip(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    (y,), (dy,) = outputs, grads
    assert dy is not None
    slope = g.neg(g.sqr(rules.wide(g, y)))
    return (rules.narrow(g, g.mul(rules.wide(g, dy), slope), y.dtype),)


def _flat(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    """Zero wherever the derivative exists."""
    (y,) = outputs
    return (rules.full(g, 0.0, y.shape, y.dtype),)


def _relu(g: Builder, inputs: Values, outputs: Outputs, grads: Values, params: Params) -> Gradients:
    (y,), (dy,) = outputs, grads
    # Where y is not positive it is +0 or NaN, which is the derivative there.
    return (g.where(g.greater(y, g.constant(0.0, y.dtype)), dy, y),)


def _two(name: str, backward: Backward, allowed: tuple[DType, ...], doc: str) -> PrimitiveEntry:
    return PrimitiveEntry(
        id=PrimitiveId(name),
        family=Family.POINTWISE,
        args=(Arg("a"), Arg("b")),
        shape_rule=rules.broadcast(name),
        dtype_rule=rules.uniform(name, ("a", "b"), allowed),
        dtypes=rules.rows(allowed, 2),
        backward=backward,
        sample_inputs=binary_samples,
        error_inputs=binary_errors(name),
        doc=doc,
    )


def _one(
    name: str,
    backward: Backward,
    allowed: tuple[DType, ...],
    doc: str,
    domain: tuple[float, float] | None = None,
) -> PrimitiveEntry:
    return PrimitiveEntry(
        id=PrimitiveId(name),
        family=Family.POINTWISE,
        args=(Arg("x"),),
        shape_rule=rules.like_first,
        dtype_rule=rules.uniform(name, ("x",), allowed),
        dtypes=rules.rows(allowed, 1),
        backward=backward,
        sample_inputs=unary_samples() if domain is None else function_samples(domain=domain),
        error_inputs=unary_errors(name),
        doc=doc,
    )


OPS = (
    _two("add", _add, NUMBERS, "a + b, rounded once; integers wrap."),
    _two("sub", _sub, NUMBERS, "a - b, rounded once; integers wrap."),
    _two("mul", _mul, NUMBERS, "a * b, rounded once; integers wrap."),
    _two("div", _div, FLOATS, "a / b, correctly rounded."),
    _two("maximum", _extremum("greater"), NUMBERS, "The larger; NaN wins; maximum(+0, -0) is +0."),
    _two("minimum", _extremum("less"), NUMBERS, "The smaller; NaN wins; minimum(+0, -0) is -0."),
    _one("neg", _neg, NUMBERS, "-x; the sign of zero and NaN included; integers wrap."),
    _one("abs", _abs, NUMBERS, "Magnitude; the least signed integer stays itself."),
    _one("sqr", _sqr, FLOATS, "x * x, rounded once."),
    _one(
        "sqrt", _sqrt, FLOATS, "Square root, correctly rounded; sqrt(-0) is -0, below it NaN.", (0.0, 100.0)
    ),
    _one(
        "rsqrt",
        _rsqrt,
        FLOATS,
        "1/sqrt(x); of a zero the infinity of its sign, below it NaN.",
        (0.0, 100.0),
    ),
    _one("recip", _recip, FLOATS, "1/x, correctly rounded.", (-100.0, 100.0)),
    _one("sign", _flat, NUMBERS, "-1, 0 or 1; a zero keeps its sign, NaN stays NaN."),
    _one("step", _flat, FLOATS, "1 for x > 0, NaN for NaN, else 0."),
    _one("relu", _relu, FLOATS, "x for x > 0 or NaN, else +0."),
)
