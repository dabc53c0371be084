"""Kernels of sum, mean, max and min: reduced axes are made the last ones, then rows are folded by the fixed tree."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cpu_reference import c as ckernels
from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.base.shapes import Layout, elements, normalize_axes
from fuelvk.graph.types import PrimitiveId
from fuelvk.kernels._cpu import c_kernel, numpy_reference
from fuelvk.kernels._vulkan import ShaderRef, VulkanContext, spirv, vulkan
from fuelvk.kernels.claims import STRICT_EXACT, STRICT_MEAN, STRICT_SUM
from fuelvk.kernels.ops._elements import also_of, copy_shaders, gathered
from fuelvk.kernels.ops._rows import fits_index, row_groups, scalar_words
from fuelvk.kernels.primitive_costs import primitive_cost_cpu, primitive_cost_vulkan
from fuelvk.kernels.types import KernelCaps, PrecisionGuarantee, Registration

if TYPE_CHECKING:
    from fuelvk.vulkan import Buffer

_PARAMS = struct.Struct("<6I8s")


def _order(rank: int, axes: Sequence[int]) -> tuple[int, ...]:
    """Returns the axes with the reduced ones last, both groups in their order."""
    return (*(i for i in range(rank) if i not in axes), *axes)


def _on_cpu(function: str) -> Callable[..., None]:
    def kernel(inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: Any) -> None:
        x, y = inputs[0], outputs[0]
        if not y.size:
            return
        rows = np.ascontiguousarray(x.transpose(_order(x.ndim, normalize_axes(params["axes"], x.ndim))))
        ckernels.call(function, rows, y, y.size, x.size // y.size)

    return kernel


def _on_vulkan(shader: ShaderRef, dtype: DType) -> Callable[..., None]:
    def kernel(
        inputs: Sequence[Buffer],
        outputs: Sequence[Buffer],
        layouts: Sequence[Layout],
        params: Mapping[str, Any],
        context: VulkanContext,
    ) -> None:
        x, view, target = inputs[0], layouts[0], layouts[-1]
        rows = elements(target.shape)
        if not rows:
            return
        rank = len(view.shape)
        view = view.transpose(_order(rank, normalize_axes(params["axes"], rank)))
        n = elements(view.shape) // rows
        if n and not view.is_contiguous():
            x, view = gathered(context, dtype, x, view)
        groups = row_groups(shader, context, rows)
        paired = int(n % 2 == 0 and view.offset % 2 == 0)
        words = _PARAMS.pack(rows, n, groups[0], paired, view.offset, target.offset, scalar_words(n, dtype))
        context.dispatch(shader, groups, (x, outputs[0]), 0b10, words)

    return kernel


def _rows(op: str, dtype: DType, precision: PrecisionGuarantee) -> tuple[Registration, ...]:
    op_id, dtypes = PrimitiveId(op), (dtype, dtype)
    shader = spirv("reduce/floats" if dtype.is_float else "reduce/integers", f"{op}_rows", dtype=dtype)
    row = vulkan(
        op_id,
        dtypes,
        _on_vulkan(shader, dtype),
        shaders=(shader,),
        cost=primitive_cost_vulkan(op, dtypes),
        precision=precision,
        wrapper=__file__,
        name="vulkan.reduce",
        caps=KernelCaps(strided_input=True),
        admits=fits_index,
    )
    cost = primitive_cost_cpu(op, dtypes)
    return (
        also_of(row, *copy_shaders()),
        c_kernel(
            op_id,
            dtypes,
            _on_cpu(f"{op}_{dtype.key}"),
            functions=(f"{op}_{dtype.key}",),
            cost=cost,
            precision=precision,
            wrapper=__file__,
        ),
        numpy_reference(op_id, dtypes, cost=cost),
    )


_INTEGERS = (DType.I64, DType.I32)
_TABLE = (
    *(("sum", dtype, STRICT_SUM) for dtype in FLOATS),
    *(("mean", dtype, STRICT_MEAN) for dtype in FLOATS),
    *((op, dtype, STRICT_EXACT) for op in ("max", "min") for dtype in FLOATS),
    *((op, dtype, STRICT_EXACT) for op in ("sum", "max", "min") for dtype in _INTEGERS),
)

IMPLS = tuple(row for op, dtype, precision in _TABLE for row in _rows(op, dtype, precision))
