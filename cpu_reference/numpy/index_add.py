"""x with slice k of updates along axis added to slice indices[k]; an index outside [0, n) is an error."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array, wide
from fuelvk.base.errors import IndexOutOfRangeError


def reference(x: Array, indices: Array, updates: Array, *, axis: int) -> Array:
    extent = x.shape[axis]
    if indices.size and (indices.min() < 0 or indices.max() >= extent):
        raise IndexOutOfRangeError(
            "index_add met an index outside its axis",
            seen=f"indices from {indices.min()} to {indices.max()}",
            allowed=f"0 to {extent - 1}",
        )
    y = np.moveaxis(wide(x).copy(), axis, 0)
    for k, slice_ in zip(indices, np.moveaxis(wide(updates), axis, 0), strict=True):
        y[int(k)] += slice_
    return np.moveaxis(y, 0, axis)
