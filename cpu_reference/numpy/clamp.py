"""x held between min and max, where given; NaN stays NaN."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array, parameter, wide


def reference(x: Array, *, min: float | None = None, max: float | None = None) -> Array:
    y = wide(x)
    low = -np.inf if min is None else parameter(min, x)
    high = np.inf if max is None else parameter(max, x)
    return np.where(y < low, low, np.where(y > high, high, y))
