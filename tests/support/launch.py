"""Runs a Vulkan kernel wrapper on arrays as they lie in memory: strides and offsets reach the kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fuelvk.base.shapes import Layout
from fuelvk.kernels._vulkan import VulkanContext
from fuelvk.kernels.types import BackendImpl
from fuelvk.vulkan import Buffer, Device

Array = np.ndarray[Any, Any]
NOISE = 0x7F  # scratch memory starts as this byte, large numbers in every float type
GUARD = 64


class Recording:
    """The launch side of a VulkanContext for one kernel."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.recorder = device.recorder()

    def scratch(self, nbytes: int) -> Buffer:
        return self.filled(np.full(max(nbytes, 4), NOISE, np.uint8))

    def constant(self, data: bytes) -> Buffer:
        return self.filled(np.frombuffer(data, np.uint8))

    def prepare(self, source: Buffer, nbytes: int, record: Callable[[Buffer], None], key: str) -> Buffer:
        into = self.scratch(nbytes)
        record(into)
        return into

    def error_slot(self) -> tuple[Buffer, int]:
        return self.device.error_buffer, 0

    def filled(self, data: Array) -> Buffer:
        buffer = self.device.alloc(max(data.nbytes, 4))
        if data.nbytes:
            self.device.write(buffer, data)
        return buffer


def _owner(x: Array) -> Array:
    while isinstance(x.base, np.ndarray):
        x = x.base
    return x


def run_in_place(
    device: Device,
    impl: BackendImpl,
    inputs: Sequence[Array | None],
    output: Array,
    params: Mapping[str, Any],
) -> Array:
    """Returns what ``impl`` makes of ``inputs``, an array like ``output``; checks the bytes behind the output."""
    launch = Recording(device)
    buffers: list[Buffer | None] = []
    layouts: list[Layout | None] = []
    for x in inputs:
        if x is None:
            buffers.append(None)
            layouts.append(None)
            continue
        whole = _owner(x)
        offset = (x.ctypes.data - whole.ctypes.data) // x.itemsize if x.size else 0
        buffers.append(launch.filled(np.ascontiguousarray(whole).reshape(-1).view(np.uint8)))
        layouts.append(Layout(x.shape, tuple(s // x.itemsize for s in x.strides), offset))
    size = output.nbytes
    result = launch.filled(np.full(size + GUARD, NOISE, np.uint8))
    layouts.append(Layout.of(output.shape))
    impl.kernel(buffers, [result], layouts, params, VulkanContext(launch, impl.name))
    device.wait(device.submit(launch.recorder.finish()))
    raw = np.frombuffer(bytes(device.read(result, size + GUARD)), np.uint8)
    assert (raw[size:] == NOISE).all(), "a byte behind the output was overwritten"
    return raw[:size].view(output.dtype).reshape(output.shape)
