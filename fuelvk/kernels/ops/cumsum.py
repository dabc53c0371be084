"""Kernels of cumsum: totals of blocks, their running sums by the same rule, then the blocks themselves."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from cpu_reference import c as ckernels
from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.base.shapes import Layout, collapse, elements, normalize_axis
from fuelvk.graph.types import PrimitiveId
from fuelvk.kernels._cpu import c_kernel, numpy_reference
from fuelvk.kernels._vulkan import ShaderRef, VulkanContext, spirv, vulkan
from fuelvk.kernels.claims import STRICT_RUNNING_SUM
from fuelvk.kernels.ops._elements import also_of, copy_shaders, gathered
from fuelvk.kernels.ops._rows import fits_index
from fuelvk.kernels.primitive_costs import primitive_cost_cpu, primitive_cost_vulkan
from fuelvk.kernels.types import KernelCaps, Registration

if TYPE_CHECKING:
    from fuelvk.vulkan import Buffer

CUMSUM = PrimitiveId("cumsum")
BLOCK = 64
_PARAMS = struct.Struct("<4I2i2I3i")
_THREADS = 128


def _on_cpu(function: str) -> Callable[..., None]:
    def kernel(inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: Any) -> None:
        x, y = inputs[0], outputs[0]
        if not y.size:
            return
        axis = normalize_axis(params["axis"], x.ndim)
        moved = np.ascontiguousarray(np.moveaxis(x, axis, -1))
        sums = np.empty_like(moved)
        ckernels.call(function, moved, sums, moved.size // moved.shape[-1], moved.shape[-1])
        y[...] = np.moveaxis(sums, -1, axis)

    return kernel


def _shader(entry: str, dtype: DType) -> ShaderRef:
    return spirv("reduce/cumsum", f"cumsum_{entry}", dtype=dtype)


def _strides(view: Layout, axis: int) -> tuple[int, int, int] | None:
    """Returns the strides before, along and behind the axis; None where those before or behind are not one."""
    outer, (before,) = collapse(view.shape[:axis], view.strides[:axis])
    inner, (behind,) = collapse(view.shape[axis + 1 :], view.strides[axis + 1 :])
    return None if len(outer) > 1 or len(inner) > 1 else (before[0], view.strides[axis], behind[0])


def _run(
    context: VulkanContext,
    dtype: DType,
    x: Buffer,
    x0: int,
    strides: tuple[int, int, int],
    y: Buffer,
    y0: int,
    extents: tuple[int, int, int],
) -> None:
    """Records the running sums of [outer, n, inner] into contiguous y; the totals' own come first."""
    outer, n, inner = extents
    blocks = -(-n // BLOCK)
    items = outer * blocks * inner
    groups = context.fold(-(-items // _THREADS))
    carried = blocks > 1
    words = _PARAMS.pack(items, n, groups[0], carried, x0, y0, inner, blocks, *strides)
    carries = x
    if carried:
        wide = dtype.accumulator
        totals, carries = (context.scratch(items * wide.size) for _ in range(2))
        context.dispatch(_shader("totals", dtype), groups, (x, y, totals), 0b100, words)
        _run(context, wide, totals, 0, (blocks * inner, inner, 1), carries, 0, (outer, blocks, inner))
    context.dispatch(_shader("apply", dtype), groups, (x, y, carries), 0b010, words)


def _on_vulkan(dtype: DType) -> Callable[..., None]:
    def kernel(
        inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: VulkanContext
    ) -> None:
        x, view, target = inputs[0], layouts[0], layouts[-1]
        if not elements(target.shape):
            return
        axis = normalize_axis(params["axis"], len(view.shape))
        strides = _strides(view, axis)
        if strides is None:
            x, view = gathered(context, dtype, x, view)
            strides = _strides(view, axis)
            assert strides is not None
        extents = elements(view.shape[:axis]), view.shape[axis], elements(view.shape[axis + 1 :])
        _run(context, dtype, x, view.offset, strides, outputs[0], target.offset, extents)

    return kernel


def _rows(dtype: DType) -> tuple[Registration, ...]:
    dtypes = (dtype, dtype)
    function = f"cumsum_{dtype.key}"
    row = vulkan(
        CUMSUM,
        dtypes,
        _on_vulkan(dtype),
        shaders=(_shader("totals", dtype),),
        cost=primitive_cost_vulkan("cumsum", dtypes),
        precision=STRICT_RUNNING_SUM,
        wrapper=__file__,
        caps=KernelCaps(strided_input=True),
        admits=fits_index,
    )
    cost = primitive_cost_cpu("cumsum", dtypes)
    wide = (_shader("totals", dtype.accumulator), _shader("apply", dtype.accumulator))
    return (
        also_of(row, _shader("apply", dtype), *wide, *copy_shaders()),
        c_kernel(
            CUMSUM,
            dtypes,
            _on_cpu(function),
            functions=(function,),
            cost=cost,
            precision=STRICT_RUNNING_SUM,
            wrapper=__file__,
        ),
        numpy_reference(CUMSUM, dtypes, cost=cost),
    )


IMPLS = tuple(row for dtype in FLOATS for row in _rows(dtype))
