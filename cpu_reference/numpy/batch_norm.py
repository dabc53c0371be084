"""((x - mean) / sqrt(var + eps)) * scale + bias for every channel, axis 1 of x."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array, parameter, wide


def reference(x: Array, scale: Array, bias: Array, mean: Array, var: Array, *, eps: float = 1e-5) -> Array:
    along = (-1, *(1,) * (x.ndim - 2))
    scale, bias, mean, var = (wide(v).reshape(along) for v in (scale, bias, mean, var))
    with np.errstate(all="ignore"):
        return np.asarray((wide(x) - mean) / np.sqrt(var + parameter(eps, x)) * scale + bias)
