"""a where cond holds, else b, bytes untouched; the three broadcast."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array


def reference(cond: Array, a: Array, b: Array) -> Array:
    return np.where(cond, a, b)
