"""Recording.

Dispatches and copies with barriers where a hazard is, into command buffers that can be submitted again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from fuelvk.base.errors import FuelvkError, ParameterError
from fuelvk.vulkan.buffers import Buffer, Use
from fuelvk.vulkan.command_pools import CommandPool
from fuelvk.vulkan.features import COMPUTE_STAGE
from fuelvk.vulkan.hazards import HazardTracker
from fuelvk.vulkan.loader import Api, check
from fuelvk.vulkan.pipelines import Pipeline
from fuelvk.vulkan.profiler import Profiler

if TYPE_CHECKING:
    from fuelvk.vulkan.device import Device

#: Commands in one command buffer; a recording has as many of these as it needs, submitted together.
COMMANDS_PER_BUFFER = 2000

_COMPUTE = 1
_STAGES = 0x800 | 0x1000
_HOST_STAGE = 0x4000
_SHADER_READ, _SHADER_WRITE, _TRANSFER_READ, _TRANSFER_WRITE, _HOST_READ = 0x20, 0x40, 0x800, 0x1000, 0x2000
_WRITTEN = _SHADER_WRITE | _TRANSFER_WRITE
_TOUCHED = _SHADER_READ | _SHADER_WRITE | _TRANSFER_READ | _TRANSFER_WRITE
_SIMULTANEOUS_USE = 4
_ZEROS = bytes(8)


class Recording:
    """Finished command buffers.

    Can be submitted any number of times, also while an earlier run is under way.
    """

    __slots__ = (
        "__weakref__",
        "_buffers",
        "_generation",
        "_slots",
        "array",
        "count",
        "device",
        "label",
        "pool",
        "use",
    )

    def __init__(
        self,
        device: Device,
        pool: CommandPool,
        count_: int,
        buffers: set[Buffer],
        label: str,
        keep: bool,
    ) -> None:
        self.device = device
        self.pool = pool
        self.count = count_
        self.array = device.api.ffi.new("VkCommandBuffer[]", pool.buffers[:count_])
        self.label = label
        self.use = Use()
        self._slots = {buffer.slot for buffer in buffers}
        self._buffers = buffers if keep else None
        self._generation = device.memory.generation
        for slot in self._slots:
            slot.uses.append(self.use)

    def __del__(self) -> None:
        if not hasattr(self, "_generation"):
            return
        for slot in self._slots:
            slot.retire(self.use)
        if self.device.usable:
            self.device.pools.dropped.append((self.use.value, self.pool))

    @property
    def last_use(self) -> int:
        """The timeline value of the last submission; 0 before the first."""
        return self.use.value

    def check(self) -> None:
        """Raises ParameterError when memory that the recording names was given back since it was made."""
        generation = self.device.memory.generation
        if self._generation != generation:
            if not all(slot.alive for slot in self._slots):
                raise ParameterError("the recording names memory that was trimmed", hint="record it again")
            self._generation = generation

    def timings(self) -> list[tuple[str, float]]:
        """Returns (label, nanoseconds) per dispatch of the last run of a profiled recording; waits for it."""
        profiler = self.pool.profiler
        if profiler is None or not self.use.value:
            raise ParameterError(
                "no timings",
                seen="not profiled" if profiler is None else "not submitted",
                hint="record with profile=True and submit",
            )
        self.device.wait(self.use.value)
        return profiler.timings()


class Recorder:
    """Records dispatches and copies. For one thread; take one recorder per thread."""

    def __init__(self, device: Device, label: str = "", profile: bool = False) -> None:
        a = device.api
        self._device = device
        self._api = a
        self.label = label
        self._buffers: list[Buffer] = []
        self._hazards = HazardTracker()
        self._bound: Pipeline | None = None
        self._label = ""
        self._max = device.info.limits.max_groups
        self._push_limit = device.pipelines.push_limit
        self._bind = a.lib.vkCmdBindPipeline
        self._push = a.lib.vkCmdPushConstants
        self._dispatch = a.lib.vkCmdDispatch
        self._barrier = device.structures.barrier
        self._between = device.structures.between
        self._pool: CommandPool | None = device.pools.take()
        self._profiler = self._pool.profiler = (
            Profiler(a, device.handle, device.info.limits) if profile else None
        )
        self._descriptors = self._pool.descriptors
        self._count = 0
        self._commands: Any = None
        self._begin()
        self._barrier(self._commands, self._between)

    def __del__(self) -> None:
        pool = getattr(self, "_pool", None)
        if pool is not None and self._device.usable:
            self._device.pools.dropped.append((0, pool))

    def dispatch(
        self,
        pipeline: Pipeline,
        groups: tuple[int, int, int],
        buffers: Sequence[Buffer],
        writes: int,
        params: bytes = b"",
        label: str = "",
        also: Sequence[Buffer] = (),
    ) -> None:
        """Records one dispatch of ``groups`` workgroups.

        ``writes`` is a bit mask over ``buffers``; all of them may be read. ``params`` follows the buffers'
        addresses (zeros in storage-buffer mode) in the push block. ``also`` are buffers that are read through
        addresses in memory: ordered and kept, but not bound. Raises ParameterError for a grid above the
        device's limits, a freed buffer or a push block that is too large.
        """
        x, y, z = groups
        most = self._max
        if x > most[0] or y > most[1] or z > most[2]:
            raise ParameterError(
                "a grid larger than the device dispatches", asked=groups, allowed=most, hint="fold the grid"
            )
        commands = self._commands
        self._count += 1
        if self._count % COMMANDS_PER_BUFFER == 0:
            commands = self._cut()
        try:
            if self._hazards.access((*buffers, *also) if also else buffers, writes):
                self._barrier(commands, self._between)
            if self._descriptors is None:
                data = b"".join([buffer.word for buffer in buffers]) + params
            else:
                data = _ZEROS * len(buffers) + params
                self._descriptors.bind(commands, pipeline, buffers)
        except (TypeError, AttributeError) as error:
            raise self._explain(buffers) from error
        if pipeline is not self._bound:
            self._bind(commands, _COMPUTE, pipeline.handle)
            self._bound = pipeline
        size = len(data)
        if size > self._push_limit:
            raise ParameterError("too many push constants", asked=f"{size} bytes", allowed=self._push_limit)
        self._push(commands, pipeline.layout_handle, COMPUTE_STAGE, 0, size, data)
        self._buffers += buffers
        if also:
            self._buffers += also
        self._label = label
        if self._profiler is None:
            self._dispatch(commands, x, y, z)
        else:
            self._profiler.begin(commands, label or repr(pipeline))
            self._dispatch(commands, x, y, z)
            self._profiler.end(commands)

    def copy(self, src: Buffer, dst: Buffer, nbytes: int, src_offset: int = 0, dst_offset: int = 0) -> None:
        """Records a copy of ``nbytes`` between buffers; ranges must lie inside and must not overlap."""
        _check_range(src, src_offset, nbytes)
        _check_range(dst, dst_offset, nbytes)
        if not nbytes:
            return
        first, second = src.offset + src_offset, dst.offset + dst_offset
        if src.slot is dst.slot and first < second + nbytes and second < first + nbytes:
            raise ParameterError(
                "a copy between overlapping ranges", asked=f"{nbytes} bytes at {first} and {second}"
            )
        self._ordered((src, dst), 0b10)
        region = self._api.ffi.new("VkBufferCopy*", {"srcOffset": first, "dstOffset": second, "size": nbytes})
        self._api.lib.vkCmdCopyBuffer(self._commands, src.handle, dst.handle, 1, region)

    def fill(self, buffer: Buffer, word: int = 0, offset: int = 0, nbytes: int | None = None) -> None:
        """Records a fill with a 32-bit word; offset and size are multiples of 4."""
        size = buffer.nbytes - offset if nbytes is None else nbytes
        _check_range(buffer, offset, size)
        if offset % 4 or size % 4:
            raise ParameterError("a fill works on 32-bit words", asked=f"{size} bytes at {offset}")
        if size:
            self._ordered((buffer,), 0b1)
            self._api.lib.vkCmdFillBuffer(self._commands, buffer.handle, buffer.offset + offset, size, word)

    def finish(self, keep: bool = True) -> Recording:
        """Ends the recording; the recorder is used up.

        ``keep`` holds the buffers for as long as the recording lives. Without it the caller sees to it that
        live buffers lie at the same places whenever the recording is submitted.
        """
        pool = self._take_pool()
        self._barrier(self._commands, self._device.structures.to_host)
        check(self._api.lib.vkEndCommandBuffer(self._commands), "vkEndCommandBuffer")
        self._device.debug.raise_pending()
        label = ": ".join(
            filter(None, (self.label, self._label or (repr(self._bound) if self._bound else "")))
        )
        if self._device.debug.raising:
            for index, commands in enumerate(pool.buffers):
                self._device.debug.name(
                    self._api, self._device.handle, "command_buffer", commands, f"{label} {index}"
                )
        used = self._count // COMMANDS_PER_BUFFER + 1
        buffers, self._buffers = set(self._buffers), []
        return Recording(self._device, pool, used, buffers, label, keep)

    def _take_pool(self) -> CommandPool:
        pool, self._pool = self._pool, None
        if pool is None:
            raise ParameterError("the recorder is finished", hint="take a new one with Device.recorder()")
        return pool

    def _begin(self) -> None:
        assert self._pool is not None
        self._commands = self._pool.buffer(self._count // COMMANDS_PER_BUFFER)
        check(
            self._api.lib.vkBeginCommandBuffer(self._commands, self._device.structures.begin),
            "vkBeginCommandBuffer",
        )

    def _cut(self) -> Any:
        check(self._api.lib.vkEndCommandBuffer(self._commands), "vkEndCommandBuffer")
        self._bound = None
        self._begin()
        return self._commands

    def _ordered(self, buffers: tuple[Buffer, ...], writes: int) -> None:
        self._count += 1
        if self._count % COMMANDS_PER_BUFFER == 0:
            self._cut()
        self._buffers += buffers
        if self._hazards.access(buffers, writes):
            self._barrier(self._commands, self._between)

    def _explain(self, buffers: Sequence[Buffer]) -> FuelvkError:
        items: Sequence[Any] = buffers
        for i, item in enumerate(items):
            if not isinstance(item, Buffer):
                return ParameterError(f"buffer {i} of a dispatch is not a buffer", seen=type(item).__name__)
            if item.freed:
                return ParameterError(f"buffer {i} of a dispatch was freed")
        return ParameterError("a dispatch takes buffers, a bit mask and bytes")


class Structures:
    """What every recording of a device uses: the begin structure, two barriers, the call for them.

    ``between`` orders all earlier commands before all later ones, ``to_host`` also before reads by the host.
    """

    __slots__ = ("_keep", "barrier", "begin", "between", "to_host")

    def __init__(self, api: Api, device: Any, synchronization2: bool) -> None:
        self.begin = api.new("VkCommandBufferBeginInfo", flags=_SIMULTANEOUS_USE)
        function = api.function(device, "vkCmdPipelineBarrier2") if synchronization2 else None
        self._keep: list[Any] = []
        if function is not None:
            self.barrier: Callable[[Any, Any], None] = function
            self.between = self._dependency(api, _STAGES, _TOUCHED)
            self.to_host = self._dependency(api, _STAGES | _HOST_STAGE, _TOUCHED | _HOST_READ)
            return
        record, null = api.lib.vkCmdPipelineBarrier, api.null

        def barrier(commands: Any, kind: tuple[int, Any]) -> None:
            record(commands, _STAGES, kind[0], 0, 1, kind[1], 0, null, 0, null)

        def memory(touched: int) -> Any:
            return api.new("VkMemoryBarrier", srcAccessMask=_WRITTEN, dstAccessMask=touched)

        self.barrier = barrier
        self.between = (_STAGES, memory(_TOUCHED))
        self.to_host = (_STAGES | _HOST_STAGE, memory(_TOUCHED | _HOST_READ))

    def _dependency(self, api: Api, stages: int, touched: int) -> Any:
        memory = api.new(
            "VkMemoryBarrier2",
            srcStageMask=_STAGES,
            srcAccessMask=_WRITTEN,
            dstStageMask=stages,
            dstAccessMask=touched,
        )
        self._keep.append(memory)
        return api.new("VkDependencyInfo", memoryBarrierCount=1, pMemoryBarriers=memory)


def _check_range(buffer: Buffer, offset: int, nbytes: int) -> None:
    if buffer.freed:
        raise ParameterError("the buffer was freed")
    if offset < 0 or nbytes < 0 or offset + nbytes > buffer.nbytes:
        raise ParameterError(
            "a range outside its buffer",
            asked=f"{nbytes} bytes at {offset}",
            allowed=f"{buffer.nbytes} bytes",
        )
