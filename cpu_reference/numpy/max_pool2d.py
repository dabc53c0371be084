"""The largest of each window over the last two axes; padding takes no part, NaN wins, +0 over -0."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array, wide
from cpu_reference.numpy._windows import Pair, each, result_extents


def reference(
    x: Array,
    *,
    kernel: Pair,
    stride: Pair | None = None,
    padding: Pair = 0,
    dilation: Pair = 1,
    ceil_mode: bool = False,
) -> Array:
    w = wide(x)
    window = (kernel, stride, padding, dilation, ceil_mode)
    y = np.empty((*w.shape[:-2], *result_extents(w.shape, *window)), w.dtype)
    with np.errstate(all="ignore"):
        for place, _, taps in each(w.shape, *window):
            seen = w[(..., *taps)].reshape(*w.shape[:-2], taps[0].size * taps[1].size)
            best = seen.max(axis=-1)
            positive = ((seen == 0) & ~np.signbit(seen)).any(axis=-1)
            y[(..., *place)] = np.where((best == 0) & positive, 0.0, best)
    return y
