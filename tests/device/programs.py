"""Small programs on the one kernel that knows no op: a fill with a 32-bit word."""

from __future__ import annotations

import struct

from fuelvk.shaderbuild import load_manifest
from fuelvk.vulkan import Buffer, Device, Pipeline, Recorder

WORDS_PER_GROUP = 512


def fill_pipeline(device: Device) -> Pipeline:
    variant = load_manifest().variant("util/fill", mode=device.addressing)
    return device.pipeline(
        f"fill@{device.addressing}", variant.spirv, "main", 1, variant.entries["main"].push_size
    )


def fill(recorder: Recorder, pipeline: Pipeline, buffer: Buffer, value: int, label: str = "") -> None:
    """Records a dispatch that writes ``value`` over the buffer's words."""
    words = buffer.nbytes // 4
    groups = max(1, -(-words // WORDS_PER_GROUP))
    recorder.dispatch(
        pipeline, (groups, 1, 1), (buffer,), 1, struct.pack("<III", words, groups, value), label
    )


def words(device: Device, buffer: Buffer) -> set[int]:
    """Returns the distinct words of a buffer."""
    raw = device.read(buffer)
    return {word for (word,) in struct.iter_unpack("<I", raw)}
