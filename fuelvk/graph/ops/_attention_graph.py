"""Attention as primitives, forward and backward, on q viewed as [B, Hkv, group, Sq, D].

A mask is a list of conditions that all must hold; there is no logical and among the primitives, so they are
applied one inside the other (``_kept``). Masked scores are left out, never added to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fuelvk.base.dtypes import DType
from fuelvk.graph import rules
from fuelvk.graph.ir import Builder, Value
from fuelvk.graph.ops._attention import AttnParams
from fuelvk.graph.types import Values

LAST = {"axes": (-1,), "keepdims": True}


@dataclass(frozen=True, slots=True)
class _Masks:
    """Conditions that broadcast to [B, Hkv, group, Sq, Sk], and the signed distance j - i_abs of key and
    row.
    """

    by_length: tuple[Value, ...]
    by_position: tuple[Value, ...]
    distance: Value

    @property
    def all(self) -> tuple[Value, ...]:
        return self.by_length + self.by_position


@dataclass(frozen=True, slots=True)
class _Forward:
    q: Value
    k: Value
    v: Value
    masks: _Masks
    probabilities: Value
    capped: Value | None  # tanh(s/cap), where softcap is on


def _kept(g: Builder, conditions: tuple[Value, ...], value: Value, otherwise: float) -> Value:
    """Returns ``value`` where every condition holds, else a number."""
    fill = g.constant(otherwise, value.dtype)
    for condition in conditions:
        value = g.where(condition, value, fill)
    return value


def _masks(g: Builder, k_lens: Value | None, p: AttnParams) -> _Masks:
    keys = g.constant(np.arange(p.Sk, dtype=np.int64))
    rows = g.constant(np.arange(p.Sq, dtype=np.int64).reshape(-1, 1))
    lengths = None
    if k_lens is not None:
        lengths = g.reshape(g.cast(k_lens, dtype=DType.I64), shape=(p.B, 1, 1, 1, 1))
    if p.causal_offset is not None:
        position = g.add(rows, g.constant(p.causal_offset, DType.I64))
    else:
        position = g.add(rows, g.sub(lengths, g.constant(p.Sq, DType.I64)))
    by_length: tuple[Value, ...] = ()
    if lengths is not None:
        by_length = (g.less(keys, lengths),)
    elif p.k_len < p.Sk:
        by_length = (g.less(keys, g.constant(p.k_len, DType.I64)),)
    distance = g.sub(keys, position)
    by_position: list[Value] = []
    if p.causal:
        by_position.append(g.less_equal(distance, g.constant(0, DType.I64)))
    if p.window_left is not None:
        by_position.append(g.greater_equal(distance, g.constant(-p.window_left, DType.I64)))
    if p.window_right is not None:
        by_position.append(g.less_equal(distance, g.constant(p.window_right, DType.I64)))
    return _Masks(by_length, tuple(by_position), distance)


def _forward(g: Builder, inputs: Values, p: AttnParams) -> _Forward:
    q, k, v, slopes, k_lens = inputs
    assert q is not None
    assert k is not None
    assert v is not None
    dtype = q.dtype.accumulator
    masks = _masks(g, k_lens, p)
    q5 = g.reshape(rules.wide(g, q), shape=(p.B, p.Hkv, p.group, p.Sq, p.D))
    k5 = g.reshape(rules.wide(g, k), shape=(p.B, p.Hkv, 1, p.Sk, p.D))
    v5 = g.reshape(rules.wide(g, v), shape=(p.B, p.Hkv, 1, p.Sk, p.D))
    scores = g.mul(g.matmul(q5, rules.transpose_last(g, k5)), g.constant(p.scale, dtype))
    capped = None
    if p.softcap:
        cap = g.constant(p.softcap, dtype)
        capped = g.tanh(g.div(scores, cap))
        scores = g.mul(capped, cap)
    if slopes is not None:
        slope = g.reshape(rules.narrow(g, slopes, dtype), shape=(p.Hkv, p.group, 1, 1))
        scores = g.add(scores, g.mul(slope, g.cast(masks.distance, dtype=dtype)))
    scores = _kept(g, masks.all, scores, -np.inf)
    e = _kept(g, masks.all, g.exp(g.sub(scores, g.max(scores, **LAST))), 0.0)
    total = g.sum(e, **LAST)
    # Any kept key makes the total at least 1 (or NaN), so 0 marks a fully masked row.
    zero = g.constant(0.0, dtype)
    probabilities = g.where(g.equal(total, zero), zero, g.div(e, total))
    return _Forward(q5, k5, v5, masks, probabilities, capped)


def _product_with_values(g: Builder, f: _Forward) -> Value:
    """Returns ``P @ v`` into which no inf or NaN of a masked key leaks (0 * inf would be NaN).

    Where masks exist the finite values are multiplied, and what is not finite is counted over the kept keys.
    """
    if not f.masks.all:
        result: Value = g.matmul(f.probabilities, f.v)
        return result
    dtype = f.v.dtype
    zero, one = g.constant(0.0, dtype), g.constant(1.0, dtype)
    plus, minus = g.constant(np.inf, dtype), g.constant(-np.inf, dtype)
    is_nan, is_plus, is_minus = g.not_equal(f.v, f.v), g.equal(f.v, plus), g.equal(f.v, minus)
    finite = g.where(is_nan, zero, g.where(is_plus, zero, g.where(is_minus, zero, f.v)))
    flags = g.concat(*(g.where(c, one, zero) for c in (is_nan, is_plus, is_minus)), axis=-1)
    kept = _kept(g, f.masks.all, rules.full(g, 1.0, f.probabilities.shape, dtype), 0.0)
    counts = g.matmul(kept, flags)
    width = f.v.shape[-1]

    def seen(index: int) -> Value:
        starts = (0,) * (counts.ndim - 1) + (index * width,)
        stops = (*counts.shape[:-1], (index + 1) * width)
        result: Value = g.greater(g.slice(counts, starts=starts, stops=stops), zero)
        return result

    nan = g.constant(np.nan, dtype)
    y = g.matmul(f.probabilities, finite)
    y = g.add(y, g.where(seen(1), plus, zero))
    y = g.add(y, g.where(seen(2), minus, zero))
    done: Value = g.where(seen(0), nan, y)
    return done


def attention(g: Builder, inputs: Values, p: AttnParams) -> Value:
    """Returns the output in q's shape and dtype."""
    q = inputs[0]
    assert q is not None
    y = _product_with_values(g, _forward(g, inputs, p))
    return rules.narrow(g, rules.reshaped(g, y, q.shape), q.dtype)


