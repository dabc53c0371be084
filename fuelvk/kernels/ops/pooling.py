"""Kernels of max_pool2d, avg_pool2d and their gradients."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cpu_reference import c as ckernels
from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.base.shapes import Layout, elements
from fuelvk.graph.primitives._images import windows
from fuelvk.kernels._vulkan import ShaderRef, VulkanContext, spirv
from fuelvk.kernels.claims import (
    STRICT_AVG_POOL,
    STRICT_AVG_POOL_BACKWARD,
    STRICT_EXACT,
    STRICT_MAX_POOL_BACKWARD,
)
from fuelvk.kernels.ops._elements import grid
from fuelvk.kernels.ops._images import image_rows
from fuelvk.kernels.types import PrecisionGuarantee, Registration

if TYPE_CHECKING:
    from fuelvk.vulkan import Buffer

_PARAMS = struct.Struct("<2I15iI")


def _extents(op: str, shapes: Sequence[Any]) -> tuple[int, ...]:
    """Returns planes, then h and w of what is pooled, then those of the pooled; shapes end with the output's."""
    source, pooled = (shapes[-1], shapes[-2]) if op.endswith("backward") else (shapes[0], shapes[-1])
    return elements(source[:-2]), *source[-2:], *pooled[-2:]


def _window(params: Mapping[str, Any]) -> tuple[int, ...]:
    """Returns kernel, stride, padding and dilation, each for rows and columns."""
    rows, columns = windows(params)
    return tuple(v for pair in zip(rows, columns, strict=True) for v in pair)


def _on_cpu(op: str, dtype: DType) -> Callable[..., None]:
    def kernel(inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: Any) -> None:
        y = outputs[0]
        if not y.size:
            return
        extents = _extents(op, [a.shape for a in (*inputs, y)])
        window = _window(params)
        last = window if op.startswith("max") else (*window[:6], int(params["count_include_pad"]))
        ckernels.call(f"{op}_{dtype.key}", *inputs, y, *extents, *last)

    return kernel


def _on_vulkan(op: str, shader: ShaderRef) -> Callable[..., None]:
    # The shader's buffers are x, g, y; an op of one input is given it in both places.
    def kernel(
        inputs: Sequence[Buffer],
        outputs: Sequence[Buffer],
        layouts: Sequence[Layout],
        params: Mapping[str, Any],
        context: VulkanContext,
    ) -> None:
        count = elements(layouts[-1].shape)
        if not count:
            return
        groups = grid(shader, context, count)
        extents = _extents(op, [v.shape for v in layouts])[1:]
        offsets = (layouts[0].offset, layouts[-2].offset, layouts[-1].offset)
        words = (
            count,
            groups[0],
            *offsets,
            *extents,
            *_window(params),
            int(params.get("count_include_pad", 0)),
        )
        context.dispatch(shader, groups, (inputs[0], inputs[-1], outputs[0]), 0b100, _PARAMS.pack(*words))

    return kernel


def _taps(params: Mapping[str, Any]) -> int:
    return math.prod(params["kernel"])


def _searches(params: Mapping[str, Any]) -> int:
    """An element looks through every window that holds it."""
    return _taps(params) * (1 + math.prod(-(-k // s) for k, s, _, _ in windows(params)))


_TABLE: tuple[tuple[str, int, Callable[[Mapping[str, Any]], int], PrecisionGuarantee], ...] = (
    ("max_pool2d", 1, _taps, STRICT_EXACT),
    ("avg_pool2d", 1, _taps, STRICT_AVG_POOL),
    ("max_pool2d_backward", 2, _searches, STRICT_MAX_POOL_BACKWARD),
    ("avg_pool2d_backward", 1, _taps, STRICT_AVG_POOL_BACKWARD),
)


def _rows(op: str, inputs: int, operations: Any, precision: PrecisionGuarantee) -> list[Registration]:
    found: list[Registration] = []
    for dtype in FLOATS:
        shader = spirv("networks/pool", op, dtype=dtype)
        found += image_rows(
            op,
            dtype,
            inputs,
            on_vulkan=_on_vulkan(op, shader),
            on_cpu=_on_cpu(op, dtype),
            shader=shader,
            operations=operations,
            precision=precision,
            wrapper=__file__,
            iterations=lambda shapes, params: 2 * operations(params),
        )
    return found


IMPLS = tuple(row for entry in _TABLE for row in _rows(*entry))
