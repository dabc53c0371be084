"""Matrix products, shared by matmul and fused_linear: the C kernel, and strides and batches into dispatches.

Three ways on Vulkan with the same bits: ``tiles`` runs anywhere; ``panels`` packs both operands (b once when
the plan holds it constant) and is the fast one; ``direct`` reads the operands in place and serves few rows and
small products. The last two need buffer addresses and a known subgroup width.
"""

from __future__ import annotations

import functools
import itertools
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cpu_reference import c
from fuelvk.base.dtypes import DType
from fuelvk.base.shapes import Layout, Shape, broadcast_shapes, collapse, contiguous_strides, elements
from fuelvk.graph.types import OpId
from fuelvk.kernels._cpu import c_kernel, numpy_reference
from fuelvk.kernels._vulkan import ShaderRef, VulkanContext, spirv, vulkan
from fuelvk.kernels.claims import STRICT_PRODUCT
from fuelvk.kernels.costs import cost_fused_linear_cpu, cost_fused_linear_vulkan
from fuelvk.kernels.ops._division import WHOLE, Plan, axes, divided, divisible
from fuelvk.kernels.ops._elements import also_of, copy_shaders
from fuelvk.kernels.ops._loops import enough_groups, within_loops
from fuelvk.kernels.primitive_costs import primitive_cost_cpu, primitive_cost_vulkan
from fuelvk.kernels.types import Admits, CostFunction, KernelCaps, Registration, Shapes

if TYPE_CHECKING:
    from fuelvk.vulkan import Buffer

_BATCH_AXES = 3
_ROWS = 8  # rows of a tile in panels and direct
_TILE = 32  # rows and columns of a workgroup in tiles
_BLOCK = 64  # k in a block
_HAS_BIAS, _PAIRS_Y, _PAIRS_B = 1, 2, 4
# Packed operands and totals are up to twice as large, for whole tiles.
_WEIGHT = 2

# Packing costs about as much as _PACK_COST products of each packed element; a shorter depth is mostly padding.
_PACK_COST, _PACK_DEPTH = 40, 48
_TILES_PER_GROUP = 128

_PLAIN = struct.Struct("<6I4iI4i2I6i")
_PACK = struct.Struct("<7I3i2I3i")
_PANELS = struct.Struct("<9II2i8I")


@dataclass(frozen=True, slots=True)
class Product:
    """One dispatch's worth: [batch, m, depth] @ [batch, depth, n], up to three batch axes; strides in elements."""

    m: int
    n: int
    depth: int
    batch: Shape
    a_offset: int
    a_batch: Shape
    a_row: int
    a_k: int
    b_offset: int
    b_batch: Shape
    b_k: int
    b_column: int
    y_offset: int

    @property
    def items(self) -> int:
        return elements(self.batch)


def _matrix(layout: Layout, left: bool) -> Layout:
    """Returns a 1-d operand as the row (left) or column (right) that it stands for."""
    if len(layout.shape) > 1:
        return layout
    (n,), (stride,) = layout.shape, layout.strides
    return Layout((1, n), (0, stride), layout.offset) if left else Layout((n, 1), (stride, 0), layout.offset)


