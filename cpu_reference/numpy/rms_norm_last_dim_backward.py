"""r*(g - x*sum(g*x)/(n*(ms + eps))) with r = 1/sqrt(ms + eps), over the last axis."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array, parameter, wide


def reference(x: Array, g: Array, *, eps: float = 1e-5) -> Array:
    w, d = wide(x), wide(g)
    if w.size == 0:
        return w
    with np.errstate(all="ignore"):
        spread = (w * w).mean(axis=-1, keepdims=True) + parameter(eps, x)
        return np.asarray((d - w * ((d * w).mean(axis=-1, keepdims=True) / spread)) / np.sqrt(spread))
