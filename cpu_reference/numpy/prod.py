"""The product over axes (None is all); 1 over nothing; integers wrap."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array, is_float, kept_shape, over_axes, wide


def _rows(rows: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(np.prod(rows, axis=-1, dtype=rows.dtype))


def reference(x: Array, *, axes: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Array:
    result = _rows(over_axes(wide(x) if is_float(x) else np.asarray(x), axes))
    return result.reshape(kept_shape(np.asarray(x), axes)) if keepdims else result
