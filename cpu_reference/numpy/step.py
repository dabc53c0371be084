"""1 for x > 0, else 0; NaN for NaN."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array, unary


def _exact(x: Array) -> Array:
    return np.where(np.isnan(x), x, (x > 0).astype(x.dtype))


def reference(x: Array) -> Array:
    return unary(_exact, x)
