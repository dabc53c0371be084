"""The smallest over axes (None is all); NaN wins, -0 over +0; +inf over nothing, refused for integers."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array, is_float, kept_shape, over_axes, wide


def _rows(rows: Array) -> Array:
    if not np.issubdtype(rows.dtype, np.floating):
        return np.asarray(rows.min(axis=-1))
    with np.errstate(all="ignore"):
        best = np.minimum.reduce(rows, axis=-1, initial=np.inf)
    signed = ((rows == 0) & np.signbit(rows)).any(axis=-1)
    return np.where((best == 0) & signed, -0.0, best)


def reference(x: Array, *, axes: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Array:
    result = _rows(over_axes(wide(x) if is_float(x) else np.asarray(x), axes))
    return result.reshape(kept_shape(np.asarray(x), axes)) if keepdims else result
