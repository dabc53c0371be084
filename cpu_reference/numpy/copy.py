"""x, contiguous."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array


def reference(x: Array) -> Array:
    return np.array(x, order="C")
