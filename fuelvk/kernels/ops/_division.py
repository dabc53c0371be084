"""Calls beyond the reach of a kernel's 32-bit indices, divided along the axes whose places do not mix.

A wrapper states once, as a Rule, which axes of its operands run together and may be cut; ``divided`` then hands it the
call piece by piece, each within reach of the kernel, and ``divisible`` refuses only what no cut brings into reach. The
pieces are independent results, so that the bytes are those of one call. In the ordinary case nothing is cut and
nothing is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fuelvk.base.dtypes import DType
from fuelvk.base.errors import RegistryError
from fuelvk.base.shapes import Layout, Shape, elements
from fuelvk.kernels.ops import _ranges
from fuelvk.kernels.ops._elements import copy_strided
from fuelvk.kernels.types import Admits, Kernel, Shapes

if TYPE_CHECKING:
    from fuelvk.kernels._vulkan import VulkanContext
    from fuelvk.vulkan import Buffer, Capabilities

Params = Mapping[str, Any]
#: An axis that is never cut.
WHOLE = -1
#: For every operand (inputs, then the output) the number of each of its axes: those of one number are cut together.
Plan = tuple[tuple[int, ...] | None, ...]
Rule = Callable[[Shapes, Params], Plan]
#: Parameters for a piece, from those of the call, where the piece starts by axis number, and the call's shapes.
Shift = Callable[[Params, Mapping[int, int], Shapes], Params]


def axes(shape: Shape | None, *whole: int) -> tuple[int, ...] | None:
    """Returns a shape's own axes as numbers, those in ``whole`` (negative ones from the end) not to be cut."""
    if shape is None:
        return None
    kept = {axis % len(shape) for axis in whole if -len(shape) <= axis < len(shape)}
    return tuple(WHOLE if axis in kept else axis for axis in range(len(shape)))


def together(*whole: int) -> Rule:
    """Returns the rule of operands shaped like the first, which share all axes but ``whole``; others stay whole."""

    def rule(shapes: Shapes, params: Params) -> Plan:
        first = shapes[0]
        return tuple(
            axes(s, *whole) if s is not None and first is not None and len(s) == len(first) else uncut(s)
            for s in shapes
        )

    return rule


def uncut(shape: Shape | None) -> tuple[int, ...] | None:
    """Returns the plan of an operand that every piece sees whole."""
    return None if shape is None else (WHOLE,) * len(shape)


@dataclass(frozen=True, slots=True)
class _Operand:
    """One operand of a piece; ``limit`` is the number of elements a kernel indexes in it."""

    buffer: Buffer
    view: Layout
    size: int
    limit: int
    axes: tuple[int, ...]
    dense: bool

    def cut(self, axis: int, start: int, extent: int) -> _Operand:
        """Returns the operand with ``extent`` places from ``start`` of an axis, fewer where it ends before."""
        shape, offset = list(self.view.shape), self.view.offset
        for i, number in enumerate(self.axes):
            if number == axis:
                begin = min(start, shape[i])
                shape[i] = min(extent, shape[i] - begin)
                offset += begin * self.view.strides[i]
        return replace(self, view=Layout(tuple(shape), self.view.strides, offset))

    @property
    def reach(self) -> int:
        """Elements a kernel must index, from an aligned start."""
        return _ranges.span(self.view) + _ranges.ALIGNMENT // self.size

    def wide_axis(self) -> int | None:
        """Returns the number of the axis to cut for this operand's sake, None where it is well or has none.

        That is the axis that reaches farthest, and of equals the outermost: contiguous operands stay so.
        """
        count = elements(self.view.shape)
        many = count > self.limit
        if not count or not (many or self.reach > self.limit):
            return None
        best, found = -1, None
        for number, extent, stride in zip(self.axes, self.view.shape, self.view.strides, strict=True):
            if number == WHOLE or extent < 2:
                continue
            reach = (extent - 1) * abs(stride)
            if self.reach <= self.limit:  # repeated elements: no axis reaches far
                return number
            if reach > best:
                best, found = reach, number
        return found


def _pieces(
    operands: Sequence[_Operand], extents: Mapping[int, int], starts: Mapping[int, int]
) -> Iterator[tuple[Mapping[int, int], Sequence[_Operand]]]:
    axis = next((a for o in operands if (a := o.wide_axis()) is not None), None)
    if axis is None:
        yield starts, operands
        return
    extent = extents[axis]
    middle = extent // 2
    for start, count in ((0, middle), (middle, extent - middle)):
        part = [o.cut(axis, start, count) for o in operands]
        moved = {**starts, axis: starts.get(axis, 0) + start}
        yield from _pieces(part, {**extents, axis: count}, moved)


