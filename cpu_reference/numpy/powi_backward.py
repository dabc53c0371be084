"""exp * x^(exp-1) * g; zeros for exp = 0 and g for exp = 1, whatever x is."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array, wide
from cpu_reference.numpy.powi import reference as power


def reference(x: Array, g: Array, *, exp: int) -> Array:
    d = wide(g)
    if exp == 0:
        return np.zeros_like(d)
    if exp == 1:
        return d
    with np.errstate(all="ignore"):
        return np.asarray(power(x, exp=exp - 1) * exp * d)
