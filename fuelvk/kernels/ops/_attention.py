"""What the attention kernels share: the numbers of a call as the shaders and the C kernels take them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fuelvk.base.dtypes import DType
from fuelvk.base.shapes import Layout
from fuelvk.graph.ops._attention import AttnParams
from fuelvk.kernels.ops._loops import enough_groups, too_many_iterations

if TYPE_CHECKING:
    from fuelvk.vulkan import Capabilities

CAUSAL, HAS_SLOPES, HAS_LENS, HAS_OFFSET = 1, 2, 4, 8
POSITION_LIMIT = 1 << 30
INDEX_LIMIT = 1 << 31
KEYS = 64  # of a block
CALL = struct.Struct("<10i8s8s25i")
SCALARS = {DType.F32: "<f4x", DType.F64: "<d"}


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