def products(a: Layout, b: Layout, y: Layout) -> list[Product]:
    """Returns the dispatches of a call: none for an empty output, several only for odd batch structures."""
    a, b = _matrix(a, True), _matrix(b, False)
    (m, depth), n = a.shape[-2:], b.shape[-1]
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if 0 in batch or not m or not n:
        return []
    a_strides = a.broadcast_to((*batch, m, depth)).strides
    b_strides = b.broadcast_to((*batch, depth, n)).strides
    shape, (a_batch, b_batch) = collapse(batch, a_strides[:-2], b_strides[:-2])
    a_row = a_strides[-2]
    # Rows of batch items that read one b and lie evenly are rows of one matrix: y is contiguous.
    while shape and b_batch[-1] == 0 and (shape[-1] == 1 or m == 1 or a_batch[-1] == m * a_row):
        if m == 1:
            a_row = a_batch[-1]
        m *= shape[-1]
        shape, a_batch, b_batch = shape[:-1], a_batch[:-1], b_batch[:-1]
    missing = max(_BATCH_AXES - len(shape), 0)
    shape, a_batch, b_batch = (1,) * missing + shape, (0,) * missing + a_batch, (0,) * missing + b_batch
    outer, inner = shape[:-_BATCH_AXES], shape[-_BATCH_AXES:]
    step = elements(inner) * m * n
    result = []
    for number, index in enumerate(itertools.product(*(range(extent) for extent in outer))):
        result.append(
            Product(
                m=m,
                n=n,
                depth=depth,
                batch=inner,
                a_offset=a.offset + sum(i * s for i, s in zip(index, a_batch, strict=False)),
                a_batch=a_batch[-_BATCH_AXES:],
                a_row=a_row,
                a_k=a_strides[-1],
                b_offset=b.offset + sum(i * s for i, s in zip(index, b_batch, strict=False)),
                b_batch=b_batch[-_BATCH_AXES:],
                b_k=b_strides[-2],
                b_column=b_strides[-1],
                y_offset=y.offset + number * step,
            )
        )
    return result


@dataclass(frozen=True, slots=True)
class Bias:
    """Where column j's bias lies: element ``offset + j*stride`` of ``buffer``."""

    buffer: Buffer
    offset: int
    stride: int


def bias_of(buffer: Buffer | None, layout: Layout | None) -> Bias | None:
    """Returns the bias of a call, None where it has none."""
    return None if buffer is None or layout is None else Bias(buffer, layout.offset, layout.strides[0])


def division(shapes: Shapes, params: Mapping[str, Any]) -> Plan:
    """Rows of a, columns of b and batch items are independent; the depth stays whole, and so does what is repeated."""
    a, b, *bias, y = shapes
    assert a is not None and b is not None and y is not None
    batch = len(y) - (len(a) > 1) - (len(b) > 1)

    def items(shape: Shape) -> tuple[int, ...]:
        lead = batch - len(shape[:-2])
        return tuple(lead + i if n == y[lead + i] else WHOLE for i, n in enumerate(shape[:-2]))

    last = len(y) - 1
    left = (*items(a), batch, WHOLE) if len(a) > 1 else (WHOLE,)
    right = (*items(b), WHOLE, last) if len(b) > 1 else (WHOLE,)
    return left, right, *(None if v is None else (last,) for v in bias), axes(y)


