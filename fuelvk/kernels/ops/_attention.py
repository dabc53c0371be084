"""What the attention kernels share: the numbers of a call as the shaders and the C kernels take them, and rows."""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cpu_reference import c
from fuelvk.base.dtypes import DType
from fuelvk.base.shapes import Layout
from fuelvk.graph.ops._attention import AttnParams, resolve
from fuelvk.graph.types import OpId
from fuelvk.kernels._cpu import c_kernel, numpy_reference
from fuelvk.kernels._vulkan import CONTIGUOUS, ShaderRef, vulkan
from fuelvk.kernels.ops._elements import also_of
from fuelvk.kernels.ops._loops import enough_groups, too_many_iterations
from fuelvk.kernels.types import (
    CostFunction,
    KernelCaps,
    PrecisionGuarantee,
    Registration,
    Shapes,
)

if TYPE_CHECKING:
    from fuelvk.vulkan import Capabilities

CAUSAL, HAS_SLOPES, HAS_LENS, HAS_OFFSET = 1, 2, 4, 8
POSITION_LIMIT = 1 << 30
INDEX_LIMIT = 1 << 31
KEYS = 64  # of a block
CALL = struct.Struct("<10i8s8s25i")
SCALARS = {DType.F32: "<f4x", DType.F64: "<d"}

Kernel = Callable[..., None]
Admits = Callable[[Shapes, Mapping[str, Any], Any], str | None]


def resolved(
    inputs: Sequence[Any], layouts: Sequence[Layout | None], params: Mapping[str, Any], places: Sequence[int]
) -> AttnParams:
    """Returns the numbers of a dense call; ``places`` are q, k, v, slopes and lengths among the inputs."""
    shapes = tuple(None if layout is None else layout.shape for layout in (layouts[i] for i in places))
    return resolve(shapes, params, has_k_lens=inputs[places[-1]] is not None)


def on_cpu(
    function: str,
    numbers: Callable[[Sequence[Any], Sequence[Layout | None], Mapping[str, Any]], tuple[Any, ...]],
    spread: Callable[[Sequence[Any]], Sequence[Any]] = list,
) -> Kernel:
    """Returns the wrapper of a C kernel, which takes its inputs, what ``spread`` makes of its outputs, and numbers."""

    def kernel(
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        layouts: Sequence[Layout | None],
        params: Mapping[str, Any],
        context: Any,
    ) -> None:
        c.call(function, *inputs, *spread(outputs), *numbers(inputs, layouts, params))

    return kernel


def rows_of(
    op: OpId,
    dtypes: tuple[DType, ...],
    *,
    function: str,
    cpu: Kernel,
    on_vulkan: Sequence[tuple[Kernel, tuple[ShaderRef, ...], tuple[ShaderRef, ...]]],
    costs: tuple[CostFunction, Callable[..., Any]],
    precision: PrecisionGuarantee,
    admits: Admits,
    wrapper: str,
    caps: KernelCaps = CONTIGUOUS,
) -> tuple[Registration, ...]:
    """Returns the table rows of an attention op: C, NumPy, then each of ``on_vulkan``.

    A kernel for Vulkan comes with the shaders it needs and those it uses where a device has them.
    """
    on_device = functools.partial(costs[1], dtype=dtypes[0])
    return (
        c_kernel(op, dtypes, cpu, functions=(function,), cost=costs[0], precision=precision, wrapper=wrapper),
        numpy_reference(op, dtypes, cost=costs[0]),
        *(
            also_of(
                vulkan(
                    op, dtypes, kernel, shaders=needed, precision=precision, wrapper=wrapper, cost=on_device,
                    caps=caps, admits=admits,
                ),
                *optional,
            )
            for kernel, needed, optional in on_vulkan
        ),
    )  # fmt: skip


def block_steps(d: int) -> int:
    """Returns more than the loop iterations a subgroup spends on a block of 64 keys (80 were counted at D = 32)."""
    return 40 + 40 * -(-d // 16)


def enough_workers(caps: Capabilities, wanted: int, units: int, steps: int) -> int:
    """Returns ``wanted``, or more where a driver would end the loops of workers that take ``steps`` a unit."""
    return enough_groups(caps, wanted, units, steps)


def too_many_keys(caps: Capabilities, keys: int, d: int) -> str | None:
    """Returns why a driver that ends long loops cannot walk ``keys`` keys in one invocation, else None."""
    return too_many_iterations(caps, -(-keys // KEYS) * block_steps(d))


def window(given: int | None) -> int:
    """Returns a window as kernels take it: -1 is off, and what reaches past every key is the largest."""
    return -1 if given is None else min(given, POSITION_LIMIT)


def c_arguments(p: AttnParams) -> tuple[Any, ...]:
    """Returns what the C kernels of dense attention take after their arrays."""
    has_offset = p.causal_offset is not None
    return (
        p.B, p.Hq, p.Hkv, p.Sq, p.Sk, p.D, p.scale, p.softcap, p.k_len, int(p.causal), int(has_offset),
        p.causal_offset if has_offset else 0, window(p.window_left), window(p.window_right),
    )  # fmt: skip


def call_words(
    p: AttnParams,
    places: Sequence[Layout],
    slopes: Layout | None,
    lens: Layout | None,
    dtype: DType,
    error_word: int,
    count: int,
) -> bytes:
    """Returns the bytes of struct Call in shaders/slang/attention/_call.slang; ``places`` are q, k, v and y."""
    flags = CAUSAL * p.causal + HAS_SLOPES * (slopes is not None) + HAS_LENS * (lens is not None)
    offset = 0
    if p.causal_offset is not None:
        flags += HAS_OFFSET
        offset = p.causal_offset
    scalar = SCALARS[dtype.accumulator]
    numbers = [
        struct.pack(scalar, np.float64(n).astype(dtype.accumulator.numpy)) for n in (p.scale, p.softcap)
    ]
    steps = [n for x in places for n in (x.offset, *x.strides[:3])]
    for vector in (slopes, lens):
        steps += [0, 0] if vector is None else [vector.offset, vector.strides[0]]
    return CALL.pack(
        p.Hkv, p.group * p.Sq, p.Sq, p.Sk, p.D, p.k_len, flags, offset, window(p.window_left),
        window(p.window_right), *numbers, *steps, error_word, count, *(x.strides[3] for x in places[:3]),
    )  # fmt: skip
