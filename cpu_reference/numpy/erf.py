"""The error function, 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x."""

from __future__ import annotations

from cpu_reference.numpy import _normal
from cpu_reference.numpy._common import Array, precise


def reference(x: Array) -> Array:
    return precise(_normal.erf, x)
