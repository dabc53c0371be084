"""|x|; the most negative integer stays itself."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array, unary


def reference(x: Array) -> Array:
    return unary(np.abs, x)
