"""Kernels of the primitive where, by element size."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cpu_reference import c as ckernels
from fuelvk.base.dtypes import FLOATS, INTEGERS, DType
from fuelvk.base.shapes import Layout
from fuelvk.graph.types import PrimitiveId
from fuelvk.kernels._cpu import c_kernel, numpy_reference
from fuelvk.kernels._vulkan import ShaderRef, VulkanContext, spirv, vulkan
from fuelvk.kernels.claims import STRICT_EXACT
from fuelvk.kernels.ops._choose import choose_shader, choose_words
from fuelvk.kernels.ops._elements import also_of, copy_shaders, grid, padded
from fuelvk.kernels.ops._pointwise import operand_boxes
from fuelvk.kernels.primitive_costs import primitive_cost_cpu, primitive_cost_vulkan
from fuelvk.kernels.types import KernelCaps, Registration

if TYPE_CHECKING:
    from fuelvk.vulkan import Buffer

WHERE = PrimitiveId("where")
_RANK = 4
_PARAMS = struct.Struct("<9I12i")


def _on_cpu(function: str) -> Callable[..., None]:
    def kernel(inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: Any) -> None:
        y = outputs[0]
        if y.size:
            ckernels.call(
                function, *(np.ascontiguousarray(np.broadcast_to(x, y.shape)) for x in inputs), y, y.size
            )

    return kernel


def _on_vulkan(shader: ShaderRef, words: ShaderRef, dtype: DType) -> Callable[..., None]:
    def kernel(
        inputs: Sequence[Buffer],
        outputs: Sequence[Buffer],
        layouts: Sequence[Layout],
        params: Mapping[str, Any],
        context: VulkanContext,
    ) -> None:
        dtypes = (DType.BOOL, dtype, dtype, dtype)
        for operands, output, target in operand_boxes(context, inputs, outputs[0], layouts, dtypes, _RANK):
            buffers = (*operands.buffers, output)
            offsets = (*operands.offsets, target.offset)
            flat = operands.flat and not any(operands.ones)
            if flat and choose_words(context, words, dtype.size, operands.count, buffers, offsets):
                continue
            groups = grid(shader, context, operands.count)
            extents = padded(operands.shape, _RANK, 1)[1:]
            context.dispatch(
                shader,
                groups,
                buffers,
                0b1000,
                _PARAMS.pack(operands.count, groups[0], *offsets, *extents, *operands.walks(_RANK)),
                entry="where_flat" if flat else "where_strided",
            )

    return kernel


def _rows(dtype: DType) -> tuple[Registration, ...]:
    dtypes = (DType.BOOL, dtype, dtype, dtype)
    shader = spirv("pointwise/where", "where_flat", bytes=dtype.size)
    words = choose_shader("where", dtype.size)
    row = vulkan(
        WHERE,
        dtypes,
        _on_vulkan(shader, words, dtype),
        shaders=(shader,),
        cost=primitive_cost_vulkan("where", dtypes),
        precision=STRICT_EXACT,
        wrapper=__file__,
        caps=KernelCaps(strided_input=True),
    )
    cost = primitive_cost_cpu("where", dtypes)
    function = f"where_b{dtype.size}"
    return (
        also_of(row, words, *copy_shaders()),
        c_kernel(
            WHERE,
            dtypes,
            _on_cpu(function),
            functions=(function,),
            cost=cost,
            precision=STRICT_EXACT,
            wrapper=__file__,
        ),
        numpy_reference(WHERE, dtypes, cost=cost, precision=STRICT_EXACT),
    )


IMPLS = tuple(row for dtype in (*FLOATS, *INTEGERS) for row in _rows(dtype))
