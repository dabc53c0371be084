"""(x - max) - log(sum exp(x - max)) over the last axis; rows of all -inf, or with a NaN or +inf, are NaN."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array, wide


def reference(x: Array) -> Array:
    w = wide(x)
    if w.size == 0:
        return w
    with np.errstate(all="ignore"):
        most = w.max(axis=-1, keepdims=True)
        d = np.where(np.isposinf(most), np.nan, w - most)
        # The largest element's term is 1: log1p of the rest keeps the digits of a small logarithm.
        top = np.expand_dims(np.argmax(w, axis=-1), -1)
        rest = np.exp(d)
        np.put_along_axis(rest, top, 0, axis=-1)
        return np.asarray(d - np.log1p(rest.sum(axis=-1, keepdims=True)))
