"""Choosing between two contiguous operands, or an operand and a value, by whole 64-bit words."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fuelvk.kernels._vulkan import ShaderRef, VulkanContext, spirv
from fuelvk.kernels.ops._elements import WIDE_FROM, spread, team_of

if TYPE_CHECKING:
    from fuelvk.vulkan import Buffer

_PARAMS = struct.Struct("<8I8s")
_GROUP = 8  # elements: the mask bytes of one word


def choose_shader(op: str, size: int) -> ShaderRef:
    """Returns the shader of ``op`` ("where" or "masked_fill") for elements of ``size`` bytes; some devices lack it."""
    return spirv("pointwise/choose", f"{op}_words", bytes=size)


def choose_words(
    context: VulkanContext,
    shader: ShaderRef,
    size: int,
    count: int,
    buffers: Sequence[Buffer],
    offsets: Sequence[int],
    value: bytes | None = None,
) -> bool:
    """Records ``y = cond ? a : b`` where everything starts on a word and the work fills a workgroup.

    ``buffers`` and ``offsets`` (in elements) are those of cond, a, b and y, all contiguous; with ``value``, one
    element's bytes, that stands for a. Returns whether it did.
    """
    if count < WIDE_FROM or isinstance(shader.select(context.caps), str):
        return False
    if offsets[0] % _GROUP or any(offset * size % 8 for offset in offsets[1:]):
        return False
    groups, each = spread(shader, context, -(-count // _GROUP))
    word = b"" if value is None else value * (8 // size)
    words = _PARAMS.pack(count, groups[0], each, team_of(context.caps), *offsets, word)
    context.dispatch(shader, groups, buffers, 0b1000, words)
    return True
