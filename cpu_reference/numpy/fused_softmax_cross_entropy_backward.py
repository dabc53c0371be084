"""(softmax - onehot) * g / count, zeros in ignored rows."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array, wide


def reference(
    logits: Array, targets: Array, g: Array, *, reduction: str = "mean", ignore_index: int = -100
) -> Array:
    x, t = wide(logits), np.asarray(targets)
    if x.size == 0:
        return x
    counts = t != ignore_index
    with np.errstate(all="ignore"):
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        p = e / e.sum(axis=-1, keepdims=True)
        p[np.arange(x.shape[-1]) == np.where(counts, t, -1)[..., None]] -= 1
        factor = np.asarray(g).astype(x.dtype)
        if reduction == "mean":
            factor = factor / counts.sum()
        rows = np.broadcast_to(factor, t.shape) if reduction != "none" else factor
        return np.asarray(np.where(counts[..., None], p * rows[..., None], 0))
