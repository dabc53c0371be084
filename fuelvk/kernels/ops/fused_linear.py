"""FUSED_LINEAR kernels."""

from fuelvk.base.dtypes import FLOATS
from fuelvk.graph.registry import FusedOps
from fuelvk.kernels.ops._product import rows

IMPLS = tuple(row for dtype in FLOATS for row in rows(FusedOps.FUSED_LINEAR, dtype, has_bias=True))
