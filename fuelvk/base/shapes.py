"""Shapes, strides and broadcasting. All strides and offsets count elements, not bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fuelvk.base.errors import ParameterError, ShapeError

Shape = tuple[int, ...]


def elements(shape: Sequence[int]) -> int:
    """Returns the number of elements; 1 for rank 0."""
    return math.prod(shape)


def contiguous_strides(shape: Sequence[int]) -> Shape:
    """Returns row-major strides of ``shape``."""
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


@dataclass(frozen=True, slots=True)
class Layout:
    """How a value lies in its buffer: element (i, j, ...) is at ``offset + i*strides[0] + j*strides[1] + ...``."""

    shape: Shape
    strides: Shape
    offset: int = 0

    @classmethod
    def of(cls, shape: Sequence[int]) -> Layout:
        """Returns the contiguous layout of ``shape`` at offset 0."""
        return cls(tuple(shape), contiguous_strides(shape), 0)

    @property
    def elements(self) -> int:
        return elements(self.shape)

    def is_contiguous(self) -> bool:
        """True when the elements lie row-major without gaps (the offset may be anything)."""
        expected = 1
        for extent, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if extent == 0:
                return True
            if extent != 1 and stride != expected:
                return False
            expected *= extent
        return True

    def transpose(self, axes: Sequence[int]) -> Layout:
        return Layout(tuple(self.shape[a] for a in axes), tuple(self.strides[a] for a in axes), self.offset)

    def broadcast_to(self, shape: Sequence[int]) -> Layout:
        """Returns the layout read as ``shape`` with stride 0 on the axes that repeat."""
        lead = len(shape) - len(self.shape)
        strides = [0] * lead
        for have, want, stride in zip(self.shape, shape[lead:], self.strides, strict=True):
            strides.append(stride if have == want else 0)
        return Layout(tuple(shape), tuple(strides), self.offset)

    def slice(self, starts: Sequence[int], steps: Sequence[int], shape: Sequence[int]) -> Layout:
        """Returns every ``steps``-th element from ``starts``, ``shape`` of them; steps may be negative."""
        offset = self.offset + sum(s * t for s, t in zip(starts, self.strides, strict=True))
        return Layout(tuple(shape), tuple(s * t for s, t in zip(steps, self.strides, strict=True)), offset)

    def reshape(self, shape: Sequence[int]) -> Layout | None:
        """Returns the same elements under another shape, or None when that needs a copy."""
        if self.is_contiguous():
            return Layout(tuple(shape), contiguous_strides(shape), self.offset)
        if 0 in shape:
            return Layout(tuple(shape), contiguous_strides(shape), self.offset)
        old = [(n, s) for n, s in zip(self.shape, self.strides, strict=True) if n != 1]
        strides = [0] * len(shape)
        at = len(shape) - 1
        while old:
            n, s = old.pop()
            while old and old[-1][1] == n * s:
                n *= old.pop()[0]
            while n > 1:
                if at < 0:
                    return None
                extent = shape[at]
                if n % extent:
                    return None
                strides[at] = s
                s *= extent
                n //= extent
                at -= 1
        return Layout(tuple(shape), tuple(strides), self.offset)


def broadcast_shapes(*shapes: Sequence[int]) -> Shape:
    """Returns the common shape by NumPy's rules; raises ShapeError naming the axis."""
    rank = max((len(s) for s in shapes), default=0)
    result: list[int] = []
    for axis in range(-rank, 0):
        extents = {s[axis] for s in shapes if len(s) >= -axis} - {1}
        if len(extents) > 1:
            raise ShapeError(
                "shapes do not broadcast",
                seen=" and ".join(str(tuple(s)) for s in shapes),
                allowed=f"equal extents or 1 on axis {axis}",
            )
        result.append(extents.pop() if extents else 1)
    return tuple(result)


def broadcast_axes(source: Sequence[int], shape: Sequence[int]) -> Shape:
    """Returns the axes of ``shape`` along which ``source``, which broadcasts to it, is repeated or has none."""
    lead = len(shape) - len(source)
    return tuple(axis for axis, n in enumerate(shape) if axis < lead or source[axis - lead] != n)


def collapse(shape: Sequence[int], *strides: Sequence[int]) -> tuple[Shape, list[Shape]]:
    """Merges neighbouring axes that every operand walks as one, dropping axes of extent 1.

    Returns the collapsed shape (never empty) and one stride tuple per operand.
    """
    kept: list[list[int]] = []  # [extent, stride of operand 0, stride of operand 1, ...]
    for axis, extent in enumerate(shape):
        if extent == 1:
            continue
        row = [extent, *(s[axis] for s in strides)]
        if kept and all(before == now * extent for before, now in zip(kept[-1][1:], row[1:], strict=True)):
            kept[-1] = [kept[-1][0] * extent, *row[1:]]
        else:
            kept.append(row)
    if not kept:
        kept = [[1, *(0 for _ in strides)]]
    return tuple(row[0] for row in kept), [tuple(row[i + 1] for row in kept) for i in range(len(strides))]


def normalize_axis(axis: int, rank: int, op: str = "") -> int:
    """Returns ``axis`` counted from the front; raises ParameterError when it is outside the rank."""
    if not -rank <= axis < rank:
        raise ParameterError(
            f"{op + ': ' if op else ''}axis out of range", asked=axis, allowed=f"{-rank} to {rank - 1}"
        )
    return axis + rank if axis < 0 else axis


def normalize_axes(axes: int | Sequence[int] | None, rank: int, op: str = "") -> Shape:
    """Returns axes counted from the front, sorted; None is all of them; a repeated one is refused."""
    if axes is None:
        return tuple(range(rank))
    chosen = [normalize_axis(a, rank, op) for a in ((axes,) if isinstance(axes, int) else axes)]
    if len(set(chosen)) != len(chosen):
        raise ParameterError(
            f"{op + ': ' if op else ''}an axis is repeated", asked=tuple(chosen), allowed="each once"
        )
    return tuple(sorted(chosen))
