"""The f64 functions of the strict library compiled as C, against mpmath: at most one unit of the last place."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

HERE = Path(__file__).parent
LIBRARY = HERE.parents[1] / "shaders" / "slang" / "lib"
FLAGS = ["-O3", "-ffp-contract=off", "-fno-trapping-math", "-I", str(LIBRARY)]
TOP = np.finfo(np.float64).max
LEAST = 5e-324
NORMAL = 2.0**-1022

Array = np.ndarray[Any, np.dtype[Any]]
Map = Callable[[str, Array], Array]
Exact = Callable[[Any, Any], Any]


class Case(NamedTuple):
    """A function: exact value, range to fill, hard points, limits at 0, -0, inf and -inf, inputs with exact results,
    whether the inputs next to multiples of pi/2 belong to it."""

    exact: Exact
    low: float
    high: float
    points: tuple[float, ...]
    limits: tuple[float, float, float, float]
    known: tuple[tuple[float, float], ...] = ()
    angles: bool = False


def gelu(m: Any, x: Any) -> Any:
    """x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2 through its sigmoid."""
    return x / (1 + m.exp(-2 * m.sqrt(2 / m.pi) * (x + m.mpf(44715) / 1000000 * x**3)))


def hard_angles() -> list[float]:
    """For every exponent, the doubles next to multiples of pi/2: the denominators below 2^53 of the convergents of
    2^(e - 52) 2/pi, times 2^(e - 52)."""
    mpmath = pytest.importorskip("mpmath", reason="needs mpmath for exact values")
    found = []
    with mpmath.workprec(2400):
        scaled = int(mpmath.floor(2 / mpmath.pi * mpmath.mpf(2) ** 2300))
    for exponent in range(0, 1024, 2):
        top, bottom = scaled, 1 << (2300 - exponent + 52)
        top %= bottom
        before, q = 0, 1
        while top and q < 2**53:
            if q >= 2**48:
                found.append(float(q) * 2.0 ** (exponent - 52))
            top, bottom, whole = bottom % top, top, bottom // top
            before, q = q, whole * q + before
    return found


INF, NAN = np.inf, np.nan
CASES = {
    "exp2": Case(
        lambda m, x: m.power(2, x), -1076, 1024, (0.0, 0.5, 1024.0, -1022.0, -1075.0), (1, 1, INF, 0),
        ((-1074, LEAST), (-1022, NORMAL), (1023, 2.0**1023), (1024, INF), (-1076, 0.0), (TOP, INF), (-TOP, 0.0), (3, 8.0)),
    ),
    "expm1": Case(
        lambda m, x: m.expm1(x), -40, 710, (0.0, 0.34657359027997264, -0.34657359027997264, 709.782712893384),
        (0.0, -0.0, INF, -1), ((LEAST, LEAST), (-NORMAL, -NORMAL), (-TOP, -1.0), (TOP, INF), (-39, -1.0)),
    ),
    "log": Case(
        lambda m, x: m.log(x), 0, 4, (1.0, 0.70710678118654757, 1.4142135623730951, 2.0), (-INF, -INF, INF, NAN),
        ((1.0, 0.0), (-1.0, NAN), (-LEAST, NAN), (-TOP, NAN)),
    ),
    "log2": Case(
        lambda m, x: m.log(x) / m.log(2), 0, 4, (1.0, 0.70710678118654757, 1.4142135623730951, 2.0),
        (-INF, -INF, INF, NAN), ((1.0, 0.0), (8.0, 3.0), (LEAST, -1074.0), (NORMAL, -1022.0), (2.0**1023, 1023.0), (-1.0, NAN)),
    ),
    "log1p": Case(
        lambda m, x: m.log1p(x), -1, 4, (0.0, -1.0, 0.41421356237309515, -0.29289321881345248), (0.0, -0.0, INF, NAN),
        ((-1.0, -INF), (-1.0000000000000002, NAN), (LEAST, LEAST), (-NORMAL, -NORMAL), (-TOP, NAN)),
    ),
    "sin": Case(
        lambda m, x: m.sin(x), -1e6, 1e6, (0.0, 3.141592653589793, 1048576.0, 2.0**53), (0.0, -0.0, NAN, NAN),
        ((LEAST, LEAST), (-NORMAL, -NORMAL)), True,
    ),
    "cos": Case(
        lambda m, x: m.cos(x), -1e6, 1e6, (0.0, 1.5707963267948966, 1048576.0, 2.0**53), (1, 1, NAN, NAN),
        ((LEAST, 1.0), (-NORMAL, 1.0)), True,
    ),
    "sigmoid": Case(
        lambda m, x: 1 / (1 + m.exp(-x)), -746, 40, (0.0, -708.3964185322641, 36.7, -745.1332191019411), (0.5, 0.5, 1, 0),
        ((TOP, 1.0), (-TOP, 0.0), (LEAST, 0.5)),
    ),
    "silu": Case(
        lambda m, x: x / (1 + m.exp(-x)), -753, 40, (0.0, -708.3964185322641, 36.7, -751.7), (0.0, -0.0, INF, -0.0),
        ((TOP, TOP), (-TOP, -0.0), (LEAST, 0.0), (-LEAST, -0.0), (2 * LEAST, LEAST)),
    ),
    "softplus": Case(
        lambda m, x: m.log1p(m.exp(-abs(x))) + max(x, m.mpf(0)), -746, 40, (0.0, -0.8814, 0.8814, -708.3964185322641),
        (0.6931471805599453, 0.6931471805599453, INF, 0.0), ((TOP, TOP), (-TOP, 0.0), (LEAST, 0.6931471805599453)),
    ),
    "gelu": Case(
        gelu, -22, 9, (0.0, -1.0, -21.4, 5.5), (0.0, -0.0, INF, -0.0),
        ((TOP, TOP), (-TOP, -0.0), (LEAST, 0.0), (-LEAST, -0.0), (2 * LEAST, LEAST)),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Map:
    """strict(name, x): one function of the library over an array."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("needs a C compiler (cc, gcc or clang) to build the strict headers")
    target = tmp_path_factory.mktemp("strict") / "strict_map_d.so"
    strictly = ["-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run([compiler, *FLAGS, *strictly, str(HERE / "strict_map_d.c"), "-o", str(target)], check=True)
    library = ctypes.CDLL(str(target))

    def call(name: str, x: Array) -> Array:
        x = np.ascontiguousarray(x, np.float64)
        result = np.empty_like(x)
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (x, result)]
        getattr(library, f"map_{name}")(*pointers, ctypes.c_long(x.size))
        return result

    return call


