"""g over the number of ties where x is the largest of its window, 0 elsewhere; NaN all over a window that holds one.

A window is what one element of g broadcasts to.
"""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array, wide


def reference(x: Array, g: Array) -> Array:
    v, d = wide(x), wide(g)
    d = d.reshape((1,) * (v.ndim - d.ndim) + d.shape)
    axes = tuple(i for i, n in enumerate(d.shape) if n != v.shape[i])
    with np.errstate(all="ignore"):
        top = np.maximum.reduce(v, axis=axes, keepdims=True, initial=-np.inf)
        hit = v == top
        shared = np.where(hit, d / hit.sum(axis=axes, keepdims=True), 0)
    return np.where(np.isnan(top), np.nan, shared)
