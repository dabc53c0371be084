"""F32 functions of one input with as many digits as it takes (mpmath), rounded to F32 once."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from fuelvk.base.errors import UnsupportedError

PRECISION = 320  # bits; the closest any input here comes to a boundary is about 2^-60, a tiny half 2^-150
_MANTISSA = 24
_LEAST = -149  # exponent of the smallest subnormal
_INFINITY = 0x7F800000


@cache
def functions() -> dict[str, Callable[[Any], Any]]:
    """Returns the functions on mpmath numbers; raises UnsupportedError where mpmath is missing."""
    try:
        from mpmath import mp, mpf
    except ImportError as error:
        raise UnsupportedError(
            "inputs near a boundary between two floats are settled by mpmath, which is not installed",
            seen=error,
            hint="pip install mpmath",
        ) from None
    mp.prec = PRECISION

    def logistic(x: Any) -> Any:
        return 1 / (1 + mp.exp(-x))

    twice = 2 * mp.sqrt(2 / mp.pi)
    cubic = mpf(44715) / 1000000
    return {
        "exp": mp.exp,
        "exp2": lambda x: mpf(2) ** x,
        "expm1": mp.expm1,
        "log": mp.log,
        "log2": lambda x: mp.log(x) / mp.ln2,
        "log1p": mp.log1p,
        "sin": mp.sin,
        "cos": mp.cos,
        "tanh": mp.tanh,
        "sigmoid": logistic,
        "silu": lambda x: x * logistic(x),
        "softplus": lambda x: mp.log1p(mp.exp(x)),
        "erf": mp.erf,
        "gelu": lambda x: x * logistic(twice * (x + cubic * x**3)),
        "gelu_erf": lambda x: x * mp.erfc(-x / mp.sqrt(2)) / 2,
        "rsqrt": lambda x: 1 / mp.sqrt(x),
        "recip": lambda x: 1 / x,
        "sqrt": mp.sqrt,
        "sqr": lambda x: x * x,
    }


def rounded(value: Any) -> int:
    """Returns the bits of the float nearest to an mpmath number, ties to even, overflow to infinity."""
    sign, mantissa, exponent = (int(part) for part in value._mpf_[:3])
    top = 0x80000000 if sign else 0
    length = exponent + mantissa.bit_length()
    if not mantissa or length < _LEAST:
        return top
    if length > 128:
        return top | _INFINITY
    place = max(length - _MANTISSA, _LEAST)  # of the result's last bit
    shift = place - exponent
    if shift <= 0:
        whole = mantissa << -shift
    else:
        whole, rest = mantissa >> shift, mantissa & ((1 << shift) - 1)
        half = 1 << (shift - 1)
        whole += rest > half or (rest == half and whole & 1)
    if whole >> _MANTISSA:
        whole, place = whole >> 1, place + 1
    if whole < 1 << (_MANTISSA - 1):
        return top | whole
    biased = place + _MANTISSA - 1 + 127
    return top | min(_INFINITY, (biased << (_MANTISSA - 1)) + (whole - (1 << (_MANTISSA - 1))))


def correctly_rounded(name: str, bits: int) -> tuple[int, Any]:
    """Returns the bits of the correctly rounded result for the float of these bits, and the exact value."""
    function = functions()[name]
    from mpmath import mp, mpf

    x = mpf(float(np.uint32(bits).view(np.float32)))
    with mp.workprec(PRECISION):
        value = function(x)
    return rounded(value), value


def error_in_ulps(bits: int, exact: Any) -> float:
    """Returns how far a float is from an mpmath number, in spacings of floats at that number."""
    from mpmath import mpf

    got = float(np.uint32(bits).view(np.float32))
    if math.isnan(got):
        return math.inf
    if math.isinf(got):
        if abs(exact) >= 2**128 and (exact > 0) == (got > 0):
            return 0.0
        got = math.copysign(2.0**128, got)
    _, mantissa, exponent, _ = exact._mpf_
    place = _LEAST if not mantissa else max(exponent + int(mantissa).bit_length() - _MANTISSA, _LEAST)
    return float(abs(mpf(got) - exact) / mpf(2) ** min(place, 128 - _MANTISSA))
