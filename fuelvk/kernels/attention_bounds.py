"""Error bounds of attention's gradients, by the rules of ``bounds``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fuelvk.kernels.bounds import (
    EXP,
    TANH,
    _kept,
    _scores,
    _tiny,
    _unit,
    _wide,
    attention,
    gamma,
    product_depth,
    rounding,
    sum_depth,
)
from fuelvk.kernels.types import Bound, BoundInputs

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class _Weights:
    """|p| and |ds| of one head, [Sq, Sk], and the error each may carry; zero at masked keys."""

    p: Array
    p_error: Array
    ds: Array
    ds_error: Array


def _finite(x: Array) -> Array:
    """A result that a non-finite number reaches is not finite either, and no bound speaks of it."""
    return np.where(np.isfinite(x), x, 0.0)


def _weights(
    b: BoundInputs, item: int, q: Array, k: Array, v: Array, dy: Array, slope: float, lens: Array | None
) -> _Weights:
    u, tiny = _unit(b), _tiny(b.dtype.accumulator)
    sq, sk, d = q.shape[0], k.shape[0], q.shape[1]
    cap, scale = float(b.params.get("softcap") or 0.0), float(b.params["scale"])
    mask, distance = _kept(b, item, sq, sk, lens)
    s, s_error = _scores(b, q, k, slope * distance)
    s = np.where(mask, s, -np.inf)
    top = np.where(mask.any(axis=-1, keepdims=True), s.max(axis=-1, keepdims=True), 0.0)
    e = np.where(mask, np.exp(s - top), 0.0)
    total = e.sum(axis=-1, keepdims=True)
    p = np.where(total == 0, 0.0, e / np.where(total == 0, 1.0, total))
    # The maximum is one of the computed scores: its error moves every weight of the row alike, and cancels.
    own = np.where(e > 0, np.abs(s - top) * u + s_error + (EXP + 1) * u, 0.0)
    shared = (p * own).sum(axis=-1, keepdims=True) + gamma(sum_depth(sk) + 2, u)
    p_error = np.where(mask, p * (own + shared) + 4 * tiny, 0.0)
    size = np.abs(dy) @ np.abs(v).T
    dp = np.where(mask, dy @ v.T, 0.0)
    dp_error = np.where(mask, gamma(product_depth(d), u) * size + 2 * d * tiny, 0.0)
    terms = p * np.abs(dp)
    delta = (p * dp).sum(axis=-1, keepdims=True)
    delta_error = (p_error * np.abs(dp) + p * dp_error).sum(axis=-1, keepdims=True)
    delta_error = delta_error + gamma(sum_depth(sk) + 1, u) * terms.sum(axis=-1, keepdims=True) + sk * tiny
    gap = np.abs(dp - delta)
    ds = p * gap
    ds_error = p_error * gap + p * (dp_error + delta_error) + 2 * u * p * (np.abs(dp) + np.abs(delta))
    if cap:
        t = np.tanh(scale * (q @ k.T) / cap)
        before = gamma(product_depth(d) + 2, u) * abs(scale) * (np.abs(q) @ np.abs(k).T) / cap
        t_error = before + (TANH + 3) * u * np.abs(t)
        steep = 1 - t * t
        ds_error = ds_error * steep + ds * (2 * np.abs(t) * t_error + 3 * u)
        ds = ds * steep
    ds_error = np.where(mask, ds_error + u * ds + 4 * tiny, 0.0)
    return _Weights(p, p_error, np.where(mask, ds, 0.0), ds_error)


def _errors(b: BoundInputs) -> tuple[Array, Array, Array]:
    """Returns the error that dq, dk and dv may carry before the one rounding to the output type."""
    u, tiny = _unit(b), _tiny(b.dtype.accumulator)
    q, k, v, dy = (_finite(_wide(x)) for x in b.inputs[:4])
    slopes, lens = (b.inputs[i] if len(b.inputs) > i else None for i in (4, 5))
    dq, dk, dv = np.zeros(q.shape), np.zeros(k.shape), np.zeros(v.shape)
    batch, hq, sq, _ = q.shape
    hkv, sk = k.shape[1], k.shape[2]
    if 0 in q.shape or 0 in k.shape:
        return dq, dk, dv
    scale = abs(float(b.params["scale"]))
    over_keys = gamma(product_depth(sk) + 2, u)
    over_rows = gamma(product_depth(sq) + (hq // max(hkv, 1)) * -(-sq // 64) + 2, u)
    for item in range(batch):
        for head in range(hq):
            kv = head // (hq // hkv)
            x = (q[item, head], k[item, kv], v[item, kv], dy[item, head])
            slope = 0.0 if slopes is None else float(slopes[head])
            with np.errstate(all="ignore"):
                w = _weights(b, item, *x, slope, lens)
                rows, keys, _, grads = (np.abs(part) for part in x)
                dq[item, head] = scale * (w.ds_error + over_keys * w.ds) @ keys + 2 * sk * tiny
                dk[item, kv] += scale * (w.ds_error + over_rows * w.ds).T @ rows + 2 * sq * tiny
                dv[item, kv] += (w.p_error + over_rows * w.p).T @ grads + 2 * sq * tiny
    return dq, dk, dv


def _gradient(index: int, doc: str) -> Bound:
    def bound(b: BoundInputs) -> Array:
        return rounding(b, _errors(b)[index])

    bound.__doc__ = doc
    return bound


gradient_q = _gradient(
    0,
    """scale (|error of ds| + gamma_(Sk/64+67) |ds|) |k|.

    p errs by its score, exp and the sum (as softmax); dp is a canonical product of length D, delta a canonical
    sum; ds multiplies and subtracts them; dq is a canonical product over the keys (Higham, sections 3.1, 4.2).
    """,
)
gradient_k = _gradient(
    1,
    """scale (|error of ds|' + gamma_(rows/64+67) |ds|') |q|.

    As dq, summed over the query rows of the group (Higham, section 3.1).
    """,
)
gradient_v = _gradient(
    2,
    """(|error of p|' + gamma_(rows/64+67) p') |dy|.

    p errs as in softmax; a canonical product over the query rows of the group (Higham, section 3.1).
    """,
)


def gradients(b: BoundInputs) -> Array:
    """The largest of the three gradients' bounds that have the output's shape.

    One claim speaks of three outputs; the fused ops alone, whose bits these are, are held to their own.
    """
    shape = np.shape(b.reference)
    fitting = [e for e in _errors(b) if e.shape == shape]
    return rounding(b, np.maximum.reduce(fitting))


def paged_attention(b: BoundInputs) -> Array:
    """The bound of attention on the gathered context.

    Gathering moves bytes; what follows is attention, causal, with the queries at the end of the context.
    """
    q, k_cache, v_cache = (_wide(x) for x in b.inputs[:3])
    table, lens, slopes = b.inputs[3], b.inputs[4], b.inputs[5] if len(b.inputs) > 5 else None
    assert table is not None
    assert lens is not None
    size = k_cache.shape[1]
    result = np.zeros(q.shape)
    for item, length in enumerate(int(n) for n in lens):
        keys = np.arange(length)
        blocks = table[item].astype(np.int64)[keys // size]
        one = slice(item, item + 1)
        k, v = (x[blocks, keys % size].transpose(1, 0, 2)[None] for x in (k_cache, v_cache))
        inputs = (q[one], k, v, slopes, None)
        params = {**b.params, "causal": True}
        result[one] = attention(BoundInputs(inputs, params, np.asarray(b.reference)[one], b.dtype))
    return result
