"""Kernels of argmax and argmin: rows by workgroups in blocks or by teams, or columns by invocations.

Beyond the reach of 32-bit indices the kept axes are cut into parts, and a longer row into ranges: the best of each
range is joined to the best so far, whose index is 64 bits wide.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cpu_reference import c as ckernels
from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.base.shapes import Layout, Shape, elements, normalize_axes
from fuelvk.graph.types import PrimitiveId
from fuelvk.kernels._cpu import c_kernel, numpy_reference
from fuelvk.kernels._vulkan import ShaderRef, VulkanContext, spirv, vulkan
from fuelvk.kernels.claims import STRICT_EXACT
from fuelvk.kernels.ops import _ranges
from fuelvk.kernels.ops._elements import also_of, copy_shaders
from fuelvk.kernels.ops._loops import most_iterations
from fuelvk.kernels.ops._walk import Walk, in_parts, order, reached, walked
from fuelvk.kernels.ops.reduce import BLOCK
from fuelvk.kernels.primitive_costs import primitive_cost_cpu, primitive_cost_vulkan
from fuelvk.kernels.types import KernelCaps, Registration

if TYPE_CHECKING:
    from fuelvk.vulkan import Buffer

_PARAMS = struct.Struct("<4I2i2I4i")
_CANDIDATES, _PARTIAL, _FIRST = 1, 2, 4
_THREADS = 64
# Rows that CPU drivers take by teams: how many and how long they are at least.
_TEAMS = struct.Struct("<4I2iI2i")
_TEAM, _LEAST_ROWS, _LEAST_LENGTH = 8, 32, 64
# From this many results on an invocation may look for each alone, where their elements lie side by side.
_MANY = 1024


def _axes(axis: int | None, rank: int) -> Shape:
    return normalize_axes(None if axis is None else (axis,), rank)


def _on_cpu(function: str) -> Callable[..., None]:
    def kernel(inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: Any) -> None:
        x, y = inputs[0], outputs[0]
        if y.size:
            rows = np.ascontiguousarray(x.transpose(order(x.ndim, _axes(params["axis"], x.ndim))))
            ckernels.call(function, rows, y, y.size, x.size // y.size)

    return kernel


def _shaders(op: str, dtype: DType) -> tuple[ShaderRef, ShaderRef, ShaderRef]:
    rows, columns, join = (
        spirv("reduce/arg", f"{op}_{entry}", dtype=dtype) for entry in ("rows", "columns", "join")
    )
    return rows, columns, join


def _team_shader(op: str, dtype: DType) -> ShaderRef:
    return spirv("reduce/arg_teams", f"{op}_teams", dtype=dtype)


class _Search:
    """Records the search along the middle axis of walks."""

    def __init__(self, context: VulkanContext, op: str, dtype: DType) -> None:
        self.context = context
        self.size, self.wide = dtype.size, dtype.accumulator.size
        self.in_rows, self.in_columns, self.join = _shaders(op, dtype)
        self.in_teams = _team_shader(op, dtype)

    def run(self, x: Buffer, x0: int, walk: Walk, y: Buffer, y0: int) -> None:
        """Writes where the elements are that are looked for, I64, to ``y`` from element ``y0``."""
        # An index takes two words; of a row in blocks every block leaves one.
        words = max(2, walk.blocks(BLOCK))
        reach = _ranges.limit(self.context.caps, self.size) - _ranges.ALIGNMENT // self.size
        step = max(min(_ranges.MOST, reach // max(abs(walk.step), 1)), 1)
        if walk.n <= step:
            for part, (px, view), (py, place) in in_parts(
                self.context, x, x0, walk, self.size, y, y0, 8, walk.n, words
            ):
                self._search(px, view.offset, part, py, 2 * place.offset)
            return
        best = self.context.scratch(walk.outer * walk.inner * self.wide)
        for first in range(0, walk.n, step):
            whole = replace(walk, n=min(step, walk.n - first))
            fits = reached(self.context.caps, self.size, 8, whole.n, max(2, whole.blocks(BLOCK)))
            for part, dx, dy in whole.parts(fits, whole.n):
                px, view = _ranges.rebased(x, part.at(x0 + dx + first * walk.step), self.size)
                found = self.context.scratch(4 * part.outer * part.inner)
                self._search(px, view.offset, part, found, 0, _PARTIAL)
                py, place = _ranges.rebased(y, part.results(part.n, y0 + dy), 8)
                kept, beside = _ranges.rebased(best, part.results(part.n, dy), self.wide)
                self._join(px, view, part, found, py, place, kept, beside, first)

    def _search(self, x: Buffer, x0: int, walk: Walk, y: Buffer, y0: int, last: int = 0) -> None:
        """Searches a walk within reach; ``y0`` counts words, and ``last`` are the flags of the last dispatch."""
        items = walk.outer * walk.inner
        strides = (walk.outer_stride, walk.step, walk.inner_stride)
        n, flags, found, context = walk.n, 0, y, self.context
        if self._by_teams(x, x0, walk, y, y0, last):
            return

        def dispatch(blocks: int, target: Buffer, flags: int, y0: int) -> None:
            many = items >= _MANY and abs(walk.inner_stride) < abs(walk.step)
            columns = many and not flags and most_iterations(context.caps, n) == n
            groups = context.fold(-(-items // _THREADS) if columns else items * blocks)
            context.dispatch(
                self.in_columns if columns else self.in_rows,
                groups,
                (x, target, found, target),
                0b0010,
                _PARAMS.pack(items * blocks, n, groups[0], flags, x0, y0, walk.inner, blocks, *strides, 0),
            )

        while n > BLOCK:
            blocks = -(-n // BLOCK)
            partial = context.scratch(4 * items * blocks)
            dispatch(blocks, partial, flags | _PARTIAL, 0)
            n, flags, found = blocks, _CANDIDATES, partial
        dispatch(1, y, flags | last, y0)

    def _by_teams(self, x: Buffer, x0: int, walk: Walk, y: Buffer, y0: int, flags: int) -> bool:
        """Records the search by teams where a CPU driver gains by it; returns whether it did."""
        shader, caps, items = self.in_teams, self.context.caps, walk.outer * walk.inner
        if caps.device_type != "cpu" or walk.step != 1 or items < _LEAST_ROWS or walk.n < _LEAST_LENGTH:
            return False
        across = walk.inner_stride if walk.inner > 1 else 0
        even = not (x0 % 2 or walk.outer_stride % 2 or across % 2)
        if not even or isinstance(shader.select(caps), str) or most_iterations(caps, walk.n) < walk.n:
            return False
        groups = self.context.fold(-(-items * _TEAM // shader.workgroup(caps)[0]))
        words = (items, walk.n, groups[0], flags, x0, y0, walk.inner, walk.outer_stride, across)
        self.context.dispatch(shader, groups, (x, y), 0b10, _TEAMS.pack(*words))
        return True

    def _join(
        self,
        x: Buffer,
        view: Layout,
        walk: Walk,
        found: Buffer,
        y: Buffer,
        place: Layout,
        best: Buffer,
        beside: Layout,
        first: int,
    ) -> None:
        """Joins what was found in the range from ``first`` to the best so far."""
        items, context = walk.outer * walk.inner, self.context
        groups = context.fold(-(-items // _THREADS))
        strides = (walk.outer_stride, walk.step, walk.inner_stride)
        low, high = first % 2**32, first // 2**32
        flags = 0 if first else _FIRST
        numbers = (items, low, groups[0], flags, view.offset, 2 * place.offset, walk.inner, high, *strides)
        words = _PARAMS.pack(*numbers, beside.offset)
        context.dispatch(self.join, groups, (x, y, found, best), 0b1010, words)


def _on_vulkan(op: str, dtype: DType) -> Callable[..., None]:
    def kernel(
        inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: VulkanContext
    ) -> None:
        x, view = inputs[0], layouts[0]
        if not elements(layouts[-1].shape):
            return
        axes = _axes(params["axis"], len(view.shape))
        x, walk, start = walked(context, dtype, x, view, axes, block=1)
        _Search(context, op, dtype).run(x, start, walk, outputs[0], layouts[-1].offset)

    return kernel


def _rows(op: str, dtype: DType) -> tuple[Registration, ...]:
    op_id, dtypes = PrimitiveId(op), (dtype, DType.I64)
    function = f"{op}_{dtype.key}"
    row = vulkan(
        op_id,
        dtypes,
        _on_vulkan(op, dtype),
        shaders=_shaders(op, dtype)[:1],
        cost=primitive_cost_vulkan(op, dtypes),
        precision=STRICT_EXACT,
        wrapper=__file__,
        name="vulkan.arg",
        caps=KernelCaps(strided_input=True),
    )
    cost = primitive_cost_cpu(op, dtypes)
    return (
        also_of(row, *_shaders(op, dtype)[1:], _team_shader(op, dtype), *copy_shaders()),
        c_kernel(
            op_id,
            dtypes,
            _on_cpu(function),
            functions=(function,),
            cost=cost,
            precision=STRICT_EXACT,
            wrapper=__file__,
        ),
        numpy_reference(op_id, dtypes, cost=cost, precision=STRICT_EXACT),
    )


IMPLS = tuple(row for op in ("argmax", "argmin") for dtype in FLOATS for row in _rows(op, dtype))
