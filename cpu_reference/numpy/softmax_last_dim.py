"""exp(x - max) / sum exp(x - max) over the last axis; rows of all -inf, or with a NaN or +inf, are NaN."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array, wide


def reference(x: Array) -> Array:
    w = wide(x)
    if w.size == 0:
        return w
    with np.errstate(all="ignore"):
        e = np.exp(w - w.max(axis=-1, keepdims=True))
        return np.asarray(e / e.sum(axis=-1, keepdims=True))
