"""The three table rows of a movement op for one dtype tuple."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fuelvk.base.dtypes import DType
from fuelvk.graph.types import PrimitiveId
from fuelvk.kernels._cpu import c_kernel, numpy_reference
from fuelvk.kernels._vulkan import CONTIGUOUS, ShaderRef, vulkan
from fuelvk.kernels.claims import STRICT_EXACT
from fuelvk.kernels.ops._elements import also_of
from fuelvk.kernels.primitive_costs import primitive_cost_cpu, primitive_cost_vulkan
from fuelvk.kernels.types import Admits, KernelCaps, Registration


def movement(
    op: str,
    dtypes: tuple[DType, ...],
    *,
    on_vulkan: Callable[..., None],
    on_cpu: Callable[..., None],
    shader: ShaderRef,
    optional: Sequence[ShaderRef],
    function: str,
    wrapper: str,
    admits: Admits,
    caps: KernelCaps = CONTIGUOUS,
) -> tuple[Registration, ...]:
    """Returns the Vulkan, C and NumPy rows; ``optional`` shaders are used only where a device has them."""
    op_id = PrimitiveId(op)
    row = vulkan(
        op_id,
        dtypes,
        on_vulkan,
        shaders=(shader,),
        cost=primitive_cost_vulkan(op, dtypes),
        precision=STRICT_EXACT,
        wrapper=wrapper,
        caps=caps,
        admits=admits,
    )
    cost = primitive_cost_cpu(op, dtypes)
    return (
        also_of(row, *optional),
        c_kernel(
            op_id, dtypes, on_cpu, functions=(function,), cost=cost, precision=STRICT_EXACT, wrapper=wrapper
        ),
        numpy_reference(op_id, dtypes, cost=cost, precision=STRICT_EXACT),
    )
