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
from fuelvk.kernels.costs import (
    cost_fused_softmax_cross_entropy_cpu,
    cost_fused_softmax_cross_entropy_vulkan,
)
from fuelvk.kernels.ops._division import divided, together
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
from fuelvk.kernels.row_claims import CROSS_ENTROPY_IN_F32, STRICT_CROSS_ENTROPY
from fuelvk.kernels.types import Registration

if TYPE_CHECKING:
    from fuelvk.vulkan import Buffer

OP = FusedOps.FUSED_SOFTMAX_CROSS_ENTROPY
_check = check_targets("fused_softmax_cross_entropy")
_ROWS = struct.Struct("<8I8s")


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


def _losses(shader: ShaderRef) -> Callable[..., None]:
    """Returns what writes the losses of (logits, targets)."""

    def kernel(
        inputs: Sequence[Buffer],
        outputs: Sequence[Buffer],
        layouts: Sequence[Layout],
        params: Mapping[str, Any],
        context: VulkanContext,
    ) -> None:
        logits, labels, losses = layouts
        rows, n = elements(labels.shape), logits.shape[-1]
        errors, slot = context.error_slot
        ignored = ignored_words(params["ignore_index"])
        groups = row_groups(shader, context, rows)
        flags, targets0 = row_flags(n, logits.offset), TARGET_WORDS * labels.offset
        words = (rows, n, groups[0], flags, logits.offset, targets0, slot, losses.offset)
        context.dispatch(shader, groups, (*inputs, outputs[0], errors), 0b1100, _ROWS.pack(*words, ignored))

    return kernel


def _rounded(shader: ShaderRef) -> Callable[..., None]:
    """Returns what rounds losses, each by itself."""

    def kernel(
        inputs: Sequence[Buffer],
        outputs: Sequence[Buffer],
        layouts: Sequence[Layout],
        params: Mapping[str, Any],
        context: VulkanContext,
    ) -> None:
        losses, target = layouts
        rows = elements(losses.shape)
        groups = context.fold(-(-rows // 64))
        words = finish_words(rows, groups[0], 0, 0, 0, losses.offset, target.offset, 0, ignored_words(0))
        context.dispatch(shader, groups, (inputs[0], inputs[0], inputs[0], outputs[0]), 0b1000, words)

    return kernel


def _vulkan(rows_shader: ShaderRef, dtype: DType, accumulator: DType) -> Callable[..., None]:
    write = divided(
        _losses(rows_shader), rows_apart, (dtype, DType.I64, accumulator), weights=(1, TARGET_WORDS, 1)
    )
    round_each = divided(_rounded(LOSS["loss_each", accumulator]), together(), (accumulator, DType.F32))

    def kernel(
        inputs: Sequence[Buffer],
        outputs: Sequence[Buffer],
        layouts: Sequence[Layout],
        params: Mapping[str, Any],
        context: VulkanContext,
    ) -> None:
        labels, target = layouts[1:]
        rows, dense = elements(labels.shape), Layout.of(labels.shape)
        losses = context.scratch(max(rows, 1) * accumulator.size)
        if rows:
            write(inputs, (losses,), (*layouts[:2], dense), params, context)
        if params["reduction"] != "none":
            ignored, mean = ignored_words(params["ignore_index"]), int(params["reduction"] == "mean")
            places = (TARGET_WORDS * labels.offset, 0, target.offset)
            words = finish_words(rows, 1, mean, 0, *places, 0, ignored)
            buffers = (inputs[1], inputs[1], losses, outputs[0])
            context.dispatch(LOSS["loss_total", accumulator], (1, 1, 1), buffers, 0b1000, words)
        elif rows:
            round_each((losses,), outputs, (dense, target), params, context)

    return kernel


def _on_vulkan(dtype: DType, accumulator: DType) -> Registration:
    shader = spirv("rows/cross_entropy", "cross_entropy", dtype=dtype, acc=accumulator)
    strict = accumulator is DType.F64
    return vulkan(
        OP,
        (dtype, DType.I64, DType.F32),
        _vulkan(shader, dtype, accumulator),
        shaders=(shader, LOSS["loss_total", accumulator], LOSS["loss_each", accumulator]),
        cost=partial(cost_fused_softmax_cross_entropy_vulkan, dtype=dtype),
        precision=STRICT_CROSS_ENTROPY if strict else CROSS_ENTROPY_IN_F32,
        wrapper=__file__,
        name="vulkan.cross_entropy" if strict else "vulkan.cross_entropy_f32",
        admits=loss_admits((dtype, DType.I64), 2),
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
