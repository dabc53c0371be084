"""Calls that attention is tested with, and calls it must refuse."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from fuelvk.base.dtypes import DType
from fuelvk.base.errors import DTypeError, ParameterError, ShapeError, UnsupportedError
from fuelvk.graph.samples import normal, ones
from fuelvk.graph.types import ErrorSample, Sample

Array = np.ndarray[Any, Any]

# label, (B, Hq, Hkv, Sq, Sk, D), params beside scale
CASES: tuple[tuple[str, tuple[int, int, int, int, int, int], dict[str, Any]], ...] = (
    ("one_of_each", (1, 1, 1, 1, 1, 1), {}),
    ("plain", (1, 1, 1, 7, 68, 16), {}),
    ("wide_head", (1, 1, 1, 2, 65, 256), {}),
    ("odd_head", (1, 2, 1, 5, 63, 33), {}),
    ("pairs_but_no_fours", (1, 2, 1, 5, 20, 6), {}),
    ("two_pieces", (1, 1, 1, 2, 1100, 4), {}),
    ("grouped_softcap_zero_is_off", (2, 6, 2, 4, 9, 8), {"softcap": 0.0}),
    ("causal", (1, 2, 1, 65, 65, 8), {"causal": True}),
    ("causal_decode", (2, 2, 2, 1, 67, 8), {"causal": True}),
    ("causal_more_rows_than_keys", (1, 1, 1, 9, 5, 8), {"causal": True}),
    ("causal_offset", (1, 2, 2, 6, 12, 8), {"causal": True, "causal_offset": 3}),
    ("causal_offset_negative", (1, 1, 1, 6, 12, 8), {"causal": True, "causal_offset": -2}),
    ("window", (1, 2, 1, 20, 20, 8), {"window_left": 3, "window_right": 2}),
    ("window_self_only", (1, 1, 1, 5, 5, 8), {"window_left": 0, "window_right": 0}),
    ("window_causal_grouped", (1, 4, 2, 70, 140, 8), {"causal": True, "window_left": 17}),
    ("rows_that_run_into_the_next_head", (1, 4, 1, 7, 20, 72), {"causal": True, "window_left": 12}),
    ("many_rows_over_pieces", (1, 1, 1, 150, 1100, 4), {"causal": True}),
    ("softcap", (1, 2, 2, 6, 66, 8), {"softcap": 1.5}),
    ("k_len", (1, 2, 1, 4, 80, 8), {"k_len": 65, "causal": True}),
    ("k_len_zero", (1, 1, 1, 3, 4, 8), {"k_len": 0}),
    ("no_keys", (1, 1, 1, 3, 0, 8), {}),
    ("no_rows", (2, 1, 1, 0, 5, 8), {}),
    ("no_batch", (0, 1, 1, 2, 5, 8), {}),
)


def qkv(
    rng: np.random.Generator, sizes: tuple[int, int, int, int, int, int], dtype: DType
) -> tuple[Array, ...]:
    """Returns random q, k and v of (B, Hq, Hkv, Sq, Sk, D)."""
    batch, hq, hkv, sq, sk, d = sizes
    q = normal(rng, (batch, hq, sq, d), dtype)
    return q, normal(rng, (batch, hkv, sk, d), dtype), normal(rng, (batch, hkv, sk, d), dtype)


def sample_inputs(dtypes: tuple[DType, ...], rng: np.random.Generator) -> Iterable[Sample]:
    dtype = dtypes[0]
    for label, sizes, params in CASES:
        scale = float(sizes[-1]) ** -0.5
        yield Sample((*qkv(rng, sizes, dtype), None, None), {"scale": scale, **params}, label)
    slopes = np.array([0.5, 0.25, 0.125, 0.0625], dtype=np.float32)
    lens = np.array([70, 0, 13], dtype=np.uint32)
    ragged = qkv(rng, (3, 4, 2, 5, 70, 8), dtype)
    yield Sample((*ragged, slopes, lens), {"scale": 0.3}, "k_lens_alibi")
    everything = {"scale": 0.3, "causal": True, "window_left": 40, "softcap": 2.0}
    yield Sample((*ragged, slopes, lens), everything, "k_lens_alibi_causal_window_softcap")
    longer = qkv(rng, (3, 4, 2, 9, 70, 8), dtype)
    yield Sample((*longer, slopes, lens), everything, "many_rows_k_lens_alibi_causal_window_softcap")
    q, k, v = qkv(rng, (1, 1, 1, 40, 70, 8), dtype)
    k[0, 0, 60, 2], v[0, 0, 50, 3], v[0, 0, 66, :] = np.nan, np.inf, np.nan
    yield Sample((q, k, v, None, None), {"scale": 0.4, "causal": True}, "nan_seen_by_some_of_many_rows")
    q, k, v = qkv(rng, (1, 1, 1, 6, 9, 8), dtype)
    k[0, 0, 7, 2], v[0, 0, 7, 3], v[0, 0, 8, :] = np.nan, np.inf, np.nan
    yield Sample((q, k, v, None, None), {"scale": 0.4, "k_len": 7}, "nan_behind_k_len")
    yield Sample((q, k, v, None, None), {"scale": 0.4, "causal": True}, "nan_seen_by_last_rows")
    far = normal(rng, (1, 1, 4, 16), dtype, scale=12.0)
    yield Sample(
        (far, far.copy(), normal(rng, far.shape, dtype), None, None), {"scale": 1.0}, "scores_far_apart"
    )


def error_inputs() -> Iterable[ErrorSample]:
    q, k = ones((2, 4, 3, 8)), ones((2, 2, 5, 8))
    none = (None, None)
    base = {"scale": 1.0}

    def case(
        label: str, inputs: tuple[Any, ...], params: dict[str, Any], error: type[Exception], match: str
    ) -> Any:
        return ErrorSample(inputs, {**base, **params}, error, f"flash_attn.*{match}", label)

    yield ErrorSample((q, k, k, *none), {}, ParameterError, "flash_attn needs parameter scale", "no_scale")
    plain = (q, k, k, *none)
    for name in ("window_left", "window_right"):
        yield case(f"{name}_negative", plain, {name: -1}, ParameterError, f"{name}.*>= 0")
    yield case("softcap_negative", plain, {"softcap": -1.0}, ParameterError, "softcap.*>= 0")
    yield case("softcap_nan", plain, {"softcap": float("nan")}, ParameterError, "softcap.*>= 0")
    yield case("scale_nan", plain, {"scale": float("nan")}, ParameterError, "scale.*NaN")
    yield case("k_len_beyond", plain, {"k_len": 6}, ParameterError, "k_len.*Sk=5")
    yield case("k_len_negative", plain, {"k_len": -1}, ParameterError, "k_len.*>= 0")
    yield case("window_not_int", plain, {"window_left": 1.5}, ParameterError, "window_left.*wrong type")
    yield case("heads", (ones((2, 3, 3, 8)), k, k, *none), {}, ShapeError, "Hq=3, Hkv=2")
    wide = ones((1, 1, 1, 257))
    yield case("wide_head", (wide, wide, wide, *none), {}, UnsupportedError, "D=257")
    yield case("rank", (q[0], k, k, *none), {}, ShapeError, "q has the wrong rank")
    yield case("batch", (q[:1], k, k, *none), {}, ShapeError, r"k has the wrong shape.*\(1, 2, 5, 8\)")
    yield case("head_width", (q, ones((2, 2, 5, 4)), k, *none), {}, ShapeError, "k has the wrong shape")
    yield case("v_unlike_k", (q, k, k[:, :, :4], *none), {}, ShapeError, "v has the wrong shape")
    yield case("slopes_length", (q, k, k, ones((2,)), None), {}, ShapeError, r"alibi_slopes.*\(4,\)")
    lens = np.ones(3, np.uint32)
    yield case("k_lens_length", (q, k, k, None, lens), {}, ShapeError, r"k_lens.*\(2,\)")
    yield case("k_lens_dtype", (q, k, k, None, np.ones(2, np.int64)), {}, DTypeError, "k_lens is i64")
    yield case("slopes_dtype", (q, k, k, ones((4,), DType.F16), None), {}, DTypeError, "alibi_slopes is f16")
    yield case("mixed_dtypes", (q, k, ones(k.shape, DType.F16), *none), {}, DTypeError, "f32.*v is f16")
