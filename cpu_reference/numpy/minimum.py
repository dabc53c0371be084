"""The smaller operand; NaN wins, and -0 over +0."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array, binary, is_float


def _exact(a: Array, b: Array) -> Array:
    smaller = np.minimum(a, b)
    if not is_float(smaller):
        return np.asarray(smaller)
    return np.where(a == b, np.where(np.signbit(a), a, b), smaller)


def reference(a: Array, b: Array) -> Array:
    return binary(_exact, a, b)
