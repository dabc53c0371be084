"""Timestamps around every dispatch of a recording."""

from __future__ import annotations

from typing import Any

from fuelvk.base.errors import UnsupportedError
from fuelvk.vulkan.features import Limits
from fuelvk.vulkan.loader import Api, check

_TIMESTAMP = 2
_TOP, _BOTTOM = 0x1, 0x2000
_RESULT_64, _RESULT_WAIT = 1, 2
_CHUNK = 1024


class Profiler:
    """Query pools for one recording; a pair of timestamps per dispatch."""

    def __init__(self, api: Api, device: Any, limits: Limits) -> None:
        if not limits.timestamp_bits:
            raise UnsupportedError(
                "the device's compute queue has no timestamps", hint="record without profile=True"
            )
        self.api = api
        self.device = device
        self.period = limits.timestamp_period
        self.mask = (1 << limits.timestamp_bits) - 1
        self.labels: list[str] = []
        self._pools: list[Any] = []

    def begin(self, command_buffer: Any, label: str) -> None:
        """Writes the timestamp before a dispatch."""
        at = len(self.labels) % _CHUNK
        if not at:
            self._add_pool(command_buffer)
        self.labels.append(label)
        self.api.lib.vkCmdWriteTimestamp(command_buffer, _TOP, self._pools[-1], 2 * at)

    def end(self, command_buffer: Any) -> None:
        """Writes the timestamp after a dispatch."""
        at = (len(self.labels) - 1) % _CHUNK
        self.api.lib.vkCmdWriteTimestamp(command_buffer, _BOTTOM, self._pools[-1], 2 * at + 1)

    def timings(self) -> list[tuple[str, float]]:
        """Returns (label, nanoseconds) of each dispatch of the last run, which must have finished."""
        out: list[tuple[str, float]] = []
        for index, pool in enumerate(self._pools):
            labels = self.labels[index * _CHUNK : (index + 1) * _CHUNK]
            count = 2 * len(labels)
            values = self.api.ffi.new("uint64_t[]", count)
            check(
                self.api.lib.vkGetQueryPoolResults(
                    self.device, pool, 0, count, 8 * count, values, 8, _RESULT_64 | _RESULT_WAIT
                ),
                "vkGetQueryPoolResults",
            )
            for i, label in enumerate(labels):
                out.append((label, ((values[2 * i + 1] - values[2 * i]) & self.mask) * self.period))
        return out

    def close(self) -> None:
        """Destroys the query pools."""
        for pool in self._pools:
            self.api.lib.vkDestroyQueryPool(self.device, pool, self.api.null)
        self._pools.clear()

    def _add_pool(self, command_buffer: Any) -> None:
        a = self.api
        cell = a.ffi.new("VkQueryPool*")
        info = a.new("VkQueryPoolCreateInfo", queryType=_TIMESTAMP, queryCount=2 * _CHUNK)
        check(a.lib.vkCreateQueryPool(self.device, info, a.null, cell), "vkCreateQueryPool")
        self._pools.append(cell[0])
        a.lib.vkCmdResetQueryPool(command_buffer, cell[0], 0, 2 * _CHUNK)
