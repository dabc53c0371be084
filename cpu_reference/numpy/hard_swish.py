"""x * (x + 3)/6 with the second factor held between 0 and 1; -0 up to -3, at -inf too."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array, wide


def reference(x: Array) -> Array:
    w = wide(x)
    with np.errstate(all="ignore"):
        line = np.where(w >= 3, w, w * (w + 3) / 6)
    return np.where(w <= -3, -0.0, line)
