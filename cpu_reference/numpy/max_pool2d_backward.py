"""The gradient of max_pool2d: a window's goes to its first NaN, or else to the first of its largest elements."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array, wide
from cpu_reference.numpy._windows import Pair, each


def reference(
    x: Array,
    g: Array,
    *,
    kernel: Pair,
    stride: Pair | None = None,
    padding: Pair = 0,
    dilation: Pair = 1,
    ceil_mode: bool = False,
) -> Array:
    w, dy = wide(x), wide(g)
    dx = np.zeros(w.shape, w.dtype)
    lead = np.indices(w.shape[:-2])
    with np.errstate(all="ignore"):
        for place, _, (rows, columns) in each(w.shape, kernel, stride, padding, dilation, ceil_mode):
            seen = w[..., rows, columns].reshape(*w.shape[:-2], rows.size * columns.size)
            first = np.argmax(seen, axis=-1)  # the first NaN, or else the first of the largest
            row, column = np.divmod(first, columns.size)
            index = (*lead, rows.reshape(-1)[row], columns.reshape(-1)[column])
            dx[index] += dy[(..., *place)]
    return dx
