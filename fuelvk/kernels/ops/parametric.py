"""Kernels of the pointwise primitives with parameters: affine, clamp, powi."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import Any

from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.graph.types import OpId
from fuelvk.kernels.claims import STRICT_AFFINE, STRICT_CORRECTLY_ROUNDED, STRICT_POWI
from fuelvk.kernels.ops._pointwise import PAIRS_AND_WIDE, Numbers, Words, pointwise
from fuelvk.kernels.ops._rows import scalar_words
from fuelvk.kernels.types import PrecisionGuarantee, Registration

_POWI = struct.Struct("<2I8x")


def _affine(params: Mapping[str, Any]) -> tuple[float, float]:
    return params["mul"], params["add"]


def _clamp(params: Mapping[str, Any]) -> tuple[float, float]:
    """A bound that is not there is an infinity, which nothing lies beyond."""
    low, high = params["min"], params["max"]
    return -math.inf if low is None else low, math.inf if high is None else high


def _powi(params: Mapping[str, Any]) -> tuple[float, ...]:
    return (params["exp"],)


def _scalars(numbers: Numbers, dtype: DType) -> Words:
    return lambda params: b"".join(scalar_words(v, dtype) for v in numbers(params))


def _exponent(params: Mapping[str, Any]) -> bytes:
    return _POWI.pack(abs(params["exp"]), params["exp"] < 0)


_TABLE: tuple[tuple[str, Numbers, PrecisionGuarantee], ...] = (
    ("affine", _affine, STRICT_AFFINE),
    ("clamp", _clamp, STRICT_CORRECTLY_ROUNDED),
    ("powi", _powi, STRICT_POWI),
)


def _rows(op: str, numbers: Numbers, precision: PrecisionGuarantee, dtype: DType) -> tuple[Registration, ...]:
    return pointwise(
        op,
        dtype,
        1,
        "pointwise/parametric",
        precision=precision,
        wrapper=__file__,
        shapes=PAIRS_AND_WIDE,
        words=_exponent if op == "powi" else _scalars(numbers, dtype),
        numbers=numbers,
    )


def affine_rows(dtype: DType, *, op_id: OpId, wrapper: str) -> tuple[Registration, ...]:
    """Returns the rows of an op that is affine under another id."""
    words = _scalars(_affine, dtype)
    return pointwise(
        "affine",
        dtype,
        1,
        "pointwise/parametric",
        precision=STRICT_AFFINE,
        wrapper=wrapper,
        shapes=PAIRS_AND_WIDE,
        words=words,
        numbers=_affine,
        op_id=op_id,
    )


IMPLS = tuple(
    row
    for op, numbers, precision in _TABLE
    for dtype in FLOATS
    for row in _rows(op, numbers, precision, dtype)
)
