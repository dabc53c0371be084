"""Costs of the primitives' kernels. Shapes are the inputs' and then the output's, as routing passes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fuelvk.base.dtypes import DType
from fuelvk.base.shapes import elements
from fuelvk.kernels.costs import VULKAN_LAUNCH_NS, Params
from fuelvk.kernels.types import CostEstimate, CostFunction, Shapes

CPU_LAUNCH_NS = 50

# Operations per output element of the pointwise ops; what is not listed counts 1.
OPERATIONS = {"div": 4, "sqrt": 6, "exp": 60, "tanh": 90, "gelu_erf": 120, "gelu": 110, "cast": 1}
OPERATIONS |= {"rsqrt": 25, "recip": 20, "erf": 110, "affine": 2, "clamp": 2}
OPERATIONS |= dict.fromkeys(
    ("triu", "tril", "flip", "roll", "pad", "write_slice", "masked_fill", "gather"), 0
)
OPERATIONS |= {"cumsum": 2, "scatter_add": 1, "index_add": 1}
OPERATIONS |= {"copy": 0, "concat": 0, "index_select": 0}
PICKING = frozenset({"index_select", "gather"})
REDUCTIONS = frozenset({"sum", "mean", "prod", "max", "min", "argmax", "argmin"})


def _power_operations(exponent: int) -> int:
    """Products of binary exponentiation, and a division for a negative exponent."""
    n = abs(exponent)
    return max(n.bit_length() + n.bit_count() - 1, 1) + (OPERATIONS["recip"] if exponent < 0 else 0)


def primitive_cost(name: str, dtypes: Sequence[DType], *, overhead_ns: int, work: float = 1) -> CostFunction:
    """Returns the cost of a primitive whose kernel has these dtypes (inputs, then the output).

    Bytes are every input and the output once. Operations: 2K per output of a product, one per input element
    of a reduction, and per output element otherwise what OPERATIONS says, ``work`` times.
    """
    *given, result = (d.size for d in dtypes)

    def cost(shapes: Shapes, params: Params, capabilities: Any = None) -> CostEstimate:
        *inputs, out = shapes
        if out is None or not inputs or inputs[0] is None:
            return CostEstimate()
        sizes = [*given, *given[-1:] * (len(inputs) - len(given))]  # a variadic input repeats the last
        if name in PICKING:
            sizes[0] = 0  # only what is picked is read, once per element of the result
        read = sum(elements(s) * size for s, size in zip(inputs, sizes, strict=True) if s is not None)
        read += elements(out) * given[0] if name in PICKING else 0
        if name == "matmul":
            flops = 2 * elements(out) * inputs[0][-1]
        elif name == "powi":
            flops = _power_operations(params["exp"]) * elements(out)
        elif name in REDUCTIONS:
            flops = elements(inputs[0])
        else:
            flops = round(OPERATIONS.get(name, 1) * work * elements(out))
        return CostEstimate(flops, read + elements(out) * result, overhead_ns)

    return cost


def primitive_cost_cpu(name: str, dtypes: Sequence[DType]) -> CostFunction:
    """Returns a primitive's cost on the CPU."""
    return primitive_cost(name, dtypes, overhead_ns=CPU_LAUNCH_NS)


def primitive_cost_vulkan(name: str, dtypes: Sequence[DType], work: float = 1) -> CostFunction:
    """Returns a primitive's cost on a Vulkan device, for a kernel of ``work`` times the op's own operations."""
    return primitive_cost(name, dtypes, overhead_ns=VULKAN_LAUNCH_NS, work=work)
