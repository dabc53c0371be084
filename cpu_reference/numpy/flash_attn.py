"""Attention by its definition: scores, softcap, ALiBi, mask, softmax over the kept keys, weighted values."""

from __future__ import annotations

from typing import Any

import numpy as np

from cpu_reference.numpy._common import Array, parameter, wide


def kept(
    item: int,
    rows: int,
    keys: int,
    k_lens: Array | None,
    *,
    causal: bool = False,
    causal_offset: int | None = None,
    window_left: int | None = None,
    window_right: int | None = None,
    k_len: int | None = None,
) -> tuple[Array, int]:
    """Returns the [rows, keys] mask of what each query row of a batch item keeps, and the position of its row 0."""
    length = int(k_lens[item]) if k_lens is not None else (keys if k_len is None else k_len)
    offset = length - rows if causal_offset is None else causal_offset
    at, j = np.arange(rows)[:, None] + offset, np.arange(keys)[None, :]
    mask = np.broadcast_to(j < length, (rows, keys))
    if causal:
        mask = mask & (j <= at)
    if window_left is not None:
        mask = mask & (j >= at - window_left)
    if window_right is not None:
        mask = mask & (j <= at + window_right)
    return mask, offset


def scores(q: Array, k: Array, scale: float, softcap: float, slope: float | None, offset: int) -> Array:
    """Returns the [rows, keys] scores of one head, unmasked."""
    s = np.matmul(q, k.T) * scale
    if softcap:
        s = softcap * np.tanh(s / softcap)
    if slope is not None:
        s = s + slope * (np.arange(k.shape[0])[None, :] - (np.arange(q.shape[0])[:, None] + offset))
    return np.asarray(s)


def attend(s: Array, mask: Array, v: Array) -> Array:
    """Returns softmax over the kept scores times v, row by row, so that nothing leaks from a masked key."""
    out = np.zeros((s.shape[0], v.shape[1]), dtype=s.dtype)
    for i in range(s.shape[0]):
        if mask[i].any():
            row = s[i, mask[i]]
            e = np.exp(row - row.max())
            out[i] = np.matmul(e / e.sum(), v[mask[i]])
    return out


def reference(
    q: Array,
    k: Array,
    v: Array,
    alibi_slopes: Array | None = None,
    k_lens: Array | None = None,
    *,
    scale: float,
    softcap: float | None = None,
    **masks: Any,
) -> Array:
    batch, q_heads, rows, _ = q.shape
    kv_heads, keys = k.shape[1], k.shape[2]
    wq, wk, wv = wide(q), wide(k), wide(v)
    out = np.zeros(q.shape, dtype=wq.dtype)
    for b in range(batch):
        mask, offset = kept(b, rows, keys, k_lens, **masks)
        for h in range(q_heads):
            kv = h // (q_heads // kv_heads)
            slope = None if alibi_slopes is None else float(alibi_slopes[h])
            with np.errstate(all="ignore"):
                s = scores(
                    wq[b, h], wk[b, kv], parameter(scale, q), parameter(softcap or 0.0, q), slope, offset
                )
                out[b, h] = attend(s, mask, wv[b, kv])
    return out
