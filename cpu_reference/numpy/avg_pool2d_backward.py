"""The gradient of avg_pool2d of an x whose last two axes are ``size``: every window shares its own equally."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array, wide
from cpu_reference.numpy._windows import Pair, divisor, each, pair


def reference(
    g: Array,
    *,
    size: Pair,
    kernel: Pair,
    stride: Pair | None = None,
    padding: Pair = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Array:
    dy, extents = wide(g), pair(size)
    dx = np.zeros((*dy.shape[:-2], *extents), dy.dtype)
    with np.errstate(all="ignore"):
        for place, start, taps in each(dx.shape, kernel, stride, padding, 1, ceil_mode):
            count = divisor(extents, start, kernel, padding, count_include_pad)
            dx[(..., *taps)] += (dy[(..., *place)] / dy.dtype.type(count))[..., None, None]
    return dx
