"""Kernels of the primitive write_slice: copies for a start that the host knows, a kernel for one that it does not."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any

from cpu_reference import c as ckernels
from fuelvk.base.dtypes import DType
from fuelvk.base.errors import IndexOutOfRangeError
from fuelvk.base.shapes import Layout, elements, normalize_axis
from fuelvk.kernels._vulkan import ShaderRef, VulkanContext, spirv
from fuelvk.kernels.ops._division import WHOLE, Plan, divided, divisible, uncut
from fuelvk.kernels.ops._elements import copy_shaders, copy_strided, grid, wide_or_small
from fuelvk.kernels.ops._movement import movement
from fuelvk.kernels.types import Admits, KernelCaps, Registration, Shapes

_PARAMS = struct.Struct("<10I")


def _shader(size: int, shape: str = "small") -> ShaderRef:
    return spirv("movement/write_slice", "write_slice", bytes=size, shape=shape)


def _on_cpu(inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: Any) -> None:
    (x, update, position), y = inputs, outputs[0]
    axis = normalize_axis(params["axis"], x.ndim)
    extent, count = x.shape[axis], update.shape[axis]
    start = params["start"] if position is None else int(position[0])
    if start < 0 or (not params["wrap"] and start + count > extent):
        raise IndexOutOfRangeError(
            f"write_slice: position is out of range of axis {axis}",
            seen=f"position {start}",
            allowed="0 or more" if params["wrap"] else f"0 to {extent - count}",
        )
    if y.size:
        inner = elements(x.shape[axis + 1 :]) * x.itemsize
        sizes = (elements(x.shape[:axis]), extent, inner, count, start % extent)
        ckernels.call("write_slice", x, update, y, *sizes)


def _parts(
    x: Layout, update: Layout, y: Layout, axis: int, start: int
) -> Iterator[tuple[int, Layout, Layout]]:
    """Yields (0 for x or 1 for update, what of it, where in y) for a start inside the axis."""
    extent, count = x.shape[axis], update.shape[axis]
    head = min(count, extent - start)
    cuts = [(1, 0, start, head), (1, head, 0, count - head)]
    cuts += [
        (0, start + head, start + head, extent - start - head),
        (0, count - head, count - head, start - count + head),
    ]
    for which, source, target, n in cuts:
        if n:
            part, place = (
                layout.slice(
                    [at if i == axis else 0 for i in range(len(layout.shape))],
                    [1] * len(layout.shape),
                    [n if i == axis else m for i, m in enumerate(layout.shape)],
                )
                for layout, at in ((update if which else x, source), (y, target))
            )
            yield which, part, place


def _division(shapes: Shapes, params: Mapping[str, Any]) -> Plan:
    """Of update, position and y, where the position is read on the device: all axes but the one written along."""
    update, position, y = shapes
    assert y is not None
    axis = normalize_axis(params["axis"], len(y))
    apart = tuple(WHOLE if i == axis else i for i in range(len(y)))
    return None if update is None else apart, uncut(position), apart


def _admits(dtype: DType) -> Admits:
    placed = divisible(_division, (dtype, DType.I64, dtype), weights=(1, 2, 1))

    def admits(shapes: Shapes, params: Mapping[str, Any], capabilities: Any) -> str | None:
        return None if shapes[2] is None else placed(shapes[1:], params, capabilities)

    return admits


def _on_vulkan(dtype: DType) -> Any:
    size = dtype.size
    placing = divided(_place(size), _division, (dtype, DType.I64, dtype), weights=(1, 2, 1), keeps=True)

    def kernel(
        inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: VulkanContext
    ) -> None:
        x, update, position, y = layouts
        if 0 in y.shape:
            return
        axis = normalize_axis(params["axis"], len(x.shape))
        if position is None:
            for which, part, place in _parts(x, update, y, axis, params["start"] % x.shape[axis]):
                copy_strided(context, size, inputs[which], part, outputs[0], place)
            return
        copy_strided(context, size, inputs[0], x, outputs[0], y)
        placing(inputs[1:], outputs, layouts[1:], params, context)

    return kernel


def _place(size: int) -> Any:
    """Returns what writes an update where a position in memory says."""

    def kernel(
        inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: VulkanContext
    ) -> None:
        update, position, target = layouts
        axis = normalize_axis(params["axis"], len(target.shape))
        inner, unit, u0, y0 = elements(target.shape[axis + 1 :]), size, update.offset, target.offset
        while unit < 8 and not (inner % 2 or u0 % 2 or y0 % 2):
            unit, inner, u0, y0 = unit * 2, inner // 2, u0 // 2, y0 // 2
        extent, count = target.shape[axis], update.shape[axis]
        n = elements(target.shape[:axis]) * count * inner
        shader = wide_or_small(_shader(unit), _shader(8, "wide") if unit == 8 else None, context.caps, n)
        groups = grid(shader, context, max(n, 1))
        errors, slot = context.error_slot
        numbers = (extent, count, inner, params["wrap"], u0, 2 * position.offset, y0, slot)
        words = _PARAMS.pack(n, groups[0], *numbers)
        context.dispatch(shader, groups, (*inputs, outputs[0], errors), 0b1100, words)

    return kernel


def _rows(dtype: DType) -> tuple[Registration, ...]:
    return movement(
        "write_slice",
        (dtype, dtype, DType.I64, dtype),
        on_vulkan=_on_vulkan(dtype),
        on_cpu=_on_cpu,
        shader=_shader(dtype.size),
        optional=(*(_shader(size) for size in (1, 2, 4, 8)), _shader(8, "wide"), *copy_shaders()),
        function="write_slice",
        wrapper=__file__,
        caps=KernelCaps(),
        admits=_admits(dtype),
    )


IMPLS = tuple(row for dtype in DType for row in _rows(dtype))
