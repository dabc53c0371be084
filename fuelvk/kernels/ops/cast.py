"""Kernels of the primitive cast: every pair of the plain types, and F8E4M3 with F32, F16 and BF16."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cpu_reference import c as ckernels
from fuelvk.base.dtypes import CASTABLE, DType
from fuelvk.base.shapes import Layout, elements
from fuelvk.graph.types import PrimitiveId
from fuelvk.kernels._cpu import c_kernel, numpy_reference
from fuelvk.kernels._vulkan import ShaderRef, VulkanContext, spirv, vulkan
from fuelvk.kernels.claims import STRICT_CORRECTLY_ROUNDED, STRICT_EXACT
from fuelvk.kernels.ops._elements import WIDE_FROM, also_of, copy_shaders, copy_strided, grid, spread, team_of
from fuelvk.kernels.ops._ranges import boxes
from fuelvk.kernels.primitive_costs import primitive_cost_cpu, primitive_cost_vulkan
from fuelvk.kernels.types import Registration

if TYPE_CHECKING:
    from fuelvk.vulkan import Buffer

CAST = PrimitiveId("cast")
_PARAMS = struct.Struct("<5I")
_QUICK = struct.Struct("<6I")
_STEMS = {1: "cast/to_bytes", 2: "cast/to_halves", 4: "cast/to_words", 8: "cast/to_doubles"}

# The numbers by which shaders/slang/cast/_cast.slang knows the source types.
_SOURCE = {
    DType.F64: 0,
    DType.F32: 1,
    DType.F16: 2,
    DType.BF16: 3,
    DType.F8E4M3: 4,
    DType.I64: 5,
    DType.I32: 6,
    DType.I16: 7,
    DType.I8: 8,
    DType.U32: 9,
    DType.U8: 10,
    DType.BOOL: 11,
}
_F8_PEERS = (DType.F32, DType.F16, DType.BF16)
PAIRS = (
    *((a, b) for a in CASTABLE for b in CASTABLE),
    *((DType.F8E4M3, b) for b in _F8_PEERS),
    *((a, DType.F8E4M3) for a in _F8_PEERS),
)


def _on_cpu(function: str) -> Callable[..., None]:
    def kernel(inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: Any) -> None:
        if outputs[0].size:
            ckernels.call(function, inputs[0], outputs[0], outputs[0].size)

    return kernel


def _quick(source: DType, target: DType) -> ShaderRef | None:
    """Returns the shader that casts whole words; only some devices have it."""
    if source is target:
        return None
    narrow = "cast/quick_floats" if source.is_float else "cast/quick_integers"
    stem = "cast/quick_long" if source.size == 8 else narrow
    return spirv(stem, f"to_{target.key}", dtype=source)


def _on_vulkan(
    shader: ShaderRef, quick: ShaderRef | None, source: DType, target: DType
) -> Callable[..., None]:
    sizes = (source.size, target.size)
    least = min(sizes)
    per_group = 8 // least

    def whole_words(context: VulkanContext, n: int, views: Sequence[Layout]) -> ShaderRef | None:
        aligned = all(v.offset * size % 8 == 0 for v, size in zip(views, sizes, strict=True))
        if quick is None or not aligned or n < WIDE_FROM or isinstance(quick.select(context.caps), str):
            return None
        return quick

    def kernel(
        inputs: Sequence[Buffer],
        outputs: Sequence[Buffer],
        layouts: Sequence[Layout],
        params: Mapping[str, Any],
        context: VulkanContext,
    ) -> None:
        shape = layouts[-1].shape
        if 0 in shape:
            return
        for part, buffers, views in boxes(context, shape, (inputs[0], outputs[0]), layouts, sizes):
            n, offsets = elements(part), [v.offset for v in views]
            found = whole_words(context, n, views)
            if found is not None:
                groups, each = spread(found, context, -(-n // per_group))
                context.dispatch(
                    found,
                    groups,
                    buffers,
                    0b10,
                    _QUICK.pack(n, groups[0], each, team_of(context.caps), *offsets),
                )
            else:
                groups = grid(shader, context, n)
                words = _PARAMS.pack(n, groups[0], _SOURCE[source], *offsets)
                context.dispatch(shader, groups, buffers, 0b10, words)

    return kernel


def _unchanged(size: int) -> Callable[..., None]:
    def kernel(inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: Any) -> None:
        copy_strided(context, size, inputs[0], layouts[0], outputs[0], layouts[-1])

    return kernel


def _rows(source: DType, target: DType) -> tuple[Registration, ...]:
    dtypes = (source, target)
    if source is target:
        shader = spirv("movement/copy", "copy", bytes=source.size, shape="small")
        kernel, extra = _unchanged(source.size), copy_shaders()
    else:
        shader = spirv(_STEMS[target.size], f"to_{target.key}", bytes=source.size)
        quick = _quick(source, target)
        kernel, extra = _on_vulkan(shader, quick, source, target), () if quick is None else (quick,)
    precision = STRICT_CORRECTLY_ROUNDED if target.is_float else STRICT_EXACT
    row = vulkan(
        CAST,
        dtypes,
        kernel,
        shaders=(shader,),
        cost=primitive_cost_vulkan("cast", dtypes),
        precision=precision,
        wrapper=__file__,
        name="vulkan.cast",
    )
    cost = primitive_cost_cpu("cast", dtypes)
    function = f"cast_{source.key}_{target.key}"
    return (
        also_of(row, *extra),
        c_kernel(
            CAST,
            dtypes,
            _on_cpu(function),
            functions=(function,),
            cost=cost,
            precision=precision,
            wrapper=__file__,
        ),
        numpy_reference(CAST, dtypes, cost=cost, precision=precision),
    )


IMPLS = tuple(row for source, target in PAIRS for row in _rows(source, target))
