"""What the oracles share: widening, parameters as the kernels see them, integer and float cases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fuelvk.base.dtypes import DType

Array = np.ndarray[Any, Any]


def wide(x: Array) -> Array:
    """Returns ``x`` exactly in the oracle's type: longdouble for F64, float64 for narrower floats."""
    x = np.asarray(x)
    with np.errstate(invalid="ignore"):  # a NaN of an extension type is no event
        return x.astype(np.longdouble if x.dtype == np.float64 else np.float64)


def precise(exact: Callable[[Array], Array], x: Array) -> Array:
    """Returns ``exact`` of floats of any type in longdouble (float64 for 16-bit types).

    What F32 results need: the hardest of them lie 2^-34 of a unit from the middle between two floats, where float64 can
    no longer tell on which side.
    """
    x = np.asarray(x)
    with np.errstate(all="ignore"):
        wider = x.astype(np.longdouble if x.dtype.itemsize > 2 else np.float64)
        return np.asarray(exact(wider * 1))  # a product quiets a signalling NaN


def parameter(value: float, x: Array) -> Any:
    """Returns a number parameter as an op on ``x`` sees it: rounded to the accumulator type of ``x``."""
    accumulator = DType.of(np.asarray(x)).accumulator.numpy.type
    return wide(np.asarray(accumulator(value)))[()]


def is_float(x: Array) -> bool:
    dtype = np.asarray(x).dtype
    return dtype == np.longdouble or DType.of(dtype).is_float


def unary(exact: Callable[[Array], Array], x: Array) -> Array:
    """Returns ``exact`` of the widened floats, or of integers as they are."""
    with np.errstate(all="ignore"):
        return np.asarray(exact(wide(x) if is_float(x) else np.asarray(x)))


def binary(exact: Callable[[Array, Array], Array], a: Array, b: Array) -> Array:
    """Returns ``exact`` of two widened float operands, or of integers as they are (they wrap)."""
    floats = is_float(a)
    with np.errstate(all="ignore"):
        return np.asarray(exact(wide(a), wide(b)) if floats else exact(np.asarray(a), np.asarray(b)))


def over_axes(x: Array, axes: int | tuple[int, ...] | None) -> Array:
    """Returns ``x`` with the reduced axes made one last axis, in their logical order; None is all."""
    chosen = range(x.ndim) if axes is None else ((axes,) if isinstance(axes, int) else axes)
    reduced = sorted(axis % x.ndim for axis in chosen)
    kept = [axis for axis in range(x.ndim) if axis not in reduced]
    moved = np.transpose(x, (*kept, *reduced))
    count = int(np.prod([x.shape[axis] for axis in reduced], dtype=np.int64))
    return moved.reshape(*(x.shape[axis] for axis in kept), count)


def kept_shape(x: Array, axes: int | tuple[int, ...] | None) -> tuple[int, ...]:
    """Returns the shape of a reduction that keeps reduced axes as 1."""
    chosen = range(x.ndim) if axes is None else ((axes,) if isinstance(axes, int) else axes)
    reduced = {axis % x.ndim for axis in chosen}
    return tuple(1 if axis in reduced else extent for axis, extent in enumerate(x.shape))
