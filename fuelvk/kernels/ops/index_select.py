"""Kernels of the primitive index_select, by element size; indices are I64, I32 or U32."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cpu_reference import c as ckernels
from fuelvk.base.dtypes import INDICES, DType
from fuelvk.base.shapes import elements, normalize_axis
from fuelvk.graph.primitives._moving import refuse_outside
from fuelvk.graph.types import PrimitiveId
from fuelvk.kernels._cpu import c_kernel, numpy_reference
from fuelvk.kernels._vulkan import ShaderRef, VulkanContext, spirv, vulkan
from fuelvk.kernels.claims import STRICT_EXACT
from fuelvk.kernels.ops._division import Plan, axes, divided, divisible
from fuelvk.kernels.ops._elements import (
    LEAST_ROW,
    WIDE_FROM,
    also_of,
    copy_shaders,
    grid,
    row_parts,
    wide_or_small,
)
from fuelvk.kernels.ops._window import POINTED, picks, window_shader, windows
from fuelvk.kernels.primitive_costs import primitive_cost_cpu, primitive_cost_vulkan
from fuelvk.kernels.types import Registration, Shapes

INDEX_SELECT = PrimitiveId("index_select")
_PARAMS = struct.Struct("<10I")
_ROWS = struct.Struct("<5Ii2Ii5I")


def _shader(size: int, shape: str = "small") -> ShaderRef:
    return spirv("movement/index_select", "index_select", bytes=size, shape=shape)


def _row_shader(size: int) -> ShaderRef:
    return spirv("movement/select_rows", "select_rows", bytes=size)


def _on_cpu(inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: Any) -> None:
    (x, indices), y = inputs, outputs[0]
    if not y.size:
        return
    axis = normalize_axis(params["axis"], x.ndim)
    inner_bytes = elements(x.shape[axis + 1 :]) * x.itemsize
    outer = elements(x.shape[:axis])
    refuse_outside("index_select", indices, x.shape[axis], axis)
    wide = indices.astype(np.int64, copy=False)
    ckernels.call("index_select", x, wide, y, outer, x.shape[axis], wide.size, inner_bytes)


def _division(shapes: Shapes, params: Mapping[str, Any]) -> Plan:
    x, _, y = shapes
    assert x is not None and y is not None
    axis = normalize_axis(params["axis"], len(y))
    own = tuple(POINTED if i == axis else i for i in range(len(x)))
    return own, (axis,), axes(y)


def _on_vulkan(size: int, index: DType) -> Callable[..., None]:
    def kernel(
        inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: VulkanContext
    ) -> None:
        shape = layouts[0].shape
        axis = normalize_axis(params["axis"], len(shape))
        count, inner, unit = layouts[1].shape[0], elements(shape[axis + 1 :]), size
        x0, y0 = layouts[0].offset, layouts[-1].offset
        if not elements(layouts[-1].shape):
            return
        chosen = picks(context, index, inputs[1], layouts[1], shape[axis], params)
        words, start = chosen.words, chosen.layout.offset * chosen.words
        while unit < 8 and not (inner % 2 or x0 % 2 or y0 % 2):
            unit, inner, x0, y0 = unit * 2, inner // 2, x0 // 2, y0 // 2
        rows = elements(shape[:axis]) * count
        n = rows * inner
        by_rows = _row_shader(unit)
        long = inner * unit >= 8 * LEAST_ROW and n * unit >= 8 * WIDE_FROM
        if long and not isinstance(by_rows.select(context.caps), str):
            cut = row_parts(by_rows, context, rows, inner * unit // 8)
            context.dispatch(
                by_rows,
                cut.groups,
                (inputs[0], chosen.buffer, outputs[0], chosen.errors),
                0b1100,
                _ROWS.pack(
                    *(*cut.head, cut.parts, cut.words, shape[axis], count, inner, words),
                    *(x0, start, y0, chosen.slot),
                ),
            )
            return
        shader = wide_or_small(_shader(unit), _shader(8, "wide") if unit == 8 else None, context.caps, n)
        groups = grid(shader, context, n)
        context.dispatch(
            shader,
            groups,
            (inputs[0], chosen.buffer, outputs[0], chosen.errors),
            0b1100,
            _PARAMS.pack(n, groups[0], shape[axis], count, inner, words, x0, start, y0, chosen.slot),
        )

    return kernel


def _rows(dtype: DType, index: DType) -> tuple[Registration, ...]:
    dtypes = (dtype, index, dtype)
    weights = (1, index.size // 4, 1)
    kernel = divided(
        _on_vulkan(dtype.size, index), _division, dtypes, weights=weights, shift=windows(0), keeps=True
    )
    on_vulkan = vulkan(
        INDEX_SELECT,
        dtypes,
        kernel,
        shaders=(_shader(dtype.size),),
        cost=primitive_cost_vulkan("index_select", dtypes),
        precision=STRICT_EXACT,
        wrapper=__file__,
        admits=divisible(_division, dtypes, weights=weights),
    )
    cost = primitive_cost_cpu("index_select", dtypes)
    return (
        also_of(
            on_vulkan,
            *(f(size) for f in (_shader, _row_shader) for size in (1, 2, 4, 8)),
            _shader(8, "wide"),
            window_shader(),
            *copy_shaders(),
        ),
        c_kernel(
            INDEX_SELECT,
            dtypes,
            _on_cpu,
            functions=("index_select",),
            cost=cost,
            precision=STRICT_EXACT,
            wrapper=__file__,
        ),
        numpy_reference(INDEX_SELECT, dtypes, cost=cost, precision=STRICT_EXACT),
    )


IMPLS = tuple(row for dtype in DType for index in INDICES for row in _rows(dtype, index))
