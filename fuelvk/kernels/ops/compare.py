"""Kernels of the comparisons: a byte 0 or 1 for each pair."""

from fuelvk.base.dtypes import FLOATS, INTEGERS, DType
from fuelvk.kernels._vulkan import ShaderRef, spirv
from fuelvk.kernels.claims import STRICT_EXACT
from fuelvk.kernels.ops._pointwise import pointwise

_OPS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
_BY_WORDS = (DType.F32, DType.F16, DType.BF16, DType.I32)


def _bytewise(op: str, dtype: DType) -> ShaderRef | None:
    return spirv("pointwise/compare_words", op, dtype=dtype) if dtype in _BY_WORDS else None


IMPLS = tuple(
    row
    for op in _OPS
    for dtype in (*FLOATS, *INTEGERS)
    for row in pointwise(
        op,
        dtype,
        2,
        "pointwise/compare",
        precision=STRICT_EXACT,
        wrapper=__file__,
        result=DType.BOOL,
        bytewise=_bytewise(op, dtype),
    )
)
