"""log(1 + e^x)."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array, precise


def _exact(x: Array) -> Array:
    return np.where(x > 0, x, 0) + np.log1p(np.exp(-np.abs(x)))


def reference(x: Array) -> Array:
    return precise(_exact, x)
