"""Softmax, RMS norm and layer norm over the last axis: one C call and one dispatch for all three."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cpu_reference import c as ckernels
from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.base.shapes import Layout, elements
from fuelvk.graph.types import OpId
from fuelvk.kernels._cpu import c_kernel, numpy_reference
from fuelvk.kernels._vulkan import ShaderRef, VulkanContext, offset_of, spirv, vulkan
from fuelvk.kernels.ops._division import divided, divisible, together
from fuelvk.kernels.ops._loops import within_loops
from fuelvk.kernels.types import Admits, CostFunction, PrecisionGuarantee, Registration, Shapes

if TYPE_CHECKING:
    from fuelvk.vulkan import Buffer

_ROW_THREADS = 64
# Steps in which a row's first cache lines are fetched, at most: 4,096 F64 columns by 4 lanes.
_ARRIVAL = 128
_PAIRED, _HAS_WEIGHT, _HAS_BIAS, _INVERSE = 1, 2, 4, 8
_PARAMS = struct.Struct("<8I8s8s")
_ROWS_APART = together(-1)


def scalar_words(value: float, dtype: DType) -> bytes:
    """Returns ``value`` in the accumulator of ``dtype`` as two 32-bit words, the second 0 for F32."""
    return (
        struct.pack("<d", value) if dtype is DType.F64 else struct.pack("<4s4x", np.float32(value).tobytes())
    )


def row_groups(shader: ShaderRef, context: VulkanContext, rows: int) -> tuple[int, int, int]:
    """Returns the grid for ``rows`` rows: a workgroup each, or a subgroup each where the variant has a width."""
    width = int(shader.variant(context.caps).axes.get("width", 0))
    return context.fold(-(-rows // (_ROW_THREADS // width if width else 1)))


def in_passes(passes: int) -> Admits:
    """Returns the ``admits`` of a kernel whose row of the last axis is walked ``passes`` times, 64 columns a step."""

    def steps(shapes: Shapes, params: Mapping[str, Any]) -> int:
        columns = shapes[0][-1] if shapes[0] else 0
        return passes * (columns // _ROW_THREADS + 16) + _ARRIVAL

    return within_loops(steps)


def _cpu(name: str, dtype: DType) -> Callable[..., None]:
    function = f"{name}_{dtype.key}"

    def kernel(inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: Any) -> None:
        x, y = inputs[0], outputs[0]
        if x.size:
            n = x.shape[-1]
            ckernels.call(function, *inputs, y, x.size // n, n, *params.values())

    return kernel


def _vulkan(shader: ShaderRef, dtype: DType) -> Callable[..., None]:
    def kernel(
        inputs: Sequence[Buffer | None],
        outputs: Sequence[Buffer],
        layouts: Sequence[Layout | None],
        params: Mapping[str, Any],
        context: VulkanContext,
    ) -> None:
        x, y = inputs[0], outputs[0]
        assert x is not None and layouts[0] is not None
        shape = layouts[0].shape
        if 0 in shape:
            return
        n = shape[-1]
        rows = elements(shape[:-1])
        weight, bias = (*inputs[1:], None, None)[:2]
        offsets = [
            offset_of(layout) for layout in (layouts[0], *(*layouts[1:-1], None, None)[:2], layouts[-1])
        ]
        flags = _HAS_WEIGHT * (weight is not None) | _HAS_BIAS * (bias is not None)
        even = all(v % 2 == 0 for v in (n, *offsets))
        flags |= _PAIRED * (even and (bias is None or weight is not None))
        flags |= _INVERSE * (n & (n - 1) == 0)
        groups = row_groups(shader, context, rows)
        context.dispatch(
            shader,
            groups,
            (x, x if weight is None else weight, x if bias is None else bias, y),
            0b1000,
            _PARAMS.pack(
                rows,
                n,
                groups[0],
                flags,
                *offsets,
                scalar_words(1 / n if flags & _INVERSE else n, dtype),
                scalar_words(params.get("eps", 0.0), dtype),
            ),
        )

    return kernel


def row_op(
    op_id: OpId,
    inputs: int,
    *,
    wrapper: str,
    cpu_cost: CostFunction,
    vulkan_cost: Callable[..., Any],
    precision: PrecisionGuarantee,
    passes: int,
) -> tuple[Registration, ...]:
    """Returns the table rows of a row op with up to ``inputs`` inputs of one dtype, for every float type.

    ``passes`` is how often its kernel walks a row.
    """
    name = op_id.name.lower()
    found: list[Registration] = []
    for dtype in FLOATS:
        dtypes = (dtype,) * (inputs + 1)
        shader = spirv("rows/rows", name, dtype=dtype)
        found += (
            vulkan(
                op_id,
                dtypes,
                divided(_vulkan(shader, dtype), _ROWS_APART, dtypes),
                shaders=(shader,),
                cost=_bound_dtype(vulkan_cost, dtype),
                precision=precision,
                wrapper=wrapper,
                admits=divisible(_ROWS_APART, dtypes, also=in_passes(passes)),
            ),
            c_kernel(
                op_id,
                dtypes,
                _cpu(name, dtype),
                functions=(f"{name}_{dtype.key}",),
                cost=cpu_cost,
                precision=precision,
                wrapper=wrapper,
            ),
            numpy_reference(op_id, dtypes, cost=cpu_cost),
        )
    return tuple(found)


def _bound_dtype(cost: Callable[..., Any], dtype: DType) -> CostFunction:
    def bound(shapes: Shapes, params: Mapping[str, Any], capabilities: Any = None) -> Any:
        return cost(shapes, params, capabilities, dtype=dtype)

    return bound
