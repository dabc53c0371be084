"""logsumexp(x) - x_t per row; the mean divides by the rows that count, an ignored row is 0."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array, wide


def reference(logits: Array, targets: Array, *, reduction: str = "mean", ignore_index: int = -100) -> Array:
    x, t = wide(logits), np.asarray(targets)
    counts = t != ignore_index
    safe = np.where(counts, t, 0)
    with np.errstate(all="ignore"):
        if x.shape[-1] == 0:
            losses = np.zeros(t.shape)
        else:
            m = x.max(axis=-1)
            own = np.take_along_axis(x, safe[..., None], axis=-1)[..., 0]
            losses = (m - own) + np.log(np.exp(x - m[..., None]).sum(axis=-1))
        losses = np.where(counts, losses, 0)
        if reduction == "none":
            return np.asarray(losses)
        total = losses.sum()
        return np.asarray(total / counts.sum() if reduction == "mean" else total)
