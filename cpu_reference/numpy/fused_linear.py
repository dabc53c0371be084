"""a @ b + bias; batch dims broadcast; without products (K = 0) the bias, or 0."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy import matmul
from cpu_reference.numpy._common import Array, wide


def reference(a: Array, b: Array, bias: Array | None = None) -> Array:
    product = matmul.reference(a, b)
    with np.errstate(all="ignore"):
        return product if bias is None else np.asarray(product + wide(bias))
