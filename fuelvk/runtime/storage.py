"""Where the elements of a value live: on a device, on the host, or both."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fuelvk.base.dtypes import DType
from fuelvk.base.errors import IndexOutOfRangeError
from fuelvk.base.shapes import Shape, elements

if TYPE_CHECKING:
    from fuelvk.runtime.devices import Device
    from fuelvk.vulkan import Buffer

Array = np.ndarray[Any, Any]

FAULT_WORDS = 64

#: Held while elements move to another device; one for all sources, since that is rare and sources are many.
_moving = threading.RLock()


class Faults:
    """What the kernels of one run reported of values that only the device could see.

    Every result of the run holds it, and every result computed from those, so that the error belongs to the data it
    spoiled: it is raised on each attempt to read it, and never to anybody else.
    """

    __slots__ = ("_buffer", "_device", "_labels", "_lock", "_raised", "clean")

    def __init__(self, device: Device, buffer: Buffer, labels: Sequence[str]) -> None:
        self._device = device
        self._buffer: Buffer | None = buffer
        self._labels = labels
        self._lock = threading.Lock()
        self._raised: tuple[str, int] | None = None
        self.clean = False

    def check(self) -> None:
        """Waits for the run; raises IndexOutOfRangeError when a kernel met an index or a length out of range."""
        with self._lock:
            if self._buffer is not None:
                words = np.zeros(FAULT_WORDS, np.uint32)
                self._device.download(self._buffer, words)
                self._buffer.free()
                self._buffer = None
                met = np.flatnonzero(words)
                self.clean = not met.size
                if met.size:
                    self._raised = self._labels[int(met[0])], int(words[met[0]]) - 1
        if self._raised is not None:
            op, number = self._raised
            # Kernels store an offender plus one, and 2^32 - 1 for itself: the top two share a word.
            seen = f"{number} or {number + 1}" if number == 0xFFFFFFFE else str(number)
            raise IndexOutOfRangeError(
                f"{op}: an index or a length that only the device could see is out of range",
                seen=f"the largest offender is number {seen} (a position among indices, a value among lengths)",
                allowed="indices from 0 to extent - 1, lengths from 0 to the number of keys",
                hint="the results of this call are void; check the index input",
            )

    def __del__(self) -> None:
        buffer = getattr(self, "_buffer", None)
        if buffer is not None and not buffer.freed:
            buffer.free()


class Storage:
    """Contiguous elements on one device; gives its memory back with the last reference."""

    __slots__ = ("__weakref__", "array", "buffer", "device", "dtype", "faults", "shape")

    def __init__(
        self,
        device: Device,
        shape: Shape,
        dtype: DType,
        *,
        buffer: Buffer | None = None,
        array: Array | None = None,
        faults: tuple[Faults, ...] = (),
    ) -> None:
        self.device = device
        self.shape = shape
        self.dtype = dtype
        self.buffer = buffer
        self.array = array
        self.faults = faults

    @property
    def nbytes(self) -> int:
        return elements(self.shape) * self.dtype.size

    def numpy(self) -> Array:
        """Waits for the device and returns the elements as a new array that owns its memory."""
        if self.array is not None:
            return self.array.copy()
        result = np.empty(self.shape, self.dtype.numpy)
        if self.buffer is not None and self.nbytes:
            self.device.download(self.buffer, result)
        self.raise_faults()
        return result

    def wait(self) -> None:
        """Returns when the device has written the elements; raises what the kernels reported."""
        if self.buffer is not None:
            self.device.wait_for(self.buffer)
            self.raise_faults()

    def raise_faults(self) -> None:
        """Raises what was wrong with what these elements were computed from."""
        if self.faults:
            for fault in self.faults:
                fault.check()
            self.faults = ()

    def __del__(self) -> None:
        buffer = getattr(self, "buffer", None)
        if buffer is not None and not buffer.freed:
            buffer.free()


class Source:
    """The data of a tensor that was given or computed: a host array, and a copy on each device that used it."""

    __slots__ = ("_host", "_on", "dtype", "shape")

    def __init__(self, host: Array | None = None, storage: Storage | None = None) -> None:
        self._host = host
        if storage is not None:
            self._on = {storage.device.spec: storage}
            self.shape, self.dtype = storage.shape, storage.dtype
        else:
            assert host is not None
            self._on = {}
            self.shape, self.dtype = host.shape, DType.of(host)

    @property
    def size(self) -> int:
        return elements(self.shape)

    def on(self, device: Device) -> Storage:
        """Returns the elements on ``device``, uploading or moving them on first use."""
        found = self._on.get(device.spec)
        if found is None:
            with _moving:
                found = self._on.get(device.spec)
                if found is None:
                    host = self._host if self._host is not None else self._any()
                    found = self._on[device.spec] = device.upload(host)
        return found

    def numpy(self) -> Array:
        """Returns a copy of the elements on the host."""
        return self._host.copy() if self._host is not None else self._any()

    def reshape(self, *shape: Any) -> Array:
        """Returns the host elements under another shape (used to recognise constants)."""
        return self.numpy().reshape(*shape)

    def _any(self) -> Array:
        return next(iter(self._on.values())).numpy()
