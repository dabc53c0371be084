"""The index of the largest along an axis (None is the flattened array): the lowest among equals, NaN wins."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array, wide


def reference(x: Array, *, axis: int | None = None, keepdims: bool = False) -> Array:
    return np.asarray(np.argmax(wide(x), axis=axis, keepdims=keepdims), np.int64)
