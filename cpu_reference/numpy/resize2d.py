"""ONNX's Resize of the last two axes, places as exact fractions; a source of weight 0 is not read."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array, wide
from cpu_reference.numpy._resizing import both, matrix
from cpu_reference.numpy._windows import Pair, pair


def reference(x: Array, *, size: Pair, mode: str = "nearest", coordinates: str = "half_pixel") -> Array:
    w = wide(x)
    sizes = zip(w.shape[-2:], pair(size), strict=True)
    with np.errstate(all="ignore"):
        rows, columns = (matrix(n, m, mode, coordinates, w.dtype.type) for n, m in sizes)
        return both(rows, columns, w)
