"""Kernels of scatter_add and index_add: every element is added to by one invocation, in the order of the indices.

Cost: an invocation per column of the result reads all indices along the axis. Where columns are few a column is shared
out among OWNERS invocations at most, each reading all its indices and adding those that fall into its part.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from cpu_reference import c as ckernels
from fuelvk.base.dtypes import FLOATS, INDICES, DType
from fuelvk.base.shapes import Layout, collapse, elements, normalize_axis
from fuelvk.graph.types import PrimitiveId
from fuelvk.kernels._cpu import c_kernel, numpy_reference
from fuelvk.kernels._vulkan import ShaderRef, VulkanContext, spirv, vulkan
from fuelvk.kernels.claims import STRICT_ACCUMULATION
from fuelvk.kernels.ops import _ranges
from fuelvk.kernels.ops._division import WHOLE, Plan, divided, divisible, uncut
from fuelvk.kernels.ops._elements import also_of, copy_shaders, copy_strided, gathered
from fuelvk.kernels.ops._loops import most_iterations
from fuelvk.kernels.ops._window import POINTED, picks, window_shader, windows
from fuelvk.kernels.primitive_costs import primitive_cost_cpu, primitive_cost_vulkan
from fuelvk.kernels.types import KernelCaps, Registration, Shapes

if TYPE_CHECKING:
    from fuelvk.vulkan import Buffer

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


def _division(shapes: Shapes, params: Mapping[str, Any]) -> Plan:
    """All axes are cut together but that of the indices: along it x has windows, indices and updates stay whole."""
    x, indices, updates, y = shapes
    assert x is not None and indices is not None and updates is not None and y is not None
    axis = normalize_axis(params["axis"], len(y))
    own = tuple(POINTED if i == axis else i for i in range(len(y)))
    beside = tuple(WHOLE if i == axis else i for i in range(len(y)))
    return own, beside if len(indices) == len(y) else uncut(indices), beside, own


def _shader(entry: str, dtype: DType) -> ShaderRef:
    return spirv("accumulate/scatter", entry, dtype=dtype)


def _on_vulkan(dtype: DType, index: DType) -> Callable[..., None]:
    narrow = dtype.accumulator is not dtype

    def kernel(
        inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: VulkanContext
    ) -> None:
        (x, indices, updates), y = inputs, outputs[0]
        source, picked, given, target = layouts
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
        for (part, chosen), (more, added) in _runs(
            context, dtype, index, (indices, picked), (updates, given), axis
        ):
            _add(context, dtype, index, axis, (t, part, more), (place, chosen, added), params)
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


def _runs(
    context: VulkanContext,
    dtype: DType,
    index: DType,
    picked: tuple[Buffer, Layout],
    given: tuple[Buffer, Layout],
    axis: int,
) -> Iterator[tuple[tuple[Buffer, Layout], tuple[Buffer, Layout]]]:
    """Yields indices and updates, run by run along the axis where a kernel does not reach or loop over all of them."""
    same = len(picked[1].shape) == len(given[1].shape)
    along = axis if same else 0
    total = picked[1].shape[along]
    if 0 in picked[1].shape or 0 in given[1].shape:
        return
    count = most_iterations(context.caps, total)
    operands = ((*picked, along, index, index.size // 4), (*given, axis, dtype, 1))
    for _, view, walked, kind, weight in operands:
        limit = _ranges.limit(context.caps, kind.size, weight) - _ranges.ALIGNMENT // kind.size
        line = _slice(view, walked, 0, 1)
        count = min(count, max(limit // elements(line.shape), 1))
        room = limit - _ranges.span(line)
        if room >= 0 and view.strides[walked]:
            count = min(count, room // abs(view.strides[walked]) + 1)
    for start in range(0, total, count):
        run = []
        for buffer, view, walked, kind, weight in operands:
            part = _slice(view, walked, start, min(count, total - start))
            limit = _ranges.limit(context.caps, kind.size, weight) - _ranges.ALIGNMENT // kind.size
            if count == total and _ranges.in_reach(context, buffer, part):
                run.append((buffer, part))
            elif _ranges.span(part) <= limit:
                run.append(_ranges.rebased(buffer, part, kind.size))
            else:
                run.append(gathered(context, kind, buffer, part))
        yield run[0], run[1]


def _slice(view: Layout, axis: int, start: int, count: int) -> Layout:
    """Returns ``count`` places of an axis."""
    shape = tuple(count if d == axis else n for d, n in enumerate(view.shape))
    return Layout(shape, view.strides, view.offset + start * view.strides[axis])


def _add(
    context: VulkanContext,
    dtype: DType,
    index: DType,
    axis: int,
    buffers: tuple[Any, Any, Any],
    layouts: tuple[Layout, Layout, Layout],
    params: Mapping[str, Any],
) -> None:
    place, picked, given = layouts
    chosen = picks(context, index, buffers[1], picked, place.shape[axis], params)
    picked = chosen.layout
    if len(picked.shape) != len(place.shape):  # one index a slice: the same one along every other axis
        strides = tuple(picked.strides[0] if d == axis else 0 for d in range(len(place.shape)))
        picked = Layout(given.shape, strides, picked.offset)
    count = picked.shape[axis]
    beside = [d for d in range(len(picked.shape)) if d != axis]
    shape = tuple(picked.shape[d] for d in beside)
    columns = elements(shape)
    steps = [tuple(v.strides[d] for d in beside) for v in (place, picked, given)]
    extents, walks = collapse(shape, *steps)
    walk = np.array([len(extents), *extents, *(s for walked in walks for s in walked)], np.int32)
    wanted = _LANES.get(context.caps.device_type, _LANES_ELSEWHERE)
    owners = max(1, min(OWNERS, place.shape[axis], wanted // columns))
    groups = context.fold(-(-columns * owners // _THREADS))
    words = _PARAMS.pack(
        columns * owners,
        count,
        groups[0],
        columns,
        owners,
        place.shape[axis],
        chosen.words,
        chosen.slot,
        0,
        0,
        place.offset,
        place.strides[axis],
        picked.offset,
        picked.strides[axis],
        given.offset,
        given.strides[axis],
    )
    operands = (buffers[0], chosen.buffer, buffers[2], context.constant(walk.tobytes()), chosen.errors)
    context.dispatch(_shader("scatter_add", dtype), groups, operands, 0b10001, words)


def _rows(op: str, dtype: DType, index: DType) -> tuple[Registration, ...]:
    op_id, dtypes = PrimitiveId(op), (dtype, index, dtype, dtype)
    function = f"{op}_{dtype.key}"
    # A narrow x is added up in an array of twice its width.
    wide = dtype.accumulator.size // dtype.size
    weights = (wide, 0, 0, wide)
    kernel = divided(
        _on_vulkan(dtype, index),
        _division,
        dtypes,
        strided=True,
        weights=weights,
        shift=windows(0),
    )
    row = vulkan(
        op_id,
        dtypes,
        kernel,
        shaders=(_shader("scatter_add", dtype),),
        cost=primitive_cost_vulkan(op, dtypes),
        precision=STRICT_ACCUMULATION,
        wrapper=__file__,
        caps=KernelCaps(strided_input=True),
        admits=divisible(_division, dtypes, weights=weights),
    )
    cost = primitive_cost_cpu(op, dtypes)
    return (
        also_of(row, _shader("start", dtype), _shader("finish", dtype), window_shader(), *copy_shaders()),
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
