"""Buffers and where they lie: blocks of device memory, slots in them, and who still uses a slot."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from fuelvk.base.errors import ParameterError

if TYPE_CHECKING:
    from fuelvk.vulkan.memory import Pool

_numbers = count(1)
_FREED = object()


class Block:
    """One VkBuffer with its memory, mapped for as long as it lives where the host can see it."""

    __slots__ = (
        "address",
        "alive",
        "coherent",
        "handle",
        "index",
        "live",
        "memory",
        "pointer",
        "size",
        "slots",
        "used",
    )

    def __init__(
        self, index: int, size: int, handle: Any, memory: Any, pointer: Any, address: int, coherent: bool
    ):
        self.index = index
        self.size = size
        self.handle = handle
        self.memory = memory
        self.pointer = pointer
        self.address = address
        self.coherent = coherent
        self.used = 0
        self.live = 0
        self.slots: list[Slot] = []
        self.alive = True


class Use:
    """The timeline value of the last submission of one recording."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


class Slot:
    """A range of a block.

    ``uses`` has an entry per recording that names it, so that a submission is one store.
    """

    __slots__ = ("alive", "block", "free", "last", "number", "offset", "order", "size", "uses")

    def __init__(self, block: Block, offset: int, size: int) -> None:
        self.block = block
        self.offset = offset
        self.size = size
        self.number = next(_numbers)
        self.order = block.index << 48 | offset
        self.last = 0
        self.free = False
        self.alive = True
        self.uses: list[Use] = []

    def last_use(self) -> int:
        """Returns the timeline value after which no submission so far touches this slot."""
        last = self.last
        for use in tuple(self.uses):  # a copy: other threads add and remove
            last = max(last, use.value)
        return last

    def retire(self, use: Use) -> None:
        """Forgets a recording's cell, keeping its last value."""
        self.last = max(self.last, use.value)
        if use in self.uses:
            self.uses.remove(use)


class Buffer:
    """A range of device memory; goes back to its pool with the last reference or by ``free``.

    ``address`` is its device address (0 without that feature), ``handle`` and ``offset`` its place in a
    VkBuffer.
    """

    __slots__ = (
        "__weakref__",
        "_pool",
        "address",
        "handle",
        "info",
        "key",
        "nbytes",
        "offset",
        "parent",
        "slot",
        "span",
        "word",
    )

    def __init__(self, pool: Pool, slot: Slot, nbytes: int, start: int = 0, parent: object = None) -> None:
        block = slot.block
        self._pool = pool
        self.slot = slot
        self.nbytes = nbytes
        self.parent = parent
        self.handle = block.handle
        self.offset = slot.offset + start
        self.address = block.address + self.offset if block.address else 0
        self.word = self.address.to_bytes(8, "little")
        self.key = slot.number if parent is None else -slot.number
        self.span: tuple[int, int] | None = None if parent is None else (start, start + max(nbytes, 1))
        self.info: Any = None

    def __del__(self) -> None:
        # Goes back once only: in a cycle of garbage another object's finalizer may still call ``free``.
        if getattr(self, "parent", _FREED) is None:
            self.parent = _FREED
            self._pool.returned.append(self.slot)

    def __repr__(self) -> str:
        return f"Buffer({self.nbytes} bytes at block {self.slot.block.index} + {self.offset})"

    @property
    def last_use(self) -> int:
        """The timeline value after which the device no longer touches this memory."""
        return self.slot.last_use()

    @property
    def freed(self) -> bool:
        """Whether ``free`` was called."""
        return self.parent is _FREED

    @property
    def mapped(self) -> memoryview | None:
        """The bytes in place where host and device share coherent memory, else None.

        Does not wait for the device; keeps the buffer alive.
        """
        pointer = self.pointer
        if pointer is None or not self.slot.block.coherent or self._pool.hidden:
            return None
        ffi = self._pool.api.ffi
        kept = ffi.gc(pointer, lambda _pointer, _owner=self: None)
        return memoryview(ffi.buffer(kept, self.nbytes))

    @property
    def pointer(self) -> Any:
        """The host address as a ``char*``, or None when the host cannot see this memory."""
        base = self.slot.block.pointer
        return None if base is None else base + self.offset

    def view(self, offset: int, nbytes: int) -> Buffer:
        """Returns a part of this buffer that keeps it alive.

        ``offset`` is a multiple of the device's alignment.
        """
        start = offset + (self.span[0] if self.span else 0)
        if offset < 0 or nbytes < 0 or offset + nbytes > self.nbytes or start % self._pool.view_alignment:
            raise ParameterError(
                "a view must lie inside its buffer and be aligned",
                asked=f"{nbytes} bytes at {offset}",
                allowed=f"up to {self.nbytes} bytes, offsets of {self._pool.view_alignment}",
            )
        return Buffer(self._pool, self.slot, nbytes, start, self)

    def free(self) -> None:
        """Gives the memory back now.

        To later submissions at once, to the host when the device is done with it.
        """
        if self.parent is None:
            self._pool.returned.append(self.slot)
        self.parent = _FREED
        self.word = self.key = self.handle = None  # type: ignore[assignment]
