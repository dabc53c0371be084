"""y * (g - sum(g*y)) over the last axis."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array, wide


def reference(y: Array, g: Array) -> Array:
    p, d = wide(y), wide(g)
    with np.errstate(all="ignore"):
        return np.asarray(p * (d - (d * p).sum(axis=-1, keepdims=True)))
