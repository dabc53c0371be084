"""Kernels of the primitive concat: one strided copy per input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cpu_reference import c as ckernels
from fuelvk.base.dtypes import DType
from fuelvk.base.shapes import Layout, elements, normalize_axis
from fuelvk.graph.types import PrimitiveId
from fuelvk.kernels._cpu import c_kernel, numpy_reference
from fuelvk.kernels._vulkan import spirv, vulkan
from fuelvk.kernels.claims import STRICT_EXACT
from fuelvk.kernels.ops._elements import also_of, copy_shaders, copy_strided
from fuelvk.kernels.primitive_costs import primitive_cost_cpu, primitive_cost_vulkan
from fuelvk.kernels.types import KernelCaps, Registration

CONCAT = PrimitiveId("concat")


def _on_cpu(inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: Any) -> None:
    y = outputs[0]
    if not y.size:
        return
    axis = normalize_axis(params["axis"], y.ndim)
    outer = elements(y.shape[:axis])
    y_bytes, at = y.nbytes // outer, 0
    for x in inputs:
        if x.size:
            x_bytes = x.nbytes // outer
            ckernels.call("concat", x, y, outer, x_bytes, y_bytes, at)
            at += x_bytes


def _on_vulkan(size: int) -> Any:
    def kernel(inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: Any) -> None:
        y = layouts[-1]
        axis = normalize_axis(params["axis"], len(y.shape))
        at = y.offset
        for x, layout in zip(inputs, layouts[:-1], strict=True):
            part = Layout(layout.shape, y.strides, at)
            copy_strided(context, size, x, layout, outputs[0], part)
            at += layout.shape[axis] * y.strides[axis]

    return kernel


def _rows(dtype: DType) -> tuple[Registration, ...]:
    dtypes = (dtype, dtype)
    on_vulkan = vulkan(
        CONCAT,
        dtypes,
        _on_vulkan(dtype.size),
        shaders=(spirv("movement/copy", "copy", bytes=dtype.size, shape="small"),),
        cost=primitive_cost_vulkan("concat", dtypes),
        precision=STRICT_EXACT,
        wrapper=__file__,
        name="vulkan.concat",
        caps=KernelCaps(strided_input=True),
    )
    cost = primitive_cost_cpu("concat", dtypes)
    return (
        also_of(on_vulkan, *copy_shaders()),
        c_kernel(
            CONCAT,
            dtypes,
            _on_cpu,
            functions=("concat",),
            cost=cost,
            precision=STRICT_EXACT,
            wrapper=__file__,
        ),
        numpy_reference(CONCAT, dtypes, cost=cost, precision=STRICT_EXACT),
    )


IMPLS = tuple(row for dtype in DType for row in _rows(dtype))
