"""Attention in C: the canonical bits and the oracle under every mask option, and nothing leaking from masked keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cpu_reference import c as ckernels
from cpu_reference import canonical
from cpu_reference.numpy import flash_attn
from fuelvk.base.dtypes import FLOATS, DType

Array = np.ndarray[Any, Any]

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "causal": {"causal": True},
    "causal_offset": {"causal": True, "causal_offset": 3},
    "offset_negative": {"causal": True, "causal_offset": -4},
    "window": {"window_left": 20, "window_right": 3},
    "window_left": {"causal": True, "window_left": 0},
    "window_far": {"window_left": 2, "window_right": 2, "causal_offset": 500},
    "softcap": {"softcap": 1.5},
    "k_len": {"k_len": 37, "causal": True},
    "k_len_zero": {"k_len": 0},
    "everything": {"causal": True, "window_left": 66, "softcap": 3.0, "k_len": 100, "causal_offset": 60},
}


def draw(shape: tuple[int, ...], dtype: DType, seed: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype.numpy)


def three(
    queries: tuple[int, ...], keys: tuple[int, ...], dtype: DType = DType.F32
) -> tuple[Array, Array, Array]:
    return draw(queries, dtype, 0), draw(keys, dtype, 1), draw(keys, dtype, 2)


def attend(
    q: Array, k: Array, v: Array, slopes: Array | None = None, k_lens: Array | None = None, **p: Any
) -> Array:
    y = np.empty_like(q)
    offset, left, right = p.get("causal_offset"), p.get("window_left"), p.get("window_right")
    batch, q_heads, sq, d = q.shape
    ckernels.call(
        f"flash_attn_{DType.of(q).key}", q, k, v, slopes, k_lens, y, batch, q_heads, k.shape[1], sq, k.shape[2], d,
        p["scale"], p.get("softcap") or 0.0, p.get("k_len", k.shape[2]), int(p.get("causal", False)),
        int(offset is not None), offset or 0, -1 if left is None else left, -1 if right is None else right,
    )  # fmt: skip
    return y


def by_loops(q: Array, k: Array, v: Array, slopes: Array | None, k_lens: Array | None, **p: Any) -> Array:
    dtype = DType.of(q)
    acc = dtype.accumulator.numpy
    out = np.empty(q.shape, acc)
    group = q.shape[1] // k.shape[1]
    for b in range(q.shape[0]):
        masks = {name: value for name, value in p.items() if name not in ("scale", "softcap")}
        mask, offset = flash_attn.kept(b, q.shape[2], k.shape[2], k_lens, **masks)
        for h in range(q.shape[1]):
            for i in range(q.shape[2]):
                out[b, h, i] = canonical.attention_row(
                    q[b, h, i].astype(acc), k[b, h // group].astype(acc), v[b, h // group].astype(acc), mask[i],
                    i + offset, scale=p["scale"], softcap=p.get("softcap") or 0.0,
                    slope=None if slopes is None else float(slopes[h]),
                )  # fmt: skip
    return out.astype(dtype.numpy)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.key)
@pytest.mark.parametrize("option", OPTIONS)
def test_every_mask_is_canonical_and_close(option: str, dtype: DType) -> None:
    q, k, v = three((1, 4, 3, 5), (1, 2, 130, 5), dtype)
    params = {"scale": 0.4, **OPTIONS[option]}
    y = attend(q, k, v, **params)
    assert y.tobytes() == by_loops(q, k, v, None, None, **params).tobytes()
    exact = flash_attn.reference(q, k, v, **params)
    # |y| <= max|v| = about 4; scores stay below 10, so exp carries some 20 u, the sums a few more.
    allowed = 4 * 200 * dtype.accumulator.unit_roundoff + np.abs(exact) * dtype.unit_roundoff + 2.0**-25
    assert (np.abs(y.astype(exact.dtype) - exact) <= allowed).all()


@pytest.mark.parametrize("dtype", [DType.F32, DType.BF16], ids=lambda d: d.key)
def test_alibi_and_lengths_per_item(dtype: DType) -> None:
    q, k, v = three((3, 2, 2, 70), (3, 1, 66, 70), dtype)
    slopes, lengths = np.array([0.25, -0.5], np.float32), np.array([66, 1, 0], np.uint32)
    cases: tuple[dict[str, Any], ...] = (
        {"scale": 0.1},
        {"scale": 0.1, "causal": True},
        {"scale": 0.1, "causal": True, "causal_offset": 9},
    )
    for params in cases:
        y = attend(q, k, v, slopes, lengths, **params)
        assert y.tobytes() == by_loops(q, k, v, slopes, lengths, **params).tobytes()
        exact = flash_attn.reference(q, k, v, slopes, lengths, **params)
        assert np.allclose(y.astype(np.float64), exact, rtol=2 * dtype.unit_roundoff, atol=1e-5)
        assert (y[2].astype(np.float64) == 0).all()


def test_pieces_combine_in_order() -> None:
    """More than 1024 keys: several pieces, the first ones wholly masked for some rows."""
    q, k, v = three((1, 1, 2, 3), (1, 1, 2200, 3))
    cases: tuple[dict[str, Any], ...] = ({"scale": 2.0}, {"scale": 2.0, "window_left": 900, "causal": True})
    for params in cases:
        y = attend(q, k, v, **params)
        assert y.tobytes() == by_loops(q, k, v, None, None, **params).tobytes()
        assert np.allclose(y, flash_attn.reference(q, k, v, **params), atol=1e-5)


def test_masked_keys_take_no_part() -> None:
    q, k, v = three((1, 1, 4, 8), (1, 1, 150, 8))
    clean = attend(q, k, v, scale=0.3, k_len=70, causal=True)
    for poison in (np.nan, np.inf):
        bad_k, bad_v = k.copy(), v.copy()
        bad_k[:, :, 70:], bad_v[:, :, 70:] = poison, poison
        bad_k[:, :, 69], bad_v[:, :, 69] = k[:, :, 69], v[:, :, 69]
        assert attend(q, bad_k, bad_v, scale=0.3, k_len=70, causal=True).tobytes() == clean.tobytes()
    short = attend(q, k[:, :, :70].copy(), v[:, :, :70].copy(), scale=0.3, causal=True)
    assert short.tobytes() == clean.tobytes()


def test_decode_gives_the_bits_of_prefill(monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, v = three((2, 4, 90, 16), (2, 2, 90, 16))
    whole = attend(q, k, v, scale=0.25, causal=True)
    for i in (0, 63, 64, 89):
        one = attend(q[:, :, i : i + 1].copy(), k, v, scale=0.25, causal=True, k_len=i + 1)
        assert one.tobytes() == whole[:, :, i : i + 1].tobytes()
    assert attend(q[1:], k[1:], v[1:], scale=0.25, causal=True).tobytes() == whole[1:].tobytes()
    monkeypatch.setattr(ckernels, "thread_count", lambda: 3)
    assert attend(q, k, v, scale=0.25, causal=True).tobytes() == whole.tobytes()


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.key)
def test_scores_without_a_finite_maximum(dtype: DType) -> None:
    q = np.ones((1, 1, 1, 2), dtype.numpy)
    k, v = np.ones((1, 1, 130, 2), dtype.numpy), draw((1, 1, 130, 2), dtype, 0)
    k[0, 0, :64] = -np.inf
    # A block of nothing but -inf weighs nothing once a finite score follows.
    y = attend(q, k, v, scale=1.0).astype(np.float64)
    want = v[0, 0, 64:].astype(np.float64).mean(axis=0)
    assert np.allclose(y[0, 0, 0], want, atol=0.01)
    assert np.allclose(y, flash_attn.reference(q, k, v, scale=1.0), atol=0.01)
    # All kept scores -inf: NaN, as softmax of such a row is; NaN in one kept key likewise.
    assert np.isnan(attend(q, k, v, scale=1.0, k_len=64).astype(np.float64)).all()
    assert np.isnan(flash_attn.reference(q, k, v, scale=1.0, k_len=64)).all()
    k[0, 0, 100] = np.nan
    assert np.isnan(attend(q, k, v, scale=1.0).astype(np.float64)).all()


def test_bad_lengths_are_refused_and_empty_shapes_work() -> None:
    q, k = draw((1, 2, 3, 4), DType.F32, 0), draw((1, 1, 5, 4), DType.F32, 1)
    with pytest.raises(IndexError, match="flash_attn_f32"):
        attend(q, k, k, None, np.array([6], np.uint32), scale=1.0)
    none = draw((1, 1, 0, 4), DType.F32, 0)
    assert (attend(q, none, none, scale=1.0) == 0).all()
    assert attend(none, k, k, scale=1.0).shape == (1, 1, 0, 4)
    empty_batch = draw((0, 2, 3, 4), DType.F32, 0)
    no_keys = draw((0, 1, 5, 4), DType.F32, 0)
    assert attend(empty_batch, no_keys, no_keys, scale=1.0).shape == empty_batch.shape
