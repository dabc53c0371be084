"""x with its elements moved along axes, those beyond the end to the start."""

from __future__ import annotations

import numpy as np

from cpu_reference.numpy._common import Array


def reference(x: Array, *, shifts: tuple[int, ...], axes: tuple[int, ...]) -> Array:
    shift = shifts[0] if len(shifts) == 1 else shifts
    return np.asarray(np.roll(x, shift, axes)) if axes else np.array(x)
