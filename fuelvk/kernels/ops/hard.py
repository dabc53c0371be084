"""Kernels of hard_sigmoid and hard_swish."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.kernels.claims import STRICT_HARD_SIGMOID, STRICT_HARD_SWISH
from fuelvk.kernels.ops._pointwise import PAIRS_AND_WIDE, Words, pointwise
from fuelvk.kernels.ops._rows import scalar_words
from fuelvk.kernels.types import Registration


def _line(params: Mapping[str, Any]) -> tuple[float, float]:
    return params["alpha"], params["beta"]


def _line_words(dtype: DType) -> Words:
    return lambda params: b"".join(scalar_words(v, dtype) for v in _line(params))


def _nothing(params: Mapping[str, Any]) -> tuple[float, ...]:
    return ()


def _rows(dtype: DType) -> tuple[Registration, ...]:
    stem = "pointwise/parametric"
    return (
        *pointwise(
            "hard_sigmoid", dtype, 1, stem, precision=STRICT_HARD_SIGMOID, wrapper=__file__, shapes=PAIRS_AND_WIDE,
            words=_line_words(dtype), numbers=_line,
        ),
        *pointwise(
            "hard_swish", dtype, 1, stem, precision=STRICT_HARD_SWISH, wrapper=__file__, shapes=PAIRS_AND_WIDE,
            words=lambda params: bytes(16), numbers=_nothing,
        ),
    )  # fmt: skip


IMPLS = tuple(row for dtype in FLOATS for row in _rows(dtype))
