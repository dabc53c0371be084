"""x with updates[p] added where indices[p] stands in place of p's coordinate along axis, as PyTorch's scatter_add."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array, wide
from fuelvk.base.errors import IndexOutOfRangeError


def reference(x: Array, indices: Array, updates: Array, *, axis: int) -> Array:
    extent = x.shape[axis]
    if indices.size and (indices.min() < 0 or indices.max() >= extent):
        raise IndexOutOfRangeError(
            "scatter_add met an index outside its axis",
            seen=f"indices from {indices.min()} to {indices.max()}",
            allowed=f"0 to {extent - 1}",
        )
    y = wide(x).copy()
    for place in np.ndindex(*indices.shape):
        target = list(place)
        target[axis] = int(indices[place])
        y[tuple(target)] += wide(updates[place])
    return y
