"""x, but value where mask holds; value as the cast gives it in the dtype of x."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy import cast
from cpu_reference.numpy._common import Array
from fuelvk.base.dtypes import DType


def reference(x: Array, mask: Array, *, value: float) -> Array:
    dtype = DType.of(x)
    whole = np.array([value]).astype(dtype.numpy)
    filler = cast.reference(np.array([value], np.float64), dtype=dtype) if dtype.is_float else whole
    return np.where(mask, filler[0], x)
