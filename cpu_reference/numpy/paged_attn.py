"""Attention over a paged cache by its definition: the context gathered key by key, then attention."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy import flash_attn
from cpu_reference.numpy._common import Array, wide


def reference(
    q: Array,
    k_cache: Array,
    v_cache: Array,
    block_table: Array,
    context_lens: Array,
    alibi_slopes: Array | None = None,
    *,
    scale: float,
    softcap: float | None = None,
) -> Array:
    size, kv_heads = k_cache.shape[1:3]
    out = np.zeros(q.shape, dtype=wide(q).dtype)
    for b, length in enumerate(int(n) for n in context_lens):
        at = [(int(block_table[b, j // size]), j % size) for j in range(length)]
        shape = (length, kv_heads, q.shape[3])
        k, v = (
            np.array([cache[place] for place in at], cache.dtype).reshape(shape).transpose(1, 0, 2)
            for cache in (k_cache, v_cache)
        )
        out[b] = flash_attn.reference(
            q[b : b + 1], k[None], v[None], alibi_slopes, scale=scale, softcap=softcap, causal=True
        )[0]
    return out
