"""Kernels of FUSED_SOFTMAX_CROSS_ENTROPY: losses of rows in F64 (or F32 where a device has no F64), then their sum."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cpu_reference import c as ckernels
from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.base.shapes import Layout, elements
from fuelvk.graph.ops._cross_entropy import check_targets
from fuelvk.graph.registry import FusedOps
from fuelvk.kernels._cpu import c_kernel, numpy_reference
from fuelvk.kernels._vulkan import ShaderRef, VulkanContext, spirv, vulkan
from fuelvk.kernels.claims import CROSS_ENTROPY_IN_F32, STRICT_CROSS_ENTROPY
from fuelvk.kernels.costs import (
    cost_fused_softmax_cross_entropy_cpu,
    cost_fused_softmax_cross_entropy_vulkan,
)
from fuelvk.kernels.ops._loss import LOSS, finish_words, ignored_words, row_flags
from fuelvk.kernels.ops._rows import in_passes, row_groups
from fuelvk.kernels.types import Registration

if TYPE_CHECKING:
    from fuelvk.vulkan import Buffer

OP = FusedOps.FUSED_SOFTMAX_CROSS_ENTROPY
_check = check_targets("fused_softmax_cross_entropy")
_ROWS = struct.Struct("<7I8s")


def _cpu(dtype: DType) -> Callable[..., None]:
    def kernel(inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: Any) -> None:
        (x, targets), y, ignored = inputs, outputs[0], params["ignore_index"]
        _check((x, targets), params)
        rows = targets.size
        losses = np.zeros(rows, np.float64)
        if rows:
            ckernels.call(f"cross_entropy_{dtype.key}", x, targets, losses, rows, x.shape[-1], ignored)
        if params["reduction"] == "none":
            if rows:
                ckernels.call("loss_each", losses, y, rows)
            return
        count = int(np.count_nonzero(targets != ignored)) if params["reduction"] == "mean" else -1
        ckernels.call("loss_total", losses, y, rows, count)

    return kernel


def _vulkan(rows_shader: ShaderRef, accumulator: DType) -> Callable[..., None]:
    def kernel(
        inputs: Sequence[Buffer],
        outputs: Sequence[Buffer],
        layouts: Sequence[Layout],
        params: Mapping[str, Any],
        context: VulkanContext,
    ) -> None:
        (x, targets), result = inputs, outputs[0]
        logits, labels, target = layouts
        rows, n = elements(labels.shape), logits.shape[-1]
        reduction = params["reduction"]
        if not rows and reduction == "none":
            return
        losses = context.scratch(max(rows, 1) * accumulator.size)
        ignored = ignored_words(params["ignore_index"])
        if rows:
            errors, slot = context.error_slot
            groups = row_groups(rows_shader, context, rows)
            words = (rows, n, groups[0], row_flags(n, logits.offset), logits.offset, 2 * labels.offset, slot)
            context.dispatch(
                rows_shader, groups, (x, targets, losses, errors), 0b1100, _ROWS.pack(*words, ignored)
            )
        each = reduction == "none"
        shader = LOSS["loss_each" if each else "loss_total", accumulator]
        groups = context.fold(-(-rows // 64)) if each else (1, 1, 1)
        last = finish_words(
            rows, groups[0], int(reduction == "mean"), n, 2 * labels.offset, 0, target.offset, 0, ignored
        )
        context.dispatch(shader, groups, (targets, targets, losses, result), 0b1000, last)

    return kernel


def _on_vulkan(dtype: DType, accumulator: DType) -> Registration:
    shader = spirv("rows/cross_entropy", "cross_entropy", dtype=dtype, acc=accumulator)
    strict = accumulator is DType.F64
    return vulkan(
        OP,
        (dtype, DType.I64, DType.F32),
        _vulkan(shader, accumulator),
        shaders=(shader, LOSS["loss_total", accumulator], LOSS["loss_each", accumulator]),
        cost=partial(cost_fused_softmax_cross_entropy_vulkan, dtype=dtype),
        precision=STRICT_CROSS_ENTROPY if strict else CROSS_ENTROPY_IN_F32,
        wrapper=__file__,
        name="vulkan.cross_entropy" if strict else "vulkan.cross_entropy_f32",
        admits=in_passes(2),
    )


def _rows(dtype: DType) -> tuple[Registration, ...]:
    dtypes, cost = (dtype, DType.I64, DType.F32), cost_fused_softmax_cross_entropy_cpu
    narrow = () if dtype is DType.F64 else (_on_vulkan(dtype, DType.F32),)
    return (
        _on_vulkan(dtype, DType.F64),
        *narrow,
        c_kernel(
            OP,
            dtypes,
            _cpu(dtype),
            functions=(f"cross_entropy_{dtype.key}", "loss_total", "loss_each"),
            cost=cost,
            precision=STRICT_CROSS_ENTROPY,
            wrapper=__file__,
        ),
        numpy_reference(OP, dtypes, cost=cost),
    )


IMPLS = tuple(row for dtype in FLOATS for row in _rows(dtype))
