"""Arrays beyond what a kernel's 32-bit indices reach, cut into boxes that are within reach.

Kernels index elements with 32 signed bits from the start of a buffer. Where that is not enough, a box of the index
space gets buffers that start at the lowest element it touches: with device addresses the base address is 64 bits wide,
with storage buffers the offset of the descriptor is, and the box is small enough for the device's largest range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from fuelvk.base.shapes import Layout, Shape, elements

if TYPE_CHECKING:
    from fuelvk.kernels._vulkan import VulkanContext
    from fuelvk.vulkan import Buffer, Capabilities

# Below 2^31 by more than a grid overhangs, so that no index of an idle invocation wraps. Tests lower it.
MOST = 2**31 - 2**24
#: Vulkan asks for no coarser alignment of a storage buffer.
ALIGNMENT = 256

Box = tuple[Shape, list["Buffer"], list[Layout]]


def boxes(
    context: VulkanContext,
    shape: Shape,
    buffers: Sequence[Buffer],
    views: Sequence[Layout],
    sizes: Sequence[int],
    *,
    in_order: bool = False,
) -> Iterator[Box]:
    """Yields boxes that cover ``shape``, with the operands' buffers and views for each; one box where all is in reach.

    ``sizes`` are bytes per element. ``in_order`` cuts the outermost axes first, so that what is contiguous stays so,
    and looks at the last operand only: the others may still be out of reach.
    """
    bound = context.caps.addressing != "bda"
    most_bytes = min(MOST, context.caps.max_buffer_range) if bound else MOST
    if all(b.nbytes <= most_bytes for b in buffers) and elements(shape) <= MOST:
        yield shape, list(buffers), list(views)
        return
    limits = [min(MOST, context.caps.max_buffer_range // size) if bound else MOST for size in sizes]

    def fits(extents: Shape, parts: Sequence[Layout]) -> bool:
        spans = [span(p) + ALIGNMENT // s <= n for p, s, n in zip(parts, sizes, limits, strict=True)]
        return elements(extents) <= MOST and all(spans[-1:] if in_order else spans)

    for extents, parts in _cut(shape, views, sizes, fits, in_order=in_order):
        moved = [rebased(b, p, s) for b, p, s in zip(buffers, parts, sizes, strict=True)]
        yield extents, [b for b, _ in moved], [p for _, p in moved]


def limit(caps: Capabilities, size: int, weight: int = 1) -> int:
    """Returns how many elements of ``size`` bytes a kernel indexes, with ``weight`` index steps for each.

    A weight of 0 is that of an operand which the kernel's wrapper brings into reach itself.
    """
    if not weight:
        return 2**62
    most = MOST if caps.addressing == "bda" else min(MOST, caps.max_buffer_range // size)
    return most // weight


def in_reach(context: VulkanContext, buffer: Buffer, view: Layout) -> bool:
    """Returns whether a kernel can index every element of a view from the start of its buffer."""
    if context.caps.addressing != "bda" and buffer.nbytes > context.caps.max_buffer_range:
        return False
    return buffer.nbytes <= MOST or _ends(view)[1] <= MOST


def span(view: Layout) -> int:
    """Returns how many elements lie from the lowest to the highest that a view touches."""
    low, high = _ends(view)
    return high - low + 1


def _ends(view: Layout) -> tuple[int, int]:
    reaches = [(n - 1) * s for n, s in zip(view.shape, view.strides, strict=True)]
    return view.offset + sum(r for r in reaches if r < 0), view.offset + sum(r for r in reaches if r > 0)


def rebased(buffer: Buffer, view: Layout, size: int) -> tuple[Buffer, Layout]:
    """Returns the part of a buffer that a view touches, and the view in it."""
    low, high = _ends(view)
    start = low * size // ALIGNMENT * ALIGNMENT
    part = buffer.view(start, min((high + 1) * size, buffer.nbytes) - start)
    return part, Layout(view.shape, view.strides, view.offset - start // size)


def _cut(
    shape: Shape,
    views: Sequence[Layout],
    sizes: Sequence[int],
    fits: Callable[[Shape, Sequence[Layout]], bool],
    *,
    in_order: bool,
) -> Iterator[tuple[Shape, Sequence[Layout]]]:
    """Halves one axis after the other until every part fits: the outermost, or the one that reaches farthest."""
    if fits(shape, views):
        yield shape, views
        return
    wide = [axis for axis, extent in enumerate(shape) if extent > 1]

    def reach(axis: int) -> int:
        return max((shape[axis] - 1) * abs(v.strides[axis]) * s for v, s in zip(views, sizes, strict=True))

    axis = wide[0] if in_order else max(wide, key=reach)
    middle = shape[axis] // 2
    for start, extent in ((0, middle), (middle, shape[axis] - middle)):
        part = tuple(extent if i == axis else n for i, n in enumerate(shape))
        moved = [Layout(part, v.strides, v.offset + start * v.strides[axis]) for v in views]
        yield from _cut(part, moved, sizes, fits, in_order=in_order)
