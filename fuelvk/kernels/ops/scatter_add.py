"""Kernels of scatter_add and index_add: every element is added to by one invocation, in the order of the indices.

Cost: an invocation per column of the result reads all indices along the axis. Where columns are few a column is shared
out among OWNERS invocations at most, each reading all its indices and adding those that fall into its part.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cpu_reference import c as ckernels
from fuelvk.base.dtypes import FLOATS, INDICES, DType
from fuelvk.base.shapes import Layout, collapse, elements, normalize_axis
from fuelvk.graph.types import PrimitiveId
from fuelvk.kernels._cpu import c_kernel, numpy_reference
from fuelvk.kernels._vulkan import ShaderRef, VulkanContext, spirv, vulkan
from fuelvk.kernels.claims import STRICT_ACCUMULATION
from fuelvk.kernels.ops._elements import also_of, copy_shaders, copy_strided, gathered
from fuelvk.kernels.ops._rows import MAX_ELEMENTS, fits_index
from fuelvk.kernels.primitive_costs import primitive_cost_cpu, primitive_cost_vulkan
from fuelvk.kernels.types import KernelCaps, Registration, Shapes

OWNERS = 64
_PARAMS = struct.Struct("<8I8i")
_THREADS = 64
# Invocations worth starting: what keeps the lanes of two cores busy, or a GPU's.
_LANES = {"cpu": 16}
_LANES_ELSEWHERE = 4096


def _on_cpu(function: str) -> Callable[..., None]:
    def kernel(inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: Any) -> None:
        (x, indices, updates), y = inputs, outputs[0]
        axis = normalize_axis(params["axis"], x.ndim)
        count = indices.shape[axis] if indices.ndim == x.ndim else indices.shape[0]
        y[...] = x
        extents = indices.shape if indices.ndim == x.ndim else updates.shape
        box = tuple(slice(None if d == axis else n) for d, n in enumerate(extents))
        part = np.ascontiguousarray(x[box])
        if not part.size or not count:
            return
        given = np.ascontiguousarray(updates[tuple(slice(n) for n in extents)])
        sums = np.empty_like(part)
        wide = np.ascontiguousarray(indices.astype(np.int64, copy=False))
        outer, inner = elements(part.shape[:axis]), elements(part.shape[axis + 1 :])
        ckernels.call(function, part, wide, given, sums, outer, part.shape[axis], count, inner)
        y[box] = sums

    return kernel


def _shader(entry: str, dtype: DType) -> ShaderRef:
    return spirv("accumulate/scatter", entry, dtype=dtype)


def _on_vulkan(dtype: DType, index: DType) -> Callable[..., None]:
    narrow = dtype.accumulator is not dtype

    def kernel(
        inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: VulkanContext
    ) -> None:
        (x, indices, updates), y = inputs, outputs[0]
        source, picks, given, target = layouts
        n = elements(target.shape)
        if not n:
            return
        axis = normalize_axis(params["axis"], len(target.shape))
        t, place = y, target
        if narrow:
            if not source.is_contiguous():
                x, source = gathered(context, dtype, x, source)
            t, place = context.scratch(n * dtype.accumulator.size), Layout.of(target.shape)
            _each(context, "start", dtype, n, (t, indices, x), 0b00001, source.offset, 0)
        else:
            copy_strided(context, dtype.size, x, source, t, place)
        if len(picks.shape) != len(target.shape):  # one index a slice: the same one along every other axis
            strides = tuple(picks.strides[0] if d == axis else 0 for d in range(len(target.shape)))
            picks = Layout(given.shape, strides, picks.offset)
        _add(context, dtype, index, axis, (t, indices, updates), (place, picks, given))
        if narrow:
            _each(context, "finish", dtype, n, (t, indices, y), 0b00100, 0, target.offset)

    return kernel


def _each(
    context: VulkanContext,
    entry: str,
    dtype: DType,
    n: int,
    buffers: tuple[Any, Any, Any],
    writes: int,
    x0: int,
    y0: int,
) -> None:
    """Records a pass over all n elements."""
    groups = context.fold(-(-n // _THREADS))
    words = _PARAMS.pack(n, 0, groups[0], 1, 1, 1, 1, 0, x0, y0, *(0,) * 6)
    context.dispatch(_shader(entry, dtype), groups, (*buffers, buffers[1], buffers[1]), writes, words)


def _add(
    context: VulkanContext,
    dtype: DType,
    index: DType,
    axis: int,
    buffers: tuple[Any, Any, Any],
    layouts: tuple[Layout, Layout, Layout],
) -> None:
    place, picks, given = layouts
    count = picks.shape[axis]
    beside = [d for d in range(len(picks.shape)) if d != axis]
    shape = tuple(picks.shape[d] for d in beside)
    columns = elements(shape)
    if not columns or not count:
        return
    extents, strides = collapse(shape, *(tuple(v.strides[d] for d in beside) for v in layouts))
    walk = np.array([len(extents), *extents, *(s for walked in strides for s in walked)], np.int32)
    wanted = _LANES.get(context.caps.device_type, _LANES_ELSEWHERE)
    owners = max(1, min(OWNERS, place.shape[axis], wanted // columns))
    errors, slot = context.error_slot
    groups = context.fold(-(-columns * owners // _THREADS))
    words = _PARAMS.pack(
        columns * owners,
        count,
        groups[0],
        columns,
        owners,
        place.shape[axis],
        index.size // 4,
        slot,
        0,
        0,
        place.offset,
        place.strides[axis],
        picks.offset,
        picks.strides[axis],
        given.offset,
        given.strides[axis],
    )
    operands = (*buffers, context.constant(walk.tobytes()), errors)
    context.dispatch(_shader("scatter_add", dtype), groups, operands, 0b10001, words)


def _admits(words: int) -> Callable[[Shapes, Mapping[str, Any], Any], str | None]:
    def admits(shapes: Shapes, params: Mapping[str, Any], capabilities: Any) -> str | None:
        picks = elements(shapes[1] or ()) * words
        if picks > MAX_ELEMENTS:
            return f"{picks} words of indices; this kernel indexes {MAX_ELEMENTS}"
        return fits_index(shapes, params, capabilities)

    return admits


def _rows(op: str, dtype: DType, index: DType) -> tuple[Registration, ...]:
    op_id, dtypes = PrimitiveId(op), (dtype, index, dtype, dtype)
    function = f"{op}_{dtype.key}"
    row = vulkan(
        op_id,
        dtypes,
        _on_vulkan(dtype, index),
        shaders=(_shader("scatter_add", dtype),),
        cost=primitive_cost_vulkan(op, dtypes),
        precision=STRICT_ACCUMULATION,
        wrapper=__file__,
        caps=KernelCaps(strided_input=True),
        admits=_admits(index.size // 4),
    )
    cost = primitive_cost_cpu(op, dtypes)
    return (
        also_of(row, _shader("start", dtype), _shader("finish", dtype), *copy_shaders()),
        c_kernel(
            op_id,
            dtypes,
            _on_cpu(function),
            functions=(function,),
            cost=cost,
            precision=STRICT_ACCUMULATION,
            wrapper=__file__,
        ),
        numpy_reference(op_id, dtypes, cost=cost),
    )


IMPLS = tuple(
    row
    for op in ("scatter_add", "index_add")
    for dtype in FLOATS
    for index in INDICES
    for row in _rows(op, dtype, index)
)
