"""x/(1 + e^-x); -0 at -inf."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array, precise


def _exact(x: Array) -> Array:
    return np.where(np.isneginf(x), -0.0, x / (1 + np.exp(-x)))


def reference(x: Array) -> Array:
    return precise(_exact, x)
