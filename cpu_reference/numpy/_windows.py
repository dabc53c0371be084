"""Windows of pooling, one after another, for the oracles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

Pair = int | tuple[int, int]


def pair(value: Pair) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (value[0], value[1])


def starts(extent: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> list[int]:
    """Returns where the windows along an axis start, the padding in front being negative.

    Windows fit into the padded axis; in ceil mode the last may overhang if it starts before the padding behind.
    """
    reach = dilation * (kernel - 1) + 1
    found = []
    at = -padding
    while at + reach <= extent + padding:
        found.append(at)
        at += stride
    if ceil_mode and at < extent and (not found or found[-1] + reach < extent + padding):
        found.append(at)
    return found


def each(
    shape: tuple[int, ...],
    kernel: Pair,
    stride: Pair | None,
    padding: Pair,
    dilation: Pair,
    ceil_mode: bool,
) -> Iterator[tuple[tuple[int, int], tuple[int, int], tuple[Any, Any]]]:
    """Yields (place in the result, start, rows and columns of the taps inside as an index) for every window."""
    k, p, d = pair(kernel), pair(padding), pair(dilation)
    s = k if stride is None else pair(stride)
    axes = [starts(shape[a - 2], k[a], s[a], p[a], d[a], bool(ceil_mode)) for a in (0, 1)]
    for i, top in enumerate(axes[0]):
        for j, left in enumerate(axes[1]):
            rows, columns = (
                [q for q in (start + t * d[a] for t in range(k[a])) if 0 <= q < shape[a - 2]]
                for a, start in ((0, top), (1, left))
            )
            down, across = np.ix_(rows, columns)
            yield (i, j), (top, left), (down, across)


def result_extents(
    shape: tuple[int, ...], kernel: Pair, stride: Pair | None, padding: Pair, dilation: Pair, ceil_mode: bool
) -> tuple[int, int]:
    """Returns the two extents of the result."""
    k, p, d = pair(kernel), pair(padding), pair(dilation)
    s = k if stride is None else pair(stride)
    rows, columns = (len(starts(shape[a - 2], k[a], s[a], p[a], d[a], bool(ceil_mode))) for a in (0, 1))
    return rows, columns


def divisor(
    extents: tuple[int, int], start: tuple[int, int], kernel: Pair, padding: Pair, include: bool
) -> int:
    """Returns what an average divides by: elements of a window within x, or within the padded x."""
    count = 1
    for n, at, k, p in zip(extents, start, pair(kernel), pair(padding), strict=True):
        low, high = (-p, n + p) if include else (0, n)
        count *= sum(low <= at + t < high for t in range(k))
    return count
