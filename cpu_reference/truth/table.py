"""The functions of the sweep as a table: how far the double truth errs, and the inputs it does not cover."""

from __future__ import annotations

import enum
from dataclasses import dataclass

INF, NINF, NAN = 0x7F800000, 0xFF800000, 0x7FC00000
ZERO, NZERO, ONE, NONE = 0x00000000, 0x80000000, 0x3F800000, 0xBF800000
HALF = 0x3F000000
LN2 = 0x3F317218


class Kind(enum.Enum):
    """What the results of a flat range are."""

    CONSTANT = "one float"
    NAN = "NaN, whatever its payload"
    UP_HALF = "half of a subnormal or a number just above, and a little more: ties go up"


@dataclass(frozen=True, slots=True)
class Flat:
    """Inputs, as bits from ``first`` to ``last``, whose result is known without computing it."""

    first: int
    last: int
    kind: Kind
    value: int = 0


@dataclass(frozen=True, slots=True)
class Function:
    """A function of one F32 input. ``slack`` bounds the relative error of its double truth."""

    slack: float
    flats: tuple[Flat, ...]


# Four units of the last place of a double are 2^-50; the rest is margin.
_PLAIN = 2.0**-46
# The argument of an exponential or of erfc, rounded to double, is multiplied by up to 200 in the result.
_TAIL = 2.0**-42


def _at(bits: int, value: int) -> Flat:
    return Flat(bits, bits, Kind.CONSTANT, value)


def _nan(first: int, last: int) -> Flat:
    return Flat(first, last, Kind.NAN)


def _function(
    plus_zero: int, minus_zero: int, plus_inf: int, minus_inf: int, slack: float = _PLAIN
) -> Function:
    """A function of the whole line, by its values at the zeros and the infinities."""
    limits = [_nan(b, b) if v == NAN else _at(b, v) for b, v in ((INF, plus_inf), (NINF, minus_inf))]
    nans = [_nan(INF + 1, 0x7FFFFFFF), _nan(NINF + 1, 0xFFFFFFFF)]
    flats = [_at(ZERO, plus_zero), _at(NZERO, minus_zero), *limits, *nans]
    return Function(slack, tuple(sorted(flats, key=lambda f: f.first)))


def _from_zero(plus_zero: int, minus_zero: int, plus_inf: int) -> Function:
    """A function of positive numbers, NaN below."""
    flats = (
        _at(ZERO, plus_zero), _at(INF, plus_inf), _nan(INF + 1, 0x7FFFFFFF), _at(NZERO, minus_zero),
        _nan(NZERO + 1, 0xFFFFFFFF),
    )  # fmt: skip
    return Function(_PLAIN, flats)


def _halving(slack: float) -> Function:
    """x times something just above 1/2 near zero: x/2 + c x^2, c > 0. Halves of |x| < 2^-125 may be ties."""
    last = 0x00FFFFFF
    plain = _function(ZERO, NZERO, INF, NZERO, slack)
    zeros = (ZERO, NZERO)
    flats = [f for f in plain.flats if f.first not in zeros]
    flats += [Flat(z, z | last, Kind.UP_HALF) for z in zeros]
    return Function(slack, tuple(sorted(flats, key=lambda f: f.first)))


def _log1p() -> Function:
    flats = (
        _at(ZERO, ZERO), _at(INF, INF), _nan(INF + 1, 0x7FFFFFFF), _at(NZERO, NZERO), _at(NONE, NINF),
        _nan(NONE + 1, 0xFFFFFFFF),
    )  # fmt: skip
    return Function(_PLAIN, flats)


FUNCTIONS: dict[str, Function] = {
    "exp": _function(ONE, ONE, INF, ZERO),
    "exp2": _function(ONE, ONE, INF, ZERO),
    "expm1": _function(ZERO, NZERO, INF, NONE),
    "log": _from_zero(NINF, NINF, INF),
    "log2": _from_zero(NINF, NINF, INF),
    "log1p": _log1p(),
    "sin": _function(ZERO, NZERO, NAN, NAN),
    "cos": _function(ONE, ONE, NAN, NAN),
    "tanh": _function(ZERO, NZERO, ONE, NONE),
    "sigmoid": _function(HALF, HALF, ONE, ZERO),
    "silu": _halving(_PLAIN),
    "softplus": _function(LN2, LN2, INF, ZERO),
    "erf": _function(ZERO, NZERO, ONE, NONE),
    "gelu": _halving(_TAIL),
    "gelu_erf": _halving(_TAIL),
    "rsqrt": _from_zero(INF, NINF, ZERO),
    "recip": _function(INF, NINF, ZERO, NZERO),
    "sqrt": _from_zero(ZERO, NZERO, INF),
    "sqr": _function(ZERO, ZERO, INF, INF),
}
"""Every function of the sweep by the name of its op."""
