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
from fuelvk.kernels.ops._division import Rule, divided, divisible, together
from fuelvk.kernels.ops._elements import EACH, also_of, copy_shaders
from fuelvk.kernels.ops._loops import within_loops
from fuelvk.kernels.primitive_costs import CPU_LAUNCH_NS
from fuelvk.kernels.types import CostEstimate, CostFunction, PrecisionGuarantee, Registration, Shapes

# Operations of one element of the result, from the parameters.
Operations = Callable[[Mapping[str, Any]], int]
# Iterations of an invocation for one element, from the shapes and the parameters.
Iterations = Callable[[Shapes, Mapping[str, Any]], int]
#: Planes are independent of each other.
PLANES_APART = together(-2, -1)


def _few(shapes: Shapes, params: Mapping[str, Any]) -> int:
    return 1


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
    division: Rule = PLANES_APART,
    iterations: Iterations = _few,
) -> tuple[Registration, ...]:
    """Returns the Vulkan, C and NumPy rows of an op whose operands share one dtype."""
    op_id, dtypes, function = PrimitiveId(op), (dtype,) * (inputs + 1), f"{op}_{dtype.key}"
    cost = image_cost(operations, dtype, CPU_LAUNCH_NS)
    loops = within_loops(lambda shapes, params: EACH * iterations(shapes, params))
    row = vulkan(
        op_id,
        dtypes,
        divided(on_vulkan, division, dtypes),
        shaders=(shader,),
        cost=image_cost(operations, dtype, VULKAN_LAUNCH_NS),
        precision=precision,
        wrapper=wrapper,
        admits=divisible(division, dtypes, also=loops),
    )
    return (
        also_of(row, *copy_shaders()),
        c_kernel(
            op_id, dtypes, on_cpu, functions=(function,), cost=cost, precision=precision, wrapper=wrapper
        ),
        numpy_reference(op_id, dtypes, cost=cost),
    )
