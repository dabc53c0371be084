"""a @ b with NumPy's shapes."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array, wide


def reference(a: Array, b: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(np.matmul(wide(a), wide(b)))
