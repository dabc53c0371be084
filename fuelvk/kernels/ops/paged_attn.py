"""PAGED_ATTN kernels: the context gathered into place, then FLASH_ATTN's own kernels."""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cpu_reference import c
from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.base.shapes import Layout, elements
from fuelvk.graph.ops._attention import AttnParams
from fuelvk.graph.ops.paged_attn import resolve_paged
from fuelvk.graph.registry import FusedOps
from fuelvk.kernels._cpu import c_kernel, numpy_reference
from fuelvk.kernels._vulkan import ShaderRef, VulkanContext, spirv, vulkan
from fuelvk.kernels.claims import STRICT_PAGED_ATTN
from fuelvk.kernels.costs import cost_attn_cpu, cost_attn_vulkan
from fuelvk.kernels.ops._attention import INDEX_LIMIT, too_many_keys
from fuelvk.kernels.ops.flash_attn import attend
from fuelvk.kernels.types import Registration, Shapes

if TYPE_CHECKING:
    from fuelvk.vulkan import Capabilities

_PAGES = struct.Struct("<8I")


def _resolve(layouts: Sequence[Layout | None], params: Mapping[str, Any]) -> AttnParams:
    return resolve_paged(tuple(None if x is None else x.shape for x in layouts[:6]), params)


def _c(dtype: DType) -> Callable[..., None]:
    name = f"paged_attn_{dtype.key}"

    def kernel(
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        layouts: Sequence[Layout | None],
        params: Mapping[str, Any],
        context: Any,
    ) -> None:
        p = _resolve(layouts, params)
        blocks, size = inputs[1].shape[:2]
        c.call(
            name, *inputs, outputs[0], p.B, p.Hq, p.Hkv, p.Sq, p.D, blocks, size, inputs[3].shape[1], p.scale,
            p.softcap,
        )  # fmt: skip

    return kernel


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


def _vulkan(
    dtype: DType, pages: Mapping[int, ShaderRef], rows: ShaderRef, subgroups: ShaderRef | None
) -> Callable[..., None]:
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
            layouts[6]), dtype, rows, subgroups,
        )  # fmt: skip

    return kernel


def _rows(dtype: DType) -> tuple[Registration, ...]:
    dtypes = (dtype, dtype, dtype, DType.U32, DType.U32, DType.F32, dtype)
    op = FusedOps.PAGED_ATTN
    pages = {n: spirv("attention/pages", "pages", bytes=n) for n in (8, 4, 2) if n <= max(dtype.size, 8)}
    needed = tuple(pages[n] for n in pages if n >= min(dtype.size, 4))
    rows = spirv("attention/rows", "rows", dtype=dtype)
    subgroups = spirv("attention/subgroups", "attend8", dtype=dtype)

    def on_vulkan(shaders: tuple[ShaderRef, ...], subgroups: ShaderRef | None) -> Registration:
        return vulkan(
            op, dtypes, _vulkan(dtype, pages, rows, subgroups), shaders=(*shaders, *needed),
            precision=STRICT_PAGED_ATTN, wrapper=__file__,
            cost=functools.partial(cost_attn_vulkan, dtype=dtype), admits=_admits,
        )  # fmt: skip

    return (
        c_kernel(
            op, dtypes, _c(dtype), functions=(f"paged_attn_{dtype.key}",), cost=cost_attn_cpu,
            precision=STRICT_PAGED_ATTN, wrapper=__file__,
        ),
        numpy_reference(op, dtypes, cost=cost_attn_cpu),
        on_vulkan((subgroups, rows), subgroups),
        on_vulkan((rows,), None),
    )  # fmt: skip


IMPLS = tuple(row for dtype in FLOATS for row in _rows(dtype))
