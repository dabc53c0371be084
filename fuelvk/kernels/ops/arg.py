"""Kernels of argmax and argmin: rows by workgroups in blocks, or columns by invocations."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cpu_reference import c as ckernels
from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.base.shapes import Shape, elements, normalize_axes
from fuelvk.graph.types import PrimitiveId
from fuelvk.kernels._cpu import c_kernel, numpy_reference
from fuelvk.kernels._vulkan import VulkanContext, spirv, vulkan
from fuelvk.kernels.claims import STRICT_EXACT
from fuelvk.kernels.ops._elements import also_of, copy_shaders, gathered
from fuelvk.kernels.ops._rows import fits_index
from fuelvk.kernels.ops.reduce import BLOCK, order, walk_of, walkable
from fuelvk.kernels.primitive_costs import primitive_cost_cpu, primitive_cost_vulkan
from fuelvk.kernels.types import KernelCaps, Registration

_PARAMS = struct.Struct("<4I2i2I3i")
_CANDIDATES, _PARTIAL = 1, 2
_THREADS = 64
# From this many results on an invocation may look for each alone, where their elements lie side by side.
_MANY = 1024


def _axes(axis: int | None, rank: int) -> Shape:
    return normalize_axes(None if axis is None else (axis,), rank)


def _on_cpu(function: str) -> Callable[..., None]:
    def kernel(inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: Any) -> None:
        x, y = inputs[0], outputs[0]
        if y.size:
            rows = np.ascontiguousarray(x.transpose(order(x.ndim, _axes(params["axis"], x.ndim))))
            ckernels.call(function, rows, y, y.size, x.size // y.size)

    return kernel


def _on_vulkan(op: str, dtype: DType) -> Callable[..., None]:
    in_rows, in_columns = (spirv("reduce/arg", f"{op}_{walk}", dtype=dtype) for walk in ("rows", "columns"))

    def kernel(
        inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: VulkanContext
    ) -> None:
        x, view, y = inputs[0], layouts[0], outputs[0]
        items = elements(layouts[-1].shape)
        if not items:
            return
        axes = _axes(params["axis"], len(view.shape))
        walk = walk_of(view, axes)
        if walk is None:
            view, axes = walkable(view, axes)
            x, view = gathered(context, dtype, x, view)
            walk = walk_of(view, axes)
            assert walk is not None
        strides = (walk.outer_stride, walk.step, walk.inner_stride)
        n, flags, y0, found = walk.n, 0, 2 * layouts[-1].offset, y

        def dispatch(blocks: int, target: Any, flags: int, y0: int) -> None:
            columns = not flags and items >= _MANY and abs(walk.inner_stride) < abs(walk.step)
            count = -(-items // _THREADS) if columns else items * blocks
            groups = context.fold(count)
            context.dispatch(
                in_columns if columns else in_rows,
                groups,
                (x, target, found),
                0b010,
                _PARAMS.pack(
                    items * blocks, n, groups[0], flags, view.offset, y0, walk.inner, blocks, *strides
                ),
            )

        while n > BLOCK:
            blocks = -(-n // BLOCK)
            partial = context.scratch(4 * items * blocks)
            dispatch(blocks, partial, flags | _PARTIAL, 0)
            n, flags, found = blocks, _CANDIDATES, partial
        dispatch(1, y, flags, y0)

    return kernel


def _rows(op: str, dtype: DType) -> tuple[Registration, ...]:
    op_id, dtypes = PrimitiveId(op), (dtype, DType.I64)
    function = f"{op}_{dtype.key}"
    shader = spirv("reduce/arg", f"{op}_rows", dtype=dtype)
    row = vulkan(
        op_id,
        dtypes,
        _on_vulkan(op, dtype),
        shaders=(shader,),
        cost=primitive_cost_vulkan(op, dtypes),
        precision=STRICT_EXACT,
        wrapper=__file__,
        name="vulkan.arg",
        caps=KernelCaps(strided_input=True),
        admits=fits_index,
    )
    cost = primitive_cost_cpu(op, dtypes)
    return (
        also_of(row, spirv("reduce/arg", f"{op}_columns", dtype=dtype), *copy_shaders()),
        c_kernel(
            op_id,
            dtypes,
            _on_cpu(function),
            functions=(function,),
            cost=cost,
            precision=STRICT_EXACT,
            wrapper=__file__,
        ),
        numpy_reference(op_id, dtypes, cost=cost, precision=STRICT_EXACT),
    )


IMPLS = tuple(row for op in ("argmax", "argmin") for dtype in FLOATS for row in _rows(op, dtype))
