"""Host data in and out of buffers: in place where memory is shared, through staging buffers elsewhere."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

from fuelvk.vulkan.buffers import Buffer
from fuelvk.vulkan.memory import Pool

if TYPE_CHECKING:
    from fuelvk.vulkan.device import Device

STAGE_BYTES = 4 << 20
STAGES = 4


class Transfers(Protocol):
    """Moves bytes; sizes and offsets are checked by the caller."""

    def write(self, buffer: Buffer, data: Any, nbytes: int, offset: int) -> None:
        """Copies host bytes into a buffer."""

    def read(self, buffer: Buffer, out: Any, nbytes: int, offset: int) -> None:
        """Copies a buffer's bytes to the host."""


class InPlace:
    """Copies to and from mapped memory once the device is done with it."""

    __slots__ = ("_device", "_move")

    def __init__(self, device: Device) -> None:
        self._device = device
        self._move = device.api.ffi.memmove

    def write(self, buffer: Buffer, data: Any, nbytes: int, offset: int) -> None:
        """Waits for the buffer's last use, then copies."""
        self._device.wait(buffer.slot.last_use())
        self._move(buffer.pointer + offset, data, nbytes)
        self._device.memory.synchronize(buffer, offset, nbytes, to_device=True)

    def read(self, buffer: Buffer, out: Any, nbytes: int, offset: int) -> None:
        """Waits for the buffer's last use, then copies."""
        self._device.wait(buffer.slot.last_use())
        self._device.memory.synchronize(buffer, offset, nbytes, to_device=False)
        self._move(out, buffer.pointer + offset, nbytes)


class Staged:
    """Copies in pieces through a ring of host-visible buffers.

    Writes do not wait for the device, reads do.
    """

    def __init__(self, device: Device, upload: Pool, download: Pool) -> None:
        self._device = device
        self._pools = {True: upload, False: download}
        self._rings: dict[bool, deque[Buffer]] = {True: deque(), False: deque()}

    def write(self, buffer: Buffer, data: Any, nbytes: int, offset: int) -> None:
        """Copies piece by piece.

        Each piece is submitted at once and needs no wait for earlier uses of the buffer.
        """
        device, ffi = self._device, self._device.api.ffi
        source = ffi.cast("char*", data if isinstance(data, ffi.CData) else ffi.from_buffer(data))
        done = 0
        while done < nbytes:
            size = min(STAGE_BYTES, nbytes - done)
            stage = self._stage(upload=True)
            device.wait(stage.last_use)
            ffi.memmove(stage.pointer, source + done, size)
            self._pools[True].synchronize(stage, 0, size, to_device=True)
            recorder = device.recorder("upload")
            recorder.copy(stage, buffer, size, 0, offset + done)
            device.submit(recorder.finish())
            self._rings[True].append(stage)
            done += size

    def read(self, buffer: Buffer, out: Any, nbytes: int, offset: int) -> None:
        """Copies piece by piece, several pieces under way at a time."""
        device, ffi = self._device, self._device.api.ffi
        target = ffi.cast(
            "char*", out if isinstance(out, ffi.CData) else ffi.from_buffer(out, require_writable=True)
        )
        under_way: deque[tuple[Buffer, int, int]] = deque()
        done = 0
        while done < nbytes or under_way:
            if done < nbytes and len(under_way) < STAGES:
                size = min(STAGE_BYTES, nbytes - done)
                stage = self._stage(upload=False)
                recorder = device.recorder("download")
                recorder.copy(buffer, stage, size, offset + done, 0)
                device.submit(recorder.finish())
                under_way.append((stage, done, size))
                done += size
                continue
            stage, start, size = under_way.popleft()
            device.wait(stage.last_use)
            self._pools[False].synchronize(stage, 0, size, to_device=False)
            ffi.memmove(target + start, stage.pointer, size)
            self._rings[False].append(stage)

    def _stage(self, *, upload: bool) -> Buffer:
        ring = self._rings[upload]
        try:
            if not upload or len(ring) >= STAGES:
                return ring.popleft()
        except IndexError:
            pass
        return self._pools[upload].alloc(STAGE_BYTES)
