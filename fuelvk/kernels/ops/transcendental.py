"""Kernels of the elementary functions: correctly rounded, cheap and strict, the driver's own.

Rows are tried in order, so the fastest comes first; a strict request passes over all but the canonical one.
"""

from __future__ import annotations

from cpu_reference._sources import strict_table
from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.kernels.claims import STRICT_CORRECTLY_ROUNDED, STRICT_ONE_ULP
from fuelvk.kernels.ops._pointwise import WIDE, cpu_rows, shader_row
from fuelvk.kernels.types import PrecisionGuarantee, Registration

_STEMS = {
    "functions_exp": ("exp2", "expm1", "sigmoid", "silu", "softplus"),
    "functions_log": ("log", "log2", "log1p"),
    "functions_turn": ("sin", "cos"),
}


def _claim(op: str, dtype: DType) -> PrecisionGuarantee:
    return STRICT_CORRECTLY_ROUNDED if dtype is DType.F32 else STRICT_ONE_ULP


def _rows(stem: str, op: str, dtype: DType) -> tuple[Registration, ...]:
    claim = _claim(op, dtype)
    canonical = shader_row(
        op,
        dtype,
        1,
        f"pointwise/{stem}",
        precision=claim,
        wrapper=__file__,
        shapes=WIDE,
        table=strict_table,
    )
    return (canonical, *cpu_rows(op, dtype, 1, precision=claim, wrapper=__file__))


IMPLS = tuple(
    row for stem, ops in _STEMS.items() for op in ops for dtype in FLOATS for row in _rows(stem, op, dtype)
)
