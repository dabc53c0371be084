"""Kernels over images [.., H, W]: the table rows, and grids of one invocation an element."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fuelvk.base.dtypes import DType
from fuelvk.base.shapes import elements
from fuelvk.graph.types import PrimitiveId
from fuelvk.kernels._cpu import c_kernel, numpy_reference
from fuelvk.kernels._vulkan import ShaderRef, vulkan
from fuelvk.kernels.costs import VULKAN_LAUNCH_NS
from fuelvk.kernels.ops._rows import fits_index
from fuelvk.kernels.primitive_costs import CPU_LAUNCH_NS
from fuelvk.kernels.types import CostEstimate, CostFunction, PrecisionGuarantee, Registration, Shapes

# Operations of one element of the result, from the parameters.
Operations = Callable[[Mapping[str, Any]], int]


def image_cost(operations: Operations, dtype: DType, overhead_ns: int) -> CostFunction:
    """Returns the cost of an op that reads its inputs and writes its output once; shapes end with the output's."""

    def cost(shapes: Shapes, params: Mapping[str, Any], capabilities: Any = None) -> CostEstimate:
        out = shapes[-1]
        if out is None or any(s is None for s in shapes):
            return CostEstimate()
        moved = sum(elements(s) for s in shapes if s is not None) * dtype.size
        return CostEstimate(operations(params) * elements(out), moved, overhead_ns)

    return cost


def image_rows(
    op: str,
    dtype: DType,
    inputs: int,
    *,
    on_vulkan: Callable[..., None],
    on_cpu: Callable[..., None],
    shader: ShaderRef,
    operations: Operations,
    precision: PrecisionGuarantee,
    wrapper: str,
) -> tuple[Registration, ...]:
    """Returns the Vulkan, C and NumPy rows of an op whose operands share one dtype."""
    op_id, dtypes, function = PrimitiveId(op), (dtype,) * (inputs + 1), f"{op}_{dtype.key}"
    cost = image_cost(operations, dtype, CPU_LAUNCH_NS)
    return (
        vulkan(
            op_id,
            dtypes,
            on_vulkan,
            shaders=(shader,),
            cost=image_cost(operations, dtype, VULKAN_LAUNCH_NS),
            precision=precision,
            wrapper=wrapper,
            admits=fits_index,
        ),
        c_kernel(
            op_id, dtypes, on_cpu, functions=(function,), cost=cost, precision=precision, wrapper=wrapper
        ),
        numpy_reference(op_id, dtypes, cost=cost),
    )
