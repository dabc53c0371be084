"""The gradients of attention by their definition, row by row over the kept keys."""

from __future__ import annotations

from typing import Any

import numpy as np

from cpu_reference.numpy._common import Array, parameter, wide
from cpu_reference.numpy.flash_attn import kept


def reference(
    q: Array,
    k: Array,
    v: Array,
    dy: Array,
    alibi_slopes: Array | None = None,
    k_lens: Array | None = None,
    *,
    scale: float,
    softcap: float | None = None,
    **masks: Any,
) -> tuple[Array, Array, Array]:
    """Returns dq, dk and dv."""
    batch, q_heads, rows, _ = q.shape
    kv_heads, keys = k.shape[1], k.shape[2]
    wq, wk, wv, wdy = wide(q), wide(k), wide(v), wide(dy)
    dq, dk, dv = np.zeros_like(wq), np.zeros_like(wk), np.zeros_like(wv)
    factor, cap = parameter(scale, q), parameter(softcap or 0.0, q)
    for b in range(batch):
        mask, offset = kept(b, rows, keys, k_lens, **masks)
        for h in range(q_heads):
            kv = h // (q_heads // kv_heads)
            for i in range(rows):
                j = np.flatnonzero(mask[i])
                if not j.size:
                    continue
                with np.errstate(all="ignore"):
                    s = factor * np.matmul(wk[b, kv, j], wq[b, h, i])
                    steepness = np.ones_like(s)
                    if cap:
                        t = np.tanh(s / cap)
                        s, steepness = cap * t, 1 - t * t
                    if alibi_slopes is not None:
                        s = s + float(alibi_slopes[h]) * (j - (i + offset))
                    e = np.exp(s - s.max())
                    p = e / e.sum()
                    dp = np.matmul(wv[b, kv, j], wdy[b, h, i])
                    ds = p * (dp - (p * dp).sum()) * steepness
                    dq[b, h, i] = factor * np.matmul(ds, wk[b, kv, j])
                    dk[b, kv, j] += factor * np.outer(ds, wq[b, h, i])
                    dv[b, kv, j] += np.outer(p, wdy[b, h, i])
    return dq, dk, dv
