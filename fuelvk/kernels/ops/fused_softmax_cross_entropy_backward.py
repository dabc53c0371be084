"""Kernels of the gradient of cross-entropy: a factor per row, then the rows."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cpu_reference import c as ckernels
from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.base.shapes import Layout, elements
from fuelvk.graph.ops._cross_entropy import REDUCTIONS, check_targets
from fuelvk.graph.types import PrimitiveId
from fuelvk.kernels._cpu import c_kernel, numpy_reference
from fuelvk.kernels._vulkan import ShaderRef, VulkanContext, spirv, vulkan
from fuelvk.kernels.costs import (
    cost_fused_softmax_cross_entropy_cpu,
    cost_fused_softmax_cross_entropy_vulkan,
)
from fuelvk.kernels.ops._division import divided
from fuelvk.kernels.ops._loss import (
    LOSS,
    TARGET_WORDS,
    finish_words,
    ignored_words,
    loss_admits,
    row_flags,
    rows_apart,
)
from fuelvk.kernels.ops._rows import row_groups
from fuelvk.kernels.row_claims import STRICT_CROSS_ENTROPY_BACKWARD
from fuelvk.kernels.types import Registration

if TYPE_CHECKING:
    from fuelvk.vulkan import Buffer

OP = PrimitiveId("fused_softmax_cross_entropy_backward")
_check = check_targets(OP.name)
_ROWS = struct.Struct("<8I8s")
# loss_scale's `mean`: a factor for all, over the count, or of each row.
_KIND = dict(zip(REDUCTIONS, (1, 0, 2), strict=True))


def _factors(targets: Any, g: Any, params: Mapping[str, Any], dtype: DType) -> Any:
    wide = g.astype(dtype.accumulator.numpy)
    if params["reduction"] == "mean":
        with np.errstate(all="ignore"):
            wide = wide / wide.dtype.type(np.count_nonzero(targets != params["ignore_index"]))
    return np.ascontiguousarray(np.broadcast_to(wide, targets.shape))


def _cpu(dtype: DType) -> Callable[..., None]:
    def kernel(inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: Any) -> None:
        (x, targets, g), dx = inputs, outputs[0]
        _check((x, targets), params)
        if x.size:
            factors, ignored = _factors(targets, g, params, dtype), params["ignore_index"]
            name = f"cross_entropy_backward_{dtype.key}"
            ckernels.call(name, x, targets, factors, dx, targets.size, x.shape[-1], ignored)

    return kernel


def _gradients(shader: ShaderRef) -> Callable[..., None]:
    """Returns what writes the gradients of (logits, targets, factors)."""

    def kernel(
        inputs: Sequence[Buffer],
        outputs: Sequence[Buffer],
        layouts: Sequence[Layout],
        params: Mapping[str, Any],
        context: VulkanContext,
    ) -> None:
        logits, labels, factors, target = layouts
        rows, n = elements(labels.shape), logits.shape[-1]
        groups = row_groups(shader, context, rows)
        flags, targets0 = row_flags(n, logits.offset, target.offset), TARGET_WORDS * labels.offset
        words = (rows, n, groups[0], flags, logits.offset, targets0, target.offset, factors.offset)
        ignored = ignored_words(params["ignore_index"])
        context.dispatch(shader, groups, (*inputs, outputs[0]), 0b1000, _ROWS.pack(*words, ignored))

    return kernel


def _vulkan(shader: ShaderRef, dtype: DType) -> Callable[..., None]:
    scale_shader, wide = LOSS["loss_scale", dtype.accumulator], dtype.accumulator
    weights = (1, TARGET_WORDS, 1, 1)
    write = divided(_gradients(shader), rows_apart, (dtype, DType.I64, wide, dtype), weights=weights)

    def kernel(
        inputs: Sequence[Buffer],
        outputs: Sequence[Buffer],
        layouts: Sequence[Layout],
        params: Mapping[str, Any],
        context: VulkanContext,
    ) -> None:
        x, targets, g = inputs
        logits, labels, grad, target = layouts
        rows, n = elements(labels.shape), logits.shape[-1]
        if not rows:
            return
        factors = context.scratch(rows * wide.size)
        ignored, kind = ignored_words(params["ignore_index"]), _KIND[params["reduction"]]
        errors, slot = context.error_slot
        scale = finish_words(rows, 1, kind, n, 2 * labels.offset, grad.offset, 0, slot, ignored)
        context.dispatch(scale_shader, (1, 1, 1), (g, targets, factors, errors), 0b1100, scale)
        dense = Layout.of(labels.shape)
        write((x, targets, factors), outputs, (logits, labels, dense, target), params, context)

    return kernel


def _rows(dtype: DType) -> tuple[Registration, ...]:
    dtypes = (dtype, DType.I64, DType.F32, dtype)
    shader = spirv("rows/cross_entropy_backward", "cross_entropy_backward", dtype=dtype)
    cost = cost_fused_softmax_cross_entropy_cpu
    return (
        vulkan(
            OP,
            dtypes,
            _vulkan(shader, dtype),
            shaders=(shader, LOSS["loss_scale", dtype.accumulator]),
            cost=partial(cost_fused_softmax_cross_entropy_vulkan, dtype=dtype),
            precision=STRICT_CROSS_ENTROPY_BACKWARD,
            wrapper=__file__,
            admits=loss_admits((dtype, DType.I64), 3),
        ),
        c_kernel(
            OP,
            dtypes,
            _cpu(dtype),
            functions=(f"cross_entropy_backward_{dtype.key}",),
            cost=cost,
            precision=STRICT_CROSS_ENTROPY_BACKWARD,
            wrapper=__file__,
        ),
        numpy_reference(OP, dtypes, cost=cost),
    )


IMPLS = tuple(row for dtype in FLOATS for row in _rows(dtype))
