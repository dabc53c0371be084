"""Kernels of the primitive gather, by element size; indices are I64, I32 or U32."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cpu_reference import c as ckernels
from fuelvk.base.dtypes import INDICES, DType
from fuelvk.base.shapes import Layout, Shape, collapse, elements, normalize_axis
from fuelvk.graph.primitives._moving import refuse_outside
from fuelvk.kernels._vulkan import ShaderRef, VulkanContext, spirv
from fuelvk.kernels.ops._division import WHOLE, Plan, axes, divided, divisible
from fuelvk.kernels.ops._elements import (
    LEAST_ROW,
    WIDE_FROM,
    copy_shaders,
    gathered,
    grid,
    outer_offsets,
    padded,
    row_parts,
    wide_or_small,
)
from fuelvk.kernels.ops._movement import movement
from fuelvk.kernels.ops._window import POINTED, picks, window_shader, windows
from fuelvk.kernels.types import KernelCaps, Registration, Shapes

if TYPE_CHECKING:
    from fuelvk.vulkan import Buffer

_RANK = 5
# With more axes than that there is a dispatch for every place of the outer ones, or a copy first where those are many.
_MOST_DISPATCHES = 64
_ROW_AXES = 3
_ROWS = struct.Struct("<5I2iI2iI3i3I6i")
_PARAMS = struct.Struct("<3IiI3i5I10i")


def _shader(size: int, shape: str = "small") -> ShaderRef:
    return spirv("movement/gather", "gather", bytes=size, shape=shape)


def _row_shader(size: int) -> ShaderRef:
    return spirv("movement/gather_rows", "gather_rows", bytes=size)


def _source_shape(shape: Shape, axis: int, extent: int) -> Shape:
    """Returns the result's shape with the source's extent along the axis."""
    return (*shape[:axis], extent, *shape[axis + 1 :])


def _on_cpu(function: str) -> Callable[..., None]:
    def kernel(inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: Any) -> None:
        (x, indices), y = inputs, outputs[0]
        if not y.size:
            return
        axis = normalize_axis(params["axis"], x.ndim)
        extent, count = x.shape[axis], y.shape[axis]
        refuse_outside("gather", indices, extent, axis)
        source = np.ascontiguousarray(np.broadcast_to(x, _source_shape(y.shape, axis, extent)))
        picks = np.ascontiguousarray(np.broadcast_to(indices, y.shape).astype(np.int64, copy=False))
        outer, inner = elements(y.shape[:axis]), elements(y.shape[axis + 1 :])
        ckernels.call(function, source, picks, y, outer, extent, count, inner)

    return kernel


def _division(shapes: Shapes, params: Mapping[str, Any]) -> Plan:
    """Repeated axes of x and of the indices stay whole."""
    x, picked, y = shapes
    assert x is not None and picked is not None and y is not None
    axis = normalize_axis(params["axis"], len(y))
    own, chosen = (
        tuple(i if n == m else WHOLE for i, (n, m) in enumerate(zip(shape, y, strict=True)))
        for shape in (x, picked)
    )
    return (*own[:axis], POINTED, *own[axis + 1 :]), chosen, axes(y)


def _by_rows(
    context: VulkanContext,
    size: int,
    buffers: Sequence[Buffer],
    shape: Shape,
    strides: Sequence[Shape],
    walk: tuple[int, int],
    starts: tuple[int, ...],
) -> bool:
    """Records a gather of which indices and result lie side by side along long rows; returns whether it did.

    ``strides`` are those of x and of the indices, ``walk`` the source's extent and stride along the axis, ``starts``
    the words of an index, where x, indices and result begin, and the error slot.
    """
    *rows, inner = shape
    shader = _row_shader(size)
    long = inner * size >= 8 * LEAST_ROW and elements(shape) * size >= 8 * WIDE_FROM
    if (
        not long
        or strides[1][-1] != 1
        or len(rows) > _ROW_AXES
        or isinstance(shader.select(context.caps), str)
    ):
        return False
    cut = row_parts(shader, context, elements(rows), inner * size // 8)
    steps = [s for each in strides for s in padded(each[:-1], _ROW_AXES, 0)]
    extents = padded(rows, _ROW_AXES, 1)[1:]
    numbers = (*cut.head, cut.parts, cut.words, inner, *walk, strides[0][-1], *starts)
    context.dispatch(shader, cut.groups, buffers, 0b1100, _ROWS.pack(*numbers, *extents, *steps))
    return True


def _on_vulkan(dtype: DType, index: DType) -> Callable[..., None]:
    small, wide = _shader(dtype.size), _shader(dtype.size, "wide")

    def walk(source: Layout, picks: Layout, axis: int) -> tuple[Shape, list[Shape]]:
        """Strides over the result; the axis of the source is walked by the indices instead."""
        strides = tuple(0 if i == axis else s for i, s in enumerate(source.strides))
        return collapse(picks.shape, strides, picks.strides)

    def kernel(
        inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: VulkanContext
    ) -> None:
        target = layouts[-1]
        if 0 in target.shape:
            return
        axis = normalize_axis(params["axis"], len(target.shape))
        extent = layouts[0].shape[axis]
        source = layouts[0].broadcast_to(_source_shape(target.shape, axis, extent))
        chosen = picks(context, index, inputs[1], layouts[1], extent, params)
        x, indices, places = inputs[0], chosen.buffer, chosen.layout.broadcast_to(target.shape)
        shape, strides = walk(source, places, axis)
        if elements(shape[:-_RANK]) > _MOST_DISPATCHES:
            x, dense = gathered(context, dtype, x, layouts[0])
            source = dense.broadcast_to(source.shape)
            kind = index if chosen.buffer is inputs[1] else DType.U32
            indices, dense = gathered(context, kind, indices, chosen.layout)
            places = dense.broadcast_to(target.shape)
            shape, strides = walk(source, places, axis)
        buffers = (x, indices, outputs[0], chosen.errors)
        starts = (chosen.words, source.offset, places.offset, target.offset, chosen.slot)
        if _by_rows(context, dtype.size, buffers, shape, strides, (extent, source.strides[axis]), starts):
            return
        inner = shape[-_RANK:]
        n = elements(inner)
        shader = wide_or_small(small, wide, context.caps, n)
        groups = grid(shader, context, n)
        numbers = (n, groups[0], extent, source.strides[axis], chosen.words)
        extents = padded(inner, _RANK, 1)[1:]
        steps = [s for walked in strides for s in padded(walked[-_RANK:], _RANK, 0)]
        for number, (x0, places0) in enumerate(outer_offsets(shape, strides, _RANK)):
            begins = (source.offset + x0, places.offset + places0, target.offset + number * n)
            words = _PARAMS.pack(*numbers, *begins, chosen.slot, *extents, *steps)
            context.dispatch(shader, groups, buffers, 0b1100, words)

    return kernel


def _rows(dtype: DType, index: DType) -> tuple[Registration, ...]:
    function, dtypes, weights = f"gather_b{dtype.size}", (dtype, index, dtype), (1, index.size // 4, 1)
    kernel = divided(
        _on_vulkan(dtype, index),
        _division,
        dtypes,
        strided=True,
        weights=weights,
        shift=windows(0),
        keeps=True,
    )
    return movement(
        "gather",
        dtypes,
        on_vulkan=kernel,
        on_cpu=_on_cpu(function),
        shader=_shader(dtype.size),
        optional=(_shader(dtype.size, "wide"), _row_shader(dtype.size), window_shader(), *copy_shaders()),
        function=function,
        wrapper=__file__,
        caps=KernelCaps(strided_input=True),
        admits=divisible(_division, dtypes, weights=weights),
    )


IMPLS = tuple(row for dtype in DType for index in INDICES for row in _rows(dtype, index))
