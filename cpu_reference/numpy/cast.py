"""Conversion: floats round once to nearest even, float to integer truncates and saturates, NaN gives 0 there,
integer to integer wraps, anything to BOOL is x != 0; F8E4M3 has no infinities and saturates at 448.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cpu_reference.numpy._common import Array
from fuelvk.base.dtypes import DType

# Per float format: bits of precision, exponent of the smallest normal number, largest finite number.
_FORMATS = {
    DType.F64: (53, -1022, float(np.finfo(np.float64).max)),
    DType.F32: (24, -126, float(np.finfo(np.float32).max)),
    DType.F16: (11, -14, 65504.0),
    DType.BF16: (8, -126, 2.0**127 * (2 - 2.0**-7)),
    DType.F8E4M3: (4, -6, 448.0),
}


def round_to_format(x: Array, target: DType) -> Array:
    """Returns float64 ``x`` rounded once, to nearest even, to the numbers of ``target``; still as float64.

    The spacing of the target at x is a power of two, so dividing by it and multiplying back are exact.
    """
    precision, low, largest = _FORMATS[target]
    if target is DType.F64:
        return x
    finite = np.where(np.isfinite(x), x, 0)
    exponent = np.frexp(finite)[1] - 1
    spacing = np.maximum(exponent, low) - (precision - 1)
    # Two exact steps: one power of two may lie outside float64 where its halves do not.
    scaled = np.ldexp(np.ldexp(finite, -spacing // 2), -spacing - (-spacing // 2))
    rounded = np.ldexp(np.ldexp(np.rint(scaled), spacing // 2), spacing - spacing // 2)
    beyond = np.abs(rounded) > largest
    end = largest if target is DType.F8E4M3 else np.inf
    rounded = np.where(beyond | np.isinf(x), np.copysign(end, x), np.copysign(rounded, x))
    return np.where(np.isnan(x), np.nan, rounded)


def _round_integer(value: int, precision: int) -> float:
    """Returns a Python integer rounded to ``precision`` bits, to nearest even, as a float."""
    size, cut = abs(value), max(abs(value).bit_length() - precision, 0)
    quotient, rest = size >> cut, size & ((1 << cut) - 1)
    half = (1 << cut) >> 1
    if rest > half or (rest == half and rest and quotient & 1):
        quotient += 1
    return math.copysign(math.ldexp(quotient, cut), value)


def _integers_to_float(x: Array, target: DType) -> Array:
    precision = _FORMATS[target][0]
    exact = x.astype(np.float64)
    large = np.abs(exact) >= 2.0**53
    if large.any():
        exact[large] = [_round_integer(int(v), precision) for v in x[large]]
    return round_to_format(exact, target)


def _floats_to_integer(x: Array, target: DType) -> Array:
    info = np.iinfo(target.numpy)
    cut = np.trunc(np.where(np.isnan(x), 0, x))
    inside = (cut > float(info.min)) & (cut < float(info.max))
    result = np.where(inside, cut, 0).astype(target.numpy)
    result[cut >= float(info.max)] = info.max
    result[cut <= float(info.min)] = info.min
    return result


def _stored(x: Array, target: DType) -> Array:
    """Float64 numbers that ``target`` has, as arrays of it."""
    if target is DType.F8E4M3:
        return _f8_bytes(x).view(target.numpy)
    if target is DType.BF16:
        bits = x.astype(np.float32).view(np.uint32)
        return np.where(np.isnan(x), 0x7FC0, bits >> 16).astype(np.uint16).view(target.numpy)
    return x.astype(target.numpy)


def _f8_bytes(x: Array) -> Array:
    size = np.where(np.isnan(x), 0, np.abs(x))
    exponent = np.maximum(np.frexp(size)[1] - 1, -6)
    # 8..15 for normal numbers, below 8 for subnormal ones.
    steps = np.ldexp(size, 3 - exponent).astype(np.uint8)
    code = np.where(steps >= 8, ((exponent + 7) << 3) + steps - 8, steps)
    return (np.where(np.isnan(x), 0x7F, code) | np.where(np.signbit(x), 0x80, 0)).astype(np.uint8)


def reference(x: Array, *, dtype: Any) -> Array:
    x = np.asarray(x)
    source, target = DType.of(x), DType.of(dtype)
    with np.errstate(all="ignore"):
        if target is DType.BOOL:
            return np.asarray(x != 0)
        if not source.is_float:
            whole = x.astype(np.int64)
            if target.is_float:
                return _stored(_integers_to_float(whole, target), target)
            return whole.astype(target.numpy)
        exact = x.astype(np.float64)
        if target.is_float:
            return _stored(round_to_format(exact, target), target)
        return _floats_to_integer(exact, target)
