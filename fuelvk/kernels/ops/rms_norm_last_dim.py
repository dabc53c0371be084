"""Kernels of RMS_NORM_LAST_DIM."""

from functools import partial

from fuelvk.graph.registry import FusedOps
from fuelvk.kernels.costs import cost_norm_family_cpu, cost_rms_norm_vulkan
from fuelvk.kernels.ops._rows import row_op
from fuelvk.kernels.row_claims import STRICT_RMS_NORM

IMPLS = row_op(
    FusedOps.RMS_NORM_LAST_DIM,
    2,
    wrapper=__file__,
    cpu_cost=partial(cost_norm_family_cpu, kind="rms"),
    vulkan_cost=cost_rms_norm_vulkan,
    precision=STRICT_RMS_NORM,
    passes=2,
)
