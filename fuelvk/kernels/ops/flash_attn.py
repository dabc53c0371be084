"""FLASH_ATTN kernels."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.base.shapes import Layout, elements
from fuelvk.graph.ops._attention import AttnParams
from fuelvk.graph.registry import FusedOps
from fuelvk.kernels._vulkan import ShaderRef, VulkanContext, narrower_spirv, spirv
from fuelvk.kernels.claims import STRICT_ATTN
from fuelvk.kernels.costs import cost_attn_cpu, cost_attn_vulkan
from fuelvk.kernels.ops._attention import (
    INDEX_LIMIT,
    KEYS,
    POSITION_LIMIT,
    block_steps,
    c_arguments,
    call_words,
    enough_workers,
    on_cpu,
    resolved,
    rows_of,
    too_many_keys,
)
from fuelvk.kernels.types import KernelCaps, Registration, Shapes

if TYPE_CHECKING:
    from fuelvk.vulkan import Buffer, Capabilities

_PLACES = (0, 1, 2, 3, 4)
_PIECE = 1024
_TILES = (4, 8)  # query rows of a subgroup
# Query rows of `attend_many`'s tiles, the tiles that keep all cores busy, and the rows it takes at a time.
_MANY_ROWS, _MANY_TILES, _MANY_STEP = (64, 32, 16), 8, 4
_SUBGROUPS = struct.Struct("<2I3i")
# Below so many tiles the pieces of the keys are worked on side by side.
_FEW_CPU, _FEW_GPU = 16, 1024
# Workers of a CPU device share its cores and keep their part of the work buffer in cache; a GPU wants many.
_WORKERS_CPU, _WORKERS_GPU = 32, 2048


@dataclass(frozen=True, slots=True)
class Forward:
    """The kernels of attention forward; ``subgroups`` and, for CPU devices, ``many`` take elements in pairs."""

    rows: ShaderRef
    subgroups: ShaderRef | None = None
    many: ShaderRef | None = None

    @staticmethod
    def choices(dtype: DType) -> tuple[Forward, Forward]:
        """Returns what devices with subgroups get, then what all others do."""
        rows = spirv("attention/rows", "rows", dtype=dtype)
        subgroups = narrower_spirv("attention/subgroups", "attend8", dtype=dtype)
        many = None if dtype is DType.F64 else narrower_spirv("attention/many", "attend_many", dtype=dtype)
        return Forward(rows, subgroups, many), Forward(rows)

    @property
    def needed(self) -> tuple[ShaderRef, ...]:
        """The shaders without which the kernel is not for a device."""
        return (self.rows,) if self.subgroups is None else (self.subgroups, self.rows)

    @property
    def optional(self) -> tuple[ShaderRef, ...]:
        return () if self.many is None else (self.many,)


def _call_words(
    p: AttnParams, layouts: Sequence[Layout | None], dtype: DType, error_word: int, count: int
) -> bytes:
    q, k, v, slopes, lens, y = (layouts[i] for i in range(6))
    assert q is not None
    assert k is not None
    assert v is not None
    assert y is not None
    return call_words(p, (q, k, v, y), slopes, lens, dtype, error_word, count)


def _admits(shapes: Shapes, params: Mapping[str, Any], capabilities: Capabilities) -> str | None:
    if any(shape is not None and elements(shape) >= INDEX_LIMIT for shape in shapes):
        return "an operand has 2^31 elements or more"
    if abs(params.get("causal_offset") or 0) > POSITION_LIMIT:
        return "causal_offset lies beyond 2^30"
    q, k = shapes[0], shapes[1]
    assert q is not None
    assert k is not None
    return too_many_keys(capabilities, k[2], q[3])


def _vulkan(dtype: DType, shaders: Forward) -> Callable[..., None]:
    """Returns the wrapper of the kernels for subgroups, which leave odd layouts to the portable one, or of that."""

    def kernel(
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        layouts: Sequence[Layout | None],
        params: Mapping[str, Any],
        context: VulkanContext,
    ) -> None:
        p = resolved(inputs, layouts, params, _PLACES)
        if p.B * p.Hq * p.Sq * p.D:
            attend(context, p, inputs, outputs[0], layouts, dtype, shaders)

    return kernel


def attend(
    context: VulkanContext,
    p: AttnParams,
    inputs: Sequence[Any],
    y: Buffer,
    layouts: Sequence[Layout | None],
    dtype: DType,
    shaders: Forward,
) -> None:
    """Records dense attention of q, k, v, slopes and k_lens (None where left out) into y, the last of ``layouts``."""
    if shaders.subgroups is None or not _together(dtype, p.D, layouts):
        _by_rows(context, shaders.rows, p, inputs, y, layouts, dtype)
        return
    tile = _many_rows(context.caps, p) if _has(context.caps, shaders.many) else 0
    if shaders.many is not None and tile:
        _by_many(context, shaders.many, tile, p, inputs, y, layouts, dtype)
    else:
        _by_subgroups(context, shaders.subgroups, p, inputs, y, layouts, dtype)


def _has(caps: Capabilities, shader: ShaderRef | None) -> bool:
    return shader is not None and not isinstance(shader.select(caps), str)


def _together(dtype: DType, d: int, layouts: Sequence[Layout | None]) -> bool:
    """True where the rows of q, k, v and y are whole aligned pairs of elements, of 16-bit ones fours."""
    n = 4 if dtype.size == 2 else 2
    places = [layouts[i] for i in (0, 1, 2, 5)]
    return d % n == 0 and all(
        x is not None and x.strides[3] == 1 and not any(step % n for step in (x.offset, *x.strides[:3]))
        for x in places
    )


def _operands(
    context: VulkanContext,
    p: AttnParams,
    inputs: Sequence[Any],
    y: Buffer,
    layouts: Sequence[Layout | None],
    dtype: DType,
    count: int,
) -> tuple[tuple[Any, ...], Any]:
    """Returns q, k, v, slopes, lengths and the call's numbers, and the buffer of errors."""
    q, k, v, slopes, lens = inputs
    # Without lengths there is nothing to report.
    error, word = context.error_slot if lens is not None else (y, 0)
    call = context.constant(_call_words(p, layouts, dtype, word, count))
    return (q, k, v, slopes or call, lens or call, call), error


