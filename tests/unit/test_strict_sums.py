"""The sums of strict/sums.h compiled as C, against exact sums."""

from __future__ import annotations

import ctypes
import math
import subprocess
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tests.unit.test_strict_c import FLAGS, HERE, compiler

Array = np.ndarray[Any, np.dtype[Any]]
Sum = Callable[[str, Array, Array], float]

LENGTHS = [0, 1, 2, 7, 8, 9, 31, 32, 33, 1000, 1024, 4097, 100_000]
DEPTH = {"tree": lambda n: max(math.ceil(math.log2(max(n, 1))), 3), "cascade": lambda n: 96 + n // 2**15}
COMPENSATED = ["compensated", "lanes", "normal", "dot"]


@pytest.fixture(scope="module")
def total(tmp_path_factory: pytest.TempPathFactory) -> Sum:
    """total(name, x, y): one kind of sum over arrays of f32 or f64."""
    target = tmp_path_factory.mktemp("sums") / "strict_sums.so"
    strictly = ["-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    source = str(HERE / "strict_sums.c")
    subprocess.run([compiler(), *FLAGS, *strictly, source, "-o", str(target)], check=True)
    library = ctypes.CDLL(str(target))

    def call(name: str, x: Array, y: Array) -> float:
        wide = x.dtype == np.float64
        function = getattr(library, f"sum_{name}{'_d' if wide else ''}")
        function.restype = ctypes.c_double if wide else ctypes.c_float
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (x, y)]
        return float(function(*pointers, ctypes.c_long(x.size)))

    return call


def terms(kind: str, n: int, dtype: Any) -> tuple[Array, Array]:
    """Terms and second factors: of one sign, of both signs, over many scales, or cancelling to almost nothing."""
    random = np.random.default_rng(n + len(kind))
    x = random.standard_normal(n)
    if kind == "positive":
        x = np.abs(x)
    if kind == "scales":
        x = x * 2.0 ** random.integers(-20, 20, n)
    if kind == "cancelling":
        x[n // 2 :] = -x[: n - n // 2][::-1]
        x = x * (1 + 2.0**-20 * random.standard_normal(n))
    return x.astype(dtype), random.standard_normal(n).astype(dtype)


def exact(name: str, x: Array, y: Array) -> tuple[Fraction, Fraction]:
    """The exact sum, and that of the magnitudes."""
    if name != "dot":
        return Fraction(math.fsum(x.tolist())), Fraction(math.fsum(np.abs(x).tolist()))
    products = [Fraction(a) * Fraction(b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    return sum(products, Fraction(0)), sum(map(abs, products), Fraction(0))


def bound(name: str, n: int, unit: Fraction, value: Fraction, size: Fraction) -> Fraction:
    """What sums.h states, and a unit of f64 for math.fsum itself."""
    slack = Fraction(1, 2**52) * (abs(value) + size * unit)
    if name == "normal":
        return unit * abs(value) + 3 * n * 65 * unit**2 * size + slack
    if name in COMPENSATED:
        g = n * unit / (1 - n * unit)
        return unit * abs(value) + g * g * size + slack
    k = n - 1 if name == "plain" else DEPTH[name](n)
    return k * unit / (1 - k * unit) * size + slack


@pytest.mark.parametrize("kind", ["positive", "both", "scales", "cancelling"])
@pytest.mark.parametrize("name", ["plain", "tree", "cascade", *COMPENSATED])
def test_f32_sums_keep_their_bounds(total: Sum, name: str, kind: str) -> None:
    for n in LENGTHS[: -1 if name == "dot" else None]:
        x, y = terms(kind, n, np.float32)
        value, size = exact(name, x, y)
        got = Fraction(total(name, x, y))
        assert abs(got - value) <= bound(name, n, Fraction(1, 2**24), value, size), n


@pytest.mark.parametrize("kind", ["both", "cancelling"])
@pytest.mark.parametrize("name", COMPENSATED)
def test_f64_sums_keep_their_bounds(total: Sum, name: str, kind: str) -> None:
    for n in LENGTHS[:-1]:
        x, y = terms(kind, n, np.float64)
        if name == "dot":
            value, size = exact(name, x, y)
        else:
            value = sum((Fraction(v) for v in x.tolist()), Fraction(0))
            size = sum((abs(Fraction(v)) for v in x.tolist()), Fraction(0))
        assert abs(Fraction(total(name, x, y)) - value) <= bound(name, n, Fraction(1, 2**53), value, size), n


def test_compensation_does_what_the_plain_sum_cannot(total: Sum) -> None:
    """Terms that cancel: the plain sum breaks the compensated bound, so the bound tells the two apart."""
    n = 256
    x, y = terms("cancelling", n, np.float32)
    value, size = exact("compensated", x, y)
    limit = bound("compensated", n, Fraction(1, 2**24), value, size)
    assert abs(Fraction(total("plain", x, y)) - value) > 8 * limit
    assert abs(Fraction(total("compensated", x, y)) - value) <= limit


def test_long_sums_of_one_sign(total: Sum) -> None:
    """A million tenths: the plain sum leaves the bound of the others."""
    x = np.full(1 << 20, 0.1, np.float32)
    value = Fraction(math.fsum(x.tolist()))
    limits = {name: bound(name, x.size, Fraction(1, 2**24), value, value) for name in ("tree", "cascade")}
    for name, limit in limits.items():
        assert abs(Fraction(total(name, x, x)) - value) <= limit
        assert limit < value / 2**16
    assert total("normal", x, x) == float(np.float32(float(value)))
    assert abs(Fraction(total("plain", x, x)) - value) > max(limits.values())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_infinite_totals_are_those_of_the_plain_sum(total: Sum, dtype: Any) -> None:
    for values, want in (
        ([1.0, np.inf, 2.0], np.inf),
        ([-np.inf, 1.0], -np.inf),
        ([np.inf, -np.inf], np.nan),
        ([np.nan, 1.0], np.nan),
        ([np.finfo(dtype).max, np.finfo(dtype).max], np.inf),
    ):
        x = np.concatenate([np.array(values, dtype), np.ones(200, dtype)])
        one = np.ones_like(x)
        for name in COMPENSATED:
            if name == "dot" and not np.all(np.abs(x) < 1e30):
                continue
            assert np.array_equal(total(name, x, one), want, equal_nan=True), (name, values)
