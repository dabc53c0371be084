"""Pointwise ops on Vulkan: one operand or two, contiguous, a repeated element, or any strides."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cpu_reference import c as ckernels
from fuelvk.base.dtypes import DType
from fuelvk.base.shapes import Layout, Shape, collapse, elements
from fuelvk.graph.types import OpId, PrimitiveId
from fuelvk.kernels._cpu import c_kernel, numpy_reference
from fuelvk.kernels._vulkan import ShaderRef, VulkanContext, spirv, vulkan
from fuelvk.kernels.ops._elements import (
    EACH,
    also_of,
    copy_shaders,
    gathered,
    grid,
    padded,
    share,
    spread,
    team_of,
)
from fuelvk.kernels.ops._ranges import boxes, in_reach
from fuelvk.kernels.primitive_costs import primitive_cost_cpu, primitive_cost_vulkan
from fuelvk.kernels.types import KernelCaps, PrecisionGuarantee, Registration

if TYPE_CHECKING:
    from fuelvk.vulkan import Buffer

_RANK = 5
# From this many elements on workgroups of 1024 are full and every core has some.
WIDE_FROM = 32768
_PAIRED, _ONE_A = 1, 2  # operand i that is a single element: _ONE_A << i
_UNARY = struct.Struct("<10I5i")
_BINARY = struct.Struct("<11I10i")
_WORDS = struct.Struct("<9I")
_FLIP = 1 << 31  # of unsigned integers, which are compared as signed ones
_GROUP = 8  # elements: the results of one word


Words = Callable[[Mapping[str, Any]], bytes]
Numbers = Callable[[Mapping[str, Any]], tuple[float, ...]]


def _nothing(params: Mapping[str, Any]) -> tuple[float, ...]:
    return ()


def _no_words(params: Mapping[str, Any]) -> bytes:
    return b""


def operand_boxes(
    context: VulkanContext,
    inputs: Sequence[Buffer],
    output: Buffer,
    layouts: Sequence[Layout],
    dtypes: Sequence[DType],
    rank: int,
) -> Iterator[tuple[Operands, Buffer, Layout]]:
    """Yields the operands with the output and its layout, box by box where one is not enough; none for no elements.

    ``layouts`` and ``dtypes`` are the inputs' and then the output's, which is contiguous.
    """
    *given, target = layouts
    if 0 in target.shape:
        return
    views = [*(v.broadcast_to(target.shape) for v in given), target]
    sizes = [d.size for d in dtypes]
    for shape, buffers, parts in boxes(context, target.shape, (*inputs, output), views, sizes, in_order=True):
        operands = Operands(context, buffers[:-1], parts[:-1], dtypes, shape, rank)
        yield operands, buffers[-1], parts[-1]


class Operands:
    """The operands of a pointwise op over the output's shape, collapsed to at most ``rank`` axes.

    With more axes than that, or elements out of a kernel's reach, they are gathered into contiguous scratch first.
    """

    __slots__ = ("buffers", "count", "flat", "offsets", "ones", "shape", "strides")

    def __init__(
        self,
        context: VulkanContext,
        buffers: Sequence[Buffer],
        layouts: Sequence[Layout],
        dtypes: Sequence[DType],
        shape: Shape,
        rank: int,
    ) -> None:
        views = list(layouts)
        self.buffers = list(buffers)
        self.shape, self.strides = collapse(shape, *(v.strides for v in views))
        for i, (dtype, buffer, view) in enumerate(zip(dtypes, buffers, views, strict=False)):
            if len(self.shape) > rank or not in_reach(context, buffer, view):
                self.buffers[i], views[i] = gathered(context, dtype, buffer, view)
        self.shape, self.strides = collapse(shape, *(v.strides for v in views))
        self.count = elements(shape)
        self.offsets = [v.offset for v in views]
        self.ones = [s == (0,) for s in self.strides]
        steps_ok = len(self.shape) == 1 and all(s in ((0,), (1,)) for s in self.strides)
        self.flat = steps_ok and (self.count == 1 or sum(self.ones) < min(len(self.ones), 2))

    def walks(self, rank: int) -> tuple[int, ...]:
        """Returns the strides of every operand, each padded to ``rank`` axes, one after the other."""
        return tuple(s for strides in self.strides for s in padded(strides, rank, 0))


def _flags(operands: Operands, target: Layout) -> int:
    used = [o for o, one in zip(operands.offsets, operands.ones, strict=True) if not one]
    flags = _PAIRED * all(o % 2 == 0 for o in (*used, target.offset))
    for i, one in enumerate(operands.ones):
        flags |= (_ONE_A << i) * one
    return flags


def _kernel(
    op: str,
    dtype: DType,
    result: DType,
    small: ShaderRef,
    paired: Sequence[tuple[ShaderRef, int, int]],
    pack: Callable[..., bytes],
    words: Words,
    table: Callable[[], bytes] | None,
    bytewise: ShaderRef | None,
) -> Any:
    def kernel(
        inputs: Sequence[Buffer],
        outputs: Sequence[Buffer],
        layouts: Sequence[Layout],
        params: Mapping[str, Any],
        context: VulkanContext,
    ) -> None:
        dtypes = (*(dtype,) * len(inputs), result)
        constants = () if table is None else (context.constant(table()),)
        for operands, output, target in operand_boxes(context, inputs, outputs[0], layouts, dtypes, _RANK):
            if bytewise is not None and _by_words(context, bytewise, dtype, operands, output, target):
                continue
            shader, each = small, EACH
            for candidate, least, most in paired:
                fits = least <= operands.count < most and not isinstance(candidate.select(context.caps), str)
                if fits and (least > 0 or context.caps.device_type == "cpu"):
                    shader = candidate
                    if operands.flat:
                        each = share(context.caps, shader.workgroup(context.caps)[0], operands.count)
            groups = grid(shader, context, operands.count, each)
            context.dispatch(
                shader,
                groups,
                (*operands.buffers, output, *constants),
                1 << len(inputs),
                pack(operands, groups[0], each, target) + words(params),
                entry=f"{op}_flat" if operands.flat else f"{op}_strided",
            )

    return kernel


def _by_words(
    context: VulkanContext,
    shader: ShaderRef,
    dtype: DType,
    operands: Operands,
    output: Buffer,
    target: Layout,
) -> bool:
    """Records a comparison by whole words where all of it starts on one; returns whether it did."""
    if not operands.flat or operands.count < WIDE_FROM or isinstance(shader.select(context.caps), str):
        return False
    used = (o for o, one in zip(operands.offsets, operands.ones, strict=True) if not one)
    if target.offset % _GROUP or any(offset * dtype.size % 8 for offset in used):
        return False
    groups, each = spread(shader, context, -(-operands.count // _GROUP))
    flags = _flags(operands, target)
    places = (*operands.offsets, target.offset)
    flip = _FLIP if dtype in (DType.U32, DType.U8) else 0
    words = _WORDS.pack(operands.count, groups[0], each, team_of(context.caps), flags, *places, flip)
    context.dispatch(shader, groups, (*operands.buffers, output), 1 << len(operands.buffers), words)
    return True


def _pack_unary(operands: Operands, groups_x: int, each: int, target: Layout) -> bytes:
    extents = padded(operands.shape, _RANK, 1)[1:]
    flags = _flags(operands, target) & _PAIRED
    return _UNARY.pack(
        operands.count,
        groups_x,
        flags,
        each,
        *operands.offsets,
        target.offset,
        *extents,
        *operands.walks(_RANK),
    )


def _pack_binary(operands: Operands, groups_x: int, each: int, target: Layout) -> bytes:
    extents = padded(operands.shape, _RANK, 1)[1:]
    return _BINARY.pack(
        operands.count,
        groups_x,
        _flags(operands, target),
        each,
        *operands.offsets,
        target.offset,
        *extents,
        *operands.walks(_RANK),
    )


def _twice(kernel: Any) -> Any:
    """Integer shaders are written for two operands; an op of one passes it twice."""

    def doubled(inputs: Any, outputs: Any, layouts: Any, params: Any, context: Any) -> None:
        kernel((inputs[0], inputs[0]), outputs, (layouts[0], *layouts), params, context)

    return doubled


def _cpu(function: str, numbers: Numbers) -> Callable[..., None]:
    def kernel(inputs: Any, outputs: Any, layouts: Any, params: Mapping[str, Any], context: Any) -> None:
        y = outputs[0]
        if y.size:
            ckernels.call(
                function,
                *(np.ascontiguousarray(np.broadcast_to(x, y.shape)) for x in inputs),
                y,
                y.size,
                *numbers(params),
            )

    return kernel


# Shapes a stem comes in beside "small", and from how many elements below how many each is used.
PAIRS_AND_WIDE = (("pairs", 0, WIDE_FROM), ("wide", WIDE_FROM, 1 << 62))
WIDE = (("wide", WIDE_FROM, 1 << 62),)


def shader_row(
    op: str,
    dtype: DType,
    inputs: int,
    stem: str,
    *,
    precision: PrecisionGuarantee,
    wrapper: str,
    result: DType | None = None,
    shapes: Sequence[tuple[str, int, int]] | None = (),
    words: Words = _no_words,
    table: Callable[[], bytes] | None = None,
    work: float = 1,
    op_id: OpId | None = None,
    bytewise: ShaderRef | None = None,
) -> Registration:
    """Returns the Vulkan row of a pointwise op for one dtype.

    ``stem`` holds the entries ``<op>_flat`` and ``<op>_strided``; ``shapes`` are those it comes in beside "small", None
    where it has no axis of that name. ``words`` gives the parameters as the shader's last push constants, ``table`` the
    contents of a last buffer, ``work`` how many times the op's own operations it takes. ``bytewise`` is the
    shader for results of a byte by whole words, which only some devices have.
    """
    dtypes = (dtype,) * inputs + (result or dtype,)
    axes = {} if shapes is None else {"shape": "small"}
    small = spirv(stem, f"{op}_flat", dtype=dtype, **axes)
    paired = [
        (spirv(stem, f"{op}_flat", dtype=dtype, shape=s), least, most) for s, least, most in shapes or ()
    ]
    doubled = inputs == 1 and stem == "pointwise/integer"
    pack = _pack_unary if inputs == 1 and not doubled else _pack_binary
    kernel = _kernel(op, dtype, result or dtype, small, paired, pack, words, table, bytewise)
    row = vulkan(
        op_id or PrimitiveId(op),
        dtypes,
        _twice(kernel) if doubled else kernel,
        shaders=(small,),
        cost=primitive_cost_vulkan(op, dtypes, work),
        precision=precision,
        wrapper=wrapper,
        caps=KernelCaps(strided_input=True),
    )
    return also_of(row, *(ref for ref, _, _ in paired), *((bytewise,) if bytewise else ()), *copy_shaders())


def cpu_rows(
    op: str,
    dtype: DType,
    inputs: int,
    *,
    precision: PrecisionGuarantee,
    wrapper: str,
    result: DType | None = None,
    numbers: Numbers = _nothing,
    op_id: OpId | None = None,
) -> tuple[Registration, ...]:
    """Returns the rows of the C kernel and of the oracle; ``numbers`` gives the parameters as C's last arguments."""
    op_id = op_id or PrimitiveId(op)
    dtypes = (dtype,) * inputs + (result or dtype,)
    cost = primitive_cost_cpu(op, dtypes)
    function = f"{op}_{dtype.key}"
    return (
        c_kernel(
            op_id,
            dtypes,
            _cpu(function, numbers),
            functions=(function,),
            cost=cost,
            precision=precision,
            wrapper=wrapper,
        ),
        numpy_reference(op_id, dtypes, cost=cost),
    )


def pointwise(
    op: str,
    dtype: DType,
    inputs: int,
    stem: str,
    *,
    precision: PrecisionGuarantee,
    wrapper: str,
    result: DType | None = None,
    shapes: Sequence[tuple[str, int, int]] | None = None,
    words: Words = _no_words,
    numbers: Numbers = _nothing,
    op_id: OpId | None = None,
    bytewise: ShaderRef | None = None,
) -> tuple[Registration, ...]:
    """Returns the table rows of a pointwise op for one dtype: ``shader_row`` and ``cpu_rows``.

    ``shapes`` are those of ``shader_row``; ``op_id`` is the op where it is not the primitive ``op``.
    """
    row = shader_row(
        op,
        dtype,
        inputs,
        stem,
        precision=precision,
        wrapper=wrapper,
        result=result,
        shapes=shapes,
        words=words,
        op_id=op_id,
        bytewise=bytewise,
    )
    rest = cpu_rows(
        op, dtype, inputs, precision=precision, wrapper=wrapper, result=result, numbers=numbers, op_id=op_id
    )
    return (row, *rest)
