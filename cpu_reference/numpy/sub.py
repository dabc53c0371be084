"""a - b."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array, binary


def reference(a: Array, b: Array) -> Array:
    return binary(np.subtract, a, b)
