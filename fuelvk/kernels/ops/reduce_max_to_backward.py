"""Kernels of REDUCE_MAX_TO_BACKWARD: a workgroup a window, or an invocation each where windows lie side by side."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cpu_reference import c as ckernels
from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.base.shapes import Layout, Shape, broadcast_axes, collapse, elements
from fuelvk.graph.registry import FusedOps
from fuelvk.kernels._cpu import c_kernel, numpy_reference
from fuelvk.kernels._vulkan import ShaderRef, VulkanContext, spirv, vulkan
from fuelvk.kernels.claims import STRICT_MAX_BACKWARD
from fuelvk.kernels.costs import cost_reduce_max_to_backward_cpu, cost_reduce_max_to_backward_vulkan
from fuelvk.kernels.ops._division import WHOLE, Plan, divided, divisible
from fuelvk.kernels.ops._elements import also_of, copy_shaders, padded
from fuelvk.kernels.ops._loops import most_iterations, within_loops
from fuelvk.kernels.ops._walk import order
from fuelvk.kernels.types import Registration, Shapes

if TYPE_CHECKING:
    from fuelvk.vulkan import Buffer

_PARAMS = struct.Struct("<4I3I7i7i")
_RANK = 4  # what eight axes, kept and reduced in turn, leave of either kind
_THREADS = 64
_WALKS = 3  # of a window: its maximum, the ties, the shares
_MANY = 64  # windows from which one invocation each is enough where their elements lie side by side


def _cpu(function: str) -> Callable[..., None]:
    def kernel(inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: Any) -> None:
        (x, g), y = inputs, outputs[0]
        if not y.size:
            return
        axes = order(x.ndim, broadcast_axes(g.shape, x.shape))
        rows = np.ascontiguousarray(x.transpose(axes))
        result = np.empty_like(rows)
        ckernels.call(function, rows, g, result, g.size, x.size // g.size)
        y.transpose(axes)[...] = result

    return kernel


def _walk(shape: Sequence[int], strides: Sequence[int]) -> tuple[Shape, Shape]:
    """Returns the collapsed extents and strides, ``_RANK`` of each."""
    extents, (steps,) = collapse(shape, strides)
    return padded(extents, _RANK, 1), padded(steps, _RANK, 0)


def _division(shapes: Shapes, params: Mapping[str, Any]) -> Plan:
    """Windows are independent: axes along which g is repeated stay whole."""
    x, g, _ = shapes
    assert x is not None and g is not None
    repeated = broadcast_axes(g, x)
    kept = tuple(WHOLE if axis in repeated else axis for axis in range(len(x)))
    return kept, kept[len(x) - len(g) :], kept


def _steps(shapes: Shapes, params: Mapping[str, Any]) -> int:
    """Iterations of an invocation of a workgroup that shares a window."""
    x, g, _ = shapes
    assert x is not None and g is not None
    return _WALKS * (elements(x) // max(elements(g), 1) // _THREADS + 8)


def _vulkan(by_group: ShaderRef, alone: ShaderRef) -> Callable[..., None]:
    def kernel(
        inputs: Sequence[Buffer],
        outputs: Sequence[Buffer],
        layouts: Sequence[Layout],
        params: Mapping[str, Any],
        context: VulkanContext,
    ) -> None:
        x, g, y = layouts
        if not elements(x.shape):
            return
        windows = elements(g.shape)
        n = elements(x.shape) // windows
        axes = broadcast_axes(g.shape, x.shape)
        moved = Layout.of(x.shape).transpose(order(len(x.shape), axes))
        kept = len(x.shape) - len(axes)
        places, place_strides = _walk(moved.shape[:kept], moved.strides[:kept])
        extents, strides = _walk(moved.shape[kept:], moved.strides[kept:])
        each = n < _THREADS or (windows >= _MANY and strides[-1] != 1)
        each &= most_iterations(context.caps, _WALKS * n) == _WALKS * n
        groups = context.fold(-(-windows // _THREADS) if each else windows)
        context.dispatch(
            alone if each else by_group,
            groups,
            (*inputs, outputs[0]),
            0b100,
            _PARAMS.pack(
                windows,
                n,
                groups[0],
                elements(extents[:-1]) == 1,
                x.offset,
                g.offset,
                y.offset,
                *places[1:],
                *place_strides,
                *extents[1:],
                *strides,
            ),
        )

    return kernel


def _rows(dtype: DType) -> tuple[Registration, ...]:
    dtypes, op = (dtype,) * 3, FusedOps.REDUCE_MAX_TO_BACKWARD
    by_group, alone = (
        spirv("reduce/max_backward", entry, dtype=dtype) for entry in ("max_backward", "max_backward_alone")
    )
    row = vulkan(
        op,
        dtypes,
        divided(_vulkan(by_group, alone), _division, dtypes),
        shaders=(by_group,),
        cost=partial(cost_reduce_max_to_backward_vulkan, dtype=dtype),
        precision=STRICT_MAX_BACKWARD,
        wrapper=__file__,
        admits=divisible(_division, dtypes, also=within_loops(_steps)),
    )
    function = f"reduce_max_to_backward_{dtype.key}"
    return (
        also_of(row, alone, *copy_shaders()),
        c_kernel(
            op,
            dtypes,
            _cpu(function),
            functions=(function,),
            cost=cost_reduce_max_to_backward_cpu,
            precision=STRICT_MAX_BACKWARD,
            wrapper=__file__,
        ),
        numpy_reference(op, dtypes, cost=cost_reduce_max_to_backward_cpu),
    )


IMPLS = tuple(row for dtype in FLOATS for row in _rows(dtype))
