"""Kernels of the primitive masked_fill, by element size."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cpu_reference import c as ckernels
from fuelvk.base.dtypes import DType
from fuelvk.kernels._vulkan import ShaderRef, VulkanContext, spirv
from fuelvk.kernels.ops._choose import choose_shader, choose_words
from fuelvk.kernels.ops._elements import copy_shaders, grid, padded, wide_or_small
from fuelvk.kernels.ops._movement import movement
from fuelvk.kernels.ops._pointwise import operand_boxes
from fuelvk.kernels.types import KernelCaps, Registration, admits_all

_RANK = 5
_PARAMS = struct.Struct("<5I8s4I10i")
_LARGEST_F8 = 448.0


def _shader(size: int, shape: str = "small") -> ShaderRef:
    return spirv("movement/masked_fill", "masked_fill_flat", bytes=size, shape=shape)


def _to_odd(value: float) -> Any:
    """Returns ``value`` in F32 rounded to odd: rounding that once more to nearest gives what one rounding would."""
    with np.errstate(over="ignore"):
        near = np.float32(value)
    if np.isnan(near) or float(near) == value:
        return near
    if abs(float(near)) > abs(value):
        near = np.nextafter(near, np.float32(0))
    return np.uint32(near.view(np.uint32) | np.uint32(1)).view(np.float32)


def filler(value: float, dtype: DType) -> np.ndarray[Any, Any]:
    """Returns one element of ``dtype``: the nearest number, ties to even; F8E4M3 saturates."""
    if not dtype.is_float:
        return np.array([value]).astype(dtype.numpy)
    number = float(value)
    if dtype is DType.F8E4M3:
        number = float(np.clip(number, -_LARGEST_F8, _LARGEST_F8))
    with np.errstate(all="ignore"):
        narrow = dtype in (DType.BF16, DType.F8E4M3)
        return np.array([_to_odd(number) if narrow else number]).astype(dtype.numpy)


def _on_cpu(function: str, dtype: DType) -> Callable[..., None]:
    def kernel(inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: Any) -> None:
        (x, mask), y = inputs, outputs[0]
        if y.size:
            whole = np.ascontiguousarray(np.broadcast_to(mask, y.shape))
            ckernels.call(function, x, whole, filler(params["value"], dtype), y, y.size)

    return kernel


def _on_vulkan(dtype: DType) -> Callable[..., None]:
    small, wide = _shader(dtype.size), _shader(dtype.size, "wide")
    words = choose_shader("masked_fill", dtype.size)

    def kernel(
        inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: VulkanContext
    ) -> None:
        dtypes = (dtype, DType.BOOL, dtype)
        one = filler(params["value"], dtype).tobytes()
        value = one.ljust(8, b"\0")
        for operands, output, target in operand_boxes(context, inputs, outputs[0], layouts, dtypes, _RANK):
            flat = operands.flat and not any(operands.ones)
            (x, mask), (x0, mask0) = operands.buffers, operands.offsets
            four, places = (mask, x, x, output), (mask0, x0, x0, target.offset)
            if flat and choose_words(context, words, dtype.size, operands.count, four, places, one):
                continue
            shader = wide_or_small(small, wide, context.caps, operands.count)
            groups = grid(shader, context, operands.count)
            extents = padded(operands.shape, _RANK, 1)[1:]
            offsets = (*operands.offsets, target.offset)
            context.dispatch(
                shader,
                groups,
                (*operands.buffers, output),
                0b100,
                _PARAMS.pack(operands.count, groups[0], *offsets, value, *extents, *operands.walks(_RANK)),
                entry="masked_fill_flat" if flat else "masked_fill_strided",
            )

    return kernel


def _rows(dtype: DType) -> tuple[Registration, ...]:
    function = f"masked_fill_b{dtype.size}"
    return movement(
        "masked_fill",
        (dtype, DType.BOOL, dtype),
        on_vulkan=_on_vulkan(dtype),
        on_cpu=_on_cpu(function, dtype),
        shader=_shader(dtype.size),
        optional=(_shader(dtype.size, "wide"), choose_shader("masked_fill", dtype.size), *copy_shaders()),
        function=function,
        wrapper=__file__,
        caps=KernelCaps(strided_input=True),
        admits=admits_all,
    )


IMPLS = tuple(row for dtype in DType for row in _rows(dtype))