def divided(
    kernel: Kernel,
    rule: Rule,
    dtypes: Sequence[DType],
    *,
    strided: bool = False,
    weights: Sequence[int] = (),
    shift: Shift | None = None,
    keeps: bool = False,
) -> Kernel:
    """Returns a Vulkan kernel that runs ``kernel`` piece by piece where one call does not reach.

    ``dtypes`` are those of the inputs and the output. ``strided``: the inputs may have any strides; other operands
    that a cut leaves with gaps go through contiguous scratch. ``weights`` are what an element counts for among a
    kernel's indices (0: see ``_ranges.limit``), 1 where left out. ``keeps``: the kernel leaves some places of its
    output as they were.
    """

    def run(
        inputs: Sequence[Buffer | None],
        outputs: Sequence[Buffer],
        layouts: Sequence[Layout | None],
        params: Params,
        context: VulkanContext,
    ) -> None:
        buffers = (*inputs, *outputs)
        if _all_near(context.caps, buffers, layouts, dtypes, weights):
            kernel(inputs, outputs, layouts, params, context)
            return
        shapes = tuple(None if v is None else v.shape for v in layouts)
        plan = rule(shapes, params)
        operands: list[_Operand] = []
        extents: dict[int, int] = {}
        for i in reversed(range(len(buffers))):
            buffer, view, numbers = buffers[i], layouts[i], plan[i]
            if buffer is None or view is None or numbers is None:
                continue
            dense = i == len(inputs) or not strided
            limit = _ranges.limit(context.caps, dtypes[i].size, weights[i] if weights else 1)
            operands.insert(0, _Operand(buffer, view, dtypes[i].size, limit, numbers, dense))
            for number, extent in zip(numbers, view.shape, strict=True):
                extents.setdefault(number, extent)
        for starts, part in _pieces(operands, extents, {}):
            moved = shift(params, starts, shapes) if shift is not None else params
            _run_piece(context, kernel, part, moved, [b is not None for b in buffers], keeps)

    return run


def _run_piece(
    context: VulkanContext,
    kernel: Kernel,
    part: Sequence[_Operand],
    params: Params,
    given: Sequence[bool],
    keeps: bool,
) -> None:
    """Records one piece; operands that the kernel cannot take as they lie are copied before or after."""
    moved, apart = [], False
    for operand in part:
        view, last = operand.view, operand is part[-1]
        if elements(view.shape) > operand.limit:
            raise RegistryError(
                "a call that no cut brings into reach was not refused",
                seen=view.shape,
                allowed=f"{operand.limit} elements",
            )
        if 0 in view.shape:
            moved.append((operand.buffer, Layout(view.shape, view.strides, 0)))
        elif operand.reach > operand.limit or (operand.dense and not view.is_contiguous()):
            into = context.scratch(elements(view.shape) * operand.size)
            if not last or keeps:
                copy_strided(context, operand.size, operand.buffer, view, into, Layout.of(view.shape))
            moved.append((into, Layout.of(view.shape)))
            apart = last
        else:
            moved.append(_ranges.rebased(operand.buffer, view, operand.size))
    there = iter(moved)
    operands = [next(there) if present else (None, None) for present in given]
    buffers, views = [b for b, _ in operands], [v for _, v in operands]
    kernel(buffers[:-1], [buffers[-1]], views, params, context)
    if apart:
        result, (target, layout) = part[-1], moved[-1]
        copy_strided(context, result.size, target, layout, result.buffer, result.view)


def _all_near(
    caps: Capabilities,
    buffers: Sequence[Buffer | None],
    layouts: Sequence[Layout | None],
    dtypes: Sequence[DType],
    weights: Sequence[int],
) -> bool:
    for i, (buffer, view) in enumerate(zip(buffers, layouts, strict=True)):
        if buffer is None or view is None:
            continue
        limit = _ranges.limit(caps, dtypes[i].size, weights[i] if weights else 1)
        if buffer.nbytes > limit * dtypes[i].size or elements(view.shape) > limit:
            return False
    return True


def divisible(
    rule: Rule, dtypes: Sequence[DType], *, weights: Sequence[int] = (), also: Admits | None = None
) -> Admits:
    """Returns the ``admits`` of a divided kernel: refuses what stays out of reach however it is cut.

    ``also`` may refuse for other reasons.
    """

    def admits(shapes: Shapes, params: Params, capabilities: Any) -> str | None:
        for i, (shape, numbers) in enumerate(zip(shapes, rule(shapes, params), strict=True)):
            if shape is None or numbers is None:
                continue
            kept = elements([n for n, number in zip(shape, numbers, strict=True) if number == WHOLE])
            limit = _ranges.limit(capabilities, dtypes[i].size, weights[i] if weights else 1)
            limit -= _ranges.ALIGNMENT // dtypes[i].size
            if kept > limit and 0 not in shape:
                return f"{kept} elements of an operand belong together; this kernel indexes {limit}"
        return None if also is None else also(shapes, params, capabilities)

    return admits
