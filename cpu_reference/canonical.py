"""The canonical algorithms once more, as plain loops over NumPy scalars: slow, and independent of the C kernels.

Only the inner functions (exp, division, ...) come from the compiled strict library. Arrays are F32 or F64, one row or
one head at a time; results are in the accumulator type, not yet rounded to a storage type.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cpu_reference import c as ckernels

Array = np.ndarray[Any, Any]


def strict(function: str, *operands: Any) -> Any:
    """Returns a strict function of F32 or F64 scalars ("exp", "rcp", "rsqrt", "tanh", "div", ...)."""
    arrays = [np.asarray(operand).reshape(1) for operand in operands]
    result = np.empty_like(arrays[0])
    key = {4: "f32", 8: "f64"}[result.itemsize]
    ckernels.call(f"strict_{function}_{key}", *arrays, result, 1)
    return result[0]


def maximum(a: Any, b: Any) -> Any:
    """Returns the larger scalar; NaN wins, +0 over -0."""
    if np.isnan(a) or np.isnan(b):
        return a if np.isnan(a) else b
    if a == b:
        return b if np.signbit(a) else a
    return a if a > b else b


def row_max(values: Any, kind: Any) -> Any:
    best = kind(-np.inf)
    for value in values:
        best = maximum(best, value)
    return best


BLOCK = 16384


def tree_sum(values: Any, kind: Any) -> Any:
    """Returns the sum by blocks of 16384, each by 64 partials, element i in partial i mod 64, joined by halves.

    The results of several blocks are summed by the same rule.
    """
    if len(values) > BLOCK:
        blocks = [tree_sum(values[i : i + BLOCK], kind) for i in range(0, len(values), BLOCK)]
        return tree_sum(blocks, kind)
    partials: list[Any] = [None] * 64
    for i, value in enumerate(values):
        partials[i % 64] = value if i < 64 else partials[i % 64] + value
    partials = [kind(0) if p is None else p for p in partials]
    step = 32
    while step:
        partials = [partials[p] + partials[p + step] for p in range(step)]
        step //= 2
    return partials[0]


def _lost(a: Any, b: Any, s: Any) -> Any:
    """Returns what ``a + b`` loses when it is rounded to ``s`` (two_sum)."""
    t = s - a
    return (a - (s - t)) + (b - t)


def exact_sum(values: Any, kind: Any) -> Any:
    """Returns the sum of the row ops: the partials and joins of ``tree_sum``, each addition's loss kept beside."""
    sums, kept = [kind(0)] * 64, [kind(0)] * 64
    for i, value in enumerate(values):
        p = i % 64
        if i < 64:
            sums[p] = value
            continue
        t = sums[p] + value
        kept[p] = kept[p] + _lost(sums[p], value, t)
        sums[p] = t
    step = 32
    while step:
        for p in range(step):
            t = sums[p] + sums[p + step]
            kept[p] = (kept[p] + kept[p + step]) + _lost(sums[p], sums[p + step], t)
            sums[p] = t
        step //= 2
    return sums[0] if kept[0] == 0 or not np.isfinite(sums[0]) else sums[0] + kept[0]


def running_sum(values: Any, kind: Any) -> list[Any]:
    """Returns the running sums: blocks of 64 one after another, after the running sums of the blocks' totals."""
    blocks = []
    for start in range(0, len(values), 64):
        block = list(values[start : start + 64])
        for i in range(1, len(block)):
            block[i] = block[i - 1] + block[i]
        blocks.append(block)
    if len(blocks) < 2:
        return blocks[0] if blocks else []
    carries = running_sum([block[-1] for block in blocks], kind)
    return blocks[0] + [c + v for c, block in zip(carries, blocks[1:], strict=False) for v in block]


def dot(a: Any, b: Any, kind: Any) -> Any:
    """Returns the product rule: blocks of 64, each summed from 0, added to the total in order."""
    total = kind(0)
    for start in range(0, len(a), 64):
        s = kind(0)
        for x, y in zip(a[start : start + 64], b[start : start + 64], strict=True):
            s = s + x * y
        total = total + s
    return total


