"""Kernels of the primitives triu and tril, by element size."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

from cpu_reference import c as ckernels
from fuelvk.base.dtypes import DType
from fuelvk.base.shapes import elements
from fuelvk.kernels._vulkan import ShaderRef, VulkanContext, spirv
from fuelvk.kernels.ops._division import divided, divisible, together
from fuelvk.kernels.ops._elements import LEAST_ROW, WIDE_FROM, copy_shaders, grid, row_parts, wide_or_small
from fuelvk.kernels.ops._movement import movement
from fuelvk.kernels.types import Registration, Shapes

_PARAMS = struct.Struct("<4Ii3I")
_ROWS = struct.Struct("<5IiI2iI2i")


def _shader(size: int, shape: str = "small") -> ShaderRef:
    return spirv("movement/triangle", "one_triangle", bytes=size, shape=shape)


def _row_shader(size: int) -> ShaderRef:
    return spirv("movement/triangle_rows", "triangle_rows", bytes=size)


def _diagonal(k: int, rows: int, columns: int) -> int:
    """Diagonals beyond the corners keep all or nothing, as the first such one does."""
    return max(-rows, min(columns, k))


def _on_cpu(function: str, upper: bool) -> Callable[..., None]:
    def kernel(inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: Any) -> None:
        x, y = inputs[0], outputs[0]
        if x.size:
            rows, columns = x.shape[-2:]
            k = _diagonal(params["k"], rows, columns)
            ckernels.call(function, x, y, elements(x.shape[:-2]), rows, columns, k, int(upper))

    return kernel


def _moved(params: Mapping[str, Any], starts: Mapping[int, int], shapes: Shapes) -> Mapping[str, Any]:
    """A part of the last two axes has another diagonal."""
    rank = len(shapes[-1] or ())
    return {**params, "k": params["k"] + starts.get(rank - 2, 0) - starts.get(rank - 1, 0)}


def _on_vulkan(size: int, upper: bool) -> Callable[..., None]:
    small, wide, by_rows = _shader(size), _shader(size, "wide"), _row_shader(size)

    def kernel(
        inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: VulkanContext
    ) -> None:
        shape, n = layouts[0].shape, elements(layouts[0].shape)
        if not n:
            return
        rows, columns = shape[-2:]
        k = _diagonal(params["k"], rows, columns)
        long = columns * size >= 8 * LEAST_ROW and n * size >= 8 * WIDE_FROM
        if long and not isinstance(by_rows.select(context.caps), str):
            cut = row_parts(by_rows, context, n // columns, columns * size // 8)
            ends = (rows, columns, k, upper, layouts[0].offset, layouts[-1].offset)
            words = _ROWS.pack(*cut.head, cut.parts, cut.words, *ends)
            context.dispatch(by_rows, cut.groups, (inputs[0], outputs[0]), 0b10, words)
            return
        shader = wide_or_small(small, wide, context.caps, n)
        groups = grid(shader, context, n)
        context.dispatch(
            shader,
            groups,
            (inputs[0], outputs[0]),
            0b10,
            _PARAMS.pack(n, groups[0], rows, columns, k, upper, layouts[0].offset, layouts[-1].offset),
        )

    return kernel


def _rows(op: str, dtype: DType) -> tuple[Registration, ...]:
    function, dtypes = f"triangle_b{dtype.size}", (dtype, dtype)
    return movement(
        op,
        dtypes,
        on_vulkan=divided(_on_vulkan(dtype.size, op == "triu"), together(), dtypes, shift=_moved),
        on_cpu=_on_cpu(function, op == "triu"),
        shader=_shader(dtype.size),
        optional=(_shader(dtype.size, "wide"), _row_shader(dtype.size), *copy_shaders()),
        function=function,
        wrapper=__file__,
        admits=divisible(together(), dtypes),
    )


IMPLS = tuple(row for op in ("triu", "tril") for dtype in DType for row in _rows(op, dtype))
