"""Kernels of SOFTMAX_LAST_DIM."""

from functools import partial

from fuelvk.graph.registry import FusedOps
from fuelvk.kernels.costs import cost_norm_family_cpu, cost_softmax_vulkan
from fuelvk.kernels.ops._rows import row_op
from fuelvk.kernels.row_claims import STRICT_SOFTMAX

IMPLS = row_op(
    FusedOps.SOFTMAX_LAST_DIM,
    1,
    wrapper=__file__,
    cpu_cost=partial(cost_norm_family_cpu, kind="softmax"),
    vulkan_cost=cost_softmax_vulkan,
    precision=STRICT_SOFTMAX,
    passes=3,
)
