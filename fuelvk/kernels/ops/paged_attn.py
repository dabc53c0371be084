"""PAGED_ATTN kernels: the context gathered into place, then FLASH_ATTN's own kernels."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.base.shapes import Layout, elements
from fuelvk.graph.ops._attention import AttnParams
from fuelvk.graph.ops.paged_attn import resolve_paged
from fuelvk.graph.registry import FusedOps
from fuelvk.kernels._vulkan import ShaderRef, VulkanContext, spirv
from fuelvk.kernels.claims import STRICT_PAGED_ATTN
from fuelvk.kernels.costs import cost_attn_cpu, cost_attn_vulkan
from fuelvk.kernels.ops._attention import INDEX_LIMIT, on_cpu, rows_of, too_many_keys
from fuelvk.kernels.ops.flash_attn import Forward, attend
from fuelvk.kernels.types import Registration, Shapes

if TYPE_CHECKING:
    from fuelvk.vulkan import Capabilities

_PAGES = struct.Struct("<8I")


def _resolve(layouts: Sequence[Layout | None], params: Mapping[str, Any]) -> AttnParams:
    return resolve_paged(tuple(None if x is None else x.shape for x in layouts[:6]), params)


def _numbers(
    inputs: Sequence[Any], layouts: Sequence[Layout | None], params: Mapping[str, Any]
) -> tuple[Any, ...]:
    """Returns what the C kernel takes after its arrays."""
    p = _resolve(layouts, params)
    blocks, size = inputs[1].shape[:2]
    return p.B, p.Hq, p.Hkv, p.Sq, p.D, blocks, size, inputs[3].shape[1], p.scale, p.softcap


def _capacity(shapes: Shapes) -> int:
    """Returns the elements of the gathered keys: B * Hkv * MB*bs * D."""
    k, table = shapes[1], shapes[3]
    assert k is not None
    assert table is not None
    return elements(table) * k[1] * k[2] * k[3]


def _admits(shapes: Shapes, params: Mapping[str, Any], capabilities: Capabilities) -> str | None:
    if any(shape is not None and elements(shape) >= INDEX_LIMIT for shape in shapes):
        return "an operand has 2^31 elements or more"
    if _capacity(shapes) >= INDEX_LIMIT:
        return "the gathered context has 2^31 elements or more"
    k, table = shapes[1], shapes[3]
    assert k is not None
    assert table is not None
    return too_many_keys(capabilities, table[1] * k[1], k[3])


def _vulkan(dtype: DType, pages: Mapping[int, ShaderRef], shaders: Forward) -> Callable[..., None]:
    def kernel(
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        layouts: Sequence[Layout | None],
        params: Mapping[str, Any],
        context: VulkanContext,
    ) -> None:
        p = _resolve(layouts, params)
        if not p.B * p.Hq * p.Sq * p.D:
            return
        q, k_cache, v_cache, table, lens, slopes = inputs
        cache, like_table = layouts[1], layouts[3]
        assert cache is not None
        assert like_table is not None
        blocks, size = cache.shape[:2]
        dense = Layout.of((p.B, p.Hkv, p.Sk, p.D))
        k, v = (context.scratch(max(dense.elements * dtype.size, 8)) for _ in range(2))
        if dense.elements:
            row = p.D * dtype.size
            unit = next(n for n in (8, 4, 2) if row % n == 0)
            grid = context.fold(p.B * p.Sk)
            error, word = context.error_slot
            numbers = (p.B, p.Hkv, row // unit, blocks, size, like_table.shape[1], word)
            buffers = (k_cache, v_cache, table, lens, error, k, v)
            context.dispatch(pages[unit], grid, buffers, 0b1110000, _PAGES.pack(grid[0], *numbers))
        attend(
            context, p, (q, k, v, slopes, lens), outputs[0], (layouts[0], dense, dense, layouts[5], layouts[4],
            layouts[6]), dtype, shaders,
        )  # fmt: skip

    return kernel


def _rows(dtype: DType) -> tuple[Registration, ...]:
    function = f"paged_attn_{dtype.key}"
    pages = {n: spirv("attention/pages", "pages", bytes=n) for n in (8, 4, 2) if n <= max(dtype.size, 8)}
    needed = tuple(pages[n] for n in pages if n >= min(dtype.size, 4))
    return rows_of(
        FusedOps.PAGED_ATTN,
        (dtype, dtype, dtype, DType.U32, DType.U32, DType.F32, dtype),
        function=function,
        cpu=on_cpu(function, _numbers),
        on_vulkan=[
            (_vulkan(dtype, pages, x), (*x.needed, *needed), x.optional) for x in Forward.choices(dtype)
        ],
        costs=(cost_attn_cpu, cost_attn_vulkan),
        precision=STRICT_PAGED_ATTN,
        admits=_admits,
        wrapper=__file__,
    )


IMPLS = tuple(row for dtype in FLOATS for row in _rows(dtype))
