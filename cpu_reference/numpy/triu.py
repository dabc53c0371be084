"""x with zeros below diagonal k of its last two axes."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array


def reference(x: Array, *, k: int = 0) -> Array:
    rows, columns = x.shape[-2:]
    kept = np.arange(columns)[None, :] - np.arange(rows)[:, None] >= k
    return np.where(kept, x, np.zeros((), x.dtype))
