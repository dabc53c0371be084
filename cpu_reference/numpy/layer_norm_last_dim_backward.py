"""r*(g - mean(g) - xh*mean(g*xh)) with xh = (x - mean)*r, r = 1/sqrt(var + eps), over the last axis."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array, parameter, wide


def reference(x: Array, g: Array, *, eps: float = 1e-5) -> Array:
    w, d = wide(x), wide(g)
    if w.size == 0:
        return w
    with np.errstate(all="ignore"):
        centred = w - w.mean(axis=-1, keepdims=True)
        root = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + parameter(eps, x))
        xh = centred / root
        inner = (d - d.mean(axis=-1, keepdims=True)) - xh * (d * xh).mean(axis=-1, keepdims=True)
        return np.asarray(inner / root)
