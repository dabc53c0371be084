"""An open device: memory, pipelines, recorders, one queue."""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import weakref
from collections.abc import Callable
from typing import Any

from fuelvk.base import env
from fuelvk.base.errors import DeviceLostError, FuelvkError, ParameterError, UnsupportedError
from fuelvk.vulkan.buffers import Buffer
from fuelvk.vulkan.capabilities import Capabilities, guaranteed_subgroup, loop_limit
from fuelvk.vulkan.command_pools import CommandPools
from fuelvk.vulkan.commands import Recorder, Recording, Structures
from fuelvk.vulkan.features import EXTENSIONS, DeviceInfo, enabled_chain
from fuelvk.vulkan.instance import Instance, instance, validation_mode
from fuelvk.vulkan.loader import Api, check
from fuelvk.vulkan.memory import PADDING, MemoryStatistics
from fuelvk.vulkan.memory_types import open_pools
from fuelvk.vulkan.pipelines import Pipeline, PipelineStore
from fuelvk.vulkan.queues import Queue
from fuelvk.vulkan.transfers import InPlace, Staged, Transfers

_LAVAPIPE = 13
#: Device addresses are 1.4 to 4 times slower than storage buffers on lavapipe before this Mesa, faster from
#: it on.
_MESA_WITH_FAST_ADDRESSES = 25
_ERROR_BYTES = 256

_live: weakref.WeakSet[Device] = weakref.WeakSet()


def default_addressing(info: DeviceInfo) -> str:
    """Returns the addressing mode that is the faster one on a device: "bda" or "ssbo"."""
    if "bda" not in info.features or "i64" not in info.features:
        return "ssbo"
    if info.driver_id == _LAVAPIPE:
        version = re.search(r"Mesa (\d+)", info.driver_info)
        return "bda" if version and int(version[1]) >= _MESA_WITH_FAST_ADDRESSES else "ssbo"
    return "bda"


def open_device(
    info: DeviceInfo,
    *,
    addressing: str | None = None,
    validation: bool | None = None,
    memory_budget: int | None = None,
) -> Device:
    """Opens a device found by ``enumerate_devices``.

    ``addressing`` is "bda" or "ssbo" (default: FUELVK_ADDRESSING, else the faster one), ``validation``
    switches the validation layer (default: FUELVK_VALIDATION), ``memory_budget`` limits the bytes reserved on
    the device (default: FUELVK_MEMORY_BUDGET, else what the driver reports). Raises UnsupportedError for what
    the device cannot do.
    """
    wish = addressing or env.get("FUELVK_ADDRESSING")
    mode = default_addressing(info) if wish == "auto" else wish
    if mode not in ("bda", "ssbo"):
        raise ParameterError("no such addressing mode", asked=mode, allowed="bda, ssbo, auto")
    if mode == "bda" and "bda" not in info.features:
        raise UnsupportedError(f"{info.name} has no buffer device addresses", asked="bda", allowed="ssbo")
    budget = memory_budget if memory_budget is not None else env.get("FUELVK_MEMORY_BUDGET")
    return Device(instance(validation_mode(validation)), info, mode, budget)


