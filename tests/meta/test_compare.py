"""The comparison itself: what must turn a test red does, and what is allowed does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fuelvk.base.dtypes import FLOATS, DType
from fuelvk.kernels.types import PrecisionGuarantee
from fuelvk.verify.compare import compare, same_bits, ulp

EXACT = np.random.default_rng(1).standard_normal(1000) * 10.0 ** np.arange(-5, 5).repeat(100)
HALF_ULP = PrecisionGuarantee(True, max_ulp=0.5)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.key)
def test_a_correctly_rounded_result_passes_at_half_an_ulp(dtype: DType) -> None:
    got = EXACT.astype(dtype.numpy)
    report = compare(got, EXACT, HALF_ULP, dtype)
    assert report.ok, report
    assert 0 <= report.worst_ulp <= 0.5


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.key)
def test_one_unit_in_the_last_place_is_one_ulp(dtype: DType) -> None:
    got = EXACT.astype(dtype.numpy)
    want = got.astype(np.longdouble)
    bits = got.view(f"u{dtype.size}").copy()
    bits[7] += 1
    moved = bits.view(dtype.numpy)
    report = compare(moved, want, HALF_ULP, dtype)
    assert not report.ok
    assert report.worst_ulp == 1.0
    assert report.where == (7,)
    assert compare(moved, want, PrecisionGuarantee(True, max_ulp=1), dtype).ok


def test_ulp_follows_the_binade_and_stops_at_the_subnormals() -> None:
    assert ulp(np.array([1.0, 1.999, 2.0, 0.75]), DType.F32).tolist() == [
        2.0**-23,
        2.0**-23,
        2.0**-22,
        2.0**-24,
    ]
    assert ulp(np.array([2.0**-130, 0.0]), DType.F32).tolist() == [2.0**-149, 2.0**-149]
    assert ulp(np.array([1.0]), DType.BF16).tolist() == [2.0**-7]


BREAKS: dict[str, Any] = {
    "a dropped tail": lambda y: np.concatenate([y[:-1], [0]]).astype(y.dtype),
    "a wrong index": lambda y: np.roll(y, 1),
    "a NaN": lambda y: np.where(np.arange(y.size) == 3, np.nan, y).astype(y.dtype),
    "an infinity": lambda y: np.where(np.arange(y.size) == 3, np.inf, y).astype(y.dtype),
    "a sign": lambda y: np.where(np.arange(y.size) == 3, -y, y).astype(y.dtype),
    "another shape": lambda y: y[:-1],
    "half precision inside": lambda y: y.astype(np.float16).astype(y.dtype),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_result_is_caught(name: str) -> None:
    exact = EXACT[np.abs(EXACT) < 60000]
    got = exact.astype(np.float32)
    assert compare(got, exact, HALF_ULP, DType.F32).ok
    with np.errstate(over="ignore"):
        assert not compare(BREAKS[name](got), exact, HALF_ULP, DType.F32).ok
        assert same_bits(BREAKS[name](got), got) is not None


def test_truncation_instead_of_rounding_is_caught() -> None:
    bits = EXACT.astype(np.float32).view(np.uint32)
    truncated = (bits & np.uint32(0xFFFF0000)).view(np.float32).astype(DType.BF16.numpy)
    assert not compare(truncated, EXACT, HALF_ULP, DType.BF16).ok


def test_expected_nan_and_infinity_must_be_there() -> None:
    exact = np.array([np.nan, np.inf, -np.inf, 1.0])
    assert compare(exact.astype(np.float32), exact, HALF_ULP, DType.F32).ok
    assert not compare(np.array([0, np.inf, -np.inf, 1], np.float32), exact, HALF_ULP, DType.F32).ok
    assert not compare(np.array([np.nan, np.inf, np.inf, 1], np.float32), exact, HALF_ULP, DType.F32).ok


def test_beyond_the_largest_finite_value_infinity_is_right() -> None:
    exact = np.array([70000.0, 65504.0])
    assert compare(np.array([np.inf, 65504], np.float16), exact, HALF_ULP, DType.F16).ok
    assert not compare(
        np.array([np.inf, np.inf], np.float16), np.array([70000.0, 60000.0]), HALF_ULP, DType.F16
    ).ok


def test_a_bound_is_held_element_by_element() -> None:
    claim = PrecisionGuarantee(True, bound=lambda x: np.where(np.arange(3) == 1, 0.0, 1.0))
    exact = np.array([1.0, 2.0, 3.0])
    assert compare(np.array([1.5, 2.0, 3.5], np.float32), exact, claim, DType.F32).ok
    assert not compare(np.array([1.0, 2.5, 3.0], np.float32), exact, claim, DType.F32).ok


def test_integers_must_be_equal() -> None:
    exact = np.array([1, 2, 3])
    assert compare(exact.astype(np.int32), exact, HALF_ULP, DType.I32).ok
    assert not compare(np.array([1, 2, 4], np.int32), exact, HALF_ULP, DType.I32).ok


def test_bits_tell_zeros_apart_and_leave_nan_payloads_free() -> None:
    assert same_bits(np.array([0.0], np.float32), np.array([-0.0], np.float32)) is not None
    a, b = (np.array([p], np.uint32).view(np.float32) for p in (0x7FC00000, 0xFFC00001))
    assert same_bits(a, b) is None
