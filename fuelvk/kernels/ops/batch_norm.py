"""Kernels of batch_norm."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cpu_reference import c as ckernels
from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.base.shapes import Layout, elements
from fuelvk.kernels._vulkan import ShaderRef, VulkanContext, spirv
from fuelvk.kernels.claims import STRICT_BATCH_NORM
from fuelvk.kernels.ops._division import Plan, axes
from fuelvk.kernels.ops._elements import grid
from fuelvk.kernels.ops._images import image_rows
from fuelvk.kernels.ops._rows import scalar_words
from fuelvk.kernels.types import Registration, Shapes

if TYPE_CHECKING:
    from fuelvk.vulkan import Buffer

_PARAMS = struct.Struct("<10I8s")


def _division(shapes: Shapes, params: Mapping[str, Any]) -> Plan:
    """Channels are the second axis of the images and the only one of their statistics."""
    return axes(shapes[0]), *((1,),) * 4, axes(shapes[-1])


def _on_cpu(dtype: DType) -> Callable[..., None]:
    def kernel(inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: Any) -> None:
        y = outputs[0]
        if y.size:
            sizes = (elements(y.shape[:2]), y.shape[1], elements(y.shape[2:]))
            ckernels.call(f"batch_norm_{dtype.key}", *inputs, y, *sizes, params["eps"])

    return kernel


def _on_vulkan(shader: ShaderRef, dtype: DType) -> Callable[..., None]:
    def kernel(
        inputs: Sequence[Buffer],
        outputs: Sequence[Buffer],
        layouts: Sequence[Layout],
        params: Mapping[str, Any],
        context: VulkanContext,
    ) -> None:
        shape = layouts[-1].shape
        count = elements(shape)
        if not count:
            return
        groups = grid(shader, context, count)
        offsets = (v.offset for v in layouts)
        words = (
            count,
            groups[0],
            *offsets,
            shape[1],
            elements(shape[2:]),
            scalar_words(params["eps"], dtype),
        )
        context.dispatch(shader, groups, (*inputs, outputs[0]), 0b100000, _PARAMS.pack(*words))

    return kernel


def _rows(dtype: DType) -> tuple[Registration, ...]:
    shader = spirv("networks/batch_norm", "batch_norm", dtype=dtype)
    return image_rows(
        "batch_norm",
        dtype,
        5,
        on_vulkan=_on_vulkan(shader, dtype),
        on_cpu=_on_cpu(dtype),
        shader=shader,
        operations=lambda params: 13,
        precision=STRICT_BATCH_NORM,
        wrapper=__file__,
        division=_division,
    )


IMPLS = tuple(row for dtype in FLOATS for row in _rows(dtype))
