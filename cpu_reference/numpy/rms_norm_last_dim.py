"""x / sqrt(mean(x^2) + eps) * weight over the last axis."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array, parameter, wide


def reference(x: Array, weight: Array | None = None, *, eps: float = 1e-5) -> Array:
    w = wide(x)
    if w.size == 0:
        return w
    with np.errstate(all="ignore"):
        y = w / np.sqrt((w * w).mean(axis=-1, keepdims=True) + parameter(eps, x))
        return np.asarray(y if weight is None else y * wide(weight))