def attention_gradients(g: Builder, inputs: Values, dy: Value, p: AttnParams) -> tuple[Value | None, ...]:
    """Returns the gradients of q, k, v and, where given, the slopes.

    Keys past the length take no part, whatever they hold; a non-finite key or value that only position masks
    hide from some rows makes their gradients NaN.
    """
    q, k, v, slopes, _ = inputs
    assert q is not None
    assert k is not None
    assert v is not None
    f = _forward(g, inputs, p)
    dtype = f.q.dtype
    shown = tuple(
        rules.transpose_last(g, c) if c.ndim > 1 else g.reshape(c, shape=(p.Sk, 1)) for c in f.masks.by_length
    )
    k5, v5 = _kept(g, shown, f.k, 0.0), _kept(g, shown, f.v, 0.0)
    do = g.reshape(rules.wide(g, dy), shape=(p.B, p.Hkv, p.group, p.Sq, p.D))
    dp = g.matmul(do, rules.transpose_last(g, v5))
    weighted = _kept(g, f.masks.all, g.mul(f.probabilities, dp), 0.0)
    ds = g.sub(weighted, g.mul(f.probabilities, g.sum(weighted, **LAST)))
    d_slopes = None
    if slopes is not None:
        moved = g.mul(ds, g.cast(f.masks.distance, dtype=dtype))
        d_slopes = rules.narrow(g, g.reshape(g.sum(moved, axes=(0, 3, 4)), shape=(p.Hq,)), slopes.dtype)
    if f.capped is not None:
        ds = g.mul(ds, g.sub(g.constant(1.0, dtype), g.sqr(f.capped)))
        ds = _kept(g, f.masks.all, ds, 0.0)
    ds = g.mul(ds, g.constant(p.scale, dtype))
    dq = g.matmul(ds, k5)
    dk = g.sum(g.matmul(rules.transpose_last(g, ds), f.q), axes=(2,))
    dv = g.sum(g.matmul(rules.transpose_last(g, f.probabilities), do), axes=(2,))
    shaped = ((dq, q), (dk, k), (dv, v))
    return (*(rules.narrow(g, rules.reshaped(g, d, x.shape), x.dtype) for d, x in shaped), d_slopes)
