"""mul*x + add, the parameters as the accumulator holds them."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array, parameter, wide


def reference(x: Array, *, mul: float, add: float) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(wide(x) * parameter(mul, x) + parameter(add, x))
