"""x with the order of its elements reversed along axes."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array


def reference(x: Array, *, axes: tuple[int, ...]) -> Array:
    return np.array(np.flip(x, axes), order="C")
