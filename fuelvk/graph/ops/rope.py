"""ROPE: pairs of the last axis turned by angles that depend on the position."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.base.errors import DTypeError, ShapeError
from fuelvk.base.shapes import Shape
from fuelvk.graph import rules
from fuelvk.graph.ir import Builder, Node, Value
from fuelvk.graph.patterns import Capture, Match, P, Pattern
from fuelvk.graph.registry import FusedOps
from fuelvk.graph.samples import Array, label, normal, ones, specials
from fuelvk.graph.types import Arg, ErrorSample, Family, FusedOpEntry, Param, Params, Sample, Shapes, Values

NAME = "rope"


def _shape(shapes: Shapes, params: Params) -> tuple[Shape, ...]:
    x = rules.given(shapes[0])
    rules.need_rank(NAME, "x", x, 2)
    length, d = x[-2:]
    if d % 2:
        raise ShapeError(
            f"{NAME}: the last axis is turned in pairs", seen=f"x{x}", allowed="an even last extent"
        )
    for name, table in zip(("cos", "sin"), map(rules.given, shapes[1:]), strict=True):
        rules.need_rank(NAME, name, table, 2, 2)
        if table[0] < length or table[1] not in (d, d // 2):
            raise ShapeError(
                f"{NAME}: {name} does not cover x",
                seen=f"x{x} and {name}{table}",
                allowed=f"{name}(>= {length}, {d}), or {d // 2} columns where the halves of a row are equal",
            )
    if shapes[1] != shapes[2]:
        raise ShapeError(
            f"{NAME}: cos and sin differ", seen=f"{shapes[1]} and {shapes[2]}", allowed="one shape"
        )
    return (x,)


def _half(index: int, x: Capture) -> P:
    """One half of x's last axis, as slicing gives it."""

    def is_half(node: Node) -> bool:
        source, params = node.inputs[0], node.params
        if source is None or source.ndim == 0 or source.shape[-1] % 2:
            return False
        h = source.shape[-1] // 2
        starts, stops, steps = params["starts"], params["stops"], params["steps"] or (1,) * source.ndim
        whole = all(
            a == 0 and b == n for a, b, n in zip(starts[:-1], stops[:-1], source.shape[:-1], strict=True)
        )
        return whole and (starts[-1], stops[-1]) == (index * h, (index + 1) * h) and set(steps) == {1}

    return P("slice", x, when=is_half)


def _build(match: Match) -> tuple[tuple[Value | None, ...], dict[str, object]] | None:
    x, cos, sin = (match.values[name] for name in ("x", "cos", "sin"))
    if x.ndim < 2 or cos.shape != sin.shape or cos.ndim != 2 or cos.shape != x.shape[-2:]:
        return None
    return (x, cos, sin), {"interleaved": False}


def _parts(g: Builder, value: Value, interleaved: bool) -> tuple[Value, Value]:
    """Returns the first and the second of every pair of the last axis."""
    shape, h = value.shape, value.shape[-1] // 2
    if not interleaved:
        return _cut(g, value, 0, h), _cut(g, value, h, 2 * h)
    pairs = g.reshape(value, shape=(*shape[:-1], h, 2))
    first, second = (g.reshape(_cut(g, pairs, i, i + 1), shape=(*shape[:-1], h)) for i in (0, 1))
    return first, second


def _cut(g: Builder, value: Value, start: int, stop: int) -> Value:
    """Returns a range of the last axis, as a view."""
    lead = value.shape[:-1]
    result: Value = g.slice(value, starts=(*(0 for _ in lead), start), stops=(*lead, stop))
    return result


def _joined(g: Builder, first: Value, second: Value, interleaved: bool) -> Value:
    """Returns the last axis out of its pairs: the inverse of ``_parts``."""
    if not interleaved:
        halves: Value = g.concat(first, second, axis=-1)
        return halves
    columns = [g.reshape(v, shape=(*v.shape, 1)) for v in (first, second)]
    return rules.reshaped(g, g.concat(*columns, axis=-1), (*first.shape[:-1], 2 * first.shape[-1]))


def _table(g: Builder, table: Value, x: Value) -> Value:
    """Returns the rows of a table that x uses, with D columns."""
    length, d = x.shape[-2:]
    rows = g.slice(table, starts=(0, 0), stops=(length, table.shape[1]))
    return rows if table.shape[1] == d else g.concat(rows, rows, axis=-1)  # type: ignore[no-any-return]


def decompose(g: Builder, inputs: Values, params: Params) -> tuple[Value, ...]:
    """Returns the formula in the accumulator type, rounded once at the end."""
    x, cos, sin = inputs
    assert x is not None
    assert cos is not None
    assert sin is not None
    kind = bool(params["interleaved"])
    a, b = _parts(g, rules.wide(g, x), kind)
    (c1, c2), (s1, s2) = (_parts(g, rules.wide(g, _table(g, t, x)), kind) for t in (cos, sin))
    u = g.sub(g.mul(a, c1), g.mul(b, s1))
    v = g.add(g.mul(b, c2), g.mul(a, s2))
    return (rules.narrow(g, _joined(g, u, v, kind), x.dtype),)


