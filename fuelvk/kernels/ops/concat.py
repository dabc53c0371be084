"""Kernels of the primitive concat: all contiguous inputs in one pass through a table of addresses, else a copy each."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cpu_reference import c as ckernels
from fuelvk.base.dtypes import DType
from fuelvk.base.shapes import Layout, elements, normalize_axis
from fuelvk.graph.types import PrimitiveId
from fuelvk.kernels._cpu import c_kernel, numpy_reference
from fuelvk.kernels._vulkan import ShaderRef, VulkanContext, spirv, vulkan
from fuelvk.kernels.claims import STRICT_EXACT
from fuelvk.kernels.ops import _ranges
from fuelvk.kernels.ops._elements import also_of, copy_shaders, copy_strided, row_parts
from fuelvk.kernels.primitive_costs import primitive_cost_cpu, primitive_cost_vulkan
from fuelvk.kernels.types import KernelCaps, Registration

if TYPE_CHECKING:
    from fuelvk.vulkan import Buffer

CONCAT = PrimitiveId("concat")
_ENTRY = struct.Struct("<Q2I")
_PARAMS = struct.Struct("<5Ii1I2i")


def _row_shader(size: int) -> ShaderRef:
    return spirv("movement/concat_rows", "concat_rows", bytes=size)


def _on_cpu(inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: Any) -> None:
    y = outputs[0]
    if not y.size:
        return
    axis = normalize_axis(params["axis"], y.ndim)
    outer = elements(y.shape[:axis])
    y_bytes, at = y.nbytes // outer, 0
    for x in inputs:
        if x.size:
            x_bytes = x.nbytes // outer
            ckernels.call("concat", x, y, outer, x_bytes, y_bytes, at)
            at += x_bytes


def _in_one_pass(
    context: VulkanContext,
    size: int,
    inputs: Sequence[Buffer],
    y: Buffer,
    layouts: Sequence[Layout],
    axis: int,
) -> bool:
    """Records one dispatch for all inputs where addresses can be read from memory; returns whether it did."""
    *given, target = layouts
    shader = _row_shader(size)
    within = max(target.elements, *(b.nbytes for b in (*inputs, y))) <= _ranges.MOST
    if not within or len(inputs) < 2 or isinstance(shader.select(context.caps), str):
        return False
    if not all(v.is_contiguous() for v in given):
        return False
    outer, row = elements(target.shape[:axis]), elements(target.shape[axis:])
    table, at, longest = b"", 0, 0
    for buffer, view in zip(inputs, given, strict=True):
        length = view.elements // outer
        table += _ENTRY.pack(buffer.address + view.offset * size, length, at)
        at, longest = at + length, max(longest, length)
    cut = row_parts(shader, context, outer * len(inputs), longest * size // 8)
    words = _PARAMS.pack(*cut.head, cut.parts, cut.words, len(inputs), row, target.offset)
    context.dispatch(shader, cut.groups, (context.constant(table), y), 0b10, words, also=inputs)
    return True


def _on_vulkan(size: int) -> Any:
    def kernel(inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: Any) -> None:
        y = layouts[-1]
        axis = normalize_axis(params["axis"], len(y.shape))
        if 0 in y.shape or _in_one_pass(context, size, inputs, outputs[0], layouts, axis):
            return
        at = y.offset
        for x, layout in zip(inputs, layouts[:-1], strict=True):
            part = Layout(layout.shape, y.strides, at)
            copy_strided(context, size, x, layout, outputs[0], part)
            at += layout.shape[axis] * y.strides[axis]

    return kernel


def _rows(dtype: DType) -> tuple[Registration, ...]:
    dtypes = (dtype, dtype)
    on_vulkan = vulkan(
        CONCAT,
        dtypes,
        _on_vulkan(dtype.size),
        shaders=(spirv("movement/copy", "copy", bytes=dtype.size, shape="small"),),
        cost=primitive_cost_vulkan("concat", dtypes),
        precision=STRICT_EXACT,
        wrapper=__file__,
        name="vulkan.concat",
        caps=KernelCaps(strided_input=True),
    )
    cost = primitive_cost_cpu("concat", dtypes)
    return (
        also_of(on_vulkan, *copy_shaders(), _row_shader(dtype.size)),
        c_kernel(
            CONCAT,
            dtypes,
            _on_cpu,
            functions=("concat",),
            cost=cost,
            precision=STRICT_EXACT,
            wrapper=__file__,
        ),
        numpy_reference(CONCAT, dtypes, cost=cost, precision=STRICT_EXACT),
    )


IMPLS = tuple(row for dtype in DType for row in _rows(dtype))
