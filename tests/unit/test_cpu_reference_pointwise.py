"""Pointwise C kernels: exactly rounded arithmetic, functions within their ULPs, all 16-bit inputs, special values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cpu_reference import c as ckernels
from cpu_reference.numpy import _normal, oracle
from cpu_reference.numpy.cast import round_to_format
from fuelvk.base.dtypes import FLOATS, HALVES, INTEGERS, DType
from fuelvk.verify.compare import ulp

Array = np.ndarray[Any, Any]

EXACTLY_ROUNDED = ("neg", "abs", "sqr", "sqrt", "recip", "sign", "step", "relu")
# Worst error in ULPs of the output. exp is correctly rounded in F32; the margin above 0.5 is the oracle's own error.
FUNCTIONS = {"exp": 0.5001, "rsqrt": 0.5002, "tanh": 1.0, "erf": 0.846, "gelu_erf": 1.0}
ARITHMETIC = ("add", "sub", "mul", "div", "maximum", "minimum")
COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 3.0, 1e-40, -1e-40, 65504.0, 1e-7)


def inputs_of(dtype: DType, seed: int = 0) -> Array:
    """All numbers of a 16-bit type; every exponent with random mantissas of a wide one, and the special values."""
    if dtype in HALVES:
        return np.arange(65536, dtype=np.uint16).view(dtype.numpy)
    rng = np.random.default_rng(seed)
    top = 1024 if dtype is DType.F64 else 128
    exponents = np.repeat(np.arange(-top - 20, top), 40)
    with np.errstate(all="ignore"):
        spread = rng.choice([-1.0, 1.0], exponents.size) * np.ldexp(1 + rng.random(exponents.size), exponents)
        plain = rng.standard_normal(4000) * 4
        return np.concatenate([spread, plain, np.array(SPECIAL)]).astype(dtype.numpy)


def unary(op: str, x: Array) -> Array:
    y = np.empty_like(x)
    ckernels.call(f"{op}_{DType.of(x).key}", x, y, x.size)
    return y


def binary(op: str, a: Array, b: Array) -> Array:
    y = np.empty(a.shape, bool if op in COMPARISONS else a.dtype)
    ckernels.call(f"{op}_{DType.of(a).key}", a, b, y, a.size)
    return y


def worst_ulps(got: Array, exact: Array, dtype: DType) -> float:
    """Places of NaN must match; infinities too, unless the exact value lies beyond the last finite number."""
    with np.errstate(all="ignore"):
        value = got.astype(np.longdouble)
        exact = exact.astype(np.longdouble)
        assert np.array_equal(np.isnan(value), np.isnan(exact))
        rounded = exact.astype(dtype.accumulator.numpy)
        rounded = round_to_format(rounded.astype(np.float64), dtype)
        infinite = np.isinf(value) | np.isinf(rounded)
        assert np.array_equal(value[infinite].astype(np.float64), rounded[infinite])
        live = ~(np.isnan(exact) | infinite)
        error = np.abs(value - exact)[live] / ulp(exact[live], dtype)
    return float(error.max()) if error.size else 0.0


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.key)
@pytest.mark.parametrize("op", EXACTLY_ROUNDED)
def test_rounded_once(op: str, dtype: DType) -> None:
    x = inputs_of(dtype)
    limit = 1.0 if dtype is DType.F64 and op in ("sqrt", "recip") else 0.5
    assert worst_ulps(unary(op, x), oracle(op)(x), dtype) <= limit + 1e-3


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.key)
@pytest.mark.parametrize("op", FUNCTIONS)
def test_functions_within_their_ulps(op: str, dtype: DType) -> None:
    x = inputs_of(dtype)
    limit = 1.0 if dtype is DType.F64 else FUNCTIONS[op]
    assert worst_ulps(unary(op, x), oracle(op)(x), dtype) <= limit


@pytest.mark.parametrize("dtype", HALVES, ids=lambda d: d.key)
@pytest.mark.parametrize("op", ["recip", "rsqrt", "erf"])
def test_every_half_is_correctly_rounded(op: str, dtype: DType) -> None:
    """Rounding the F32 result again is harmless, but for erf of two F16 inputs that the kernel decides itself."""
    x = inputs_of(dtype)
    with np.errstate(all="ignore"):
        want = round_to_format(np.asarray(oracle(op)(x), np.float64), dtype)
        got = unary(op, x).astype(np.float64)
    assert np.array_equal(got, want, equal_nan=True)
    assert np.array_equal(
        np.signbit(got), np.signbit(want) & ~np.isnan(want) | (np.isnan(got) & np.signbit(got))
    )


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.key)
def test_parametric_functions(dtype: DType) -> None:
    """The order of roundings, spelled out on NumPy scalars of the accumulator."""
    kind = dtype.accumulator.numpy.type
    x = np.random.default_rng(4).uniform(-2, 2, 300).astype(dtype.numpy)
    y = np.empty_like(x)
    v = x.astype(kind)
    ckernels.call(f"affine_{dtype.key}", x, y, x.size, 1.1, -0.3)
    assert np.array_equal(y, (v * kind(1.1) + kind(-0.3)).astype(dtype.numpy))
    ckernels.call(f"clamp_{dtype.key}", x, y, x.size, -0.5, 0.7)
    assert np.array_equal(y, np.clip(v, kind(-0.5), kind(0.7)).astype(dtype.numpy))
    squared = v * v
    ckernels.call(f"powi_{dtype.key}", x, y, x.size, 11)
    assert np.array_equal(y, (v * squared * ((squared * squared) * (squared * squared))).astype(dtype.numpy))
    x = np.where(np.abs(x) < 0.5, dtype.numpy.type(1), x)
    v = x.astype(kind)
    ckernels.call(f"powi_{dtype.key}", x, y, x.size, -3)
    assert worst_ulps(y, 1 / (v * (v * v)).astype(np.longdouble), dtype) <= 0.5 + 1e-3 + (dtype is DType.F64)
    ckernels.call(f"powi_{dtype.key}", np.full_like(x, np.nan), y, x.size, 0)
    assert (y == 1).all()


@pytest.mark.parametrize("dtype", HALVES, ids=lambda d: d.key)
def test_exp_of_every_half_is_correctly_rounded(dtype: DType) -> None:
    """Rounding the F32 result again is harmless, but for two F16 inputs that the kernel decides itself."""
    x = inputs_of(dtype)
    with np.errstate(all="ignore"):
        want = round_to_format(np.exp(x.astype(np.float64)), dtype)
        assert np.array_equal(unary("exp", x).astype(np.float64), want, equal_nan=True)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.key)
@pytest.mark.parametrize("op", ARITHMETIC)
def test_arithmetic_is_rounded_once(op: str, dtype: DType) -> None:
    rng = np.random.default_rng(1)
    a, b = inputs_of(dtype), rng.permutation(inputs_of(dtype, 2))
    grid = np.array([(p, q) for p in SPECIAL for q in SPECIAL], np.float64)
    with np.errstate(all="ignore"):
        a = np.concatenate([a, grid[:, 0].astype(dtype.numpy)])
        b = np.concatenate([b, grid[:, 1].astype(dtype.numpy)])
    limit = 1.0 if (op, dtype) == ("div", DType.F64) else 0.5
    assert worst_ulps(binary(op, a, b), oracle(op)(a, b), dtype) <= limit + 1e-3


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=lambda d: d.key)
@pytest.mark.parametrize("op", COMPARISONS)
def test_comparisons(op: str, dtype: DType) -> None:
    with np.errstate(all="ignore"):
        values = np.array(SPECIAL if dtype.is_float else (0, 1, 2, 127, 200, 5)).astype(dtype.numpy)
    a, b = np.repeat(values, values.size), np.tile(values, values.size)
    got, want = binary(op, a, b), oracle(op)(a, b)
    assert got.dtype == want.dtype == np.bool_ and np.array_equal(got, want)


@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda d: d.key)
def test_integers_wrap(dtype: DType) -> None:
    info = np.iinfo(dtype.numpy)
    rng = np.random.default_rng(0)
    values = np.concatenate([np.array([info.min, info.max, 0, 1], dtype.numpy),
                             rng.integers(info.min, info.max, 500, dtype=dtype.numpy)])  # fmt: skip
    other = rng.permutation(values)
    for op in ("add", "sub", "mul", "maximum", "minimum"):
        assert np.array_equal(binary(op, values, other), oracle(op)(values, other))
    for op in ("neg", "abs"):
        got, want = unary(op, values), oracle(op)(values)
        assert got.dtype == want.dtype and np.array_equal(got, want)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.key)
def test_signs_of_zero_and_limits(dtype: DType) -> None:
    def value(*numbers: float) -> Array:
        return np.array(numbers, dtype.numpy)

    def signs(x: Array) -> list[bool]:
        return [bool(s) for s in np.signbit(x.astype(np.float64))]

    plus, minus = value(0.0, -0.0), value(-0.0, 0.0)
    assert signs(binary("maximum", plus, minus)) == [False, False]
    assert signs(binary("minimum", plus, minus)) == [True, True]
    assert signs(oracle("maximum")(plus, minus)) == [False, False]
    assert signs(oracle("minimum")(plus, minus)) == [True, True]
    assert signs(unary("relu", value(-0.0, -3.0))) == [False, False]
    assert signs(unary("sqrt", value(-0.0))) == [True]
    assert signs(unary("abs", value(-0.0, -2.0))) == [False, False]
    assert signs(unary("neg", value(0.0, 2.0))) == [True, True]
    gelu = unary("gelu_erf", value(-np.inf, np.inf)).astype(np.float64)
    assert gelu[0] == 0 and np.signbit(gelu[0]) and np.isposinf(gelu[1])
    assert np.array_equal(unary("tanh", value(-np.inf, np.inf)).astype(np.float64), [-1, 1])
    assert np.array_equal(unary("exp", value(-np.inf, np.inf, 0.0)).astype(np.float64), [0, np.inf, 1])


def test_where_moves_bytes() -> None:
    rng = np.random.default_rng(0)
    cond = rng.integers(0, 2, 300).astype(bool)
    for size in (1, 2, 4, 8):
        a, b = (rng.integers(0, 256, 300 * size).astype(np.uint8).view(f"u{size}") for _ in range(2))
        y = np.empty_like(a)
        ckernels.call(f"where_b{size}", cond, a, b, y, 300)
        assert np.array_equal(y, oracle("where")(cond, a, b))


def test_normal_distribution_against_mpmath() -> None:
    """The oracle of the oracle: relative error below 2^-56 in longdouble where that has 64 bits, 2^-45 in float64."""
    mpmath = pytest.importorskip("mpmath")
    points = np.concatenate(
        [np.linspace(-38.4, 9, 150), [-2.2, -2.1213, -2.12, -1e-3, -1e-18, 1e-9, 2.1213, 30.0]]
    )
    with mpmath.workdps(50):
        truth = [mpmath.erfc(-mpmath.mpf(float(x)) / mpmath.sqrt(2)) / 2 for x in points]
        for kind, bits in ((np.longdouble, 56), (np.float64, 45)):
            if np.finfo(kind).nmant < bits:
                continue
            got = _normal.cdf(points.astype(kind))
            for value, want in zip(got, truth, strict=True):
                if abs(want) > mpmath.mpf(2) ** -1000:
                    head = float(value)
                    seen = mpmath.mpf(head) + mpmath.mpf(float(value - kind(head)))
                    assert abs(seen / want - 1) < mpmath.mpf(2) ** -bits
