"""The normal distribution function in float64 or longdouble, accurate relatively in both tails.

With z = |x|/sqrt(2): below 1.5 the series erf z = 2/sqrt(pi) exp(-z^2) sum 2^n z^(2n+1) / (1*3*..*(2n+1)),
all of whose terms are positive; above it the continued fraction
erfc z = exp(-z^2)/sqrt(pi) / (z + (1/2)/(z + (2/2)/(z + (3/2)/(z + ...)))) (Abramowitz and Stegun 7.1.6, 7.1.14).
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_SWITCH = 1.5
_SERIES_TERMS = 60
_FRACTION_DEPTH = 220


def _half_gauss(x: Array) -> Array:
    """exp(-x^2/2): x is cut so that both exponents are exact products, since an error there is multiplied by them."""
    head = np.round(x * 2.0**20) / 2.0**20
    result: Array = np.exp(-head * head / 2) * np.exp(-(x - head) * (x + head) / 2)
    return result


def upper_tail(x: Array) -> Array:
    """Returns P(X > x) for a standard normal X and x >= 0; x is float64 or longdouble."""
    kind = x.dtype.type
    root_half, root_pi = np.sqrt(kind(0.5)), np.sqrt(4 * np.arctan(kind(1)))
    finite = np.where(np.isfinite(x), np.minimum(x, 200), 0)
    z, gauss = finite * root_half, _half_gauss(finite)

    near = np.minimum(z, _SWITCH)
    term, total = near.copy(), near.copy()
    for n in range(1, _SERIES_TERMS):
        term = term * (2 * near * near / kind(2 * n + 1))
        total = total + term
    by_series = kind(0.5) - gauss * total / root_pi

    far = np.maximum(z, _SWITCH)
    below = far.copy()
    for n in range(_FRACTION_DEPTH, 0, -1):
        below = far + kind(n) / 2 / below
    by_fraction = gauss / (2 * root_pi * below)

    tail = np.where(z < _SWITCH, by_series, by_fraction)
    result: Array = np.where(np.isnan(x), x, np.where(np.isinf(x), kind(0), tail))
    return result


def cdf(x: Array) -> Array:
    """Returns P(X <= x) for a standard normal X."""
    tail = upper_tail(np.abs(x))
    result: Array = np.where(x < 0, tail, 1 - tail)
    return result


def erf(x: Array) -> Array:
    """Returns the error function of float64 or longdouble: the series near zero, the tail beyond."""
    kind = x.dtype.type
    size = np.abs(x)
    near = np.minimum(size, _SWITCH)
    head = np.round(near * 2.0**20) / 2.0**20
    term, total = near.copy(), near.copy()
    for n in range(1, _SERIES_TERMS):
        term = term * (2 * near * near / kind(2 * n + 1))
        total = total + term
    gauss = np.exp(-head * head) * np.exp(-(near - head) * (near + head))
    by_series = 2 * gauss * total / np.sqrt(4 * np.arctan(kind(1)))
    by_tail = 1 - 2 * upper_tail(size * np.sqrt(kind(2)))
    result: Array = np.copysign(np.where(size < _SWITCH, by_series, by_tail), x)
    return result
