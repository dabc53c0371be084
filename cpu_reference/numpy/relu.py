"""x for x > 0 or NaN, else +0."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array, unary


def reference(x: Array) -> Array:
    return unary(lambda w: np.where((w > 0) | np.isnan(w), w, 0), x)
