"""How buffers reach kernels in storage-buffer mode: pushed descriptors, or sets cached for one recording."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from fuelvk.base.errors import UnsupportedError
from fuelvk.vulkan.buffers import Buffer
from fuelvk.vulkan.loader import Api, check
from fuelvk.vulkan.pipelines import Pipeline

_STORAGE_BUFFER = 7
_COMPUTE_BIND_POINT = 1
_SETS = 256
_DESCRIPTORS = 1024


class Descriptors(Protocol):
    """Binds buffers 0..n-1 of a pipeline. Used by one thread at a time."""

    def bind(self, command_buffer: Any, pipeline: Pipeline, buffers: Sequence[Buffer]) -> None:
        """Records the binding."""

    def reset(self) -> None:
        """Forgets what earlier recordings used; the device is done with them."""

    def close(self) -> None:
        """Destroys what is owned."""


def buffer_info(api: Api, buffer: Buffer, limit: int) -> Any:
    """Returns a buffer's VkDescriptorBufferInfo, made once per buffer."""
    if buffer.nbytes > limit:
        raise UnsupportedError(
            "a buffer is larger than a storage buffer may be on this device",
            asked=f"{buffer.nbytes} bytes",
            allowed=f"{limit} bytes",
            hint="split the work, or use device addresses (FUELVK_ADDRESSING=bda)",
        )
    info = api.ffi.new(
        "VkDescriptorBufferInfo*",
        {"buffer": buffer.handle, "offset": buffer.offset, "range": max(4, -(-buffer.nbytes // 4) * 4)},
    )[0]
    buffer.info = info
    return info


class _Writes:
    """Prepared structures for n descriptors."""

    __slots__ = ("infos", "writes")

    def __init__(self, api: Api, n: int) -> None:
        self.infos = api.ffi.new("VkDescriptorBufferInfo[]", n)
        self.writes = api.ffi.new("VkWriteDescriptorSet[]", n)
        for i in range(n):
            write = self.writes[i]
            write.sType = api.vk.VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET
            write.dstBinding = i
            write.descriptorCount = 1
            write.descriptorType = _STORAGE_BUFFER
            write.pBufferInfo = self.infos + i


class PushDescriptors:
    """VK_KHR_push_descriptor: descriptors are part of the command buffer."""

    __slots__ = ("_api", "_limit", "_push", "_writes")

    def __init__(self, api: Api, device: Any, limit: int) -> None:
        self._api = api
        self._limit = limit
        self._push = api.function(device, "vkCmdPushDescriptorSetKHR")
        self._writes: dict[int, _Writes] = {}

    def bind(self, command_buffer: Any, pipeline: Pipeline, buffers: Sequence[Buffer]) -> None:
        """Records the binding."""
        n = len(buffers)
        prepared = self._writes.get(n)
        if prepared is None:
            prepared = self._writes[n] = _Writes(self._api, n)
        infos = prepared.infos
        for i, buffer in enumerate(buffers):
            infos[i] = buffer.info or buffer_info(self._api, buffer, self._limit)
        self._push(command_buffer, _COMPUTE_BIND_POINT, pipeline.layout_handle, 0, n, prepared.writes)

    def reset(self) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """Nothing is owned."""


class SetDescriptors:
    """Descriptor sets out of pools that grow; equal bindings within a recording share a set."""

    __slots__ = ("_api", "_device", "_limit", "_pools", "_sets", "_spare", "_writes")

    def __init__(self, api: Api, device: Any, limit: int) -> None:
        self._api = api
        self._device = device
        self._limit = limit
        self._pools: list[Any] = []
        self._spare = 0
        self._sets: dict[tuple[int, ...], Any] = {}
        self._writes: dict[int, _Writes] = {}

    def bind(self, command_buffer: Any, pipeline: Pipeline, buffers: Sequence[Buffer]) -> None:
        """Records the binding."""
        key = (
            *[buffer.key for buffer in buffers],
            *[buffer.offset for buffer in buffers],
            *[buffer.nbytes for buffer in buffers],
        )
        found = self._sets.get(key)
        if found is None:
            found = self._sets[key] = self._make(pipeline, buffers)
        self._api.lib.vkCmdBindDescriptorSets(
            command_buffer, _COMPUTE_BIND_POINT, pipeline.layout_handle, 0, 1, found, 0, self._api.null
        )

    def reset(self) -> None:
        """Gives all sets back to their pools."""
        self._sets.clear()
        for pool in self._pools:
            check(self._api.lib.vkResetDescriptorPool(self._device, pool, 0), "vkResetDescriptorPool")
        self._spare = 0

    def close(self) -> None:
        """Destroys the pools."""
        for pool in self._pools:
            self._api.lib.vkDestroyDescriptorPool(self._device, pool, self._api.null)
        self._pools.clear()
        self._sets.clear()

    def _make(self, pipeline: Pipeline, buffers: Sequence[Buffer]) -> Any:
        n = len(buffers)
        prepared = self._writes.get(n)
        if prepared is None:
            prepared = self._writes[n] = _Writes(self._api, n)
        cell = self._allocate(pipeline)
        for i, buffer in enumerate(buffers):
            prepared.infos[i] = buffer.info or buffer_info(self._api, buffer, self._limit)
            prepared.writes[i].dstSet = cell[0]
        self._api.lib.vkUpdateDescriptorSets(self._device, n, prepared.writes, 0, self._api.null)
        return cell

    def _allocate(self, pipeline: Pipeline) -> Any:
        a = self._api
        cell = a.ffi.new("VkDescriptorSet*")
        while True:
            if self._spare == len(self._pools):
                self._add_pool(pipeline.n_buffers)
            info = a.new(
                "VkDescriptorSetAllocateInfo",
                descriptorPool=self._pools[self._spare],
                descriptorSetCount=1,
                pSetLayouts=pipeline.layout.set_layout,
            )
            if not a.lib.vkAllocateDescriptorSets(self._device, info, cell):
                return cell
            self._spare += 1

    def _add_pool(self, n: int) -> None:
        a = self._api
        size = a.ffi.new(
            "VkDescriptorPoolSize*", {"type": _STORAGE_BUFFER, "descriptorCount": max(_DESCRIPTORS, n)}
        )
        info = a.new("VkDescriptorPoolCreateInfo", maxSets=_SETS, poolSizeCount=1, pPoolSizes=size)
        cell = a.ffi.new("VkDescriptorPool*")
        check(a.lib.vkCreateDescriptorPool(self._device, info, a.null, cell), "vkCreateDescriptorPool")
        self._pools.append(cell[0])
