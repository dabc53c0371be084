"""1/x."""

from __future__ import annotations

from cpu_reference.numpy._common import Array, unary


def reference(x: Array) -> Array:
    return unary(lambda v: 1 / v, x)
