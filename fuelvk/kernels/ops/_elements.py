"""What the wrappers of pointwise and movement kernels share: strides into parameters, grids, strided copies."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fuelvk.base.dtypes import DType
from fuelvk.base.hashing import digest64
from fuelvk.base.shapes import Layout, Shape, collapse, elements
from fuelvk.kernels._vulkan import ShaderRef, VulkanContext, spirv
from fuelvk.kernels.ops._loops import enough_groups
from fuelvk.kernels.ops._ranges import boxes
from fuelvk.kernels.types import KernelRevisionHash, Registration

if TYPE_CHECKING:
    from fuelvk.vulkan import Buffer, Capabilities

EACH = 8  # elements of an invocation
MOST = 128
_WORKGROUPS = 32
# Below this many elements a workgroup of 1024 is mostly idle, and starting its subgroups costs more than it saves.
WIDE_FROM = 2048
_COPY = struct.Struct("<2I2i7I8i8i")
_COPY_RANK = 8
# Copies by rows: 64-bit words of the shortest row, of a part of a row, and for a workgroup of a CPU driver.
_ROWS = struct.Struct("<4I2iI3i4I10i")
_ROW_RANK = 5
LEAST_ROW = 8
_LEAST_PART, _MOST_PART, _PARTS = 64, 2048, 1024
_WORDS_PER_GROUP = 1 << 15
# Copies that turn rows into columns, as the shader has it.
_TURN = struct.Struct("<5I2iI4i2I6i")
_TURN_RANK, _TURN_TEAM, _TURN_TILE = 5, 8, 128
_GPU_TEAM = 32
# More than the loop iterations of a small piece of work.
_PIECE_STEPS = 16


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


def team_of(caps: Capabilities) -> int:
    """Returns how many invocations walk side by side: a subgroup of a CPU driver, which then reads straight on."""
    return (caps.subgroup_width or 8) if caps.device_type == "cpu" else _GPU_TEAM


def spread(shader: ShaderRef, context: VulkanContext, count: int) -> tuple[tuple[int, int, int], int]:
    """Returns the workgroups for ``count`` pieces of work, and how many of them an invocation takes."""
    threads = shader.workgroup(context.caps)[0]
    groups = -(-count // threads)
    if context.caps.device_type == "cpu":
        groups = _shared(context.caps, min(groups, _WORKGROUPS), threads, count, _PIECE_STEPS)
    return context.fold(groups), -(-count // (groups * threads))


def _shared(caps: Capabilities, groups: int, each: int, items: int, steps: int) -> int:
    """Returns ``groups`` of ``each`` workers, or more where a driver would end loops of ``steps`` an item."""
    return -(-enough_groups(caps, groups * each, items, steps) // each)


def also_of(registration: Registration, *optional: ShaderRef) -> Registration:
    """Returns a row whose revision covers shaders as well that it uses only where a device has them."""
    old = registration.impl
    revision = KernelRevisionHash(digest64(str(old.revision), *(ref.digest for ref in optional)))
    return replace(registration, impl=replace(old, revision=revision))


def padded(shape: Sequence[int], rank: int, fill: int) -> tuple[int, ...]:
    """Returns ``shape`` with ``fill`` in front of it up to ``rank`` entries."""
    return (fill,) * (rank - len(shape)) + tuple(shape)


def outer_offsets(shape: Shape, strides: Sequence[Shape], rank: int) -> Iterator[tuple[int, ...]]:
    """Yields where every operand's part begins, for each place of the axes before the last ``rank``."""
    for index in itertools.product(*(range(n) for n in shape[:-rank])):
        yield tuple(sum(i * s for i, s in zip(index, walked, strict=False)) for walked in strides)


def copy_shaders() -> tuple[ShaderRef, ...]:
    """Returns every shader ``copy_strided`` may use, the last ones only where a device has them."""
    small = (spirv("movement/copy", "copy", bytes=b, shape="small") for b in (1, 2, 4, 8))
    turns = (spirv("movement/turn", "turn", bytes=b) for b in (1, 2, 4, 8))
    return (*small, _wide_copy(), *(_row_shader(b) for b in (1, 2, 4, 8)), *turns)


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
    if _turned(context, size, source, target, shape, views):
        return
    if _by_rows(context, size, source, target, shape, views):
        return
    inner = shape[-_COPY_RANK:]
    count = elements(inner)
    small = spirv("movement/copy", "copy", bytes=size, shape="small")
    shader = wide_or_small(small, _wide_copy() if size == 8 else None, context.caps, count)
    groups = grid(shader, context, count)
    flat = len(inner) == 1 and all(v.strides[-1] == 1 for v in views)
    extents = padded(inner, _COPY_RANK, 1)[1:]
    walks = [padded(v.strides[-_COPY_RANK:], _COPY_RANK, 0) for v in views]
    for offsets in outer_offsets(shape, [v.strides for v in views], _COPY_RANK):
        starts = [v.offset + offset for v, offset in zip(views, offsets, strict=True)]
        context.dispatch(
            shader,
            groups,
            (source, target),
            0b10,
            _COPY.pack(count, groups[0], *starts, *extents, *walks[0], *walks[1]),
            entry="copy_flat" if flat else "copy",
        )


