"""Device memory: large blocks, slots of a size class inside them, a budget at the edge.

A slot keeps its place in its block for as long as the block lives, and the lowest free slot of a class is
handed out first. A steady state that allocates and frees the same sizes therefore sees the same addresses
again, so a recording made for one run fits the next. Blocks are padded: one driver reads past the end of a
buffer that ends at a page.
"""

from __future__ import annotations

import contextlib
import heapq
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fuelvk.base.errors import FuelvkError, OutOfDeviceMemoryError
from fuelvk.vulkan.buffers import Block, Buffer, Slot
from fuelvk.vulkan.loader import Api, check

ALIGNMENT = 256
PADDING = 4096
SMALLEST_BLOCK = 64 << 10
FIRST_BLOCK = 4 << 20
LARGEST_BLOCK = 64 << 20
#: Above this size a buffer gets a block to itself.
DEDICATED = 16 << 20
_STEPS = 8
_DEDICATED_STEPS = 16

DEVICE_LOCAL, HOST_VISIBLE, HOST_COHERENT, HOST_CACHED = 1, 2, 4, 8
_USAGE = 0x1 | 0x2 | 0x20
_USAGE_ADDRESS = 0x20000


def size_class(nbytes: int, step: int = ALIGNMENT) -> int:
    """Returns the slot size for ``nbytes``.

    A multiple of ``step``, 8 (16 when dedicated) classes to each doubling.
    """
    rounded = max(step, -(-nbytes // step) * step)
    steps = _STEPS if rounded <= DEDICATED else _DEDICATED_STEPS
    grain = max(step, (1 << (rounded - 1).bit_length()) // (2 * steps))
    return -(-rounded // grain) * grain


@dataclass(frozen=True, slots=True)
class MemoryStatistics:
    """Bytes in use by buffers (and their peak), bytes reserved in blocks, and the budget for those."""

    in_use: int
    peak: int
    reserved: int
    blocks: int
    buffers: int
    budget: int


class Pool:
    """Allocates slots out of blocks of one memory type."""

    def __init__(
        self,
        api: Api,
        device: Any,
        *,
        memory_type: int,
        flags: int,
        addresses: bool,
        budget: int,
        max_buffer: int,
        alignment: int,
        atom_size: int,
        idle: Callable[[], None],
        guard: threading.Lock,
        name: Callable[[str, Any, str], None],
        hidden: bool = False,
    ) -> None:
        self.api = api
        self.device = device
        self.memory_type = memory_type
        self.flags = flags
        self.addresses = addresses
        self.budget = budget
        self.max_buffer = max_buffer
        self.alignment = max(ALIGNMENT, alignment)
        self.view_alignment = max(16, alignment)
        self.atom_size = atom_size
        self.idle = idle
        self._name = name
        self.hidden = hidden
        self.blocks: dict[int, Block] = {}
        #: Moves when slots cease to exist, so that recordings know when to look whether theirs do.
        self.generation = 0
        self.returned: deque[Slot] = deque()
        self._hooks: list[Callable[[], None]] = []
        self._free: dict[int, list[tuple[int, Slot]]] = {}
        self._open: Block | None = None
        self._next_index = 0
        self._next_size = max(SMALLEST_BLOCK, min(FIRST_BLOCK, budget // 16 // ALIGNMENT * ALIGNMENT))
        self._guard = guard
        self._lock = threading.Lock()
        self._in_use = self._peak = self._reserved = self._live = 0

    @property
    def host_visible(self) -> bool:
        """Whether the host sees this memory in place."""
        return bool(self.flags & HOST_VISIBLE)

    def alloc(self, nbytes: int) -> Buffer:
        """Returns a buffer of ``nbytes``.

        Its contents are whatever was there. Raises OutOfDeviceMemoryError.
        """
        size = size_class(nbytes, self.alignment)
        slot = self._take(size)
        if slot is None:
            slot = self._take_under_pressure(size, nbytes)
        return Buffer(self, slot, nbytes)

    def _take(self, size: int, *, merge: bool = False) -> Slot | None:
        with self._lock:
            if self.returned:
                self._take_back()
            waiting = self._free.get(size)
            slot = heapq.heappop(waiting)[1] if waiting else self._carve(size)
            if slot is None:
                slot = self._merge(size) if merge else None
                if slot is None:
                    return None
            slot.free = False
            slot.block.live += 1
            self._live += 1
            self._in_use += size
            self._peak = max(self._peak, self._in_use)
            return slot

    def _take_under_pressure(self, size: int, nbytes: int) -> Slot:
        if size + PADDING > self.max_buffer:
            raise OutOfDeviceMemoryError(
                "a buffer larger than the device allocates", asked=nbytes, allowed=self.max_buffer - PADDING
            )
        self.trim()
        slot = self._take(size, merge=True)
        if slot is None:
            raise OutOfDeviceMemoryError(
                "device memory exhausted",
                asked=f"{nbytes} bytes",
                seen=f"{self._in_use} bytes in use, {self._reserved} reserved",
                allowed=f"a budget of {self.budget} bytes",
                hint="free tensors, or raise FUELVK_MEMORY_BUDGET",
            )
        return slot

    def statistics(self) -> MemoryStatistics:
        """Returns the numbers of this moment."""
        with self._lock:
            self._take_back()
            return MemoryStatistics(
                self._in_use, self._peak, self._reserved, len(self.blocks), self._live, self.budget
            )

    def add_trim_hook(self, hook: Callable[[], None]) -> None:
        """Calls ``hook`` before blocks are given back, so that recordings that name them can be dropped."""
        self._hooks.append(hook)

    def trim(self) -> int:
        """Waits for the device and gives blocks without live buffers back to it.

        Returns how many bytes that freed. Nothing is submitted meanwhile, so that no recording can come to name
        a block that is on its way out.
        """
        for hook in self._hooks:
            hook()
        with self._guard:
            self.idle()
            with self._lock:
                self._take_back()
                empty = [block for block in self.blocks.values() if not block.live]
                for block in empty:
                    self._drop(block)
        return sum(block.size for block in empty)

    def close(self) -> None:
        """Destroys every block, live buffers or not."""
        with self._lock:
            self.returned.clear()
            for block in list(self.blocks.values()):
                self._drop(block)
            self._free.clear()

    def _take_back(self) -> None:
        returned = self.returned
        while returned:
            slot = returned.popleft()
            if not slot.block.alive:
                continue
            self._offer(slot)
            slot.block.live -= 1
            self._live -= 1
            self._in_use -= slot.size

    def _offer(self, slot: Slot) -> None:
        slot.free = True
        heapq.heappush(self._free.setdefault(slot.size, []), (slot.order, slot))

    def _carve(self, size: int) -> Slot | None:
        block = self._open
        if size > DEDICATED or block is None or block.used + size > block.size:
            block = self._grow(size, size if size > DEDICATED else max(self._next_size, size))
            if block is None:
                return None
            if size <= DEDICATED:
                self._open = block
                self._next_size = min(self._next_size * 2, LARGEST_BLOCK)
        return self._cut(block, block.used, size)

    def _cut(self, block: Block, offset: int, size: int) -> Slot:
        slot = Slot(block, offset, size)
        block.used = max(block.used, offset + size)
        block.slots.append(slot)
        return slot

    def _merge(self, size: int) -> Slot | None:
        """Returns a slot made of free neighbours, the last resort."""
        for block in self.blocks.values():
            run: list[Slot] = []
            total = 0
            for slot in sorted(block.slots, key=lambda slot: slot.offset):
                if slot.free:
                    run.append(slot)
                    total += slot.size
                    if total >= size:
                        break
                else:
                    run, total = [], 0
            start = run[0].offset if run else block.used
            end = start + total
            if total < size and end == block.used:
                end = block.size
            if end - start < size:
                continue
            self._forget(run)
            block.slots = [slot for slot in block.slots if slot.alive]
            made = self._cut(block, start, size)
            made.last = last = max((slot.last_use() for slot in run), default=0)
            if end - start > size:
                rest = self._cut(block, start + size, end - start - size)
                rest.last = last
                self._offer(rest)
            return made
        return None

    def _forget(self, slots: list[Slot]) -> None:
        self.generation += 1
        for slot in slots:
            slot.alive = False
            waiting = self._free.get(slot.size, [])
            if slot.free:
                waiting.remove((slot.order, slot))
                heapq.heapify(waiting)

    def _grow(self, needed: int, wished: int) -> Block | None:
        """Returns a new block, or None when neither the budget nor the device has room for one."""
        room = min(self.budget - self._reserved, self.max_buffer - PADDING)
        if needed > room:
            return None
        size = min(wished, room // self.alignment * self.alignment)
        for attempt in dict.fromkeys((max(size, needed), needed)):
            with contextlib.suppress(OutOfDeviceMemoryError):
                return self._create(attempt)
        return None

    def _create(self, size: int) -> Block:
        a, null = self.api, self.api.null
        usage = _USAGE | (_USAGE_ADDRESS if self.addresses else 0)
        handle = a.ffi.new("VkBuffer*")
        check(
            a.lib.vkCreateBuffer(
                self.device, a.new("VkBufferCreateInfo", size=size + PADDING, usage=usage), null, handle
            ),
            "vkCreateBuffer",
        )
        memory = a.ffi.new("VkDeviceMemory*")
        try:
            needs = a.ffi.new("VkMemoryRequirements*")
            a.lib.vkGetBufferMemoryRequirements(self.device, handle[0], needs)
            flags = a.new("VkMemoryAllocateFlagsInfo", flags=2 if self.addresses else 0)
            info = a.new(
                "VkMemoryAllocateInfo",
                pNext=flags,
                allocationSize=needs.size,
                memoryTypeIndex=self.memory_type,
            )
            check(a.lib.vkAllocateMemory(self.device, info, null, memory), "vkAllocateMemory")
            check(a.lib.vkBindBufferMemory(self.device, handle[0], memory[0], 0), "vkBindBufferMemory")
            pointer = self._map(memory[0]) if self.host_visible else None
        except FuelvkError:
            a.lib.vkDestroyBuffer(self.device, handle[0], null)
            a.lib.vkFreeMemory(self.device, memory[0], null)
            raise
        address = 0
        if self.addresses:
            address = a.lib.vkGetBufferDeviceAddress(
                self.device, a.new("VkBufferDeviceAddressInfo", buffer=handle[0])
            )
        block = Block(
            self._next_index, size, handle[0], memory[0], pointer, address, bool(self.flags & HOST_COHERENT)
        )
        self._next_index += 1
        self._reserved += size
        self.blocks[block.index] = block
        self._name("buffer", block.handle, f"block {block.index} of {size} bytes")
        self._name("memory", block.memory, f"memory of block {block.index}")
        return block

    def _map(self, memory: Any) -> Any:
        cell = self.api.ffi.new("void**")
        check(self.api.lib.vkMapMemory(self.device, memory, 0, 2**64 - 1, 0, cell), "vkMapMemory")
        return self.api.ffi.cast("char*", cell[0])

    def _drop(self, block: Block) -> None:
        self._forget(block.slots)
        if self._open is block:
            self._open = None
        block.alive = False
        self._reserved -= block.size
        del self.blocks[block.index]
        self.api.lib.vkDestroyBuffer(self.device, block.handle, self.api.null)
        self.api.lib.vkFreeMemory(self.device, block.memory, self.api.null)

    def synchronize(self, buffer: Buffer, offset: int, nbytes: int, *, to_device: bool) -> None:
        """Flushes host writes to, or invalidates host reads of, memory that is not coherent."""
        block = buffer.slot.block
        if block.coherent or not nbytes:
            return
        a, atom = self.api, self.atom_size
        start = (buffer.offset + offset) // atom * atom
        end = min(-(-(buffer.offset + offset + nbytes) // atom) * atom, block.size + PADDING)
        span = a.new("VkMappedMemoryRange", memory=block.memory, offset=start, size=end - start)
        call = "vkFlushMappedMemoryRanges" if to_device else "vkInvalidateMappedMemoryRanges"
        check(getattr(a.lib, call)(self.device, 1, span), call)
