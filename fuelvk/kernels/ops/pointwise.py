"""Kernels of the pointwise primitives with one and two inputs of the result's dtype."""

from __future__ import annotations

from fuelvk.base.dtypes import FLOATS, HALVES, INTEGERS, DType
from fuelvk.kernels.claims import STRICT_CORRECTLY_ROUNDED, STRICT_EXACT, STRICT_ONE_ULP
from fuelvk.kernels.ops._pointwise import pointwise
from fuelvk.kernels.types import PrecisionGuarantee, Registration

_EXACT_UNARY = ("neg", "abs", "relu", "sign", "step")
_ROUNDED_UNARY = ("sqr", "sqrt", "recip", "rsqrt")
_TRANSCENDENTAL = ("exp", "tanh", "gelu_erf", "erf")
# In F32 and F64 not all results are the nearest; rounded to a 16-bit type all are, as all inputs show.
_ROUNDED_HALVES = ("rsqrt", "erf")
_ROUNDED_BINARY = ("add", "sub", "mul", "div")
_EXTREMA = ("maximum", "minimum")
_INTEGER_BINARY = ("add", "sub", "mul", "maximum", "minimum")


def _claim(op: str, dtype: DType) -> PrecisionGuarantee:
    """Exact where no bit is rounded; else rounded once, but for functions that stop at 1 ULP.

    F32 has more than twice the bits of both 16-bit types and two to spare, so that rounding an F32 sum, product or
    root once more gives the correctly rounded 16-bit one (S. Figueroa, When is double rounding innocuous?, 1995);
    quotients that are subnormal in BF16 are not covered.
    """
    if dtype.is_integer or op in (*_EXACT_UNARY, *_EXTREMA):
        return STRICT_EXACT
    if (
        op in ("tanh", "gelu_erf")
        or (op == "exp" and dtype is DType.F64)
        or (op == "div" and dtype is DType.BF16)
        or (op in _ROUNDED_HALVES and dtype not in HALVES)
    ):
        return STRICT_ONE_ULP
    return STRICT_CORRECTLY_ROUNDED


def _rows(op: str, dtype: DType, inputs: int) -> tuple[Registration, ...]:
    stem = "pointwise/integer" if dtype.is_integer else f"pointwise/{'unary' if inputs == 1 else 'binary'}"
    return pointwise(
        op, dtype, inputs, stem, precision=_claim(op, dtype), wrapper=__file__, shapes=dtype.is_float
    )


_TABLE = (
    *((op, dtype, 1) for op in (*_EXACT_UNARY, *_ROUNDED_UNARY, *_TRANSCENDENTAL) for dtype in FLOATS),
    *((op, dtype, 1) for op in ("neg", "abs", "sign") for dtype in INTEGERS),
    *((op, dtype, 2) for op in (*_ROUNDED_BINARY, *_EXTREMA) for dtype in FLOATS),
    *((op, dtype, 2) for op in _INTEGER_BINARY for dtype in INTEGERS),
)

IMPLS = tuple(row for op, dtype, inputs in _TABLE for row in _rows(op, dtype, inputs))
