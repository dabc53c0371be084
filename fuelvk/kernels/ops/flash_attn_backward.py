"""FLASH_ATTN_BACKWARD_Q, _K, _V and the joint op: one set of kernels that makes the gradients asked for."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.base.shapes import Layout, elements
from fuelvk.graph.ops._attention import AttnParams
from fuelvk.graph.ops._attention_backward import JOINT
from fuelvk.graph.registry import FusedOps
from fuelvk.graph.types import OpId, PrimitiveId
from fuelvk.kernels._vulkan import ShaderRef, VulkanContext, narrower_spirv, spirv
from fuelvk.kernels.claims import (
    STRICT_ATTN_BACKWARD_K,
    STRICT_ATTN_BACKWARD_Q,
    STRICT_ATTN_BACKWARD_V,
    STRICT_ATTN_GRADIENTS,
)
from fuelvk.kernels.costs import cost_attn_backward_cpu, cost_attn_backward_vulkan
from fuelvk.kernels.ops._attention import (
    POSITION_LIMIT,
    block_steps,
    c_arguments,
    call_words,
    enough_workers,
    on_cpu,
    resolved,
    rows_of,
    too_many_keys,
)
from fuelvk.kernels.types import PrecisionGuarantee, Registration, Shapes

if TYPE_CHECKING:
    from fuelvk.vulkan import Capabilities

_CHUNK = struct.Struct("<I6i")
_KEYS = _BLOCK_ROWS = 64
_PAD = 16  # rows of a power of two apart would share few sets of a cache
_PLACES = (0, 1, 2, 4, 5)
_WANTS = (1, 2, 4)
_FIRST, _LAST = 8, 16
_INDEX_LIMIT = 1 << 30  # totals of dk and dv lie in one buffer of 2^31 elements
# What the probabilities of one chunk may take, where 64 query rows of one head do not take more. A CPU device keeps a
# small chunk in its caches; a GPU wants work for all of its units.
_CHUNK_CPU, _CHUNK_GPU = 1 << 20, 256 << 20
# The kernels that hold operands take blocks of 64 rows: more of them together where there are more cores.
_CHUNK_MANY = max(2 << 20, (os.cpu_count() or 1) << 19)
# Groups of the kernels for subgroups: those of a CPU device share its cores, a GPU wants many.
_WORKERS_CPU, _WORKERS_GPU = 32, 2048
# The kernels that hold operands pay for a block of query rows: the least rows of a head, and the keys of a unit of
# `collect_many`.
_MANY_ROWS, _MANY_KEYS = 16, 128


@dataclass(frozen=True, slots=True)
class _Gradients:
    """An op and which of dq, dk and dv its outputs are."""

    id: OpId
    places: tuple[int, ...]
    precision: PrecisionGuarantee

    def spread(self, outputs: Sequence[Any]) -> list[Any]:
        """Returns dq, dk and dv, None for those not asked for."""
        three: list[Any] = [None, None, None]
        for place, output in zip(self.places, outputs, strict=True):
            three[place] = output
        return three


OPS = (
    _Gradients(FusedOps.FLASH_ATTN_BACKWARD_Q, (0,), STRICT_ATTN_BACKWARD_Q),
    _Gradients(FusedOps.FLASH_ATTN_BACKWARD_K, (1,), STRICT_ATTN_BACKWARD_K),
    _Gradients(FusedOps.FLASH_ATTN_BACKWARD_V, (2,), STRICT_ATTN_BACKWARD_V),
    _Gradients(PrimitiveId(JOINT), (0, 1, 2), STRICT_ATTN_GRADIENTS),
)


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Query rows whose probabilities are in memory together; ``flags`` are FIRST and LAST of _backward.slang."""

    pair0: int
    pairs: int
    block0: int
    blocks: int
    flags: int