def softmax(x: Array) -> Array:
    kind = x.dtype.type
    m = row_max(x, kind)
    e = [strict("exp_difference", v, m) for v in x]
    r = strict("rcp", exact_sum(e, kind))
    return np.array([v * r for v in e], x.dtype)


def rms_norm(x: Array, weight: Array | None, eps: float) -> Array:
    kind = x.dtype.type
    ms = strict("div", exact_sum([v * v for v in x], kind), kind(x.size))
    r = strict("rsqrt", ms + kind(eps))
    y = [v * r for v in x]
    if weight is not None:
        y = [v * w for v, w in zip(y, weight, strict=True)]
    return np.array(y, x.dtype)


def layer_norm(x: Array, weight: Array | None, bias: Array | None, eps: float) -> Array:
    kind = x.dtype.type
    mean = strict("div", exact_sum(list(x), kind), kind(x.size))
    d = [v - mean for v in x]
    var = strict("div", exact_sum([v * v for v in d], kind), kind(x.size))
    r = strict("rsqrt", var + kind(eps))
    y = [v * r for v in d]
    if weight is not None:
        y = [v * w for v, w in zip(y, weight, strict=True)]
    if bias is not None:
        y = [v + b for v, b in zip(y, bias, strict=True)]
    return np.array(y, x.dtype)


def matmul(a: Array, b: Array, bias: Array | None = None) -> Array:
    kind = a.dtype.type
    y = np.empty((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            total = dot(a[i], b[:, j], kind)
            y[i, j] = total if bias is None else total + bias[j]
    return y


def attention_row(
    q: Array,
    k: Array,
    v: Array,
    kept: Array,
    position: int,
    *,
    scale: float,
    softcap: float = 0.0,
    slope: float | None = None,
) -> Array:
    """Returns one query row: q [D], k and v [keys, D], kept [keys] bool, the row's absolute position."""
    kind, width = q.dtype.type, v.shape[1]
    none, zero = kind(-np.inf), kind(0)

    def score(j: int) -> Any:
        s = dot(q, k[j], kind) * kind(scale)
        if softcap:
            s = strict("tanh", strict("div", s, kind(softcap))) * kind(softcap)
        return s if slope is None else s + kind(slope) * kind(j - position)

    def rescale(old: Any, new: Any) -> Any:
        return zero if old == none else strict("exp", old - new)

    big_m, big_l, big_o = none, zero, [zero] * width
    for piece in range(0, k.shape[0], 64 * 16):
        m, l, o = none, zero, [zero] * width  # noqa: E741
        for block in range(piece, min(piece + 64 * 16, k.shape[0]), 64):
            keys = [j for j in range(block, min(block + 64, k.shape[0])) if kept[j]]
            if not keys:
                continue
            s = {j: score(j) for j in keys}
            m2 = maximum(m, row_max(list(s.values()), kind))
            alpha = rescale(m, m2)
            p = [zero] * 64
            for j in keys:
                p[j - block] = zero if m2 == none else strict("exp", s[j] - m2)
            l = l * alpha + tree_sum(p, kind)  # noqa: E741
            for column in range(width):
                total = zero
                for j in keys:
                    total = total + p[j - block] * v[j, column]
                o[column] = o[column] * alpha + total
            m = m2
        if m == none:
            continue
        m2 = maximum(big_m, m)
        old, new = rescale(big_m, m2), strict("exp", m - m2)
        big_l = big_l * old + l * new
        big_o = [x * old + y * new for x, y in zip(big_o, o, strict=True)]
        big_m = m2
    if not kept.any():
        return np.zeros(width, q.dtype)
    if big_m == none:
        return np.full(width, np.nan, q.dtype)
    r = strict("rcp", big_l)
    return np.array([x * r for x in big_o], q.dtype)
