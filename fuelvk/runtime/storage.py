"""Where the elements of a value live: on a device, on the host, or both."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from fuelvk.base.dtypes import DType
from fuelvk.base.shapes import Shape, elements

if TYPE_CHECKING:
    from fuelvk.runtime.devices import Device
    from fuelvk.vulkan import Buffer

Array = np.ndarray[Any, Any]

#: Held while elements move to another device; one for all sources, since that is rare and sources are many.
_moving = threading.RLock()


class Storage:
    """Contiguous elements on one device; gives its memory back with the last reference."""

    __slots__ = ("__weakref__", "array", "buffer", "device", "dtype", "shape")

    def __init__(
        self,
        device: Device,
        shape: Shape,
        dtype: DType,
        *,
        buffer: Buffer | None = None,
        array: Array | None = None,
    ) -> None:
        self.device = device
        self.shape = shape
        self.dtype = dtype
        self.buffer = buffer
        self.array = array

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
        self.device.raise_errors()
        return result

    def wait(self) -> None:
        """Returns when the device has written the elements; raises what the kernels reported."""
        if self.buffer is not None:
            self.device.wait_for(self.buffer)
            self.device.raise_errors()

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

    def home(self) -> Device | None:
        """Returns a device that holds the elements, or None when only the host does."""
        return next(iter(self._on.values())).device if self._on else None

    def numpy(self) -> Array:
        """Returns a copy of the elements on the host."""
        return self._host.copy() if self._host is not None else self._any()

    def reshape(self, *shape: Any) -> Array:
        """Returns the host elements under another shape (used to recognise constants)."""
        return self.numpy().reshape(*shape)

    def _any(self) -> Array:
        return next(iter(self._on.values())).numpy()
