"""Kernels of ROPE."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from cpu_reference import c as ckernels
from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.base.shapes import Layout, elements
from fuelvk.graph.registry import FusedOps
from fuelvk.kernels._cpu import c_kernel, numpy_reference
from fuelvk.kernels._vulkan import ShaderRef, VulkanContext, spirv, vulkan
from fuelvk.kernels.costs import cost_rope_cpu, cost_rope_vulkan
from fuelvk.kernels.ops._division import WHOLE, Plan, axes, divided, divisible
from fuelvk.kernels.ops._elements import also_of, copy_shaders, grid, wide_or_small
from fuelvk.kernels.row_claims import STRICT_ROPE
from fuelvk.kernels.types import Registration, Shapes

if TYPE_CHECKING:
    from fuelvk.vulkan import Buffer

_PARAMS = struct.Struct("<10I")


def _division(shapes: Shapes, params: Mapping[str, Any]) -> Plan:
    """Positions are the last axis but one of x and the first of the tables."""
    x = shapes[0]
    assert x is not None
    table = (len(x) - 2, WHOLE)
    return axes(x, -1), table, table, axes(x, -1)


def _cpu(dtype: DType) -> Callable[..., None]:
    def kernel(inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: Any) -> None:
        (x, cos, sin), y = inputs, outputs[0]
        if x.size:
            length, d = x.shape[-2:]
            rows = x.size // d
            interleaved = int(params["interleaved"])
            ckernels.call(f"rope_{dtype.key}", x, cos, sin, y, rows, length, d, cos.shape[1], interleaved)

    return kernel


def _vulkan(small: ShaderRef, wide: ShaderRef) -> Callable[..., None]:
    def kernel(
        inputs: Sequence[Buffer],
        outputs: Sequence[Buffer],
        layouts: Sequence[Layout],
        params: Mapping[str, Any],
        context: VulkanContext,
    ) -> None:
        x, cos = layouts[:2]
        if 0 in x.shape:
            return
        pairs = elements(x.shape) // 2
        shader = wide_or_small(small, wide, context.caps, pairs)
        groups = grid(shader, context, pairs)
        length, d = x.shape[-2:]
        words = (pairs, groups[0], d // 2, length, cos.shape[1], int(params["interleaved"]))
        context.dispatch(
            shader, groups, (*inputs, outputs[0]), 0b1000, _PARAMS.pack(*words, *(v.offset for v in layouts))
        )

    return kernel


def _rows(dtype: DType) -> tuple[Registration, ...]:
    dtypes = (dtype,) * 4
    small, wide = (spirv("rows/rope", "rope", dtype=dtype, shape=shape) for shape in ("small", "wide"))
    row = vulkan(
        FusedOps.ROPE,
        dtypes,
        divided(_vulkan(small, wide), _division, dtypes),
        shaders=(small,),
        cost=partial(cost_rope_vulkan, dtype=dtype),
        precision=STRICT_ROPE,
        wrapper=__file__,
        admits=divisible(_division, dtypes),
    )
    return (
        also_of(row, wide, *copy_shaders()),
        c_kernel(
            FusedOps.ROPE,
            dtypes,
            _cpu(dtype),
            functions=(f"rope_{dtype.key}",),
            cost=cost_rope_cpu,
            precision=STRICT_ROPE,
            wrapper=__file__,
        ),
        numpy_reference(FusedOps.ROPE, dtypes, cost=cost_rope_cpu),
    )


IMPLS = tuple(row for dtype in FLOATS for row in _rows(dtype))
