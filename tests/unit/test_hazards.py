"""The hazard tracker alone, on stand-ins for buffers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fuelvk.vulkan.hazards import HazardTracker


def _whole(number: int) -> Any:
    return SimpleNamespace(key=number, span=None)


def _part(number: int, start: int, end: int) -> Any:
    return SimpleNamespace(key=-number, span=(start, end))


A, B, C = _whole(1), _whole(2), _whole(3)
LOW, HIGH, MIDDLE = _part(1, 0, 100), _part(1, 100, 200), _part(1, 50, 150)


@pytest.mark.parametrize(
    ("accesses", "barriers"),
    [
        ([([A], 0), ([A], 0)], [False, False]),  # reads
        ([([A], 1), ([A], 0)], [False, True]),  # read after write
        ([([A], 0), ([A], 1)], [False, True]),  # write after read
        ([([A], 1), ([A], 1)], [False, True]),  # write after write
        ([([A, B], 2), ([A, C], 2)], [False, False]),  # a shared input
        ([([A, B], 2), ([B, C], 2), ([C, A], 2)], [False, True, True]),  # a chain
        ([([A, B], 2), ([B, C], 2), ([A, _whole(4)], 2)], [False, True, False]),
        ([([A], 1), ([B], 1), ([A, B, C], 4), ([A], 0)], [False, False, True, False]),
        ([([A, A], 2), ([B], 1)], [False, False]),  # in place is no hazard with itself
        ([([], 0), ([A], 1)], [False, False]),
        ([([LOW], 1), ([HIGH], 1)], [False, False]),  # parts apart
        ([([LOW], 1), ([MIDDLE], 0)], [False, True]),  # parts that overlap
        ([([LOW], 0), ([MIDDLE], 0), ([HIGH], 1)], [False, False, True]),
        ([([LOW], 1), ([A], 0)], [False, True]),  # a part and its whole
        ([([A], 1), ([LOW], 0)], [False, True]),
        ([([A], 0), ([HIGH], 1)], [False, True]),
        ([([A], 0), ([HIGH], 0)], [False, False]),
        ([([LOW, HIGH], 2), ([LOW, HIGH], 2)], [False, True]),
        ([([LOW], 1), ([B], 1), ([B, HIGH], 2)], [False, False, True]),
    ],
)
def test_barriers_only_where_a_hazard_is(accesses: list[tuple[list[Any], int]], barriers: list[bool]) -> None:
    tracker = HazardTracker()
    assert [tracker.access(buffers, writes) for buffers, writes in accesses] == barriers
