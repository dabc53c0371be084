"""Which memory types a device's buffers and staging buffers live in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fuelvk.vulkan.loader import check
from fuelvk.vulkan.memory import DEVICE_LOCAL, HOST_CACHED, HOST_COHERENT, HOST_VISIBLE, PADDING, Pool

if TYPE_CHECKING:
    from fuelvk.vulkan.device import Device

_HEAP_SHARE = 0.8
#: Other kinds (protected, lazily allocated, uncached) need features that are not switched on.
_ORDINARY = DEVICE_LOCAL | HOST_VISIBLE | HOST_COHERENT | HOST_CACHED


@dataclass(frozen=True, slots=True)
class Pools:
    """The pool of a device's buffers, and two for staging where the host does not use that one in place."""

    device: Pool
    upload: Pool | None
    download: Pool | None


def open_pools(device: Device, physical: Any, budget: int | None, *, staging: bool) -> Pools:
    """Returns the pools of a device.

    Processors and integrated devices get memory that host and device share, unless ``staging`` asks to hide it;
    others get the device's own, which the host reaches through staging: write-combined for uploads, cached for
    downloads. The default budget is what the driver reports, else four fifths of the heap.
    """
    a, info = device.api, device.info
    has_budget = "memory_budget" in info.features
    reported = a.new("VkPhysicalDeviceMemoryBudgetPropertiesEXT")
    memory = a.new("VkPhysicalDeviceMemoryProperties2", pNext=reported if has_budget else a.null)
    a.lib.vkGetPhysicalDeviceMemoryProperties2(physical, memory)
    properties = memory.memoryProperties
    allowed = _buffer_memory_types(device)
    types = [
        (i, properties.memoryTypes[i].propertyFlags, properties.memoryTypes[i].heapIndex)
        for i in range(properties.memoryTypeCount)
        if allowed >> i & 1 and not properties.memoryTypes[i].propertyFlags & ~_ORDINARY
    ]

    def pool(preferred: int, avoided: int, *, hidden: bool = False, limit: int | None = None) -> Pool:
        index, flags, heap = max(
            types, key=lambda t: ((t[1] & preferred).bit_count(), -(t[1] & avoided).bit_count(), -t[0])
        )
        available = reported.heapBudget[heap] if has_budget else 0
        return Pool(
            a,
            device.handle,
            memory_type=index,
            flags=flags,
            addresses="bda" in info.features,
            budget=limit
            if limit is not None
            else int(available or properties.memoryHeaps[heap].size * _HEAP_SHARE),
            max_buffer=min(info.limits.max_buffer_size, info.limits.max_allocation),
            alignment=info.limits.storage_alignment,
            atom_size=info.limits.atom_size,
            idle=device.idle,
            guard=device.queue.lock,
            name=device.name,
            hidden=hidden,
        )

    host = HOST_VISIBLE | HOST_COHERENT | HOST_CACHED
    shared = info.type in ("cpu", "integrated") and any(flags & HOST_VISIBLE for _, flags, _ in types)
    if shared:
        buffers = pool(DEVICE_LOCAL | host, 0, hidden=staging, limit=budget)
        if not staging:
            return Pools(buffers, None, None)
    else:
        buffers = pool(DEVICE_LOCAL, HOST_VISIBLE, hidden=True, limit=budget)
    return Pools(buffers, pool(HOST_VISIBLE | HOST_COHERENT, HOST_CACHED), pool(host, 0))


def _buffer_memory_types(device: Device) -> int:
    a = device.api
    cell = a.ffi.new("VkBuffer*")
    usage = 0x23 | (0x20000 if "bda" in device.info.features else 0)
    info = a.new("VkBufferCreateInfo", size=PADDING, usage=usage)
    check(a.lib.vkCreateBuffer(device.handle, info, a.null, cell), "vkCreateBuffer")
    needs = a.ffi.new("VkMemoryRequirements*")
    a.lib.vkGetBufferMemoryRequirements(device.handle, cell[0], needs)
    a.lib.vkDestroyBuffer(device.handle, cell[0], a.null)
    return int(needs.memoryTypeBits)
