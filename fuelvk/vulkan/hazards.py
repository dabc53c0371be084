"""Which accesses since the last barrier forbid the next command to overlap with them."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from fuelvk.vulkan.buffers import Buffer


@functools.cache
def _written(mask: int) -> tuple[int, ...]:
    return tuple(i for i in range(mask.bit_length()) if mask >> i & 1)


class HazardTracker:
    """Tracks read-after-write, write-after-read and write-after-write between barriers.

    A barrier orders everything before it against everything after it, so all that is known is forgotten
    there. Whole buffers are tracked by their slot, views (whose key is the negative of their slot's) by their
    range inside it.
    """

    __slots__ = ("_ranges", "_read", "_wrote")

    def __init__(self) -> None:
        self._read: set[int] = set()
        self._wrote: set[int] = set()
        self._ranges: dict[int, list[tuple[int, int, bool]]] = {}

    def access(self, buffers: Sequence[Buffer], writes: int) -> bool:
        """Notes a command that reads all ``buffers`` and writes those in the mask.

        True: a barrier must precede it.
        """
        keys = [buffer.key for buffer in buffers]
        written = [keys[i] for i in _written(writes)]
        read, wrote = self._read, self._wrote
        if self._ranges or (keys and min(keys) < 0):
            return self._access_ranges(buffers, writes)
        hazard = not (wrote.isdisjoint(keys) and read.isdisjoint(written))
        if hazard:
            read.clear()
            wrote.clear()
        read.update(keys)
        wrote.update(written)
        return hazard

    def _access_ranges(self, buffers: Sequence[Buffer], writes: int) -> bool:
        hazard = any(self._conflicts(buffer, bool(writes >> i & 1)) for i, buffer in enumerate(buffers))
        if hazard:
            self._read.clear()
            self._wrote.clear()
            self._ranges.clear()
        for i, buffer in enumerate(buffers):
            writing = bool(writes >> i & 1)
            if buffer.span is None:
                self._read.add(buffer.key)
                if writing:
                    self._wrote.add(buffer.key)
            else:
                self._ranges.setdefault(-buffer.key, []).append((*buffer.span, writing))
        return hazard

    def _conflicts(self, buffer: Buffer, writing: bool) -> bool:
        key = abs(buffer.key)
        if key in self._wrote or (writing and key in self._read):
            return True
        start, end = buffer.span or (0, 1 << 63)
        return any(
            first < end and start < last and (writing or wrote)
            for first, last, wrote in self._ranges.get(key, ())
        )
