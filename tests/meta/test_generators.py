"""Each generator yields what its name says."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fuelvk.base.dtypes import FLOATS, INTEGERS, DType
from fuelvk.verify.generators import GENERATORS, Limits

Array = np.ndarray[Any, Any]
COUNT = 600
ALL = (*FLOATS, DType.F8E4M3)


def made(name: str, dtype: DType, operands: int = 1) -> tuple[Array, ...]:
    generator = GENERATORS[name]
    assert generator.fits(dtype, operands)
    arrays = generator.make(np.random.default_rng(4), dtype, operands, COUNT)
    again = generator.make(np.random.default_rng(4), dtype, operands, COUNT)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(arrays, again, strict=True))
    assert all(a.dtype == dtype.numpy for a in arrays)
    assert len(arrays) == operands
    return arrays


def wide(x: Array) -> Array:
    return x.astype(np.longdouble)


def finite(x: Array) -> bool:
    return bool(np.isfinite(wide(x)).all())


@pytest.mark.parametrize("dtype", ALL, ids=lambda d: d.key)
def test_exponents_cover_the_type(dtype: DType) -> None:
    (x,) = made("exponents", dtype)
    limits = Limits.of(dtype)
    _, e = np.frexp(wide(x))
    seen = set((e - 1).tolist())
    assert finite(x)
    assert min(seen) <= limits.least + 8
    assert max(seen) >= limits.most - 8
    assert len(seen) >= min(COUNT // 3, limits.most - limits.least - 2)
    assert (np.signbit(wide(x)).sum() - COUNT / 2) ** 2 < COUNT * 4


@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda d: d.key)
def test_integers_have_every_length(dtype: DType) -> None:
    (x,) = made("exponents", dtype)
    lengths = {int(v).bit_length() for v in np.abs(x.astype(object))}
    assert len(lengths) >= 8 * dtype.size - 2
    (ends,) = made("largest", dtype)
    limit = np.iinfo(dtype.numpy)
    assert {limit.max, limit.min} <= set(ends.tolist())


@pytest.mark.parametrize("dtype", ALL, ids=lambda d: d.key)
def test_moderate_numbers_are_moderate(dtype: DType) -> None:
    (x,) = made("moderate", dtype)
    assert (np.abs(wide(x)) >= 1 / 16).all()
    assert (np.abs(wide(x)) < 16).all()


@pytest.mark.parametrize("dtype", ALL, ids=lambda d: d.key)
def test_cancellation_cancels(dtype: DType) -> None:
    a, b = made("cancellation", dtype, 2)
    assert (np.abs(wide(a) + wide(b)) <= np.abs(wide(a)) * 8 * 2.0**-dtype.mantissa_bits).all()
    assert np.count_nonzero(wide(a) + wide(b)) > COUNT / 10
    (x,) = made("cancellation", dtype)
    assert (
        np.abs(wide(x)[::2] + wide(x)[1::2]) <= np.abs(wide(x)[::2]) * 8 * 2.0**-dtype.mantissa_bits
    ).all()


@pytest.mark.parametrize("dtype", ALL, ids=lambda d: d.key)
def test_ties_are_half_way(dtype: DType) -> None:
    a, b = made("ties", dtype, 2)
    total = wide(a) + wide(b)
    spacing = np.ldexp(np.longdouble(1), (np.frexp(wide(a))[1] - dtype.mantissa_bits).astype(np.int32))
    assert (np.abs(total - wide(a)) * 2 == spacing).all()
    assert (np.sign(wide(a)) == np.sign(wide(b))).all()
    if dtype is DType.F8E4M3:
        return
    (x,) = made("ties", dtype)
    narrower = (
        [(DType.F16, slice(0, None, 2)), (DType.BF16, slice(1, None, 2))]
        if dtype.size > 2
        else [(DType.F8E4M3, slice(None))]
    )
    for narrow, part in narrower:
        values = wide(x[part])
        place = np.ldexp(np.longdouble(1), (np.frexp(values)[1] - narrow.mantissa_bits).astype(np.int32))
        assert (np.mod(np.abs(values) / place, 1) == 0.5).all()


@pytest.mark.parametrize("dtype", ALL, ids=lambda d: d.key)
def test_subnormals_are_below_the_least_normal(dtype: DType) -> None:
    (x,) = made("subnormals", dtype)
    least = float(ml_dtypes.finfo(dtype.numpy).smallest_normal)
    assert (wide(x) != 0).all()
    assert (np.abs(wide(x)) < least).all()
    assert np.abs(wide(x)).min() == float(ml_dtypes.finfo(dtype.numpy).smallest_subnormal)
    assert np.signbit(wide(x)).any() and not np.signbit(wide(x)).all()


@pytest.mark.parametrize("dtype", ALL, ids=lambda d: d.key)
def test_the_largest_are_at_the_end(dtype: DType) -> None:
    (x,) = made("largest", dtype)
    top = float(ml_dtypes.finfo(dtype.numpy).max)
    assert finite(x)
    assert wide(x).max() == top and wide(x).min() == -top
    assert (np.abs(wide(x)) >= top * 0.25).all()


@pytest.mark.parametrize("dtype", ALL, ids=lambda d: d.key)
def test_zeros_meet_in_every_combination(dtype: DType) -> None:
    a, b = made("signed_zeros", dtype, 2)
    kinds = {
        (
            0 if p else 1 if p == 0 and not np.signbit(p) else 2,
            0 if q else 1 if q == 0 and not np.signbit(q) else 2,
        )
        for p, q in zip(wide(a), wide(b), strict=True)
    }
    assert len(kinds) == 9


@pytest.mark.parametrize("name", ["nans", "infinities"])
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.key)
def test_specials_meet_numbers_and_each_other(name: str, dtype: DType) -> None:
    a, b = made(name, dtype, 2)
    test = np.isnan if name == "nans" else np.isinf
    assert {(bool(p), bool(q)) for p, q in zip(test(wide(a)), test(wide(b)), strict=True)} == {
        (True, True), (True, False), (False, True), (False, False),
    }  # fmt: skip
    if name == "infinities":
        pairs = {
            (float(p), float(q)) for p, q in zip(wide(a), wide(b), strict=True) if np.isinf(p) and np.isinf(q)
        }
        assert len(pairs) >= 2
    assert not GENERATORS["infinities"].fits(DType.F8E4M3, 1)


@pytest.mark.parametrize("dtype", ALL, ids=lambda d: d.key)
def test_tiny_products_are_subnormal(dtype: DType) -> None:
    a, b = made("tiny_products", dtype, 2)
    least = Limits.of(dtype).least
    product = np.abs(wide(a) * wide(b))
    assert (np.abs(wide(a)) >= np.ldexp(np.longdouble(1), least)).all(), "the operands are normal"
    share = np.mean((product < np.ldexp(np.longdouble(1), least)) & (product > 0))
    assert share > (0.3 if dtype is DType.F8E4M3 else 0.95)
    assert np.mean(product >= np.ldexp(np.longdouble(1), least - dtype.mantissa_bits)) > 0.9, "few vanish"


@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16, DType.I16, DType.F8E4M3, DType.U8, DType.I8])
def test_every_value_is_there_once(dtype: DType) -> None:
    (x,) = made("every_value", dtype)
    assert np.unique(x.view(f"u{dtype.size}")).size == x.size == 1 << (8 * dtype.size)
    assert not GENERATORS["every_value"].fits(DType.F32, 1)
    assert not GENERATORS["every_value"].fits(DType.F16, 2)