def _row_shader(size: int) -> ShaderRef:
    return spirv("movement/copy_rows", "copy_rows", bytes=size)


@dataclass(frozen=True, slots=True)
class RowParts:
    """How rows are cut into parts for teams: the grid, the first four parameters, parts a row, words a part."""

    groups: tuple[int, int, int]
    head: tuple[int, int, int, int]
    parts: int
    words: int


def row_parts(shader: ShaderRef, context: VulkanContext, rows: int, words: int) -> RowParts:
    """Returns the parts of ``rows`` rows of up to ``words`` 64-bit words for a shader that includes _row.slang."""
    team, total = team_of(context.caps), rows * max(words, 1)
    part = max(_LEAST_PART, min(_MOST_PART, total // _PARTS // _LEAST_PART * _LEAST_PART))
    parts = max(1, -(-words // part))
    items, teams = rows * parts, shader.workgroup(context.caps)[0] // team
    groups = -(-items // teams)
    if context.caps.device_type == "cpu":
        groups = min(groups, _WORKGROUPS, max(1, total // _WORDS_PER_GROUP))
        groups = _shared(context.caps, groups, teams, items, min(part, words) // team + _PIECE_STEPS)
    folded = context.fold(groups)
    return RowParts(folded, (items, folded[0], -(-items // (groups * teams)), team), parts, part)


def _by_rows(
    context: VulkanContext, size: int, source: Buffer, target: Buffer, shape: Shape, views: list[Layout]
) -> bool:
    """Records a copy by whole rows of the target where those are long; returns whether it did."""
    (*rows, inner), (x, y) = shape, views
    words, flat = inner * size // 8, len(shape) == 1 and x.strides == (1,) and size == 8
    # CPU drivers copy flat arrays by rows as well, which reads their lines ahead.
    flat = flat and context.caps.device_type != "cpu"
    if y.strides[-1] != 1 or words < LEAST_ROW or len(rows) > _ROW_RANK or flat:
        return False
    shader = _row_shader(size)
    if elements(shape) * size < 8 * WIDE_FROM or isinstance(shader.select(context.caps), str):
        return False
    cut = row_parts(shader, context, elements(rows), words)
    context.dispatch(
        shader,
        cut.groups,
        (source, target),
        0b10,
        _ROWS.pack(
            *cut.head,
            inner,
            x.strides[-1],
            cut.parts,
            cut.words,
            x.offset,
            y.offset,
            *padded(rows, _ROW_RANK, 1)[1:],
            *padded(x.strides[:-1], _ROW_RANK, 0),
            *padded(y.strides[:-1], _ROW_RANK, 0),
        ),
    )
    return True


def _turned(
    context: VulkanContext, size: int, source: Buffer, target: Buffer, shape: Shape, views: list[Layout]
) -> bool:
    """Records a copy of a view that is contiguous along another axis than the target; returns whether it did."""
    x, y = views
    last = len(shape) - 1
    axis = next((a for a in range(last) if x.strides[a] == 1), None)
    shader = spirv("movement/turn", "turn", bytes=size)
    if axis is None or y.strides[-1] != 1 or len(shape) > _TURN_RANK or elements(shape) < WIDE_FROM:
        return False
    if min(shape[axis], shape[-1]) < _TURN_TEAM or isinstance(shader.select(context.caps), str):
        return False
    rest = [a for a in range(last) if a != axis]
    bases = (x.offset, y.offset, shape[axis], y.strides[axis], x.strides[-1])
    even = all(v % 2 == 0 for v in (*bases, *(view.strides[a] for a in rest for view in views)))
    paired = size == 4 and shape[-1] % 4 == 0 and even
    j_tiles = -(-shape[axis] // (_TURN_TEAM * (1 + paired)))
    i_tiles = -(-shape[-1] // _TURN_TILE)
    tiles = j_tiles * i_tiles * elements([shape[a] for a in rest])
    teams = shader.workgroup(context.caps)[0] // _TURN_TEAM
    groups = -(-tiles // teams)
    if context.caps.device_type == "cpu":
        groups = _shared(context.caps, min(groups, _WORKGROUPS), teams, tiles, 2 * _TURN_TILE)
    folded = context.fold(groups)
    walks = [padded([v.strides[a] for a in rest], _TURN_RANK - 2, 0) for v in views]
    context.dispatch(
        shader,
        folded,
        (source, target),
        0b10,
        _TURN.pack(
            tiles,
            folded[0],
            -(-tiles // (groups * teams)),
            j_tiles,
            i_tiles,
            shape[axis],
            shape[-1],
            paired,
            x.offset,
            y.offset,
            x.strides[-1],
            y.strides[axis],
            *padded([shape[a] for a in rest], _TURN_RANK - 2, 1)[1:],
            *walks[0],
            *walks[1],
        ),
    )
    return True


def gathered(context: VulkanContext, dtype: DType, source: Buffer, layout: Layout) -> tuple[Buffer, Layout]:
    """Returns contiguous scratch that holds the elements of a view."""
    target = context.scratch(max(elements(layout.shape), 1) * dtype.size)
    dense = Layout.of(layout.shape)
    copy_strided(context, dtype.size, source, layout, target, dense)
    return target, dense
