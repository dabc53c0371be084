"""PAGED_ATTN: attention of the last queries of each sequence over a cache in blocks (ops.md section 3).

The canonical algorithm is FLASH_ATTN's on the gathered context: key j of item b is slot j % bs of block
``block_table[b, j // bs]``, causal, with ``context_lens[b]`` keys and the queries at their end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.base.errors import DTypeError, IndexOutOfRangeError, ParameterError, ShapeError, UnsupportedError
from fuelvk.graph import rules
from fuelvk.graph.ir import Builder, Value
from fuelvk.graph.ops._attention import MAX_HEAD_DIM, AttnParams, resolve
from fuelvk.graph.ops._attention_graph import attention
from fuelvk.graph.patterns import Match, Pattern
from fuelvk.graph.registry import FusedOps
from fuelvk.graph.samples import normal, ones
from fuelvk.graph.types import (
    DECOMPOSE,
    Arg,
    DTypes,
    ErrorSample,
    Family,
    FusedOpEntry,
    Param,
    Params,
    Sample,
    Shapes,
    Values,
)

NAME = "paged_attn"


def resolve_paged(shapes: Shapes, params: Params) -> AttnParams:
    """Returns the call as dense attention over the gathered context, of capacity Sk = MB*bs.

    ``shapes`` are q, k_cache, v_cache, block_table, context_lens and, where given, alibi_slopes.
    """
    q, k, v, table, lens = (rules.given(s) for s in shapes[:5])
    for arg, shape, rank in (
        ("q", q, 4),
        ("k_cache", k, 4),
        ("block_table", table, 2),
        ("context_lens", lens, 1),
    ):
        rules.need_rank(NAME, arg, shape, rank, rank)
    rules.need_shape(NAME, "v_cache", v, k, "like k_cache")
    if k[1] < 1:
        raise ShapeError(
            f"{NAME}: a block holds no key", seen=f"k_cache{k}", allowed="bs >= 1 in [NB, bs, Hkv, D]"
        )
    if k[3] != q[3]:
        raise ShapeError(
            f"{NAME}: heads of two widths", seen=f"q{q} and k_cache{k}", allowed=f"D = {q[3]} in both"
        )
    rules.need_shape(NAME, "block_table", table, (q[0], table[1]), "one row of block ids per batch item")
    rules.need_shape(NAME, "context_lens", lens, (q[0],), "one length per batch item")
    dense = (q[0], k[2], table[1] * k[1], q[3])
    slopes = shapes[5] if len(shapes) > 5 else None
    return resolve((q, dense, dense, slopes, lens), {**params, "causal": True}, has_k_lens=True, name=NAME)


_same = rules.uniform(NAME, ("q", "k_cache", "v_cache"), FLOATS)


def _shape(shapes: Shapes, params: Params) -> tuple[tuple[int, ...], ...]:
    resolve_paged(shapes, params)
    return (rules.given(shapes[0]),)


def _dtype(dtypes: DTypes, params: Params) -> tuple[DType, ...]:
    result = _same(dtypes[:3], params)
    rules.need_dtype(NAME, "block_table", dtypes[3], (DType.U32,))
    rules.need_dtype(NAME, "context_lens", dtypes[4], (DType.U32,))
    rules.need_dtype(NAME, "alibi_slopes", dtypes[5], (DType.F32,))
    return result


def _nothing(match: Match) -> None:
    """No chain of primitives is taken for a paged cache: a gather says nothing of contexts."""


def decompose(g: Builder, inputs: Values, params: Params) -> tuple[Value, ...]:
    """Gathers the blocks that hold context (block 0 stands for the others), then attention as primitives."""
    q, k, v, table, lens, slopes = inputs
    assert q is not None
    assert k is not None
    assert v is not None
    assert table is not None
    assert lens is not None
    p = resolve_paged(tuple(None if x is None else x.shape for x in inputs), params)
    size = k.shape[1]
    starts = g.constant(np.arange(table.shape[1], dtype=np.int64) * size)
    used = g.less(starts, g.reshape(g.cast(lens, dtype=DType.I64), shape=(p.B, 1)))
    ids = g.where(used, g.cast(table, dtype=DType.I64), g.constant(0, DType.I64))

    def gathered(cache: Value) -> Value:
        if 0 in cache.shape or 0 in table.shape:
            return rules.full(g, 0.0, (p.B, p.Hkv, p.Sk, p.D), cache.dtype)
        blocks = g.index_select(cache, g.reshape(ids, shape=(p.B * table.shape[1],)), axis=0)
        dense = g.reshape(blocks, shape=(p.B, p.Sk, p.Hkv, p.D))
        found: Value = g.transpose(dense, axes=(0, 2, 1, 3))
        return found

    return (attention(g, (q, gathered(k), gathered(v), slopes, lens), p),)


# --- samples ----------------------------------------------------------------------------------------------------

# label, (Hq, Hkv, Sq, D), block size, blocks in the cache, blocks per item, contexts, params, slopes
_CASES: tuple[
    tuple[str, tuple[int, int, int, int], int, int, int, tuple[int, ...], dict[str, Any], bool], ...
] = (
    ("one_block", (1, 1, 1, 1), 1, 1, 1, (1,), {}, False),
    ("decode", (4, 2, 1, 16), 16, 12, 5, (80, 33), {}, False),
    ("empty_one_full", (2, 2, 1, 8), 4, 9, 3, (0, 1, 4, 5, 12), {}, False),
    ("several_queries", (6, 2, 5, 8), 8, 7, 4, (20, 3, 32), {}, False),
    ("alibi", (4, 4, 3, 8), 8, 7, 4, (20, 32), {}, True),
    ("softcap", (2, 1, 2, 33), 5, 7, 4, (20, 13), {"softcap": 1.5}, False),
    ("block_beyond_a_tile", (2, 1, 2, 12), 70, 4, 2, (140, 71), {"softcap": 3.0}, True),
    ("two_pieces", (1, 1, 1, 4), 128, 10, 9, (1100,), {}, False),
    ("no_blocks", (2, 1, 2, 4), 4, 0, 0, (0, 0), {}, False),
    ("no_rows", (2, 1, 0, 4), 4, 2, 1, (3,), {}, False),
    ("no_batch", (2, 1, 2, 4), 4, 2, 1, (), {}, False),
)
_SLOPES = np.array([0.5, 0.25, 0.125, 0.0625], dtype=np.float32)
UNREAD = 0xFFFFFFFF  # a block id that must not be looked at


def _table(rng: np.random.Generator, blocks: int, each: int, size: int, contexts: tuple[int, ...]) -> Any:
    """Returns random ids, blocks shared between items; entries past a context point nowhere."""
    table = rng.integers(0, max(blocks, 1), (len(contexts), each)).astype(np.uint32)
    for row, context in zip(table, contexts, strict=True):
        row[-(-context // size) :] = UNREAD
    return table


def sample_inputs(dtypes: tuple[DType, ...], rng: np.random.Generator) -> Iterable[Sample]:
    dtype = dtypes[0]
    for label, (hq, hkv, sq, d), size, blocks, each, contexts, params, sloped in _CASES:
        q = normal(rng, (len(contexts), hq, sq, d), dtype)
        k, v = (normal(rng, (blocks, size, hkv, d), dtype) for _ in range(2))
        table = _table(rng, blocks, each, size, contexts)
        lens = np.array(contexts, np.uint32)
        slopes = _SLOPES[:hq] if sloped else None
        yield Sample((q, k, v, table, lens, slopes), {"scale": d**-0.5, **params}, label)
    q = normal(rng, (1, 1, 2, 8), dtype)
    k, v = (normal(rng, (3, 4, 1, 8), dtype) for _ in range(2))
    k[1, 2:], v[1, 2:], v[2] = np.nan, np.inf, np.nan
    table, lens = np.array([[0, 1, 2]], np.uint32), np.array([6], np.uint32)
    yield Sample((q, k, v, table, lens, None), {"scale": 0.3}, "nan_past_the_context")


def error_inputs() -> Iterable[ErrorSample]:
    q, cache = ones((2, 4, 1, 8)), ones((6, 4, 2, 8))
    table, lens = np.zeros((2, 3), np.uint32), np.array([12, 1], np.uint32)
    plain = (q, cache, cache, table, lens, None)

    def case(
        label: str, changes: dict[int, Any], params: dict[str, Any], error: type[Exception], match: str
    ) -> Any:
        inputs = tuple(changes.get(i, x) for i, x in enumerate(plain))
        return ErrorSample(inputs, {"scale": 1.0, **params}, error, f"{NAME}.*{match}", label)

    yield ErrorSample(plain, {}, ParameterError, f"{NAME} needs parameter scale", "no_scale")
    yield case("heads", {0: ones((2, 3, 1, 8))}, {}, ShapeError, "Hq=3, Hkv=2")
    yield case("head_width", {0: ones((2, 4, 1, 4))}, {}, ShapeError, "heads of two widths")
    wide = ones((1, 1, 1, 257))
    one = {3: table[:1], 4: lens[:1]}
    yield case(
        "wide_head", {0: wide, 1: wide, 2: wide, **one}, {}, UnsupportedError, f"D=257.*{MAX_HEAD_DIM}"
    )
    yield case("v_unlike_k", {2: cache[:5]}, {}, ShapeError, "v_cache has the wrong shape")
    yield case("empty_blocks", {1: cache[:, :0], 2: cache[:, :0]}, {}, ShapeError, "a block holds no key")
    yield case("table_rows", {3: table[:1]}, {}, ShapeError, r"block_table.*\(2, 3\)")
    yield case("table_rank", {3: table[0]}, {}, ShapeError, "block_table has the wrong rank")
    yield case("lens_length", {4: lens[:1]}, {}, ShapeError, r"context_lens.*\(2,\)")
    yield case("slopes_length", {5: ones((3,))}, {}, ShapeError, r"alibi_slopes.*\(4,\)")
    yield case("table_dtype", {3: table.astype(np.int64)}, {}, DTypeError, "block_table is i64")
    yield case("mixed_dtypes", {2: ones(cache.shape, DType.F16)}, {}, DTypeError, "f32.*v_cache is f16")
    yield case("softcap_negative", {}, {"softcap": -1.0}, ParameterError, "softcap.*>= 0")
    bad = table.copy()
    bad[1, 0] = 6
    yield case("block_id", {3: bad}, {}, IndexOutOfRangeError, "")
    yield case("context", {4: np.array([13, 1], np.uint32)}, {}, IndexOutOfRangeError, "")


OP = FusedOpEntry(
    id=FusedOps.PAGED_ATTN,
    family=Family.ATTENTION,
    args=(
        Arg("q"), Arg("k_cache"), Arg("v_cache"), Arg("block_table"), Arg("context_lens"),
        Arg("alibi_slopes", optional=True),
    ),
    params=(
        Param("scale", "float", check=rules.not_nan),
        Param("softcap", "float", default=None, optional=True, check=rules.finite_not_negative),
    ),
    shape_rule=_shape,
    dtype_rule=_dtype,
    dtypes=tuple((d, d, d, DType.U32, DType.U32, DType.F32, d) for d in FLOATS),
    pattern=Pattern((), _nothing),
    decompose=decompose,
    backward=DECOMPOSE,
    sample_inputs=sample_inputs,
    error_inputs=error_inputs,
    doc=(
        "Attention of q[B,Hq,Sq,D] over the first context_lens[b] keys of item b, which lie in blocks of k_cache and "
        "v_cache[NB,bs,Hkv,D] as block_table[b] says; the queries stand at the end of the context and see no later key."
    ),
)  # fmt: skip
