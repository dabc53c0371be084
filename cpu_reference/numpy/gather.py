"""The elements of x that indices name along axis, as numpy.take_along_axis; outside [0, n) is an error."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array
from fuelvk.base.errors import IndexOutOfRangeError


def reference(x: Array, indices: Array, *, axis: int) -> Array:
    extent = x.shape[axis]
    if indices.size and (indices.min() < 0 or indices.max() >= extent):
        raise IndexOutOfRangeError(
            "gather met an index outside its axis",
            seen=f"indices from {indices.min()} to {indices.max()}",
            allowed=f"0 to {extent - 1}",
        )
    return np.take_along_axis(x, indices.astype(np.int64), axis=axis)
