"""FLASH_ATTN kernels."""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cpu_reference import c
from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.base.shapes import Layout, elements
from fuelvk.graph.ops._attention import AttnParams, resolve
from fuelvk.graph.registry import FusedOps
from fuelvk.kernels._cpu import c_kernel, numpy_reference
from fuelvk.kernels._vulkan import ShaderRef, VulkanContext, spirv, vulkan
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
    too_many_keys,
)
from fuelvk.kernels.types import KernelCaps, Registration, Shapes

if TYPE_CHECKING:
    from fuelvk.vulkan import Buffer, Capabilities

_PIECE = 1024
_TILES = (4, 8)  # query rows of a subgroup
_SUBGROUPS = struct.Struct("<2I3i")
# Below so many tiles the pieces of the keys are worked on side by side.
_FEW_CPU, _FEW_GPU = 16, 1024
# Workers of a CPU device share its cores and keep their part of the work buffer in cache; a GPU wants many.
_WORKERS_CPU, _WORKERS_GPU = 32, 2048


def _resolve(
    inputs: Sequence[Any], layouts: Sequence[Layout | None], params: Mapping[str, Any]
) -> AttnParams:
    shapes = tuple(None if layout is None else layout.shape for layout in layouts[:5])
    return resolve(shapes, params, has_k_lens=inputs[4] is not None)


def _c(dtype: DType) -> Callable[..., None]:
    name = f"flash_attn_{dtype.key}"

    def kernel(
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        layouts: Sequence[Layout | None],
        params: Mapping[str, Any],
        context: Any,
    ) -> None:
        c.call(name, *inputs, outputs[0], *c_arguments(_resolve(inputs, layouts, params)))

    return kernel


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


def _vulkan(dtype: DType, rows: ShaderRef, subgroups: ShaderRef | None) -> Callable[..., None]:
    """Returns the wrapper of the portable kernel, or of the one for subgroups, which leaves it odd layouts."""

    def kernel(
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        layouts: Sequence[Layout | None],
        params: Mapping[str, Any],
        context: VulkanContext,
    ) -> None:
        p = _resolve(inputs, layouts, params)
        if p.B * p.Hq * p.Sq * p.D:
            attend(context, p, inputs, outputs[0], layouts, dtype, rows, subgroups)

    return kernel


def attend(
    context: VulkanContext,
    p: AttnParams,
    inputs: Sequence[Any],
    y: Buffer,
    layouts: Sequence[Layout | None],
    dtype: DType,
    rows: ShaderRef,
    subgroups: ShaderRef | None,
) -> None:
    """Records dense attention of q, k, v, slopes and k_lens (None where left out) into y, the last of ``layouts``."""
    if subgroups is not None and _in_pairs(p.D, layouts):
        _by_subgroups(context, subgroups, p, inputs, y, layouts, dtype)
    else:
        _by_rows(context, rows, p, inputs, y, layouts, dtype)


def _in_pairs(d: int, layouts: Sequence[Layout | None]) -> bool:
    """True where elements 2i and 2i+1 of every row lie together on an even element of q, k, v and y."""
    places = [layouts[i] for i in (0, 1, 2, 5)]
    return d % 2 == 0 and all(
        x is not None and x.strides[3] == 1 and not any(n % 2 for n in (x.offset, *x.strides[:3]))
        for x in places
    )


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
    q, k, v, slopes, lens = inputs
    error, word = (
        context.error_slot if lens is not None else (y, 0)
    )  # without lengths there is nothing to report
    call = context.constant(_call_words(p, layouts, dtype, word, count))
    grid = context.fold(count)
    buffers = (q, k, v, slopes or call, lens or call, call, error, y)
    context.dispatch(shader, grid, buffers, 0b11000000, struct.pack("<I", grid[0]))


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
    span = 2 * context.caps.subgroup_width
    passes = -(-p.D // span)
    outputs = passes * tile * span
    stride = KEYS * tile + 3 * tile * span + outputs * (2 if p.Sk > _PIECE else 1)
    parts = workers * stride
    total = parts + count * splits * tile * (passes + 1) * span
    q, k, v, slopes, lens = inputs
    error, word = (
        context.error_slot if lens is not None else (y, 0)
    )  # without lengths there is nothing to report
    call = context.constant(_call_words(p, layouts, dtype, word, count))
    work = context.scratch(total * dtype.accumulator.size)
    buffers = (q, k, v, slopes or call, lens or call, call, work, error, y)
    params = _SUBGROUPS.pack(workers, stride, splits, parts, tile)
    context.dispatch(shader, (workers, 1, 1), buffers, 0b111000000, params, entry=f"attend{tile}")
    if splits:
        groups = min(count * tile, _WORKERS_GPU)
        params = _SUBGROUPS.pack(groups, stride, splits, parts, tile)
        context.dispatch(shader, (groups, 1, 1), buffers, 0b111000000, params, entry="combine")


def _rows(dtype: DType) -> tuple[Registration, ...]:
    dtypes = (dtype, dtype, dtype, DType.F32, DType.U32, dtype)
    op = FusedOps.FLASH_ATTN
    rows = spirv("attention/rows", "rows", dtype=dtype)
    subgroups = spirv("attention/subgroups", "attend8", dtype=dtype)
    caps = KernelCaps(strided_input=True)

    def on_vulkan(shaders: tuple[ShaderRef, ...], subgroups: ShaderRef | None) -> Registration:
        return vulkan(
            op, dtypes, _vulkan(dtype, rows, subgroups), shaders=shaders, precision=STRICT_ATTN,
            wrapper=__file__, cost=functools.partial(cost_attn_vulkan, dtype=dtype), caps=caps,
            admits=_admits,
        )  # fmt: skip

    return (
        c_kernel(
            op, dtypes, _c(dtype), functions=(f"flash_attn_{dtype.key}",), cost=cost_attn_cpu,
            precision=STRICT_ATTN, wrapper=__file__,
        ),
        numpy_reference(op, dtypes, cost=cost_attn_cpu),
        on_vulkan((subgroups, rows), subgroups),
        on_vulkan((rows,), None),
    )  # fmt: skip


IMPLS = tuple(row for dtype in FLOATS for row in _rows(dtype))
