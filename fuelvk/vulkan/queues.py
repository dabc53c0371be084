"""A queue with one timeline semaphore: every submission gets the next value."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from fuelvk.vulkan.loader import VK_TIMEOUT, Api, check, failure

if TYPE_CHECKING:
    from fuelvk.vulkan.commands import Recording

#: A wait is cut into pieces of this many nanoseconds, so that Ctrl-C is heard.
_WAIT_SLICE = 100_000_000
_DEVICE_LOST = -4


class Queue:
    """One VkQueue. ``value`` is the last value submitted, ``completed`` the last one known to have passed."""

    def __init__(self, api: Api, device: Any, family: int) -> None:
        self.api = api
        self.device = device
        cell = api.ffi.new("VkQueue*")
        api.lib.vkGetDeviceQueue(device, family, 0, cell)
        self.handle = cell[0]
        self.lock = threading.Lock()
        self.value = 0
        self.completed = 0
        self.label = ""
        kind = api.new("VkSemaphoreTypeCreateInfo", semaphoreType=1, initialValue=0)
        semaphore = api.ffi.new("VkSemaphore*")
        check(
            api.lib.vkCreateSemaphore(
                device, api.new("VkSemaphoreCreateInfo", pNext=kind), api.null, semaphore
            ),
            "vkCreateSemaphore",
        )
        self.semaphore = semaphore[0]
        self._signal = api.ffi.new("uint64_t*")
        timeline = api.new(
            "VkTimelineSemaphoreSubmitInfo", signalSemaphoreValueCount=1, pSignalSemaphoreValues=self._signal
        )
        self._info = api.new(
            "VkSubmitInfo", pNext=timeline, signalSemaphoreCount=1, pSignalSemaphores=semaphore
        )
        self._keep = (timeline, semaphore)
        self._submit = api.lib.vkQueueSubmit
        self._cell = threading.local()

    def submit(self, recording: Recording) -> int:
        """Submits and returns the timeline value, which the recording and its memory remember."""
        with self.lock:
            recording.check()
            value = self.value + 1
            info = self._info
            self._signal[0] = value
            info.commandBufferCount = recording.count
            info.pCommandBuffers = recording.array
            result = self._submit(self.handle, 1, info, self.api.null)
            if result:
                raise self._failed(result, "vkQueueSubmit")
            self.value = recording.use.value = value
            self.label = recording.label
        return value

    def poll(self) -> int:
        """Returns the last value that has passed."""
        cell = self.api.ffi.new("uint64_t*")
        result = self.api.lib.vkGetSemaphoreCounterValue(self.device, self.semaphore, cell)
        if result:
            raise self._failed(result, "vkGetSemaphoreCounterValue")
        self.completed = max(self.completed, cell[0])
        return self.completed

    def wait(self, value: int) -> None:
        """Returns when ``value`` has passed."""
        if value <= self.completed:
            return
        info, cell = self._wait_info()
        cell[0] = value
        while (result := self.api.lib.vkWaitSemaphores(self.device, info, _WAIT_SLICE)) == VK_TIMEOUT:
            pass
        if result:
            raise self._failed(result, "vkWaitSemaphores")
        self.completed = max(self.completed, value)

    def _wait_info(self) -> tuple[Any, Any]:
        found = getattr(self._cell, "info", None)
        if found is None:
            a = self.api
            semaphore, cell = a.ffi.new("VkSemaphore*", self.semaphore), a.ffi.new("uint64_t*")
            info = a.new("VkSemaphoreWaitInfo", semaphoreCount=1, pSemaphores=semaphore, pValues=cell)
            self._cell.info = found = (info, cell, semaphore)
        return found[0], found[1]

    def _failed(self, result: int, call: str) -> Exception:
        if result == _DEVICE_LOST:
            return failure(result, call, seen=f"last submitted: {self.label or 'unnamed work'}")
        return failure(result, call)

    def close(self) -> None:
        """Destroys the semaphore; the device must be idle."""
        self.api.lib.vkDestroySemaphore(self.device, self.semaphore, self.api.null)
