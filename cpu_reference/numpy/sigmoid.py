"""1/(1 + e^-x)."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array, precise


def reference(x: Array) -> Array:
    return precise(lambda v: 1 / (1 + np.exp(-v)), x)
