"""Kernels of sum, mean, prod, max and min over any axes.

The reduced axes count as one of n elements, flattened in their order. A reduction in blocks (order.inc: more than BLOCK
elements) is one dispatch per level: the first writes the result of every block in the accumulator's type, the next
reduces those. Two walks give the same bits:

    rows     the n elements are neighbours: subgroups, or workgroups where a device has none, take blocks of rows
    columns  other kept elements lie closer than the reduced ones: invocations take neighbouring columns

A view that is neither (reduced axes that are not one axis in memory, more than two kept ones) is copied first. A level
beyond the reach of 32-bit indices is cut into parts: along the kept axes, and between blocks.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cpu_reference import c as ckernels
from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.base.shapes import Layout, elements, normalize_axes
from fuelvk.graph.types import PrimitiveId
from fuelvk.kernels._cpu import c_kernel, numpy_reference
from fuelvk.kernels._vulkan import ShaderRef, VulkanContext, spirv, vulkan
from fuelvk.kernels.claims import STRICT_EXACT, STRICT_MEAN, STRICT_PROD, STRICT_SUM
from fuelvk.kernels.ops._elements import also_of, copy_shaders, wide_or_small
from fuelvk.kernels.ops._rows import row_groups, scalar_words
from fuelvk.kernels.ops._walk import Walk, in_parts, order, walked
from fuelvk.kernels.primitive_costs import primitive_cost_cpu, primitive_cost_vulkan
from fuelvk.kernels.types import KernelCaps, PrecisionGuarantee, Registration

if TYPE_CHECKING:
    from fuelvk.vulkan import Buffer

BLOCK = 16384
_ROWS = struct.Struct("<4I3iI8s")
_PARTIALS = struct.Struct("<4I2i4x8x")
_COLUMNS = struct.Struct("<4I2i2I3i4x8s")
_PAIRED, _FROM_WIDE, _TO_WIDE, _GROUPED = 1, 2, 4, 8
# Below this many rows a column is one invocation's, since most of its partials are empty.
_COLUMNS_ALONE = 64
# From this many rows on the partials of whole strips of columns are made first, which reads memory in long pieces.
_PARTIALS_FROM = 512
_PARTS, _STRIP, _TEAM = 64, 512, 8  # partials a column, pairs of columns a strip, invocations that share one
# Pairs of columns an invocation of wide workgroups takes.
_SPAN = {4: 4, 2: 4, 8: 2}


@dataclass(frozen=True, slots=True)
class _Shaders:
    """The entry points of one op in one dtype, and those of the passes before the last."""

    rows: ShaderRef
    first_rows: ShaderRef
    columns: tuple[ShaderRef, ShaderRef]  # small, wide
    first_columns: tuple[ShaderRef, ShaderRef]
    partials: (
        ShaderRef | None
    )  # the 64 partials of many neighbouring columns, where there is a kernel for them


def _on_cpu(function: str) -> Callable[..., None]:
    def kernel(inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: Any) -> None:
        x, y = inputs[0], outputs[0]
        if not y.size:
            return
        rows = np.ascontiguousarray(x.transpose(order(x.ndim, normalize_axes(params["axes"], x.ndim))))
        ckernels.call(function, rows, y, y.size, x.size // y.size)

    return kernel


class _Call:
    """Records one reduction: a dispatch per level of blocks."""

    def __init__(self, context: VulkanContext, dtype: DType, shaders: _Shaders) -> None:
        self.context = context
        self.dtype = dtype
        self.shaders = shaders
        self.narrow = dtype.accumulator is not dtype

    def run(self, x: Buffer, x0: int, walk: Walk, y: Buffer, y0: int) -> None:
        count = scalar_words(walk.n, self.dtype)
        kept, flags = walk.outer * walk.inner, 0
        while walk.n > BLOCK:
            blocks = -(-walk.n // BLOCK)
            partial = self.context.scratch(kept * blocks * self.dtype.accumulator.size)
            self._level(x, x0, walk, partial, 0, flags | _TO_WIDE * self.narrow, count, last=False)
            x, x0, flags = partial, 0, _FROM_WIDE * self.narrow
            walk = Walk(walk.outer, blocks, walk.inner, blocks * walk.inner, walk.inner, 1)
        self._level(x, x0, walk, y, y0, flags, count, last=True)

    def _level(
        self, x: Buffer, x0: int, walk: Walk, y: Buffer, y0: int, flags: int, count: bytes, *, last: bool
    ) -> None:
        """Records a level, in one part or more."""
        wide = self.dtype.accumulator.size
        from_size = wide if flags & _FROM_WIDE else self.dtype.size
        to_size = self.dtype.size if last else wide
        parts = (
            part
            for piece, dx, dy in walk.side_by_side(BLOCK)
            for part in in_parts(self.context, x, x0 + dx, piece, from_size, y, y0 + dy, to_size, BLOCK)
        )
        for part, (part_x, from_view), (part_y, to_view) in parts:
            blocks, start = part.blocks(BLOCK), from_view.offset
            if last and not flags:
                part_x, start, part = self._partials(part_x, start, part)
            self._dispatch(part_x, start, part, part_y, to_view.offset, blocks, flags, count, last=last)

    def _partials(self, x: Buffer, x0: int, walk: Walk) -> tuple[Buffer, int, Walk]:
        """Returns what is left to reduce: the partials of long columns, or the walk as it was."""
        shader, context = self.shaders.partials, self.context
        side_by_side = walk.outer == 1 and walk.inner_stride == 1 and not walk.in_rows
        even = not any(v % 2 for v in (x0, walk.inner, walk.step))
        if shader is None or walk.n < _PARTIALS_FROM or not (side_by_side and even):
            return x, x0, walk
        if isinstance(shader.select(context.caps), str):
            return x, x0, walk
        pairs = walk.inner // 2
        items = _PARTS * -(-pairs // _STRIP)
        groups = context.fold(-(-items // (shader.workgroup(context.caps)[0] // _TEAM)))
        partial = context.scratch(_PARTS * walk.inner * self.dtype.size)
        words = _PARTIALS.pack(items, walk.n, groups[0], pairs, x0, walk.step // 2)
        context.dispatch(shader, groups, (x, partial), 0b10, words)
        return partial, 0, Walk(1, _PARTS, walk.inner, 0, walk.inner, 1)

    def _dispatch(
        self,
        x: Buffer,
        x0: int,
        walk: Walk,
        y: Buffer,
        y0: int,
        blocks: int,
        flags: int,
        count: bytes,
        *,
        last: bool,
    ) -> None:
        buffers = (x, y, x, y) if self.narrow else (x, y)
        writes = 0b1010 if self.narrow else 0b10
        context, shaders = self.context, self.shaders
        if walk.in_rows:
            shader = shaders.rows if last else shaders.first_rows
            flags |= _PAIRED * (not (x0 % 2 or walk.outer_stride % 2))
            items = walk.outer * blocks
            groups = row_groups(shader, context, items)
            words = _ROWS.pack(items, walk.n, groups[0], flags, x0, y0, walk.outer_stride, blocks, count)
        else:
            even = not any(v % 2 for v in (x0, walk.outer_stride, walk.step))
            flags |= _PAIRED * (even and walk.inner_stride == 1 and walk.inner % 2 == 0)
            units = walk.outer * -(-walk.inner // 2)
            alone = walk.n < _COLUMNS_ALONE
            flags |= _GROUPED * (not alone)
            lanes = units * blocks * (1 if alone else 8)
            small, wide = shaders.columns if last else shaders.first_columns
            shader = wide_or_small(small, wide, context.caps, lanes)
            span = _SPAN[self.dtype.size] if shader is wide else 1
            across = shader.workgroup(context.caps)[0] // (1 if alone else 8) * span
            groups = context.fold(-(-units // across) * blocks)
            words = _COLUMNS.pack(
                units,
                walk.n,
                groups[0],
                flags,
                x0,
                y0,
                walk.inner,
                blocks,
                walk.outer_stride,
                walk.step,
                walk.inner_stride,
                count,
            )
        context.dispatch(shader, groups, buffers, writes, words)


def _on_vulkan(shaders: _Shaders, dtype: DType) -> Callable[..., None]:
    def kernel(
        inputs: Sequence[Buffer],
        outputs: Sequence[Buffer],
        layouts: Sequence[Layout],
        params: Mapping[str, Any],
        context: VulkanContext,
    ) -> None:
        x, view, target = inputs[0], layouts[0], layouts[-1]
        if not elements(target.shape):
            return
        axes = normalize_axes(params["axes"], len(view.shape))
        if 0 in view.shape:  # nothing to reduce, in one axis
            view, axes = Layout.of((*target.shape, 0)), (len(target.shape),)
        x, walk, start = walked(context, dtype, x, view, axes, BLOCK)
        _Call(context, dtype, shaders).run(x, start, walk, outputs[0], target.offset)

    return kernel


def _shaders(op: str, dtype: DType) -> _Shaders:
    kind = "float" if dtype.is_float else "integer"
    before = "sum" if op == "mean" else op

    def columns(name: str) -> tuple[ShaderRef, ShaderRef]:
        small, wide = (
            spirv(f"reduce/{kind}_columns", f"{name}_columns", dtype=dtype, shape=shape)
            for shape in ("small", "wide")
        )
        return small, wide

    return _Shaders(
        spirv(f"reduce/{kind}s", f"{op}_rows", dtype=dtype),
        spirv(f"reduce/{kind}s", f"{before}_rows", dtype=dtype),
        columns(op),
        columns(before),
        spirv("reduce/partials", f"{before}_partials", dtype=dtype, shape="wide")
        if dtype is DType.F32
        else None,
    )


def _rows(op: str, dtype: DType, precision: PrecisionGuarantee) -> tuple[Registration, ...]:
    op_id, dtypes = PrimitiveId(op), (dtype, dtype)
    shaders = _shaders(op, dtype)
    row = vulkan(
        op_id,
        dtypes,
        _on_vulkan(shaders, dtype),
        shaders=(shaders.rows, shaders.columns[0]),
        cost=primitive_cost_vulkan(op, dtypes),
        precision=precision,
        wrapper=__file__,
        name="vulkan.reduce",
        caps=KernelCaps(strided_input=True),
    )
    cost = primitive_cost_cpu(op, dtypes)
    return (
        also_of(
            row,
            shaders.first_rows,
            shaders.columns[1],
            *shaders.first_columns,
            *(() if shaders.partials is None else (shaders.partials,)),
            *copy_shaders(),
        ),
        c_kernel(
            op_id,
            dtypes,
            _on_cpu(f"{op}_{dtype.key}"),
            functions=(f"{op}_{dtype.key}",),
            cost=cost,
            precision=precision,
            wrapper=__file__,
        ),
        numpy_reference(op_id, dtypes, cost=cost),
    )


_INTEGERS = (DType.I64, DType.I32)
_TABLE = (
    *(("sum", dtype, STRICT_SUM) for dtype in FLOATS),
    *(("mean", dtype, STRICT_MEAN) for dtype in FLOATS),
    *(("prod", dtype, STRICT_PROD) for dtype in FLOATS),
    *((op, dtype, STRICT_EXACT) for op in ("max", "min") for dtype in FLOATS),
    *((op, dtype, STRICT_EXACT) for op in ("sum", "prod", "max", "min") for dtype in _INTEGERS),
)

IMPLS = tuple(row for op, dtype, precision in _TABLE for row in _rows(op, dtype, precision))
