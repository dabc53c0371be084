"""1/sqrt(x); infinity of the sign of a zero, NaN below."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array, precise


def reference(x: Array) -> Array:
    return precise(lambda v: 1 / np.sqrt(v), x)
