"""x within a border on every axis; value as the cast gives it in the dtype of x."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy import cast
from cpu_reference.numpy._common import Array
from fuelvk.base.dtypes import DType


def reference(x: Array, *, pads: tuple[tuple[int, int], ...], mode: str, value: float) -> Array:
    if mode == "constant":
        dtype = DType.of(x)
        filler = np.array([value], np.float64)
        filler = cast.reference(filler, dtype=dtype) if dtype.is_float else np.array([value]).astype(x.dtype)
        whole = np.empty(tuple(b + n + a for n, (b, a) in zip(x.shape, pads, strict=True)), x.dtype)
        whole[...] = filler[0]
        whole[tuple(slice(b, b + n) for n, (b, _) in zip(x.shape, pads, strict=True))] = x
        return whole
    for axis, (n, (before, after)) in enumerate(zip(x.shape, pads, strict=True)):
        if before or after:
            places = np.arange(-before, n + after)
            if mode == "replicate":
                places = np.clip(places, 0, n - 1)
            else:
                places = np.abs(places)
                places = np.where(places >= n, 2 * (n - 1) - places, places)
            x = np.take(x, places, axis=axis)
    return x
