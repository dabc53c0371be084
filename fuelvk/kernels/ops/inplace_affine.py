"""Kernels of INPLACE_AFFINE: those of the primitive affine under its id."""

from fuelvk.base.dtypes import FLOATS
from fuelvk.graph.registry import FusedOps
from fuelvk.kernels.ops.parametric import affine_rows

IMPLS = tuple(
    row for dtype in FLOATS for row in affine_rows(dtype, op_id=FusedOps.INPLACE_AFFINE, wrapper=__file__)
)
