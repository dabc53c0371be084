"""x with update written along an axis; the indices wrap only where wrap says so."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array
from fuelvk.base.errors import IndexOutOfRangeError


def reference(
    x: Array, update: Array, position: Array | None, *, axis: int, start: int | None, wrap: bool
) -> Array:
    first = int(position[0]) if position is not None else start
    assert first is not None
    count, extent = update.shape[axis], x.shape[axis]
    if first < 0 or (not wrap and first + count > extent):
        raise IndexOutOfRangeError(
            "write_slice: position is out of range", seen=first, allowed=f"0 to {extent - count}"
        )
    result = np.array(x)
    if count:
        places = np.array([(first + i) % extent for i in range(count)], np.int64)
        np.moveaxis(result, axis, 0)[places] = np.moveaxis(update, axis, 0)
    return result
