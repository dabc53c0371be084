"""Kernels of the primitive flip: a copy of a view with negative strides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cpu_reference import c as ckernels
from fuelvk.base.dtypes import DType
from fuelvk.base.shapes import Layout, normalize_axes
from fuelvk.kernels._vulkan import spirv
from fuelvk.kernels.ops._elements import copy_shaders, copy_strided
from fuelvk.kernels.ops._movement import movement
from fuelvk.kernels.types import KernelCaps, Registration, admits_all


def _reversed(layout: Layout, axes: tuple[int, ...]) -> Layout:
    """Returns the view that walks the axes from their ends; no extent is 0."""
    chosen = normalize_axes(axes, len(layout.shape), "flip")
    strides = tuple(-s if i in chosen else s for i, s in enumerate(layout.strides))
    offset = layout.offset + sum((layout.shape[i] - 1) * layout.strides[i] for i in chosen)
    return Layout(layout.shape, strides, offset)


def _on_cpu(function: str) -> Callable[..., None]:
    def kernel(inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: Any) -> None:
        x, y = inputs[0], outputs[0]
        if x.size:
            view = _reversed(Layout.of(x.shape), params["axes"])
            shape, strides = np.array(view.shape, np.int64), np.array(view.strides, np.int64)
            ckernels.call(function, x, y, shape, strides, x.ndim, view.offset, x.size, x.size)

    return kernel


def _on_vulkan(size: int) -> Callable[..., None]:
    def kernel(inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: Any) -> None:
        if 0 not in layouts[0].shape:
            view = _reversed(layouts[0], params["axes"])
            copy_strided(context, size, inputs[0], view, outputs[0], layouts[-1])

    return kernel


def _rows(dtype: DType) -> tuple[Registration, ...]:
    function = f"copy_b{dtype.size}"
    return movement(
        "flip",
        (dtype, dtype),
        on_vulkan=_on_vulkan(dtype.size),
        on_cpu=_on_cpu(function),
        shader=spirv("movement/copy", "copy", bytes=dtype.size, shape="small"),
        optional=copy_shaders(),
        function=function,
        wrapper=__file__,
        caps=KernelCaps(strided_input=True),
        admits=admits_all,
    )


IMPLS = tuple(row for dtype in DType for row in _rows(dtype))