def _chunks(p: AttnParams, row_bytes: int, limit: int) -> Iterator[_Chunk]:
    """Cuts the blocks of 64 query rows of all kv heads into chunks; a kv head's blocks come in order."""
    pairs_all, blocks_all = p.B * p.Hkv, p.group * -(-p.Sq // _BLOCK_ROWS)
    fitting = max(limit // max(_BLOCK_ROWS * row_bytes, 1), 1)
    pairs = -(-pairs_all // -(-pairs_all // fitting))  # as equal as can be
    blocks = max(min(blocks_all, fitting // pairs), 1)
    for pair0 in range(0, pairs_all, pairs):
        for block0 in range(0, max(blocks_all, 1), blocks):
            count = min(blocks, blocks_all - block0)
            flags = _FIRST * (block0 == 0) + _LAST * (block0 + count == blocks_all)
            yield _Chunk(pair0, min(pairs, pairs_all - pair0), block0, count, flags)


def _admits(shapes: Shapes, params: Mapping[str, Any], capabilities: Capabilities) -> str | None:
    if any(shape is not None and elements(shape) >= _INDEX_LIMIT for shape in shapes):
        return "an operand has 2^30 elements or more"
    if abs(params.get("causal_offset") or 0) > POSITION_LIMIT:
        return "causal_offset lies beyond 2^30"
    q, k = shapes[0], shapes[1]
    assert q is not None
    assert k is not None
    return too_many_keys(capabilities, 3 * max(k[2], q[2]), q[3])


@dataclass(frozen=True, slots=True)
class _Shaders:
    """The two halves; ``rows`` and ``keys`` are how many a group takes at a time, ``paired`` asks for an even D."""

    weights: ShaderRef
    collect: ShaderRef
    rows: int = 1
    keys: int = 1
    paired: bool = False
    many: bool = False

    @property
    def both(self) -> tuple[ShaderRef, ShaderRef]:
        return self.weights, self.collect

    def takes(self, caps: Capabilities, p: AttnParams) -> bool:
        """True where the kernels are for a call on a device; those with ``many`` are for CPU devices that have them."""
        if self.many and (caps.device_type != "cpu" or caps.loop_iterations or p.Sq < _MANY_ROWS):
            return False
        if self.many and any(isinstance(shader.select(caps), str) for shader in self.both):
            return False
        return p.D % 2 == 0 or not self.paired

    def columns(self, caps: Capabilities, d: int) -> int:
        """Returns the units of `collect` that share a group of keys: dk and dv by the columns held, else 1."""
        return 2 * -(-d // (4 * self.collect.width(caps))) if self.many else 1

    def chunk_bytes(self, caps: Capabilities) -> int:
        if caps.device_type != "cpu":
            return _CHUNK_GPU
        return _CHUNK_MANY if self.many else _CHUNK_CPU

    def grid(self, context: VulkanContext, units: int, steps: int) -> tuple[int, int, int]:
        """Returns one group a unit, or the workers that share them; ``steps`` are a unit's loop iterations at most."""
        if not self.paired:
            return context.fold(units)
        workers = _WORKERS_CPU if context.caps.device_type == "cpu" else _WORKERS_GPU
        return min(units, enough_workers(context.caps, workers, units, steps)), 1, 1


def _vulkan(op: _Gradients, dtype: DType, choices: tuple[_Shaders, ...]) -> Callable[..., None]:
    """Returns the wrapper of the first of ``choices`` that takes a call; the last takes all."""
    wants = sum(_WANTS[place] for place in op.places)

    def kernel(
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        layouts: Sequence[Layout | None],
        params: Mapping[str, Any],
        context: VulkanContext,
    ) -> None:
        p = resolved(inputs, layouts, params, _PLACES)
        if not p.B * p.Hkv * p.D:
            return
        shaders = next(s for s in choices if s.takes(context.caps, p))
        q, k, v, dy, slopes, lens = inputs
        like_q, like_k = (Layout.of((p.B, h, s, p.D)) for h, s in ((p.Hq, p.Sq), (p.Hkv, p.Sk)))
        size = dtype.accumulator.size
        width = -(-p.Sk // _KEYS) * _KEYS + _PAD
        parts = 3 if p.softcap else 2
        chunks = tuple(_chunks(p, width * parts * size, shaders.chunk_bytes(context.caps)))
        largest = max(chunk.pairs * chunk.blocks for chunk in chunks)
        totals = _WORKERS_CPU * _BLOCK_ROWS * 4 * shaders.weights.width(context.caps) if shaders.many else 1
        work = context.scratch((largest * _BLOCK_ROWS * width * parts + totals) * size)
        sums = (
            work
            if len(chunks) == 1 and not shaders.many
            else context.scratch(max(2 * like_k.elements * size, size))
        )
        error, word = context.error_slot if lens is not None else (work, 0)
        places = (like_q, like_k, like_k, like_q)
        call = context.constant(call_words(p, places, layouts[4], layouts[5], dtype, word, like_k.elements))
        dq, dk, dv = (work if x is None else x for x in op.spread(outputs))
        slopes, lens = slopes or call, lens or call
        for chunk in chunks:

            def words(grid: tuple[int, int, int], chunk: _Chunk = chunk) -> bytes:
                return _CHUNK.pack(
                    grid[0], chunk.pair0, chunk.pairs, chunk.block0, chunk.blocks, width, wants | chunk.flags
                )

            if chunk.blocks:
                units = chunk.pairs * chunk.blocks * (_BLOCK_ROWS // shaders.rows)
                grid = shaders.grid(context, units, 3 * width // _KEYS * block_steps(p.D))
                rows = (q, k, v, dy, slopes, lens, call, work, error, dq)
                context.dispatch(shaders.weights, grid, rows, 0b1110000000, words(grid))
            if wants & ~_WANTS[0] and p.Sk:
                units = chunk.pairs * -(-p.Sk // shaders.keys) * shaders.columns(context.caps, p.D)
                grid = shaders.grid(context, units, 8 * chunk.blocks * block_steps(p.D))
                keys = (q, dy, lens, call, work, sums, error, dk, dv)
                context.dispatch(shaders.collect, grid, keys, 0b111100000, words(grid))

    return kernel


def _rows(op: _Gradients, dtype: DType) -> tuple[Registration, ...]:
    dtypes = (dtype, dtype, dtype, dtype, DType.F32, DType.U32, *(dtype for _ in op.places))
    function = f"{JOINT}_{dtype.key}"
    anywhere = _Shaders(
        spirv("attention/weights", "weights", dtype=dtype), spirv("attention/collect", "collect", dtype=dtype)
    )
    subgroups = _Shaders(
        narrower_spirv("attention/weights_subgroups", "weights", dtype=dtype),
        narrower_spirv("attention/collect_subgroups", "collect", dtype=dtype),
        rows=8,
        keys=8,
        paired=True,
    )
    many = (
        ()
        if dtype is not DType.F32
        else (
            _Shaders(
                narrower_spirv("attention/weights_many", "weights_many", dtype=dtype),
                narrower_spirv("attention/collect_many", "collect_many", dtype=dtype),
                rows=_BLOCK_ROWS,
                keys=_MANY_KEYS,
                paired=True,
                many=True,
            ),
        )
    )

    return rows_of(
        op.id,
        dtypes,
        function=function,
        cpu=on_cpu(
            function,
            lambda inputs, layouts, params: c_arguments(resolved(inputs, layouts, params, _PLACES)),
            op.spread,
        ),
        on_vulkan=[
            (
                _vulkan(op, dtype, choices),
                tuple(x for s in choices if not s.many for x in s.both),
                tuple(x for s in choices if s.many for x in s.both),
            )
            for choices in ((*many, subgroups, anywhere), (anywhere,))
        ],
        costs=(cost_attn_backward_cpu, cost_attn_backward_vulkan),
        precision=op.precision,
        admits=_admits,
        wrapper=__file__,
    )


IMPLS = tuple(row for op in OPS for dtype in FLOATS for row in _rows(op, dtype))
