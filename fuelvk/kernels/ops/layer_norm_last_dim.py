"""Kernels of LAYER_NORM_LAST_DIM."""

from functools import partial

from fuelvk.graph.registry import FusedOps
from fuelvk.kernels.costs import cost_layer_norm_vulkan, cost_norm_family_cpu
from fuelvk.kernels.ops._rows import row_op
from fuelvk.kernels.row_claims import STRICT_LAYER_NORM

IMPLS = row_op(
    FusedOps.LAYER_NORM_LAST_DIM,
    3,
    wrapper=__file__,
    cpu_cost=partial(cost_norm_family_cpu, kind="layer"),
    vulkan_cost=cost_layer_norm_vulkan,
    precision=STRICT_LAYER_NORM,
    passes=3,
)
