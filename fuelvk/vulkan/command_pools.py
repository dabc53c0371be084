"""Command pools: what one recording owns on the driver's side, recycled when the device is done with it."""

from __future__ import annotations

import heapq
import threading
from collections import deque
from itertools import count
from typing import TYPE_CHECKING, Any

from fuelvk.vulkan.descriptors import Descriptors, PushDescriptors, SetDescriptors
from fuelvk.vulkan.loader import Api, check
from fuelvk.vulkan.profiler import Profiler

if TYPE_CHECKING:
    from fuelvk.vulkan.device import Device


class CommandPool:
    """A VkCommandPool with its command buffers and descriptors: all that one recording owns."""

    __slots__ = ("_allocate", "_api", "_device", "buffers", "descriptors", "handle", "profiler")

    def __init__(self, api: Api, device: Any, family: int, descriptors: Descriptors | None) -> None:
        self._api = api
        self._device = device
        self.descriptors = descriptors
        self.profiler: Profiler | None = None
        self.buffers: list[Any] = []
        cell = api.ffi.new("VkCommandPool*")
        info = api.new("VkCommandPoolCreateInfo", queueFamilyIndex=family)
        check(api.lib.vkCreateCommandPool(device, info, api.null, cell), "vkCreateCommandPool")
        self.handle = cell[0]
        self._allocate = api.new("VkCommandBufferAllocateInfo", commandPool=self.handle, commandBufferCount=1)

    def buffer(self, index: int) -> Any:
        """Returns the command buffer of that index, allocating it when it is the next one."""
        if index == len(self.buffers):
            cell = self._api.ffi.new("VkCommandBuffer*")
            check(
                self._api.lib.vkAllocateCommandBuffers(self._device, self._allocate, cell),
                "vkAllocateCommandBuffers",
            )
            self.buffers.append(cell[0])
        return self.buffers[index]

    def reset(self) -> None:
        """Makes everything ready to be recorded again; the device is done with it."""
        check(self._api.lib.vkResetCommandPool(self._device, self.handle, 0), "vkResetCommandPool")
        if self.descriptors is not None:
            self.descriptors.reset()
        self._drop_profiler()

    def close(self) -> None:
        """Destroys everything."""
        self._drop_profiler()
        if self.descriptors is not None:
            self.descriptors.close()
        self._api.lib.vkDestroyCommandPool(self._device, self.handle, self._api.null)

    def _drop_profiler(self) -> None:
        if self.profiler is not None:
            self.profiler.close()
            self.profiler = None


class CommandPools:
    """The pools of a device.

    Free ones, and those of dropped recordings that the device may still be working on.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._free: list[CommandPool] = []
        self._all: list[CommandPool] = []
        self._waiting: list[tuple[int, int, CommandPool]] = []
        self._order = count()
        self._lock = threading.Lock()
        self.dropped: deque[tuple[int, CommandPool]] = deque()

    def __len__(self) -> int:
        return len(self._all)

    def take(self) -> CommandPool:
        """Returns a pool that is ready to record into."""
        with self._lock:
            if self.dropped or self._waiting:
                self._collect()
            if self._free:
                pool = self._free.pop()
                pool.reset()
                return pool
            pool = self._create()
            self._all.append(pool)
            return pool

    def close(self) -> None:
        """Destroys all pools; the device is idle."""
        with self._lock:
            for pool in self._all:
                pool.close()
            self._all.clear()
            self._free.clear()
            self._waiting.clear()
            self.dropped.clear()

    def _create(self) -> CommandPool:
        device = self._device
        a, limit = device.api, device.info.limits.max_storage_range
        descriptors: Descriptors | None = None
        if device.addressing == "ssbo":
            kind = PushDescriptors if "push_descriptor" in device.info.features else SetDescriptors
            descriptors = kind(a, device.handle, limit)
        return CommandPool(a, device.handle, device.info.queue_family, descriptors)

    def _collect(self) -> None:
        waiting = self._waiting
        while self.dropped:
            value, pool = self.dropped.popleft()
            heapq.heappush(waiting, (value, next(self._order), pool))
        queue = self._device.queue
        if waiting and waiting[0][0] > queue.completed:
            queue.poll()
        while waiting and waiting[0][0] <= queue.completed:
            self._free.append(heapq.heappop(waiting)[2])
