"""The sum of each window over the last two axes, divided by its elements within x or within the padded x."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array, wide
from cpu_reference.numpy._windows import Pair, divisor, each, result_extents


def reference(
    x: Array,
    *,
    kernel: Pair,
    stride: Pair | None = None,
    padding: Pair = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Array:
    w = wide(x)
    window = (kernel, stride, padding, 1, ceil_mode)
    y = np.empty((*w.shape[:-2], *result_extents(w.shape, *window)), w.dtype)
    extents = (w.shape[-2], w.shape[-1])
    with np.errstate(all="ignore"):
        for place, start, taps in each(w.shape, *window):
            count = divisor(extents, start, kernel, padding, count_include_pad)
            y[(..., *place)] = w[(..., *taps)].sum(axis=(-2, -1)) / w.dtype.type(count)
    return y