class Portable:
    """Products by register tiles on any device."""

    steps = 20  # loop iterations a block of 64 k

    def __init__(self, dtype: DType) -> None:
        self.tiles = spirv("matmul/tiles", "tiles", dtype=dtype)
        self.shaders: tuple[ShaderRef, ...] = (self.tiles,)

    def run(
        self,
        context: VulkanContext,
        a: Buffer,
        b: Buffer,
        bias: Bias | None,
        y: Buffer,
        layouts: Sequence[Layout],
    ) -> None:
        """Records ``y = a @ b (+ bias)``; layouts are a's, b's and y's."""
        for p in products(*layouts):
            groups = -(-p.m // _TILE) * -(-p.n // _TILE) * p.items
            _plain(context, self.tiles, groups, p, a, b, bias, y, 0)


class Subgroups:
    """Products by subgroups of a known width."""

    steps = 9

    def __init__(self, dtype: DType) -> None:
        self.dtype = dtype
        self.direct = spirv("matmul/direct", "direct8", dtype=dtype)
        self.panels = spirv("matmul/panels", "panels", dtype=dtype)
        self.pack = spirv("matmul/pack", "pack_b", dtype=dtype)
        self.shaders: tuple[ShaderRef, ...] = (self.panels, self.direct, self.pack)

    def run(
        self,
        context: VulkanContext,
        a: Buffer,
        b: Buffer,
        bias: Bias | None,
        y: Buffer,
        layouts: Sequence[Layout],
    ) -> None:
        """Records ``y = a @ b (+ bias)``; layouts are a's, b's and y's."""
        for p in products(*layouts):
            if p.depth >= _PACK_DEPTH and p.m * p.n > _PACK_COST * (p.m + p.n):
                self._packed(context, p, a, b, bias, y)
            else:
                self._direct(context, p, a, b, bias, y)

    def _direct(
        self, context: VulkanContext, p: Product, a: Buffer, b: Buffer, bias: Bias | None, y: Buffer
    ) -> None:
        rows = 1 if p.m == 1 else _ROWS
        groups = -(-p.m // rows) * -(-p.n // (2 * context.caps.subgroup_width)) * p.items
        even = p.b_column == 1 and not any(v % 2 for v in (p.n, p.b_offset, p.b_k, *p.b_batch))
        flags = (_PAIRS_B if even else 0) | _pairs_y(p)
        _plain(context, self.direct, groups, p, a, b, bias, y, flags, f"direct{rows}")

    def _packed(
        self, context: VulkanContext, p: Product, a: Buffer, b: Buffer, bias: Bias | None, y: Buffer
    ) -> None:
        size = self.dtype.accumulator.size
        width = 2 * context.caps.subgroup_width
        tiles, panels, blocks = -(-p.m // _ROWS), -(-p.n // width), -(-p.depth // _BLOCK)
        a_extents, a_steps = _distinct(p.batch, p.a_batch)
        b_extents, b_steps = _distinct(p.batch, p.b_batch)

        a_packed = context.scratch(elements(a_extents) * tiles * blocks * _BLOCK * _ROWS * size)
        strides = (p.a_offset, p.a_row, p.a_k)
        self._pack(
            context, "pack_a", a, a_packed, (p.m, p.depth, tiles, blocks), strides, a_extents, p.a_batch
        )

        def pack_b(into: Buffer) -> None:
            strides = (p.b_offset, p.b_column, p.b_k)
            self._pack(
                context, "pack_b", b, into, (p.n, p.depth, panels, blocks), strides, b_extents, p.b_batch
            )

        places = (p.n, p.depth, p.b_offset, p.b_column, p.b_k, *b_extents, *p.b_batch)
        key = f"panels {self.dtype.key} {width} {' '.join(map(str, places))}"
        b_packed = context.prepare(
            b, elements(b_extents) * panels * blocks * _BLOCK * width * size, pack_b, key
        )

        # Few workgroups keep their panel of b longest; every core (or a GPU's many) needs some to work on.
        wanted = 16 if context.caps.device_type == "cpu" else 1024
        row_groups = max(-(-tiles // _TILES_PER_GROUP), min(-(-wanted // (panels * p.items)), tiles))
        row_groups = enough_groups(context.caps, row_groups, tiles, 2 * blocks)
        per_group = -(-tiles // row_groups)
        row_groups = -(-tiles // per_group)
        totals = a_packed
        if blocks > 1:
            totals = context.scratch(p.items * panels * tiles * _ROWS * width * size)
        count = panels * row_groups * p.items
        grid = context.fold(count)
        flags = (_HAS_BIAS if bias else 0) | _pairs_y(p)
        where = (bias.offset, bias.stride) if bias else (0, 0)
        params = _PANELS.pack(
            p.m, p.n, blocks, per_group, row_groups, panels, grid[0], count, flags, p.y_offset, *where,
            *p.batch[1:], *a_steps, *b_steps,
        )  # fmt: skip
        buffers = (a_packed, b_packed, bias.buffer if bias else y, totals, y)
        context.dispatch(self.panels, grid, buffers, 0b11000 if blocks > 1 else 0b10000, params)

    def _pack(
        self,
        context: VulkanContext,
        entry: str,
        source: Buffer,
        into: Buffer,
        extents: tuple[int, int, int, int],
        strides: tuple[int, int, int],
        batch: Shape,
        batch_strides: Shape,
    ) -> None:
        _, _, tiles, blocks = extents
        count = elements(batch) * tiles * blocks
        grid = context.fold(count)
        shift = context.caps.subgroup_width.bit_length() - 1
        params = _PACK.pack(*extents, grid[0], count, shift, *strides, *batch[1:], *batch_strides)
        context.dispatch(self.pack, grid, (source, into), 0b10, params, entry=entry)


def _distinct(batch: Shape, strides: Shape) -> tuple[Shape, Shape]:
    """Returns the extents of an operand's own batch items, and their steps as packed (0 where it repeats)."""
    extents = tuple(1 if stride == 0 else extent for extent, stride in zip(batch, strides, strict=True))
    steps = contiguous_strides(extents)
    return extents, tuple(0 if e == 1 else s for e, s in zip(extents, steps, strict=True))


def _pairs_y(p: Product) -> int:
    return 0 if p.n % 2 or p.y_offset % 2 else _PAIRS_Y


def _plain(
    context: VulkanContext,
    shader: ShaderRef,
    groups: int,
    p: Product,
    a: Buffer,
    b: Buffer,
    bias: Bias | None,
    y: Buffer,
    flags: int,
    entry: str | None = None,
) -> None:
    """Dispatches one of the kernels that read the operands in place."""
    grid = context.fold(groups)
    where = (bias.offset, bias.stride) if bias else (0, 0)
    flags |= _HAS_BIAS if bias else 0
    params = _PLAIN.pack(
        p.m, p.n, p.depth, grid[0], groups, flags, p.a_offset, p.b_offset, *where, p.y_offset,
        p.a_row, p.a_k, p.b_k, p.b_column, *p.batch[1:], *p.a_batch, *p.b_batch,
    )  # fmt: skip
    context.dispatch(shader, grid, (a, b, bias.buffer if bias else y, y), 0b1000, params, entry=entry)


def _on_vulkan(way: Portable | Subgroups) -> Callable[..., None]:
    def kernel(
        inputs: Sequence[Buffer | None],
        outputs: Sequence[Buffer],
        layouts: Sequence[Layout | None],
        params: Mapping[str, Any],
        context: VulkanContext,
    ) -> None:
        a, b, *bias = inputs
        la, lb, *lbias, ly = layouts
        assert a is not None and b is not None and la is not None and lb is not None and ly is not None
        given = bias_of(bias[0], lbias[0]) if bias else None
        way.run(context, a, b, given, outputs[0], (la, lb, ly))

    return kernel


def _within_loops(steps: int) -> Admits:
    return within_loops(lambda shapes, params: steps * (-(-(shapes[0] or (0,))[-1] // _BLOCK) + 4))


def _in_c(name: str) -> Callable[..., None]:
    def kernel(
        inputs: Sequence[Any], outputs: Sequence[Any], layouts: Any, params: Mapping[str, Any], context: Any
    ) -> None:
        a, b, *bias = inputs
        a = a if a.ndim > 1 else a[None, :]
        b = b if b.ndim > 1 else b[:, None]
        a_index, b_index, batch = c.batch_indices(a.shape[:-2], b.shape[:-2])
        extents = (elements(batch), a.shape[-2], a.shape[-1], b.shape[-1])
        c.call(name, a, b, *bias, a_index, b_index, outputs[0], *extents)

    return kernel


def rows(op: OpId, dtype: DType, *, has_bias: bool) -> tuple[Registration, ...]:
    """Returns the table rows of matmul, or with a bias of fused_linear, for one dtype."""
    name = op.name.lower()
    dtypes = (dtype,) * (4 if has_bias else 3)
    on_cpu: CostFunction = cost_fused_linear_cpu if has_bias else primitive_cost_cpu(name, dtypes)
    on_device: CostFunction = (
        functools.partial(cost_fused_linear_vulkan, dtype=dtype)
        if has_bias
        else primitive_cost_vulkan(name, dtypes)
    )
    function = f"{name}_{dtype.key}"
    weights = (_WEIGHT,) * len(dtypes)
    return (
        c_kernel(
            op, dtypes, _in_c(function), functions=(function,), cost=on_cpu, precision=STRICT_PRODUCT,
            wrapper=__file__,
        ),
        numpy_reference(op, dtypes, cost=on_cpu),
        *(
            also_of(
                vulkan(
                    op, dtypes, divided(_on_vulkan(way), division, dtypes, strided=True, weights=weights),
                    shaders=way.shaders, cost=on_device, precision=STRICT_PRODUCT, wrapper=__file__,
                    caps=KernelCaps(strided_input=True),
                    admits=divisible(division, dtypes, weights=weights, also=_within_loops(way.steps)),
                ),
                *copy_shaders(),
            )
            for way in (Subgroups(dtype), Portable(dtype))
        ),
    )  # fmt: skip
