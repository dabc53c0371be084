"""Kernels of the primitive copy, by element size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cpu_reference import c as ckernels
from fuelvk.base.dtypes import DType
from fuelvk.graph.types import PrimitiveId
from fuelvk.kernels._cpu import c_kernel, numpy_reference
from fuelvk.kernels._vulkan import spirv, vulkan
from fuelvk.kernels.claims import STRICT_EXACT
from fuelvk.kernels.ops._elements import also_of, copy_shaders, copy_strided
from fuelvk.kernels.primitive_costs import primitive_cost_cpu, primitive_cost_vulkan
from fuelvk.kernels.types import KernelCaps, Registration

COPY = PrimitiveId("copy")


def _cpu(function: str) -> Callable[..., None]:
    def kernel(inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: Any) -> None:
        x, y = inputs[0], outputs[0]
        if x.size:
            shape = np.array(x.shape, np.int64)
            strides = np.array([s // x.itemsize for s in x.strides], np.int64)
            ckernels.call(function, x, y, shape, strides, x.ndim, 0, x.size, x.size)

    return kernel


def _vulkan(size: int) -> Callable[..., None]:
    def kernel(inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: Any) -> None:
        copy_strided(context, size, inputs[0], layouts[0], outputs[0], layouts[-1])

    return kernel


def _rows(dtype: DType) -> tuple[Registration, ...]:
    dtypes = (dtype, dtype)
    function = f"copy_b{dtype.size}"
    on_vulkan = vulkan(
        COPY,
        dtypes,
        _vulkan(dtype.size),
        shaders=(spirv("movement/copy", "copy", bytes=dtype.size, shape="small"),),
        cost=primitive_cost_vulkan("copy", dtypes),
        precision=STRICT_EXACT,
        wrapper=__file__,
        caps=KernelCaps(strided_input=True),
    )
    cost = primitive_cost_cpu("copy", dtypes)
    return (
        also_of(on_vulkan, *copy_shaders()),
        c_kernel(
            COPY,
            dtypes,
            _cpu(function),
            functions=(function,),
            cost=cost,
            precision=STRICT_EXACT,
            wrapper=__file__,
        ),
        numpy_reference(COPY, dtypes, cost=cost, precision=STRICT_EXACT),
    )


IMPLS = tuple(row for dtype in DType for row in _rows(dtype))