class Device:
    """A logical device with its queue, memory and pipelines.

    Safe to use from several threads; not after a fork.
    """

    def __init__(self, owner: Instance, info: DeviceInfo, addressing: str, memory_budget: int | None) -> None:
        self.api: Api = owner.api
        self.info = info
        self.addressing = addressing
        self.debug = owner.debug
        self._dead = ""
        self.usable = False
        self._instance = owner
        physical = owner.physical[info.index]
        self.handle = self._create(physical)
        self.queue = Queue(self.api, self.handle, info.queue_family)
        self.structures = Structures(self.api, self.handle, "sync2" in info.features)
        cache = env.cache_dir() / "pipelines"
        self.pipelines = PipelineStore(self.api, self.handle, info, self.debug, addressing, cache)
        self.pools = CommandPools(self)
        chosen = open_pools(self, physical, memory_budget, staging=env.get("FUELVK_FORCE_STAGING"))
        self.memory, self.unified_memory = chosen.device, chosen.upload is None
        self._memory_pools = [pool for pool in (chosen.device, chosen.upload, chosen.download) if pool]
        self._transfers: Transfers = (
            InPlace(self)
            if chosen.upload is None or chosen.download is None
            else Staged(self, chosen.upload, chosen.download)
        )
        #: For the caller's use: pipelines under keys that are cheaper to look up than the store's.
        self.shader_pipelines: dict[Any, Pipeline] = {}
        self.name("semaphore", self.queue.semaphore, "timeline")
        self.usable = True
        _live.add(self)
        self.caps = self._capabilities()
        self.error_buffer = self.alloc(_ERROR_BYTES)
        self.write(self.error_buffer, bytes(_ERROR_BYTES))

    def __repr__(self) -> str:
        return f"Device({self.info.name}, {self.addressing})"

    def __del__(self) -> None:
        if getattr(self, "usable", False):
            with contextlib.suppress(FuelvkError):
                self.close()

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # memory

    def alloc(self, nbytes: int) -> Buffer:
        """Returns ``nbytes`` of device memory, 256-byte aligned, contents undefined; see ``Pool.alloc``."""
        if self._dead:
            self._refuse()
        return self.memory.alloc(nbytes)

    def write(self, buffer: Buffer, data: Any, offset: int = 0) -> None:
        """Copies a C-contiguous bytes-like object into a buffer, after all earlier work on it."""
        if self._dead:
            self._refuse()
        nbytes = data.nbytes if hasattr(data, "nbytes") else memoryview(data).nbytes
        self._check_range(buffer, offset, nbytes)
        if nbytes:
            self._transfers.write(buffer, data, nbytes, offset)

    def read(self, buffer: Buffer, nbytes: int | None = None, offset: int = 0, into: Any = None) -> Any:
        """Returns a buffer's bytes as a bytearray, or copies them ``into`` a writable object.

        Waits for earlier work.
        """
        if self._dead:
            self._refuse()
        size = buffer.nbytes - offset if nbytes is None else nbytes
        self._check_range(buffer, offset, size)
        out = bytearray(size) if into is None else into
        if size:
            self._transfers.read(buffer, out, size, offset)
            if self.debug.raising:
                self.debug.raise_pending()
        return out

    def trim(self) -> int:
        """Waits for the device and gives memory blocks without live buffers back; returns the bytes freed."""
        return self.memory.trim()

    @property
    def memory_statistics(self) -> MemoryStatistics:
        """Bytes in use, peak, reserved, blocks, budget."""
        return self.memory.statistics()

    # work

    def pipeline(
        self,
        key: str,
        spirv: Callable[[], bytes],
        entry: str,
        n_buffers: int,
        push_size: int,
        *,
        spec: tuple[int, ...] = (),
        subgroup: int = 0,
    ) -> Pipeline:
        """Returns the pipeline of entry point ``entry`` of the module known by ``key``, made on first use.

        ``spirv`` is called when the module is not there yet. ``spec`` are the values of specialization
        constants 0, 1, ... and ``subgroup`` a width to require (0: any).
        """
        if self._dead:
            self._refuse()
        return self.pipelines.pipeline(key, spirv, entry, n_buffers, push_size, spec, subgroup)

    def recorder(self, label: str = "", profile: bool = False) -> Recorder:
        """Returns a recorder, for one thread and one recording.

        ``profile`` adds timestamps to every dispatch.
        """
        if self._dead:
            self._refuse()
        return Recorder(self, label, profile)

    def submit(self, recording: Recording) -> int:
        """Submits without waiting; returns the timeline value to wait for."""
        if self._dead:
            self._refuse()
        if self.debug.raising:
            self.debug.raise_pending()
        try:
            return self.queue.submit(recording)
        except DeviceLostError:
            self._lose()
            raise

    def wait(self, value: int) -> None:
        """Returns when the work submitted under ``value``, and all before it, is done."""
        if value <= self.queue.completed:
            return
        if self._dead:
            self._refuse()
        try:
            self.queue.wait(value)
        except DeviceLostError:
            self._lose()
            raise
        if self.debug.raising:
            self.debug.raise_pending()

    def idle(self) -> None:
        """Waits for everything submitted so far."""
        self.wait(self.queue.value)

    def close(self) -> None:
        """Waits for the device and destroys everything made on it; buffers and recordings become unusable."""
        if self._dead == "closed":
            return
        if self.usable or self._dead == "lost":
            if self.usable:
                self.api.lib.vkDeviceWaitIdle(self.handle)
            self.usable = False
            self._destroy()
        self._dead = "closed"
        _live.discard(self)
        if self.debug.raising:
            self.debug.raise_pending()

    # inside

    def _destroy(self) -> None:
        self.shader_pipelines.clear()
        self.pools.close()
        self.pipelines.close()
        for pool in self._memory_pools:
            pool.close()
        self.queue.close()
        self.api.lib.vkDestroyDevice(self.handle, self.api.null)

    def _create(self, physical: Any) -> Any:
        a, info = self.api, self.info
        chain = enabled_chain(a, info, robust=self.addressing == "ssbo")
        names = [
            EXTENSIONS[key] for key in ("push_descriptor", "memory_budget", "coopmat") if key in info.features
        ]
        if info.api_version < (1, 3, 0) and "size_control" in info.features:
            names.append(EXTENSIONS["size_control"])
        if "VK_KHR_portability_subset" in info.extensions:
            names.append("VK_KHR_portability_subset")
        pointers, cells = a.strings(names)
        priority = a.ffi.new("float*", 1.0)
        queue = a.new(
            "VkDeviceQueueCreateInfo",
            queueFamilyIndex=info.queue_family,
            queueCount=1,
            pQueuePriorities=priority,
        )
        create = a.new(
            "VkDeviceCreateInfo",
            pNext=chain["head"],
            queueCreateInfoCount=1,
            pQueueCreateInfos=queue,
            enabledExtensionCount=len(cells),
            ppEnabledExtensionNames=pointers,
        )
        cell = a.ffi.new("VkDevice*")
        check(a.lib.vkCreateDevice(physical, create, a.null, cell), "vkCreateDevice")
        return cell[0]

    def _capabilities(self) -> Capabilities:
        info = self.info
        largest = min(info.limits.max_buffer_size, info.limits.max_allocation) - PADDING
        return Capabilities(
            backend="vulkan",
            name=info.name,
            device_type=info.type,
            features=info.features,
            addressing=self.addressing,
            subgroup_width=guaranteed_subgroup(info),
            max_invocations=info.limits.max_invocations,
            max_groups=info.limits.max_groups,
            max_buffer_range=largest
            if self.addressing == "bda"
            else min(largest, info.limits.max_storage_range),
            max_shared_memory=info.limits.max_shared_memory,
            unified_memory=self.unified_memory,
            fingerprint=info.fingerprint,
            loop_iterations=loop_limit(info),
        )

    def _check_range(self, buffer: Buffer, offset: int, nbytes: int) -> None:
        if offset < 0 or nbytes < 0 or offset + nbytes > buffer.nbytes or buffer.freed:
            if buffer.freed:
                raise ParameterError("the buffer was freed")
            raise ParameterError(
                "a range outside its buffer",
                asked=f"{nbytes} bytes at {offset}",
                allowed=f"{buffer.nbytes} bytes",
            )

    def name(self, kind: str, handle: Any, name: str) -> None:
        """Names a Vulkan object for validation messages and debuggers."""
        self.debug.name(self.api, self.handle, kind, handle, name)

    def _lose(self) -> None:
        self._dead = "lost"
        self.usable = False

    def _refuse(self) -> None:
        if self._dead == "lost":
            raise DeviceLostError(f"{self.info.name} was lost earlier", hint="open a new device")
        if self._dead == "forked":
            raise FuelvkError(
                f"{self.info.name} was opened in the parent of this process",
                hint="open a device after the fork",
            )
        raise ParameterError(f"{self.info.name} is closed", hint="open a new device")

    def _after_fork(self) -> None:
        self._dead = "forked"
        self.usable = False


def _close_all() -> None:
    for device in list(_live):
        try:
            device.close()
        except FuelvkError:
            continue


def _disown_all() -> None:
    for device in list(_live):
        device._after_fork()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_disown_all)
