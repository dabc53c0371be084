"""Kernels of the pointwise primitives with one and two inputs of the result's dtype."""

from __future__ import annotations

from fuelvk.base.dtypes import FLOATS, INTEGERS, DType
from fuelvk.kernels.claims import STRICT_CORRECTLY_ROUNDED, STRICT_EXACT, STRICT_ONE_ULP
from fuelvk.kernels.ops._pointwise import PAIRS_AND_WIDE, WIDE, pointwise
from fuelvk.kernels.types import PrecisionGuarantee, Registration

_EXACT_UNARY = ("neg", "abs", "relu", "sign", "step")
_ROUNDED_UNARY = ("sqr",)
_ROUNDED_BINARY = ("add", "sub", "mul", "div")
_EXTREMA = ("maximum", "minimum")
_INTEGER_BINARY = ("add", "sub", "mul", "maximum", "minimum")

_WIDE_INTEGERS = (DType.I64, DType.I32)


def _claim(op: str, dtype: DType) -> PrecisionGuarantee:
    """Exact where no bit is rounded; else rounded once.

    F32 has more than twice the bits of both 16-bit types and two to spare, so that rounding an F32 sum or product
    once more gives the correctly rounded 16-bit one (S. Figueroa, When is double rounding innocuous?, 1995);
    quotients that are subnormal in BF16 are not covered.
    """
    if dtype.is_integer or op in (*_EXACT_UNARY, *_EXTREMA):
        return STRICT_EXACT
    if op == "div" and dtype is DType.BF16:
        return STRICT_ONE_ULP
    return STRICT_CORRECTLY_ROUNDED


def _rows(op: str, dtype: DType, inputs: int) -> tuple[Registration, ...]:
    stem = "pointwise/integer" if dtype.is_integer else f"pointwise/{'unary' if inputs == 1 else 'binary'}"
    shapes = PAIRS_AND_WIDE if dtype.is_float else WIDE if dtype in _WIDE_INTEGERS else ()
    return pointwise(op, dtype, inputs, stem, precision=_claim(op, dtype), wrapper=__file__, shapes=shapes)


_TABLE = (
    *((op, dtype, 1) for op in (*_EXACT_UNARY, *_ROUNDED_UNARY) for dtype in FLOATS),
    *((op, dtype, 1) for op in ("neg", "abs", "sign") for dtype in INTEGERS),
    *((op, dtype, 2) for op in (*_ROUNDED_BINARY, *_EXTREMA) for dtype in FLOATS),
    *((op, dtype, 2) for op in _INTEGER_BINARY for dtype in INTEGERS),
)

IMPLS = tuple(row for op, dtype, inputs in _TABLE for row in _rows(op, dtype, inputs))
