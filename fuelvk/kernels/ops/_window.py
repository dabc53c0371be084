"""Indices along an axis that is cut into windows: what lies outside of one is left to the others.

Kernels compare an index with the extent of the axis they are given and leave out what is beyond it, with an error. For
a window the indices are rewritten to count from its start, those of other windows beyond its end; what is out of the
whole axis is told by the rewriting, and the kernel's own errors go to a word that nobody reads.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fuelvk.base.dtypes import DType
from fuelvk.base.shapes import Layout, elements
from fuelvk.kernels._vulkan import ShaderRef, VulkanContext, spirv
from fuelvk.kernels.ops._division import Shift
from fuelvk.kernels.ops._elements import gathered
from fuelvk.kernels.types import Shapes

if TYPE_CHECKING:
    from fuelvk.vulkan import Buffer

_WINDOW = "window"
_PARAMS = struct.Struct("<11I")


def window_shader() -> ShaderRef:
    """Returns the shader that rewrites indices."""
    return spirv("movement/window", "window")


#: The number of the axis that indices point into, where its places are cut into windows.
POINTED = -2


def windows(operand: int) -> Shift:
    """Returns the shift of a call whose ``operand`` may be cut along the axis ``POINTED``."""

    def shift(params: Mapping[str, Any], starts: Mapping[int, int], shapes: Shapes) -> Mapping[str, Any]:
        if POINTED not in starts:
            return params
        shape = shapes[operand]
        assert shape is not None
        return {**params, _WINDOW: (starts[POINTED], shape[params["axis"]])}

    return shift


@dataclass(frozen=True, slots=True)
class Picks:
    """Indices as a kernel reads them: where, how, words of each, and the word for those out of range."""

    buffer: Buffer
    layout: Layout
    words: int
    errors: Buffer
    slot: int


def picks(
    context: VulkanContext,
    dtype: DType,
    buffer: Buffer,
    layout: Layout,
    extent: int,
    params: Mapping[str, Any],
) -> Picks:
    """Returns the indices of a call, rewritten where ``params`` are those of a window of ``extent`` places."""
    errors, slot = context.error_slot
    if _WINDOW not in params:
        return Picks(buffer, layout, dtype.size // 4, errors, slot)
    first, axis = params[_WINDOW]
    if not layout.is_contiguous():
        buffer, layout = gathered(context, dtype, buffer, layout)
    shader, count = window_shader(), elements(layout.shape)
    into, words = context.scratch(4 * count), dtype.size // 4
    groups = context.fold(-(-count // shader.workgroup(context.caps)[0]))
    context.dispatch(
        shader,
        groups,
        (buffer, into, errors),
        0b110,
        _PARAMS.pack(
            count,
            groups[0],
            words,
            layout.offset * words,
            axis % 2**32,
            axis // 2**32,
            first % 2**32,
            first // 2**32,
            extent,
            dtype is DType.I32,
            slot,
        ),
    )
    return Picks(into, Layout.of(layout.shape), 1, context.scratch(4), 0)
