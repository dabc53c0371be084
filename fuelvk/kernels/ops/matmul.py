"""Kernels of the primitive matmul."""

from fuelvk.base.dtypes import FLOATS
from fuelvk.graph.types import PrimitiveId
from fuelvk.kernels.ops._product import rows

IMPLS = tuple(row for dtype in FLOATS for row in rows(PrimitiveId("matmul"), dtype, has_bias=False))
