"""mul*x + add."""

from __future__ import annotations

from cpu_reference.numpy._common import Array
from cpu_reference.numpy.affine import reference as affine


def reference(x: Array, *, mul: float = 1.0, add: float = 0.0) -> Array:
    return affine(x, mul=mul, add=add)
