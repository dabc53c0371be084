"""Kernels of POWI_BACKWARD."""

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
from fuelvk.kernels.claims import STRICT_POWI_BACKWARD
from fuelvk.kernels.costs import cost_powi_backward_cpu, cost_powi_backward_vulkan
from fuelvk.kernels.ops._division import divided, divisible, together
from fuelvk.kernels.ops._elements import also_of, copy_shaders, grid, wide_or_small
from fuelvk.kernels.ops._rows import scalar_words
from fuelvk.kernels.types import Registration

if TYPE_CHECKING:
    from fuelvk.vulkan import Buffer

_PARAMS = struct.Struct("<8I8s")


def _cpu(dtype: DType) -> Callable[..., None]:
    def kernel(inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: Any) -> None:
        y = outputs[0]
        if y.size:
            ckernels.call(f"powi_backward_{dtype.key}", *inputs, y, y.size, params["exp"])

    return kernel


def _vulkan(small: ShaderRef, wide: ShaderRef, dtype: DType) -> Callable[..., None]:
    def kernel(
        inputs: Sequence[Buffer],
        outputs: Sequence[Buffer],
        layouts: Sequence[Layout],
        params: Mapping[str, Any],
        context: VulkanContext,
    ) -> None:
        count, exponent = elements(layouts[0].shape), params["exp"]
        if not count:
            return
        shader = wide_or_small(small, wide, context.caps, count)
        groups = grid(shader, context, count)
        kind, power = min(max(exponent, 0), 2) if exponent >= 0 else 2, exponent - 1
        words = (count, groups[0], *(v.offset for v in layouts), kind, abs(power), int(power < 0))
        context.dispatch(
            shader,
            groups,
            (*inputs, outputs[0]),
            0b100,
            _PARAMS.pack(*words, scalar_words(float(exponent), dtype)),
        )

    return kernel


def _rows(dtype: DType) -> tuple[Registration, ...]:
    dtypes = (dtype,) * 3
    stem, op = "pointwise/powi_backward", FusedOps.POWI_BACKWARD
    small, wide = (spirv(stem, "powi_backward", dtype=dtype, shape=shape) for shape in ("small", "wide"))
    row = vulkan(
        op,
        dtypes,
        divided(_vulkan(small, wide, dtype), together(), dtypes),
        shaders=(small,),
        cost=partial(cost_powi_backward_vulkan, dtype=dtype),
        precision=STRICT_POWI_BACKWARD,
        wrapper=__file__,
        admits=divisible(together(), dtypes),
    )
    return (
        also_of(row, wide, *copy_shaders()),
        c_kernel(
            op,
            dtypes,
            _cpu(dtype),
            functions=(f"powi_backward_{dtype.key}",),
            cost=cost_powi_backward_cpu,
            precision=STRICT_POWI_BACKWARD,
            wrapper=__file__,
        ),
        numpy_reference(op, dtypes, cost=cost_powi_backward_cpu),
    )


IMPLS = tuple(row for dtype in FLOATS for row in _rows(dtype))
