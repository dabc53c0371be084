"""alpha*x + beta held between 0 and 1, the parameters as the accumulator holds them; NaN stays NaN."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array, parameter, wide


def reference(x: Array, *, alpha: float = 0.2, beta: float = 0.5) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(np.clip(wide(x) * parameter(alpha, x) + parameter(beta, x), 0, 1))
