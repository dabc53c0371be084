"""Kernels of the elementary functions, at three levels: the driver's own, cheap and strict, correctly rounded.

Implementations are tried in the order of their rows, so the fastest comes first: a tolerance takes the first whose
claim it admits, a strict request passes over all but the canonical one.
"""

from __future__ import annotations

from cpu_reference._sources import strict_table
from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.kernels.claims import STRICT_CORRECTLY_ROUNDED, STRICT_ONE_ULP
from fuelvk.kernels.driver_claims import CHEAP_ONE_ULP, driver_claim
from fuelvk.kernels.ops._pointwise import PAIRS_AND_WIDE, WIDE, cpu_rows, pointwise, shader_row
from fuelvk.kernels.types import Registration

_STEMS = {
    "functions_exp": ("exp", "exp2", "expm1", "sigmoid", "silu", "softplus"),
    "functions_log": ("log", "log2", "log1p"),
    "functions_turn": ("sin", "cos"),
    "functions_bell": ("tanh", "erf", "gelu", "gelu_erf"),
    "functions_root": ("rsqrt", "recip"),
}
_FUNCTIONS = tuple(op for ops in _STEMS.values() for op in ops)
# The strict reciprocal is correctly rounded in every type, and itself the cheap one; so is the square root.
_ROUNDED_EVERYWHERE = ("recip",)
_CHEAP = tuple(op for op in _FUNCTIONS if op not in _ROUNDED_EVERYWHERE)

# Operations of an element: a driver's function, the cheap one, as multiples of the op's own.
_DRIVER, _CHEAPER = 0.2, 0.5


def _driver(op: str, dtype: DType) -> Registration:
    return shader_row(
        op,
        dtype,
        1,
        "pointwise/functions_driver",
        precision=driver_claim(op, dtype),
        wrapper=__file__,
        shapes=WIDE,
        work=_DRIVER,
    )


def _cheap(op: str) -> Registration:
    return shader_row(
        op,
        DType.F32,
        1,
        "pointwise/functions_cheap",
        precision=CHEAP_ONE_ULP,
        wrapper=__file__,
        shapes=WIDE,
        table=strict_table,
        work=_CHEAPER,
    )


def _canonical(stem: str, op: str, dtype: DType) -> tuple[Registration, ...]:
    one_ulp = dtype is DType.F64 and op not in _ROUNDED_EVERYWHERE
    claim = STRICT_ONE_ULP if one_ulp else STRICT_CORRECTLY_ROUNDED
    row = shader_row(
        op,
        dtype,
        1,
        f"pointwise/{stem}",
        precision=claim,
        wrapper=__file__,
        shapes=WIDE,
        table=strict_table,
    )
    return (row, *cpu_rows(op, dtype, 1, precision=claim, wrapper=__file__))


IMPLS = (
    *(_driver(op, dtype) for op in (*_FUNCTIONS, "sqrt") for dtype in (DType.F32, DType.F16)),
    *(_cheap(op) for op in _CHEAP),
    *(
        row
        for stem, ops in _STEMS.items()
        for op in ops
        for dtype in FLOATS
        for row in _canonical(stem, op, dtype)
    ),
    *(
        row
        for dtype in FLOATS
        for row in pointwise(
            "sqrt",
            dtype,
            1,
            "pointwise/unary",
            precision=STRICT_CORRECTLY_ROUNDED,
            wrapper=__file__,
            shapes=PAIRS_AND_WIDE,
        )
    ),
)