def inputs(case: Case) -> Array:
    """Every exponent with both signs, the range of interest, hard points at every distance, ends of both kinds."""
    random = np.random.default_rng(11)
    mantissa = random.integers(0, 2**52, 2 * 2047, dtype=np.uint64)
    words = mantissa | np.arange(2 * 2047, dtype=np.uint64) % np.uint64(2047) << np.uint64(52)
    words[2047:] |= np.uint64(1 << 63)
    away = random.uniform(1, 2, (len(case.points), 64)) * 2.0 ** -np.arange(64)
    near = np.array(case.points)[:, None] + np.concatenate([away, -away], axis=1)
    ends = np.array([*case.points, LEAST, NORMAL, np.nextafter(NORMAL, 0), TOP])
    ends = np.concatenate([ends, -ends])
    with np.errstate(over="ignore"):
        beside = [np.nextafter(ends, -np.inf), np.nextafter(ends, np.inf)]
    spread = random.uniform(case.low, case.high, 2000)
    angles = hard_angles() if case.angles else []
    x = np.concatenate([words.view(np.float64), spread, near.ravel(), ends, *beside, angles])
    return x[np.isfinite(x)]


def worst(case: Case, x: Array, got: Array) -> tuple[float, float]:
    """The worst error in units of the last place and its input; NaN, infinities and signs must agree."""
    mpmath = pytest.importorskip("mpmath", reason="needs mpmath for exact values")
    result = (0.0, 0.0)
    with mpmath.workprec(220):
        over = mpmath.mpf(2) ** 1024
        for value, y in zip(x.tolist(), got.tolist(), strict=True):
            try:
                exact = mpmath.mpmathify(case.exact(mpmath, mpmath.mpf(value)))
            except (ValueError, ZeroDivisionError):
                continue
            if isinstance(exact, mpmath.mpc):
                assert np.isnan(y), (value, y)
                continue
            assert not np.isnan(y), (value, y)
            if mpmath.isinf(exact) or abs(exact) >= over:
                assert y == np.copysign(np.inf, float(mpmath.sign(exact))), (value, y)
                continue
            assert y == 0 or (y < 0) == (exact < 0), (value, y)
            number = mpmath.sign(y) * over if np.isinf(y) else mpmath.mpf(y)
            exponent = max(mpmath.frexp(exact)[1], -1021) if exact != 0 else -1021
            error = float(mpmath.ldexp(abs(number - exact), 53 - exponent))
            result = max(result, (error, value))
    return result


@pytest.mark.parametrize("name", CASES)
def test_error(strict: Map, name: str) -> None:
    case = CASES[name]
    x = inputs(case)
    error, where = worst(case, x, strict(name, x))
    print(f"{name}: worst {error:.4f} ULP at {where!r} of {x.size} inputs")
    assert error <= 1.0, where.hex()


@pytest.mark.parametrize("name", CASES)
def test_limits_and_exact_results(strict: Map, name: str) -> None:
    case = CASES[name]
    nans = np.array([0x7FF8 << 48, 0xFFF8 << 48, 0x7FF0 << 48 | 1, 0xFFFF << 48 | 5], np.uint64).view(
        np.float64
    )
    x = np.array([0.0, -0.0, np.inf, -np.inf, *nans, *(k for k, _ in case.known)])
    want = np.array([*case.limits, *[np.nan] * 4, *(v for _, v in case.known)], np.float64)
    want.view(np.uint64)[np.isnan(want)] = 0x7FF8 << 48
    got = strict(name, x)
    assert np.array_equal(got.view(np.uint64), want.view(np.uint64)), list(zip(x, got, want, strict=True))


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_the_loop_that_vectorises_gives_the_same(strict: Map, name: str) -> None:
    random = np.random.default_rng(3)
    x = random.uniform(-(2.0**20), 2.0**20, 20000) * 2.0 ** -random.integers(0, 40, 20000).astype(np.float64)
    assert np.array_equal(strict(f"{name}_near", x), strict(name, x))


@pytest.mark.slow
def test_long_sample(tmp_path: Path) -> None:
    """60,000 inputs of each function against libquadmath; strict_sweep_d.c says how to run more."""
    compiler, target = shutil.which("gcc"), tmp_path / "strict_sweep_d"
    if compiler is None:
        pytest.skip("needs gcc with libquadmath")
    source = str(HERE / "strict_sweep_d.c")
    subprocess.run([compiler, *FLAGS, source, "-o", str(target), "-lquadmath", "-lm"], check=True)
    run = subprocess.run([str(target), "all", "60000"], check=True, capture_output=True, text=True)
    rows = [line.split() for line in run.stdout.splitlines()]
    assert {row[0] for row in rows} >= set(CASES)
    assert all(float(row[1]) <= 1.0 and int(row[3]) == 0 for row in rows), run.stdout
