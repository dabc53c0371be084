"""Natural logarithm; -inf at both zeros, NaN below."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array, precise


def reference(x: Array) -> Array:
    return precise(np.log, x)
