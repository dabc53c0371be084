"""The gradient of resize2d of an x whose last two axes are ``size``: the same weights, read the other way."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array, wide
from cpu_reference.numpy._resizing import both, matrix
from cpu_reference.numpy._windows import Pair, pair


def reference(g: Array, *, size: Pair, mode: str = "nearest", coordinates: str = "half_pixel") -> Array:
    w = wide(g)
    sizes = zip(pair(size), w.shape[-2:], strict=True)
    with np.errstate(all="ignore"):
        rows, columns = (matrix(n, m, mode, coordinates, w.dtype.type).T for n, m in sizes)
        return both(rows, columns, w)
