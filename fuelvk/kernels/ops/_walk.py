"""How reductions walk a view: [outer, n, inner] with strides, in parts where a kernel does not reach all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fuelvk.base.dtypes import DType
from fuelvk.base.errors import RegistryError
from fuelvk.base.shapes import Layout, Shape, collapse
from fuelvk.kernels._vulkan import VulkanContext
from fuelvk.kernels.ops import _ranges
from fuelvk.kernels.ops._elements import gathered

if TYPE_CHECKING:
    from fuelvk.vulkan import Buffer, Capabilities


@dataclass(frozen=True, slots=True)
class Walk:
    """[outer, n, inner] with their strides in elements; one row is [outer, n] with inner 1."""

    outer: int
    n: int
    inner: int
    outer_stride: int
    step: int
    inner_stride: int

    @property
    def in_rows(self) -> bool:
        return self.inner == 1 and (self.step == 1 or self.n <= 1)

    def at(self, offset: int) -> Layout:
        """Returns the view that is walked from ``offset``."""
        strides = (self.outer_stride, self.step, self.inner_stride)
        return Layout((self.outer, self.n, self.inner), strides, offset)

    def blocks(self, block: int) -> int:
        """Returns how many blocks a row has; one where it has no elements."""
        return max(-(-self.n // block), 1)

    def results(self, block: int, offset: int = 0) -> Layout:
        """Returns the contiguous results, [outer, blocks of n, inner], from ``offset``."""
        return replace(Layout.of((self.outer, self.blocks(block), self.inner)), offset=offset)

    def side_by_side(self, block: int) -> list[tuple[Walk, int, int]]:
        """Returns a single column as columns of ``block`` rows and a rest, each with its distance as in ``parts``.

        Invocations take neighbouring columns: of one alone, most would be idle. Others are returned as they are.
        """
        whole = self.n // block
        if self.outer > 1 or self.inner > 1 or self.in_rows or whole < 2:
            return [(self, 0, 0)]
        columns, rest = Walk(1, block, whole, 0, self.step, block * self.step), self.n - whole * block
        tail = replace(self, n=rest)
        return [(columns, 0, 0), *([(tail, whole * block * self.step, whole)] if rest else [])]

    def parts(
        self, fits: Callable[[Walk], bool], block: int, x0: int = 0, y0: int = 0
    ) -> Iterator[tuple[Walk, int, int]]:
        """Yields walks that fit, each with the distance of its first element, and of its first result.

        Results are [outer, blocks of n, inner]; every part's lie side by side.
        """
        if fits(self):
            yield self, x0, y0
            return
        blocks = self.blocks(block)
        if self.outer > 1:
            half = self.outer // 2
            rest = replace(self, outer=self.outer - half)
            cut, dx, dy = replace(self, outer=half), half * self.outer_stride, half * blocks * self.inner
        elif blocks > 1:
            half = blocks // 2
            rest = replace(self, n=self.n - half * block)
            cut, dx, dy = replace(self, n=half * block), half * block * self.step, half * self.inner
        elif self.inner > 1:
            half = self.inner // 4 * 2 or 1
            rest = replace(self, inner=self.inner - half)
            cut, dx, dy = replace(self, inner=half), half * self.inner_stride, half
        else:
            raise RegistryError("a reduction cannot be cut into reach", seen=self, allowed=_ranges.MOST)
        yield from cut.parts(fits, block, x0, y0)
        yield from rest.parts(fits, block, x0 + dx, y0 + dy)


def order(rank: int, axes: Sequence[int]) -> tuple[int, ...]:
    """Returns the axes with the reduced ones last, both groups in their order."""
    return (*(i for i in range(rank) if i not in axes), *axes)


def walk_of(view: Layout, axes: Shape) -> Walk | None:
    """Returns how the elements of a view are walked, None where only a copy makes that possible."""
    moved = view.transpose(order(len(view.shape), axes))
    kept = len(view.shape) - len(axes)
    (n, *more), ((step, *_),) = collapse(moved.shape[kept:], moved.strides[kept:])
    extents, (strides,) = collapse(moved.shape[:kept], moved.strides[:kept])
    if more or len(extents) > 2:
        return None
    if len(extents) == 2:
        return Walk(extents[0], n, extents[1], strides[0], step, strides[1])
    if step == 1 or n <= 1 or extents[0] == 1:
        return Walk(extents[0], n, 1, strides[0], step, 1)
    return Walk(1, n, extents[0], 0, step, strides[0])


def walkable(view: Layout, axes: Shape) -> tuple[Layout, Shape]:
    """Returns the view (as one to copy) and its reduced axes in an order that can be walked once contiguous."""
    if walk_of(Layout.of(view.shape), axes) is not None:
        return view, axes
    rank = len(view.shape)
    return view.transpose(order(rank, axes)), tuple(range(rank - len(axes), rank))


def walked(
    context: VulkanContext, dtype: DType, x: Buffer, view: Layout, axes: Shape, block: int
) -> tuple[Buffer, Walk, int]:
    """Returns how a view is walked, its buffer and where the walk starts: a copy's where it cannot be as it lies.

    That is so for views that are no walk, and for columns of which the rows of a block, which belong together, lie so
    far apart that a kernel does not reach from one end to the other.
    """
    walk = walk_of(view, axes)
    if walk is not None:
        reach, limit = (min(walk.n, block) - 1) * abs(walk.step), _ranges.limit(context.caps, dtype.size)
        if reach <= limit - limit // 8:  # with room for some columns side by side
            return x, walk, view.offset
        rank = len(view.shape)
        view, axes = view.transpose(order(rank, axes)), tuple(range(rank - len(axes), rank))
    else:
        view, axes = walkable(view, axes)
    x, view = gathered(context, dtype, x, view)
    walk = walk_of(view, axes)
    assert walk is not None
    return x, walk, view.offset


def reached(caps: Capabilities, x_size: int, y_size: int, block: int, words: int) -> Callable[[Walk], bool]:
    """Returns what tells whether a kernel reaches a walk and its results, from aligned starts."""
    x_limit, y_limit = (_ranges.limit(caps, s, w) for s, w in ((x_size, 1), (y_size, words)))

    def fits(part: Walk) -> bool:
        return (
            part.n <= _ranges.MOST
            and _ranges.span(part.at(0)) + _ranges.ALIGNMENT // x_size <= x_limit
            and part.results(block).elements + _ranges.ALIGNMENT // y_size <= y_limit
        )

    return fits


def in_parts(
    context: VulkanContext,
    x: Buffer,
    x0: int,
    walk: Walk,
    x_size: int,
    y: Buffer,
    y0: int,
    y_size: int,
    block: int,
    words: int = 1,
) -> Iterator[tuple[Walk, tuple[Buffer, Layout], tuple[Buffer, Layout]]]:
    """Yields the parts of a reduction in blocks that a kernel reaches, each with its x and its y.

    Sizes are bytes per element, ``words`` the index steps of a result. The whole is one part where that is in reach.
    """
    x_limit, y_limit = (_ranges.limit(context.caps, s, w) for s, w in ((x_size, 1), (y_size, words)))
    fits = reached(context.caps, x_size, y_size, block, words)
    near = x.nbytes <= x_limit * x_size and y.nbytes <= y_limit * y_size
    if not walk.n or (near and fits(walk)):
        yield walk, (x, walk.at(x0)), (y, walk.results(block, y0))
        return
    for part, dx, dy in walk.parts(fits, block):
        place = part.results(block, y0 + dy)
        yield part, _ranges.rebased(x, part.at(x0 + dx), x_size), _ranges.rebased(y, place, y_size)
