"""What the wrappers of pointwise and movement kernels share: strides into parameters, grids, strided copies."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fuelvk.base.dtypes import DType
from fuelvk.base.hashing import digest64
from fuelvk.base.shapes import Layout, Shape, collapse, elements
from fuelvk.kernels._vulkan import ShaderRef, VulkanContext, spirv
from fuelvk.kernels.ops._ranges import boxes
from fuelvk.kernels.types import KernelRevisionHash, Registration

if TYPE_CHECKING:
    from fuelvk.vulkan import Buffer, Capabilities

EACH = 8  # elements of an invocation
MOST = 64
_WORKGROUPS = 32
# Below this many elements a workgroup of 1024 is mostly idle, and starting its subgroups costs more than it saves.
WIDE_FROM = 2048
_COPY = struct.Struct("<2I2i7I8i8i")
_COPY_RANK = 8


def wide_or_small(small: ShaderRef, wide: ShaderRef | None, caps: Capabilities, count: int) -> ShaderRef:
    """Returns the shader of wide workgroups where the device takes it and the work fills it."""
    if wide is None or count < WIDE_FROM or isinstance(wide.select(caps), str):
        return small
    return wide


def share(caps: Capabilities, threads: int, count: int) -> int:
    """Returns how many elements an invocation takes, a multiple of EACH, in workgroups of ``threads``.

    A workgroup costs a CPU driver about as much as a thousand elements and a subgroup a tenth of that, so there a
    small array goes into one workgroup, and a large one into as few as keep every core busy.
    """
    if caps.device_type != "cpu":
        return EACH
    groups = 1 if threads < 1024 else _WORKGROUPS
    return min(MOST, max(EACH, -(-count // (groups * threads * EACH)) * EACH))


def grid(shader: ShaderRef, context: VulkanContext, count: int, each: int = EACH) -> tuple[int, int, int]:
    """Returns the workgroups for ``count`` elements, ``each`` of them an invocation."""
    return context.fold(-(-count // (shader.workgroup(context.caps)[0] * each)))


def also_of(registration: Registration, *optional: ShaderRef) -> Registration:
    """Returns a row whose revision covers shaders as well that it uses only where a device has them."""
    old = registration.impl
    revision = KernelRevisionHash(digest64(str(old.revision), *(ref.digest for ref in optional)))
    return replace(registration, impl=replace(old, revision=revision))


def padded(shape: Sequence[int], rank: int, fill: int) -> tuple[int, ...]:
    """Returns ``shape`` with ``fill`` in front of it up to ``rank`` entries."""
    return (fill,) * (rank - len(shape)) + tuple(shape)


def copy_shaders() -> tuple[ShaderRef, ...]:
    """Returns every shader ``copy_strided`` may use, the last only where a device has it."""
    return (*(spirv("movement/copy", "copy", bytes=b, shape="small") for b in (1, 2, 4, 8)), _wide_copy())


def _wide_copy() -> ShaderRef:
    return spirv("movement/copy", "copy", bytes=8, shape="wide")


def _units(size: int, shape: Shape, layouts: list[Layout]) -> tuple[int, Shape, list[Layout]]:
    """Joins pairs of neighbouring elements into one of twice the size for as long as everything is even."""
    while size < 8 and shape[-1] % 2 == 0:
        for layout in layouts:
            if layout.strides[-1] != 1 or layout.offset % 2 or any(s % 2 for s in layout.strides[:-1]):
                return size, shape, layouts
        shape = (*shape[:-1], shape[-1] // 2)
        layouts = [
            Layout(shape, (*(s // 2 for s in layout.strides[:-1]), 1), layout.offset // 2)
            for layout in layouts
        ]
        size *= 2
    return size, shape, layouts


def copy_strided(
    context: VulkanContext,
    size: int,
    source: Buffer,
    source_layout: Layout,
    target: Buffer,
    target_layout: Layout,
) -> None:
    """Records the copy of a view onto another of the same shape; ``size`` is the bytes of an element.

    The views may have any strides, the target's without overlap, and any number of elements.
    """
    if 0 in source_layout.shape:
        return
    whole, views = source_layout.shape, (source_layout, target_layout)
    for _, (x, y), (part, place) in boxes(context, whole, (source, target), views, (size, size)):
        _copy_box(context, size, x, part, y, place)


def _copy_box(
    context: VulkanContext,
    size: int,
    source: Buffer,
    source_layout: Layout,
    target: Buffer,
    target_layout: Layout,
) -> None:
    shape, strides = collapse(source_layout.shape, source_layout.strides, target_layout.strides)
    views = [Layout(shape, s, v.offset) for s, v in zip(strides, (source_layout, target_layout), strict=True)]
    size, shape, views = _units(size, shape, views)
    outer, inner = shape[:-_COPY_RANK], shape[-_COPY_RANK:]
    count = elements(inner)
    small = spirv("movement/copy", "copy", bytes=size, shape="small")
    shader = wide_or_small(small, _wide_copy() if size == 8 else None, context.caps, count)
    groups = grid(shader, context, count)
    flat = len(inner) == 1 and all(v.strides[-1] == 1 for v in views)
    extents = padded(inner, _COPY_RANK, 1)[1:]
    walks = [padded(v.strides[-_COPY_RANK:], _COPY_RANK, 0) for v in views]
    for index in itertools.product(*(range(n) for n in outer)):
        starts = [v.offset + sum(i * s for i, s in zip(index, v.strides, strict=False)) for v in views]
        context.dispatch(
            shader,
            groups,
            (source, target),
            0b10,
            _COPY.pack(count, groups[0], *starts, *extents, *walks[0], *walks[1]),
            entry="copy_flat" if flat else "copy",
        )


def gathered(context: VulkanContext, dtype: DType, source: Buffer, layout: Layout) -> tuple[Buffer, Layout]:
    """Returns contiguous scratch that holds the elements of a view."""
    target = context.scratch(max(elements(layout.shape), 1) * dtype.size)
    dense = Layout.of(layout.shape)
    copy_strided(context, dtype.size, source, layout, target, dense)
    return target, dense
