"""Kernels of cumsum: totals of blocks, their running sums by the same rule, then the blocks themselves.

What is beyond the reach of 32-bit indices is cut into parts, also between blocks: each block has its own carry.
"""

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
from fuelvk.kernels.ops import _ranges
from fuelvk.kernels.ops._elements import also_of, copy_shaders, gathered
from fuelvk.kernels.ops._walk import Walk, in_parts, reached
from fuelvk.kernels.primitive_costs import primitive_cost_cpu, primitive_cost_vulkan
from fuelvk.kernels.types import Admits, KernelCaps, Registration, Shapes

if TYPE_CHECKING:
    from fuelvk.vulkan import Buffer

CUMSUM = PrimitiveId("cumsum")
BLOCK = 64
_PARAMS = struct.Struct("<4I2i2I5i")
_CARRIED, _ALL_CARRIED = 1, 2
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


def _run(context: VulkanContext, dtype: DType, x: Buffer, x0: int, walk: Walk, y: Buffer, y0: int) -> None:
    """Records the running sums of a walk into contiguous y; the totals' own come first."""
    blocks, wide = walk.blocks(BLOCK), dtype.accumulator
    carries = x
    if blocks > 1:
        items = walk.outer * blocks * walk.inner
        totals, carries = (context.scratch(items * wide.size) for _ in range(2))
        for part, (px, view), (target, place) in in_parts(
            context, x, x0, walk, dtype.size, totals, 0, wide.size, BLOCK
        ):
            _dispatch(context, "totals", dtype, part, (px, px, target), view.offset, 0, place.offset)
        sums = Walk(walk.outer, blocks, walk.inner, blocks * walk.inner, walk.inner, 1)
        _run(context, wide, totals, 0, sums, carries, 0)
    _apply(context, dtype, x, x0, walk, y, y0, carries)


def _apply(
    context: VulkanContext, dtype: DType, x: Buffer, x0: int, walk: Walk, y: Buffer, y0: int, carries: Buffer
) -> None:
    """Records the running sums within blocks, each with its carry."""
    blocks, wide = walk.blocks(BLOCK), dtype.accumulator.size
    reach, limit = reached(context.caps, dtype.size, wide, BLOCK, 1), _ranges.limit(context.caps, dtype.size)
    near = max(x.nbytes, y.nbytes) <= limit * dtype.size and carries.nbytes <= limit * wide

    def results(part: Walk, offset: int) -> Layout:
        shape = (part.outer, part.n, part.inner)
        return Layout(shape, (walk.n * walk.inner, walk.inner, 1), offset)

    def fits(part: Walk) -> bool:
        return reach(part) and _ranges.span(results(part, 0)) + _ranges.ALIGNMENT // dtype.size <= limit

    if near and fits(walk):
        kind = _CARRIED * (blocks > 1)
        _dispatch(context, "apply", dtype, walk, (x, y, carries), x0, y0, 0, kind)
        return
    for part, dx, item in walk.parts(fits, BLOCK):
        block, column = divmod(item, walk.inner)
        outer, block = divmod(block, blocks)
        at = (outer * walk.n + block * BLOCK) * walk.inner + column
        px, source = _ranges.rebased(x, part.at(x0 + dx), dtype.size)
        py, target = _ranges.rebased(y, results(part, y0 + at), dtype.size)
        kind = _ALL_CARRIED if block else _CARRIED * (part.blocks(BLOCK) > 1)
        given, carry0 = px, 0
        if kind:
            first = item - walk.inner if block else item
            given, kept = _ranges.rebased(carries, part.results(BLOCK, first), wide)
            carry0 = kept.offset
        _dispatch(
            context,
            "apply",
            dtype,
            part,
            (px, py, given),
            source.offset,
            target.offset,
            carry0,
            kind,
            walk.inner,
        )


def _dispatch(
    context: VulkanContext,
    entry: str,
    dtype: DType,
    walk: Walk,
    buffers: tuple[Buffer, Buffer, Buffer],
    x0: int,
    y0: int,
    totals0: int,
    carried: int = 0,
    y_step: int | None = None,
) -> None:
    blocks = walk.blocks(BLOCK)
    items = walk.outer * blocks * walk.inner
    groups = context.fold(-(-items // _THREADS))
    strides = (walk.outer_stride, walk.step, walk.inner_stride)
    below = walk.inner if y_step is None else y_step
    numbers = (items, walk.n, groups[0], carried, x0, y0, walk.inner, blocks, *strides, totals0, below)
    writes = 0b100 if entry == "totals" else 0b010
    context.dispatch(_shader(entry, dtype), groups, buffers, writes, _PARAMS.pack(*numbers))


def _admits(dtype: DType) -> Admits:
    def admits(shapes: Shapes, params: Mapping[str, Any], capabilities: Any) -> str | None:
        """Refuses what even a column of one block does not bring into reach."""
        shape = shapes[0] or ()
        behind = elements(shape[normalize_axis(params["axis"], len(shape)) + 1 :])
        limit = _ranges.limit(capabilities, dtype.size) - _ranges.ALIGNMENT // dtype.size
        if behind <= limit // BLOCK:
            return None
        return f"a block has {BLOCK} rows of {behind} elements; this kernel indexes {limit}"

    return admits


def _on_vulkan(dtype: DType) -> Callable[..., None]:
    def kernel(
        inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: VulkanContext
    ) -> None:
        x, view, target = inputs[0], layouts[0], layouts[-1]
        if not elements(target.shape):
            return
        axis = normalize_axis(params["axis"], len(view.shape))
        strides = _strides(view, axis)
        limit = _ranges.limit(context.caps, dtype.size) - _ranges.ALIGNMENT // dtype.size
        if strides is None or BLOCK * abs(strides[1]) > limit:
            x, view = gathered(context, dtype, x, view)
            strides = _strides(view, axis)
            assert strides is not None
        extents = elements(view.shape[:axis]), view.shape[axis], elements(view.shape[axis + 1 :])
        _run(context, dtype, x, view.offset, Walk(*extents, *strides), outputs[0], target.offset)

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
        admits=_admits(dtype),
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
