"""C casts against the oracle, byte for byte: all 16-bit and 8-bit inputs, ties, ends, and random wide ones."""

from __future__ import annotations

import fractions
import math
from typing import Any

import numpy as np
import pytest

from cpu_reference import c as ckernels
from cpu_reference.numpy import cast
from fuelvk.base.dtypes import CASTABLE, HALVES, DType

Array = np.ndarray[Any, Any]

F8_PEERS = (DType.F32, *HALVES)
PAIRS = [
    *((source, target) for source in CASTABLE for target in CASTABLE),
    *((DType.F8E4M3, peer) for peer in F8_PEERS),
    *((peer, DType.F8E4M3) for peer in F8_PEERS),
]

_TIES = (
    0.0, 448.0, 463.9, 464.0, 464.1, 480.0, 65504.0, 65519.996, 65520.0, 2.0**31, 2.0**32, 2.0**63, 2.0**64, 127.5,
    255.5, 0.5, 2.0**-25, 1.5 * 2.0**-25, 2.0**-9, 2.0**-10, 2.0**-149, 2.0**-150, 2.0**-133, 2.0**-134,
    1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-11, 1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-24,
    1 + 2.0**-24 + 2.0**-50, 3.4028235677973366e38, 3.4028235677973362e38, math.inf, math.nan,
)  # fmt: skip


def _all_halves() -> Array:
    codes = np.arange(65536, dtype=np.uint16)
    return np.concatenate([codes.view(half.numpy).astype(np.float64) for half in HALVES])


def _float_inputs(rng: np.random.Generator) -> Array:
    """Every 16-bit number, what lies half way to the next and just beside it, ties of all formats, random."""
    halves = _all_halves()
    middles = [
        halves * (1 + 2.0**-9),
        halves * (1 + 2.0**-12),
        halves + 2.0**-25,
        np.nextafter(halves, np.inf),
    ]
    scattered = rng.standard_normal(4000) * 2.0 ** rng.integers(-160, 160, 4000)
    ties = np.array(_TIES)
    return np.concatenate([halves, *middles, scattered, ties, -ties])


def _integer_inputs(rng: np.random.Generator) -> Array:
    edges = [0, 1, 255, 256, 2**15, 2**16, 65519, 65520, 65521, 2**24 + 1, 2**31, 2**32, 2**53 - 1, 2**53 + 1]
    edges += [2**55 + 2**47 + d for d in (-1, 0, 1)] + [2**62 + 2**38 + d for d in (-1, 0, 1)] + [2**63 - 1]
    both = edges + [-v for v in edges] + [-(2**63)]
    wide = rng.integers(-(2**63), 2**63 - 1, 4000)
    return np.concatenate([np.array(both, np.int64), wide, rng.integers(-70000, 70000, 4000)])


def inputs_of(source: DType) -> Array:
    rng = np.random.default_rng(7)
    if source is DType.F8E4M3:
        return np.arange(256, dtype=np.uint8).view(source.numpy)
    if source in HALVES:
        return np.arange(65536, dtype=np.uint16).view(source.numpy)
    with np.errstate(all="ignore"):
        if source.is_float:
            return _float_inputs(rng).astype(source.numpy)
        if source is DType.BOOL:
            return np.array([False, True])
        return _integer_inputs(rng).astype(source.numpy)


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=lambda d: d.key)
def test_c_cast_gives_the_oracles_bytes(source: DType, target: DType) -> None:
    x = inputs_of(source)
    y = np.empty(x.shape, target.numpy)
    ckernels.call(f"cast_{source.key}_{target.key}", x, y, x.size)
    want = cast.reference(x, dtype=target)
    assert want.dtype == y.dtype
    unordered = np.isnan(want.astype(np.float64)) if target.is_float else np.zeros(x.shape, bool)
    got_nan = np.isnan(y.astype(np.float64)) if target.is_float else unordered
    assert np.array_equal(got_nan, unordered)
    bits = f"u{target.size}"
    wrong = ~unordered & (y.view(bits) != want.view(bits))
    assert not wrong.any(), f"{x[wrong][:5]} gave {y[wrong][:5]}, not {want[wrong][:5]}"


@pytest.mark.parametrize("target", [DType.F32, DType.F16, DType.BF16, DType.F8E4M3], ids=lambda d: d.key)
def test_oracle_takes_the_nearest_number(target: DType) -> None:
    """By exact fractions: no number of the format is nearer, and a tie has an even last bit."""
    if target is DType.F32:
        around_one = np.arange(0x3F800000 - 300, 0x3F800000 + 300, dtype=np.uint32)
        numbers = around_one.view(np.float32).astype(np.float64)
    else:
        with np.errstate(invalid="ignore"):
            codes = np.arange(2 ** (8 * target.size), dtype=f"u{target.size}")
            decoded = codes.view(target.numpy).astype(np.float64)
        numbers = np.unique(decoded[np.isfinite(decoded)])
    rng = np.random.default_rng(3)
    picks = rng.integers(0, numbers.size - 1, 300)
    low, high = numbers[picks], numbers[picks + 1]
    inside = low + (high - low) * rng.choice([0.0, 0.25, 0.5, 0.5, 0.75, 0.4999], 300)
    got = cast.round_to_format(inside, target)
    # Counted from zero (from 1 for F32) every second number has an even last bit.
    start = int(np.searchsorted(numbers, 1.0 if target is DType.F32 else 0.0))
    even = [(i - start) % 2 == 0 for i in range(numbers.size)]
    for pick, x, y in zip(picks, inside, got, strict=True):
        exact = fractions.Fraction(x)
        below = exact - fractions.Fraction(numbers[pick])
        above = fractions.Fraction(numbers[pick + 1]) - exact
        down = even[pick] if below == above else below < above
        assert y == numbers[pick if down else pick + 1]


def test_named_rules() -> None:
    def one(value: float, source: DType, target: DType) -> Any:
        y = np.empty(1, target.numpy)
        ckernels.call(f"cast_{source.key}_{target.key}", np.array([value], source.numpy), y, 1)
        return y[0]

    f8, f32, f64 = DType.F8E4M3, DType.F32, DType.F64
    assert float(one(math.inf, f32, f8)) == 448 and float(one(-500, f32, f8)) == -448
    assert math.isnan(float(one(math.nan, f32, f8)))
    assert one(-1.9, f32, DType.I32) == -1 and one(math.nan, f64, DType.I64) == 0
    assert one(1e30, f32, DType.U8) == 255 and one(-5.0, f32, DType.U32) == 0
    # Through F32 this would tie and go down to 1.
    assert float(one(1 + 2.0**-8 + 2.0**-40, f64, DType.BF16)) == 1 + 2.0**-7
    assert one(math.nan, f64, DType.BOOL) and not one(-0.0, DType.F16, DType.BOOL)
