"""Kernels of log_softmax."""

from functools import partial

from fuelvk.graph.types import PrimitiveId
from fuelvk.kernels.claims import STRICT_LOG_SOFTMAX
from fuelvk.kernels.costs import cost_norm_family_cpu, cost_softmax_vulkan
from fuelvk.kernels.ops._rows import row_op

IMPLS = row_op(
    PrimitiveId("log_softmax"),
    1,
    wrapper=__file__,
    cpu_cost=partial(cost_norm_family_cpu, kind="softmax"),
    vulkan_cost=cost_softmax_vulkan,
    precision=STRICT_LOG_SOFTMAX,
    passes=3,
)
