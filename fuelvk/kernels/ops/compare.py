"""Kernels of the comparisons: a byte 0 or 1 for each pair."""

from fuelvk.base.dtypes import FLOATS, INTEGERS, DType
from fuelvk.kernels._vulkan import ShaderRef, spirv
from fuelvk.kernels.claims import STRICT_EXACT
from fuelvk.kernels.ops._pointwise import pointwise

_OPS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


def _bytewise(op: str, dtype: DType) -> ShaderRef:
    if dtype.is_float:
        return spirv("pointwise/compare_floats", op, dtype=dtype)
    return spirv("pointwise/compare_integers", op, bytes=dtype.size)


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