def _by_rows(
    context: VulkanContext,
    shader: ShaderRef,
    p: AttnParams,
    inputs: Sequence[Any],
    y: Buffer,
    layouts: Sequence[Layout | None],
    dtype: DType,
) -> None:
    count = p.B * p.Hq * p.Sq
    given, error = _operands(context, p, inputs, y, layouts, dtype, count)
    grid = context.fold(count)
    context.dispatch(shader, grid, (*given, error, y), 0b11000000, struct.pack("<I", grid[0]))


def _many_rows(caps: Capabilities, p: AttnParams) -> int:
    """Returns the query rows of a tile of `attend_many`, 0 where it is not for a call.

    A tile holds a block's keys once for all of its rows; some tiles must be left for every core.
    """
    per_kv_head = p.group * p.Sq
    if caps.device_type != "cpu" or caps.loop_iterations or p.Sq < _MANY_STEP or per_kv_head < _MANY_ROWS[-1]:
        return 0
    tiles = {rows: p.B * p.Hkv * -(-per_kv_head // rows) for rows in _MANY_ROWS}
    if p.Sk > _PIECE and tiles[_MANY_ROWS[-1]] < _MANY_TILES:
        return 0
    return next((rows for rows in _MANY_ROWS if tiles[rows] >= _MANY_TILES), _MANY_ROWS[-1])


def _by_many(
    context: VulkanContext,
    shader: ShaderRef,
    rows: int,
    p: AttnParams,
    inputs: Sequence[Any],
    y: Buffer,
    layouts: Sequence[Layout | None],
    dtype: DType,
) -> None:
    count = p.B * p.Hkv * -(-p.group * p.Sq // rows)
    workers = min(count, _WORKERS_CPU)
    span = 2 * shader.width(context.caps)
    outputs = rows * -(-p.D // (2 * span)) * 2 * span
    packed = rows * -(-p.D // KEYS) * KEYS
    stride = packed + KEYS * rows + 3 * rows * span + outputs * (2 if p.Sk > _PIECE else 1)
    given, error = _operands(context, p, inputs, y, layouts, dtype, count)
    work = context.scratch(workers * stride * dtype.accumulator.size)
    params = _SUBGROUPS.pack(workers, stride, 0, 0, rows)
    context.dispatch(shader, (workers, 1, 1), (*given, work, error, y), 0b111000000, params)


def _by_subgroups(
    context: VulkanContext,
    shader: ShaderRef,
    p: AttnParams,
    inputs: Sequence[Any],
    y: Buffer,
    layouts: Sequence[Layout | None],
    dtype: DType,
) -> None:
    per_kv_head = p.group * p.Sq
    tile = next((n for n in _TILES if n >= per_kv_head), _TILES[-1])
    count = p.B * p.Hkv * -(-per_kv_head // tile)
    few, workers = (_FEW_CPU, _WORKERS_CPU) if context.caps.device_type == "cpu" else (_FEW_GPU, _WORKERS_GPU)
    pieces = -(-p.Sk // _PIECE)
    splits = pieces if pieces > 1 and count < few else 0
    units, blocks = count * max(splits, 1), -(-min(p.Sk, _PIECE if splits else p.Sk) // KEYS)
    workers = min(units, enough_workers(context.caps, workers, units, blocks * block_steps(p.D)))
    span = 2 * shader.width(context.caps)
    passes = -(-p.D // span)
    outputs = passes * tile * span
    stride = KEYS * tile + 3 * tile * span + outputs * (2 if p.Sk > _PIECE else 1)
    parts = workers * stride
    total = parts + count * splits * tile * (passes + 1) * span
    given, error = _operands(context, p, inputs, y, layouts, dtype, count)
    work = context.scratch(total * dtype.accumulator.size)
    buffers = (*given, work, error, y)
    params = _SUBGROUPS.pack(workers, stride, splits, parts, tile)
    context.dispatch(shader, (workers, 1, 1), buffers, 0b111000000, params, entry=f"attend{tile}")
    if splits:
        groups = min(count * tile, _WORKERS_GPU)
        params = _SUBGROUPS.pack(groups, stride, splits, parts, tile)
        context.dispatch(shader, (groups, 1, 1), buffers, 0b111000000, params, entry="combine")


def _rows(dtype: DType) -> tuple[Registration, ...]:
    function = f"flash_attn_{dtype.key}"
    return rows_of(
        FusedOps.FLASH_ATTN,
        (dtype, dtype, dtype, DType.F32, DType.U32, dtype),
        function=function,
        cpu=on_cpu(
            function, lambda inputs, layouts, params: c_arguments(resolved(inputs, layouts, params, _PLACES))
        ),
        on_vulkan=[(_vulkan(dtype, x), x.needed, x.optional) for x in Forward.choices(dtype)],
        costs=(cost_attn_cpu, cost_attn_vulkan),
        precision=STRICT_ATTN,
        admits=_admits,
        wrapper=__file__,
        caps=KernelCaps(strided_input=True),
    )


IMPLS = tuple(row for dtype in FLOATS for row in _rows(dtype))
