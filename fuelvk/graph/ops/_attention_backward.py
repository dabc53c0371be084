"""The gradients of attention: three fused ops, and the one op that computes all three.

The canonical order, per query row i with kept keys j (masks, scores and inner functions as forward):

- ``m`` is the maximum of the kept scores, ``e_j = exp(s_j - m)``, ``l`` the sum of e by the sum rule over all keys
  (key j goes to partial j mod 64, every partial starts from +0, masked keys add nothing), ``p_j = e_j * (1/l)``;
- ``dp_j = dy_i . v_j`` by the product rule; ``delta`` the sum of ``p_j * dp_j`` by the sum rule, as l;
- ``ds_j = p_j * (dp_j - delta)``, under softcap times ``1 - t_j*t_j`` with ``t_j = tanh(s_j/cap)``;
- ``dq_i = (sum of ds_j * k_j) * scale``: keys in blocks of 64 from key 0, a block from +0 in increasing j, blocks
  added to the total in order, masked keys left out;
- ``dv_j = sum of p_ij * dy_i`` and ``dk_j = (sum of ds_ij * q_i) * scale``: the heads of the group in order, of each
  head the rows in blocks of 64 from row 0, a block from +0 in increasing i, blocks added to one total in order,
  rows that mask the key left out.

A row without kept keys has no part in anything and gets zeros. Unlike forward there is no running maximum: the two
passes over a row cost no more here, and round less.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.base.errors import DTypeError, ParameterError, ShapeError, UnsupportedError
from fuelvk.graph import rules
from fuelvk.graph.ir import Builder, Value
from fuelvk.graph.ops._attention import resolve
from fuelvk.graph.ops._attention_graph import attention_gradients
from fuelvk.graph.ops._attention_samples import CASES, qkv
from fuelvk.graph.patterns import Match, Pattern
from fuelvk.graph.samples import normal, ones
from fuelvk.graph.types import (
    DECOMPOSE,
    Arg,
    DTypes,
    ErrorSample,
    Family,
    FusedOpEntry,
    FusedOpId,
    Param,
    Params,
    Sample,
    Shapes,
    Values,
)

JOINT = "flash_attn_backward"
_WANTED = ("q", "k", "v")
_FEW = (
    "one_of_each",
    "odd_head",
    "causal_more_rows_than_keys",
    "window_causal_grouped",
    "softcap",
    "no_rows",
)
_NOT_HERE = ("wide_head", "two_pieces", "softcap_zero_is_off", "causal_decode", "window_self_only")


def _int(name: str) -> Param:
    return Param(name, "int", default=None, optional=True)


def _count(name: str) -> Param:
    return Param(name, "int", default=None, optional=True, check=rules.not_negative)


PARAMS = (
    Param("scale", "float", check=rules.not_nan),
    Param("causal", "bool", default=False),
    _int("causal_offset"),
    _count("window_left"),
    _count("window_right"),
    Param("softcap", "float", default=None, optional=True, check=rules.finite_not_negative),
    _count("k_len"),
)
"""The parameters of attention, forward and backward."""

ARGS = (
    Arg("q"), Arg("k"), Arg("v"), Arg("dy"), Arg("alibi_slopes", optional=True), Arg("k_lens", optional=True)
)  # fmt: skip


def shapes_of(name: str, shapes: Shapes, params: Params) -> tuple[tuple[int, ...], ...]:
    """Returns the shapes of dq, dk and dv; refuses what attention refuses and a dy unlike q."""
    q, k, v, dy, slopes, lens = shapes
    resolve((q, k, v, slopes, lens), params, has_k_lens=lens is not None, name=name)
    rules.need_shape(name, "dy", dy, rules.given(q), "like q")
    return rules.given(q), rules.given(k), rules.given(v)


def dtype_of(name: str, dtypes: DTypes, params: Params) -> DType:
    """Returns the one dtype of q, k, v and dy."""
    found = rules.uniform(name, ("q", "k", "v", "dy"), FLOATS)(dtypes[:4], params)
    rules.need_dtype(name, "alibi_slopes", dtypes[4], (DType.F32,))
    rules.need_dtype(name, "k_lens", dtypes[5], (DType.U32,))
    return found[0]


def gradients(g: Builder, inputs: Values, params: Params) -> tuple[Value | None, ...]:
    """Returns dq, dk, dv and, where slopes are given, theirs, as primitives."""
    q, k, v, dy, slopes, lens = inputs
    assert dy is not None
    forward = (q, k, v, slopes, lens)
    shapes = tuple(None if x is None else x.shape for x in forward)
    resolved = resolve(shapes, params, has_k_lens=lens is not None)
    return attention_gradients(g, forward, dy, resolved)


def _nothing(match: Match) -> None:
    """Gradients are built by autograd; no chain of primitives is taken for one."""


def gradient_entry(op_id: FusedOpId) -> FusedOpEntry:
    """Returns the entry of FLASH_ATTN_BACKWARD_Q, _K or _V; the letter tells which gradient."""
    name = op_id.name.lower()
    letter = name[-1]
    index = _WANTED.index(letter)

    def shape(shapes: Shapes, params: Params) -> tuple[tuple[int, ...], ...]:
        return (shapes_of(name, shapes, params)[index],)

    def dtype(dtypes: DTypes, params: Params) -> tuple[DType, ...]:
        return (dtype_of(name, dtypes, params),)

    def decompose(g: Builder, inputs: Values, params: Params) -> tuple[Value, ...]:
        found = gradients(g, inputs, params)[index]
        assert found is not None
        return (found,)

    return FusedOpEntry(
        id=op_id,
        family=Family.BACKWARD,
        args=ARGS,
        params=PARAMS,
        shape_rule=shape,
        dtype_rule=dtype,
        dtypes=tuple((d, d, d, d, DType.F32, DType.U32, d) for d in FLOATS),
        pattern=Pattern((), _nothing),
        decompose=decompose,
        backward=DECOMPOSE,
        joint=(JOINT, index),
        sample_inputs=few_samples,
        error_inputs=lambda: error_samples(name),
        doc=(
            f"The gradient of flash_attn by {letter}, given dy, that of its result. Where a graph asks for several "
            "gradients of one call they are computed together."
        ),
    )


# --- samples ----------------------------------------------------------------------------------------------------


def _with_gradient(rng: np.random.Generator, inputs: tuple[Any, ...], dtype: DType) -> tuple[Any, ...]:
    return (*inputs, normal(rng, inputs[0].shape, dtype))


def _plain(dtype: DType, rng: np.random.Generator, keep: Iterable[str]) -> Iterable[Sample]:
    for label, sizes, params in CASES:
        if label in keep:
            inputs = _with_gradient(rng, qkv(rng, sizes, dtype), dtype)
            yield Sample((*inputs, None, None), {"scale": float(sizes[-1]) ** -0.5, **params}, label)


def _ragged(dtype: DType, rng: np.random.Generator) -> Iterable[Sample]:
    slopes = np.array([0.5, 0.25, 0.125, 0.0625], dtype=np.float32)
    lens = np.array([70, 0, 13], dtype=np.uint32)
    inputs = _with_gradient(rng, qkv(rng, (3, 4, 2, 5, 70, 8), dtype), dtype)
    everything = {"scale": 0.3, "causal": True, "window_left": 40, "softcap": 2.0}
    yield Sample((*inputs, slopes, lens), everything, "k_lens_alibi_causal_window_softcap")


def few_samples(dtypes: tuple[DType, ...], rng: np.random.Generator) -> Iterable[Sample]:
    """Calls for each gradient alone; what is said of all masks is said of the joint op."""
    yield from _plain(dtypes[0], rng, _FEW)
    yield from _ragged(dtypes[0], rng)


def all_samples(dtypes: tuple[DType, ...], rng: np.random.Generator) -> Iterable[Sample]:
    """Calls of the joint op."""
    dtype = dtypes[0]
    yield from _plain(dtype, rng, [label for label, _, _ in CASES if label not in _NOT_HERE])
    yield from _ragged(dtype, rng)
    inputs = _with_gradient(rng, qkv(rng, (1, 1, 1, 2, 9, 250), dtype), dtype)
    yield Sample((*inputs, None, None), {"scale": 0.06}, "wide_head")
    q, k, v, dy = _with_gradient(rng, qkv(rng, (1, 1, 1, 6, 9, 8), dtype), dtype)
    k[0, 0, 7, 2], v[0, 0, 7, 3], v[0, 0, 8, :] = np.nan, np.inf, np.nan
    yield Sample((q, k, v, dy, None, None), {"scale": 0.4, "k_len": 7}, "nan_behind_k_len")
    yield Sample((q, k, v, dy, None, None), {"scale": 0.4, "causal": True}, "nan_seen_by_last_rows")
    q, k, v, dy = _with_gradient(rng, qkv(rng, (1, 2, 1, 70, 20, 8), dtype), dtype)
    dy[0, 1, 3] = np.nan  # a row that keeps nothing
    params = {"scale": 0.4, "causal": True, "causal_offset": -10}
    yield Sample((q, k, v, dy, None, None), params, "nan_above_a_row_without_keys")
    q, k, v, dy = _with_gradient(rng, qkv(rng, (1, 1, 1, 67, 70, 34), dtype), dtype)
    k[0, 0, 40, 2], v[0, 0, 66, 3], q[0, 0, 20, 33], dy[0, 0, 50, 0] = np.nan, np.inf, -np.inf, np.nan
    params = {"scale": 0.2, "causal": True, "window_left": 30}
    yield Sample((q, k, v, dy, None, None), params, "not_finite_behind_masks")
    inputs = _with_gradient(rng, qkv(rng, (1, 3, 3, 128, 20, 2), dtype), dtype)
    params = {"scale": 0.7, "window_left": 2, "window_right": 2, "causal_offset": 0}
    yield Sample((*inputs, None, None), params, "windows_beyond_the_last_key")


def error_samples(name: str) -> Iterable[ErrorSample]:
    """Calls that each of the four ops must refuse."""
    q, k = ones((2, 4, 3, 8)), ones((2, 2, 5, 8))
    plain = (q, k, k, q, None, None)

    def case(
        label: str, inputs: tuple[Any, ...], params: dict[str, Any], error: type[Exception], match: str
    ) -> Any:
        return ErrorSample(inputs, {"scale": 1.0, **params}, error, f"{name}.*{match}", label)

    yield ErrorSample(plain, {}, ParameterError, f"{name} needs parameter scale", "no_scale")
    yield case("dy_unlike_q", (q, k, k, q[:, :, :2], None, None), {}, ShapeError, r"dy.*\(2, 4, 3, 8\)")
    yield case("heads", (q[:, :3], k, k, q[:, :3], None, None), {}, ShapeError, "Hq=3, Hkv=2")
    yield case("window_negative", plain, {"window_left": -1}, ParameterError, "window_left.*>= 0")
    yield case("softcap_nan", plain, {"softcap": float("nan")}, ParameterError, "softcap.*>= 0")
    yield case("k_len_beyond", plain, {"k_len": 6}, ParameterError, "k_len.*Sk=5")
    wide = ones((1, 1, 1, 257))
    yield case("wide_head", (wide, wide, wide, wide, None, None), {}, UnsupportedError, "D=257")
    yield case("slopes_length", (q, k, k, q, ones((2,)), None), {}, ShapeError, r"alibi_slopes.*\(4,\)")
    lens = np.ones(3, np.uint32)
    yield case("k_lens_length", (q, k, k, q, None, lens), {}, ShapeError, r"k_lens.*\(2,\)")
    half = ones(q.shape, DType.F16)
    yield case("mixed_dtypes", (q, k, k, half, None, None), {}, DTypeError, "f32.*dy is f16")