def backward(
    g: Builder, inputs: Values, outputs: tuple[Value, ...], grads: Values, params: Params
) -> tuple[Value | None, ...]:
    """The adjoint, itself a rotation: by cos and by minus the sines of the pairs' other halves.

    The tables' gradients are sums over all rows of a position; rows past x's length take none.
    """
    (x, cos, sin), (dy,) = inputs, grads
    assert x is not None
    assert cos is not None
    assert sin is not None
    assert dy is not None
    kind = bool(params["interleaved"])
    s1, s2 = _parts(g, _table(g, sin, x), kind)
    turned = _joined(g, g.neg(s2), g.neg(s1), kind)
    dx = g.rope(dy, _table(g, cos, x), turned, interleaved=kind)
    w, d = rules.wide(g, x), rules.wide(g, dy)
    a, b = _parts(g, w, kind)
    partner = _joined(g, g.neg(b), a, kind)
    return dx, _table_gradient(g, g.mul(d, w), cos), _table_gradient(g, g.mul(d, partner), sin)


def _table_gradient(g: Builder, terms: Value, table: Value) -> Value:
    """Returns [.., S, D] summed into the shape and dtype of a table."""
    length, d = terms.shape[-2:]
    summed = rules.sum_to(g, terms, (length, d))
    if table.shape[1] != d:
        summed = g.add(_cut(g, summed, 0, d // 2), _cut(g, summed, d // 2, d))
    if table.shape[0] > length:
        rest = (table.shape[0] - length, table.shape[1])
        summed = g.concat(summed, rules.full(g, 0.0, rest, summed.dtype), axis=0)
    return rules.narrow(g, summed, table.dtype)


def _angles(rng: np.random.Generator, rows: int, columns: int, dtype: DType) -> tuple[Array, Array]:
    angles = rng.uniform(-3, 3, (rows, columns))
    return np.cos(angles).astype(dtype.numpy), np.sin(angles).astype(dtype.numpy)


def sample_inputs(dtypes: tuple[DType, ...], rng: np.random.Generator) -> Iterable[Sample]:
    dtype = dtypes[0]
    for shape, extra in (
        ((1, 2), 0),
        ((5, 64), 3),
        ((2, 3, 7, 16), 0),
        ((3, 66, 6), 1),
        ((0, 4), 2),
        ((2, 4, 0), 0),
    ):
        length, d = shape[-2:]
        for interleaved in (False, True):
            for columns in {d, d // 2}:
                tables = _angles(rng, length + extra, columns, dtype)
                name = f"{label(shape)}-columns{columns}-{'pairs' if interleaved else 'halves'}"
                yield Sample((normal(rng, shape, dtype), *tables), {"interleaved": interleaved}, name)
    values = specials(dtype)
    x = np.stack([values, values[::-1]], axis=-1)
    yield Sample((x, *_angles(rng, len(values), 2, dtype)), {}, "specials")
    yield Sample((normal(rng, (1025, 8), dtype), *_angles(rng, 1025, 8, dtype)), {}, "1025x8")


def error_inputs() -> Iterable[ErrorSample]:
    x, table = ones((2, 4, 6)), ones((4, 6))
    yield ErrorSample((ones((6,)), table, table), {}, ShapeError, "rope.*x.*rank", "rank")
    odd = ones((4, 5))
    yield ErrorSample((ones((2, 4, 5)), odd, odd), {}, ShapeError, "rope.*pairs.*even", "odd")
    short = ones((3, 6))
    yield ErrorSample((x, short, short), {}, ShapeError, "rope: cos does not cover.*>= 4", "short_tables")
    yield ErrorSample((x, table, short), {}, ShapeError, "rope: sin does not cover", "short_sin")
    yield ErrorSample((x, table, ones((4, 3))), {}, ShapeError, "rope: cos and sin differ", "tables_differ")
    narrow = ones((4, 4))
    yield ErrorSample((x, narrow, narrow), {}, ShapeError, "rope.*3 columns", "columns")
    half = ones((4, 6), DType.F16)
    yield ErrorSample((x, half, half), {}, DTypeError, "rope.*f32.*f16", "mixed_dtypes")


def _on_last_axis(node: Node) -> bool:
    return node.params["axis"] in (-1, len(node.shapes[0]) - 1)


def _pattern() -> P:
    """The half-split form as models write it: x*cos + [-x2, x1]*sin."""
    x, cos, sin = Capture("x"), Capture("cos"), Capture("sin")
    return P(
        "add",
        P("mul", x, cos),
        P("mul", P("concat", P("neg", _half(1, x)), _half(0, x), when=_on_last_axis), sin),
    )


OP = FusedOpEntry(
    id=FusedOps.ROPE,
    family=Family.FORWARD,
    args=(Arg("x"), Arg("cos"), Arg("sin")),
    params=(Param("interleaved", "bool", default=False),),
    shape_rule=_shape,
    dtype_rule=rules.uniform(NAME, ("x", "cos", "sin"), FLOATS),
    dtypes=rules.rows(FLOATS, 3),
    pattern=Pattern((_pattern(),), _build),
    decompose=decompose,
    backward=backward,
    sample_inputs=sample_inputs,
    error_inputs=error_inputs,
    doc="Pairs (i, i + D/2), or (2i, 2i + 1) interleaved, turned: a*c - b*s and b*c + a*s by the position's row. "
    "Element j uses column j of cos and sin. Tables of D/2 columns stand for [t, t], also interleaved, where that is "
    "seldom meant: there give D columns, each angle twice side by side.",
)
