"""Kernels of the primitive pad: a copy of x, then the borders of one axis after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from cpu_reference import c as ckernels
from fuelvk.base.dtypes import DType
from fuelvk.base.shapes import Layout, elements
from fuelvk.kernels._vulkan import VulkanContext, spirv
from fuelvk.kernels.ops._elements import copy_shaders, copy_strided
from fuelvk.kernels.ops._movement import movement
from fuelvk.kernels.ops.masked_fill import filler
from fuelvk.kernels.types import KernelCaps, Registration, admits_all

_MODES = {"constant": 0, "reflect": 1, "replicate": 2}


def _on_cpu(dtype: DType) -> Any:
    def kernel(inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: Any) -> None:
        source, y = inputs[0], outputs[0]
        mode = _MODES[params["mode"]]
        value = filler(params["value"], dtype) if mode == 0 else None
        for axis, (before, after) in enumerate(params["pads"]):
            if before or after:
                shape = source.shape
                target = np.empty((*shape[:axis], before + shape[axis] + after, *shape[axis + 1 :]), y.dtype)
                outer, inner = elements(shape[:axis]), elements(shape[axis + 1 :]) * y.itemsize
                sizes = (outer, shape[axis], inner, before, after, mode, y.itemsize)
                ckernels.call("pad", source, target, value, *sizes)
                source = target
        y[...] = source

    return kernel


def _part(layout: Layout, axis: int, start: int, count: int, step: int = 1) -> Layout:
    """Returns ``count`` elements of one axis from ``start`` on; a step of 0 repeats the first."""
    rank = len(layout.shape)
    return layout.slice(
        [start if i == axis else 0 for i in range(rank)],
        [step if i == axis else 1 for i in range(rank)],
        [count if i == axis else n for i, n in enumerate(layout.shape)],
    )


def _borders(
    inner: Layout, axis: int, before: int, after: int, mode: str
) -> Iterator[tuple[Layout | None, Layout]]:
    """Yields (what to copy, where to) for one axis of a view into the output that lies between the borders.

    The source is a part of the view, which borders of earlier axes belong to; None stands for the constant.
    """
    n = inner.shape[axis]
    if before:
        source = {"reflect": (before, before, -1), "replicate": (0, before, 0)}.get(mode)
        yield source and _part(inner, axis, *source), _part(inner, axis, -before, before)
    if after:
        source = {"reflect": (n - 2, after, -1), "replicate": (n - 1, after, 0)}.get(mode)
        yield source and _part(inner, axis, *source), _part(inner, axis, n, after)


def _on_vulkan(dtype: DType) -> Any:
    def kernel(
        inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: VulkanContext
    ) -> None:
        source, target = layouts[0], layouts[-1]
        y, mode, pads = outputs[0], params["mode"], params["pads"]
        if 0 in target.shape:
            return
        whole = Layout(source.shape, target.strides, target.offset)
        whole = whole.slice([before for before, _ in pads], [1] * len(pads), source.shape)
        copy_strided(context, dtype.size, inputs[0], source, y, whole)
        value = None
        for axis, (before, after) in enumerate(pads):
            for part, place in _borders(whole, axis, before, after, mode):
                if part is None:
                    if value is None:
                        value = context.constant(filler(params["value"], dtype).tobytes() * 8)
                    copy_strided(
                        context, dtype.size, value, Layout((), ()).broadcast_to(place.shape), y, place
                    )
                else:
                    copy_strided(context, dtype.size, y, part, y, place)
            whole = _part(whole, axis, -before, before + whole.shape[axis] + after)

    return kernel


def _rows(dtype: DType) -> tuple[Registration, ...]:
    return movement(
        "pad",
        (dtype, dtype),
        on_vulkan=_on_vulkan(dtype),
        on_cpu=_on_cpu(dtype),
        shader=spirv("movement/copy", "copy", bytes=dtype.size, shape="small"),
        optional=copy_shaders(),
        function="pad",
        wrapper=__file__,
        caps=KernelCaps(strided_input=True),
        admits=admits_all,
    )


IMPLS = tuple(row for dtype in DType for row in _rows(dtype))
