"""The strict library compiled as C, against double-precision and mpmath oracles."""

from __future__ import annotations

import ctypes
import math
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

HERE = Path(__file__).parent
LIBRARY = HERE.parents[1] / "shaders" / "slang" / "lib"
TRUTH = HERE.parents[1] / "cpu_reference" / "truth" / "functions.c"
FLAGS = ["-O3", "-ffp-contract=off", "-I", str(LIBRARY)]

Array = np.ndarray[Any, np.dtype[Any]]
Map = Callable[..., Array]
Oracle = Callable[[Array], Array]

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.0, 3.0, 88.72283, 88.72284, -87.33655, -103.9721]


def compiler() -> str:
    """The C compiler; without one the test is skipped and says so."""
    found = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if found is None:
        pytest.skip("needs a C compiler (cc, gcc or clang) to build the strict headers")
    return found


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Map:
    """strict(name, a, b, out_dtype): one function of the library over arrays."""
    target = tmp_path_factory.mktemp("strict") / "strict_map.so"
    strictly = ["-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    source = str(HERE / "strict_map.c")
    subprocess.run([compiler(), *FLAGS, *strictly, source, "-o", str(target)], check=True)
    library = ctypes.CDLL(str(target))

    def call(name: str, a: Array, b: Array | None = None, out: Any = np.float32) -> Array:
        a = np.ascontiguousarray(a)
        b = a if b is None else np.ascontiguousarray(b)
        result: Array = np.empty(a.shape, out)
        function = getattr(library, f"map_{name}")
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (a, b, result)]
        function(*pointers, ctypes.c_long(a.size))
        return result

    return call


def f32_inputs(count: int = 1 << 18) -> Array:
    """Random bit patterns, normal deviates over many scales, subnormals, the neighbourhoods of range ends."""
    random = np.random.default_rng(5)
    ends = [0x3F800000, 0x42B17217, 0xC2CFF1B5, 0xC2AEAC50, 0x3ECCCCCD, 0x3F400000, 0x3FB00000, 0x407C0000]
    ends += [0x41180000, 0x3F000000, 0x40000000, 0x40800000, 0x41000000, 0xC1000000, 0xC1670000, 0x00800000]
    ends += [0x7E800000, 0x38800000, 0x33000000, 0x477FE000, 0x2B800000, 0x39000000]
    parts = [
        random.integers(0, 2**32, count, dtype=np.uint64).astype(np.uint32),
        (random.standard_normal(count) * 2.0 ** random.integers(-20, 6, count))
        .astype(np.float32)
        .view(np.uint32),
        random.integers(0, 2**23, count // 8, dtype=np.uint64).astype(np.uint32),
        *[np.arange(end - 256, end + 256).astype(np.uint32) for end in ends],
        np.array(SPECIAL, np.float32).view(np.uint32),
    ]
    return np.concatenate(parts).view(np.float32)


def f64_inputs(low: float, high: float, count: int) -> Array:
    """Random bit patterns, the interesting range, normal deviates over many scales, subnormals, special values."""
    random = np.random.default_rng(6)
    parts = [
        random.integers(0, 2**64, count, dtype=np.uint64).view(np.float64),
        random.uniform(low, high, 2 * count),
        random.standard_normal(count) * 2.0 ** random.integers(-40, 5, count),
        random.integers(0, 2**52, count // 4, dtype=np.uint64).view(np.float64),
        np.array(
            [
                *SPECIAL,
                5e-324,
                -5e-324,
                2.0**-1022,
                1.7976931348623157e308,
                709.782712893384,
                -745.1332191019411,
            ]
        ),
    ]
    return np.concatenate(parts)


def ulps(got: Array, truth: Array) -> Array:
    """Error of f32 results in units of the last place of the float64 truth; specials must agree exactly."""
    with np.errstate(over="ignore", under="ignore"):
        nearest = truth.astype(np.float32)
    assert np.array_equal(np.isnan(got), np.isnan(truth))
    assert np.all(got.view(np.uint32)[np.isnan(got)] == 0x7FC00000)
    live = ~np.isnan(truth) & np.isfinite(truth)
    assert np.array_equal(got[~live & ~np.isnan(truth)], truth[~live & ~np.isnan(truth)].astype(np.float32))
    assert np.array_equal(np.signbit(got[live]), np.signbit(nearest[live]))
    exponent = np.maximum(np.frexp(np.where(live, truth, 1.0))[1], -125)
    exponent = np.where(truth == 0, -125, exponent)
    wide = got.astype(np.float64)
    value = np.where(np.isinf(wide), np.copysign(2.0**128, wide), wide)
    error = np.abs(np.where(live, value - np.where(live, truth, 0.0), 0.0)) / np.ldexp(1.0, exponent - 24)
    return np.where(got == nearest, 0.0, error)


def mp_values(function: Callable[..., Any], *arrays: Array) -> list[Any]:
    """The function at 50 digits."""
    mpmath = pytest.importorskip("mpmath", reason="needs mpmath for exact values")
    with mpmath.workdps(50):
        return [function(*(mpmath.mpf(float(x)) for x in row)) for row in zip(*arrays, strict=True)]


def worst_f64(got: Array, truth: list[Any], bits: int = 53, least: int = -1021) -> float:
    """Worst error in units of the last place of finite results (53 bits, exponents from -1021: f64)."""
    mpmath = pytest.importorskip("mpmath", reason="needs mpmath for exact values")
    worst = 0.0
    with mpmath.workdps(50):
        top = mpmath.mpf(2) ** 1024
        for value, exact in zip(got.tolist(), truth, strict=True):
            number = mpmath.sign(value) * top if np.isinf(value) else mpmath.mpf(value)
            exponent = max(mpmath.frexp(exact)[1], least) if exact != 0 else least
            if abs(exact) > top:
                assert np.isinf(value)
                continue
            worst = max(worst, float(abs(number - exact) / mpmath.mpf(2) ** (exponent - bits)))
    return worst


def gelu(x: Array) -> Array:
    """gelu_erf in float64, with its limits."""
    erfc = np.vectorize(math.erfc, otypes=[np.float64])
    finite = np.where(np.isinf(x), 0.0, x)
    limit = np.where(x > 0, np.inf, -0.0)
    return np.where(np.isinf(x), limit, 0.5 * finite * erfc(-finite * np.sqrt(0.5)))


F32: dict[str, tuple[Oracle, float]] = {
    "exp": (np.exp, 0.97),
    "exp_cr": (np.exp, 0.5001),
    "rsqrt": (lambda x: np.where(x == 0, np.copysign(np.inf, x), 1 / np.sqrt(x)), 0.501),
    "tanh": (np.tanh, 0.64),
    "erf": (np.vectorize(math.erf, otypes=[np.float64]), 0.85),
    "gelu_erf": (gelu, 0.76),
}
"""Function, oracle in float64, bound in ULP (what the sweep over all inputs found, rounded up)."""


@pytest.mark.parametrize("name", F32)
def test_f32_error(strict: Map, name: str) -> None:
    x = f32_inputs()
    oracle, bound = F32[name]
    got = (
        strict(name, x.view(np.uint32), out=np.uint32).view(np.float32)
        if name == "exp_cr"
        else strict(name, x)
    )
    with np.errstate(all="ignore"):
        truth = np.asarray(oracle(x.astype(np.float64)), np.float64)
    assert ulps(got, truth).max() <= bound


@pytest.mark.parametrize("name", ["div", "rcp", "sqrt", "div_d", "rcp_d", "sqrt_d"])
def test_quotients_and_roots_are_the_processors(strict: Map, name: str) -> None:
    x = f64_inputs(-3, 3, 1 << 17) if name.endswith("_d") else f32_inputs()
    y = np.random.default_rng(8).permutation(x)
    word: Any = np.uint32 if x.dtype == np.float32 else np.uint64
    close: Array = x.view(word) + np.random.default_rng(9).integers(0, 64, x.size).astype(word)
    close = close.view(x.dtype)
    for other in (y, close):
        with np.errstate(all="ignore"):
            want = x / other if name[0] == "d" else 1 / x if name[0] == "r" else np.sqrt(x)
        got = strict(name, x, other, out=x.dtype.type)
        nan = np.isnan(want)
        assert np.array_equal(np.isnan(got), nan)
        assert np.array_equal(got.view(word)[~nan], want.astype(x.dtype).view(word)[~nan])


def test_subnormal_quotients(strict: Map) -> None:
    random = np.random.default_rng(4)
    mantissa = random.integers(0, 2**52, 1 << 18, dtype=np.uint64)
    small = (random.integers(0, 60, mantissa.size).astype(np.uint64) << np.uint64(52) | mantissa).view(
        np.float64
    )
    simple = np.array([2.0, 3.0, 0.1, 2.0**30, 1e16, 2.0**53, 1.5])[random.integers(0, 7, mantissa.size)]
    with np.errstate(all="ignore"):
        want = small / simple
    assert np.array_equal(
        strict("div_d", small, simple, out=np.float64).view(np.uint64), want.view(np.uint64)
    )
    small32 = random.integers(0, 1 << 27, mantissa.size).astype(np.uint32).view(np.float32)
    simple32 = simple.astype(np.float32)
    with np.errstate(all="ignore"):
        want32 = small32 / simple32
    assert np.array_equal(strict("div", small32, simple32).view(np.uint32), want32.view(np.uint32))


def logistic(x: Array) -> Array:
    """sigmoid in float64."""
    return np.asarray(1.0 / (1.0 + np.exp(-x)), np.float64)


def halved(x: Array, value: Array) -> Array:
    """`value`, the float64 result of a function that starts x/2 + c x^2: -0 at -inf, and a tiny input keeps the sign of
    the second term beside the first."""
    value = np.where(np.isneginf(x), -0.0, value)
    return np.where((np.abs(x) < 2.0**-125) & (x != 0), np.nextafter(value, np.inf), value)


def silu(x: Array) -> Array:
    """silu in float64."""
    return halved(x, x * logistic(x))


def tanh_gelu(x: Array) -> Array:
    """gelu in float64, the tanh form."""
    return halved(x, x * logistic(x * 1.5957691216057308 * (1 + 0.044715 * x * x)))


ROUNDED: dict[str, Oracle] = {
    "exp": np.exp,
    "rsqrt": lambda x: np.where(x == 0, np.copysign(np.inf, x), 1 / np.sqrt(x)),
    "recip": lambda x: 1 / x,
    "log": np.log,
    "sin": np.sin,
    "cos": np.cos,
    "log2": np.log2,
    "log1p": np.log1p,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "sigmoid": logistic,
    "silu": silu,
    "tanh": np.tanh,
    "gelu": tanh_gelu,
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "gelu_erf": lambda x: halved(x, gelu(x)),
    "softplus": lambda x: np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x))),
}
"""The correctly rounded functions of bits (name without `_cr`) and their float64 oracles."""


@pytest.mark.parametrize("name", ROUNDED)
def test_rounded_functions(strict: Map, name: str) -> None:
    """The nearest float wherever a double can tell it; what lies nearer to a tie is for the lists of hard inputs."""
    x = f32_inputs()
    got = strict(f"{name}_cr", x.view(np.uint32), out=np.uint32)
    with np.errstate(all="ignore"):
        truth = ROUNDED[name](x.astype(np.float64))
        width = np.where(np.abs(x) < 2.0**-125, 0.0, 2.0**-44)
        low, high = truth * (1 - width), truth * (1 + width)
        clear = low.astype(np.float32).view(np.uint32) == high.astype(np.float32).view(np.uint32)
        want = truth.astype(np.float32).view(np.uint32)
    want[np.isnan(truth)] = 0x7FC00000
    clear |= np.isnan(truth)
    assert clear.mean() > 0.99
    assert np.array_equal(got[clear], want[clear])


HARD: dict[str, Callable[[Any, Any], Any]] = {
    "exp": lambda m, x: m.exp(x),
    "log": lambda m, x: m.log(x),
    "sin": lambda m, x: m.sin(x),
    "cos": lambda m, x: m.cos(x),
    "log1p": lambda m, x: m.log1p(x),
    "rsqrt": lambda m, x: 1 / m.sqrt(x),
    "recip": lambda m, x: 1 / m.mpf(x),
    "tanh": lambda m, x: m.tanh(x),
    "gelu": lambda m, x: x / (1 + m.exp(-2 * x * m.sqrt(2 / m.pi) * (1 + m.mpf(44715) / 10**6 * x * x))),
    "erf": lambda m, x: m.erf(x),
    "gelu_erf": lambda m, x: x * m.erfc(-x / m.sqrt(2)) / 2,
    "exp2": lambda m, x: m.mpf(2) ** x,
    "log2": lambda m, x: m.log(x) / m.ln2,
    "expm1": lambda m, x: m.expm1(x),
    "sigmoid": lambda m, x: 1 / (1 + m.exp(-x)),
    "silu": lambda m, x: x / (1 + m.exp(-x)),
    "softplus": lambda m, x: m.log1p(m.exp(x)),
}
"""The functions with a stored list of the inputs whose results lie within 1e-13 (tanh to gelu_erf: 2^-42) of a tie, or of
a thousand or 600 of the closest ones."""


@pytest.mark.parametrize("name", HARD)
def test_inputs_near_a_tie(strict: Map, name: str) -> None:
    mpmath = pytest.importorskip("mpmath", reason="needs mpmath for exact values")
    bits = np.fromfile(HERE / f"strict_hard_{name}.u32", np.uint32)
    got = strict(f"{name}_cr", bits, out=np.uint32).view(np.float32)
    truth = mp_values(lambda x: HARD[name](mpmath, x), bits.view(np.float32))
    assert worst_f64(got.astype(np.float64), truth, bits=24, least=-125) <= 0.5


def test_exp_in_pieces_is_exp(strict: Map) -> None:
    hard = np.fromfile(HERE / "strict_hard_exp.u32", np.uint32)
    bits = np.concatenate([f32_inputs().view(np.uint32), hard])
    pieces = strict("exp_pieces", bits, out=np.uint32)
    assert np.array_equal(pieces, strict("exp_cr", bits, out=np.uint32))


SMALL: dict[str, Callable[[Any, Any], Any]] = {
    "sigmoid": lambda m, x: 1 / (1 + m.exp(-x)),
    "silu": lambda m, x: x / (1 + m.exp(-x)),
}


@pytest.mark.parametrize("name", SMALL)
def test_inputs_whose_series_starts_on_a_tie(strict: Map, name: str) -> None:
    """Where few mantissa bits meet a tie of the first terms, the next term, down to 2^-75 of the result, decides."""
    mpmath = pytest.importorskip("mpmath", reason="needs mpmath for exact values")
    exponents = np.arange(-26, -11)[:, None]
    x = (np.arange(2**7, 2**8) * 2.0**-7 * 2.0**exponents).ravel().astype(np.float32)
    x = np.concatenate([x, -x])
    got = strict(f"{name}_cr", x.view(np.uint32), out=np.uint32).view(np.float32)
    truth = mp_values(lambda v: SMALL[name](mpmath, v), x)
    assert worst_f64(got.astype(np.float64), truth, bits=24, least=-125) <= 0.5


def test_exp_of_every_half(strict: Map) -> None:
    bits = np.arange(65536, dtype=np.uint32)
    with np.errstate(all="ignore"):
        half = bits.astype(np.uint16).view(np.float16)
        want = np.exp(half.astype(np.float64)).astype(np.float16)
        got = strict("exp_cr_f16", bits, out=np.uint32).astype(np.uint16).view(np.float16)
        assert np.array_equal(got, want, equal_nan=True)
        brain = (bits << np.uint32(16)).view(np.float32).astype(np.float64)
        truth = np.exp(brain)
    live = ~np.isnan(truth)
    want = strict("f64_to_bf16", truth, out=np.uint32)
    assert np.array_equal(strict("exp_cr_bf16", bits, out=np.uint32)[live], want[live])


F64: dict[str, tuple[Callable[[Any, Any], Any], float, float, float]] = {
    "exp_d": (lambda m, x: m.exp(x), -746.0, 710.0, 0.95),
    "rsqrt_d": (lambda m, x: 1 / m.sqrt(x), 0.0, 4.0, 0.501),
    "tanh_d": (lambda m, x: m.tanh(x), -21.0, 21.0, 0.66),
    "erf_d": (lambda m, x: m.erf(x), -6.0, 6.0, 0.85),
    "gelu_erf_d": (lambda m, x: x * m.erfc(-x / m.sqrt(2)) / 2, -38.7, 9.0, 0.95),
}
"""Function, exact value from mpmath, interesting range, bound in ULP."""


@pytest.mark.parametrize("name", F64)
def test_f64_error(strict: Map, name: str) -> None:
    mpmath = pytest.importorskip("mpmath", reason="needs mpmath for exact values")
    exact, low, high, bound = F64[name]
    x = f64_inputs(low, high, 700)
    x = x[np.isfinite(x) & (np.abs(x) < 1e6) & (x != 0)]
    x = x[x > 0] if name == "rsqrt_d" else x
    got = strict(name, x, out=np.float64)
    assert worst_f64(got, mp_values(lambda v: exact(mpmath, v), x)) <= bound


LIMITS = {
    "exp": [1.0, 1.0, np.inf, 0.0],
    "tanh": [0.0, -0.0, 1.0, -1.0],
    "erf": [0.0, -0.0, 1.0, -1.0],
    "gelu_erf": [0.0, -0.0, np.inf, -0.0],
    "rsqrt": [np.inf, -np.inf, 0.0, np.nan],
    "sqrt": [0.0, -0.0, np.inf, np.nan],
    "rcp": [np.inf, -np.inf, 0.0, -0.0],
}
"""Values at 0, -0, inf, -inf; a NaN always gives the quiet NaN."""


@pytest.mark.parametrize("name", LIMITS)
def test_limits(strict: Map, name: str) -> None:
    for suffix, dtype, word in (("", np.float32, np.uint32), ("_d", np.float64, np.uint64)):
        x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan], dtype)
        quiet = (
            np.array([0x7FC00000], np.uint32) if dtype is np.float32 else np.array([0x7FF8 << 48], np.uint64)
        )
        want = np.array([*LIMITS[name], np.nan], dtype).view(word)
        want[np.isnan(want.view(dtype))] = quiet[0]
        assert np.array_equal(strict(name + suffix, x, out=dtype).view(word), want)


def test_half_conversions(strict: Map) -> None:
    half = np.arange(65536, dtype=np.uint32)
    want = half.astype(np.uint16).view(np.float16).astype(np.float32)
    got = strict("f16_to_f32", half)
    assert np.array_equal(got, want, equal_nan=True)
    assert np.array_equal(np.signbit(got), np.signbit(want))
    finite = want[np.isfinite(want)].astype(np.float64)
    ties = (finite[:-1] + finite[1:]) / 2
    wide = np.concatenate(
        [f64_inputs(-70000, 70000, 1 << 16), ties, np.nextafter(ties, 0), np.nextafter(ties, np.inf)]
    )
    wide = np.concatenate([wide, np.ldexp(np.random.default_rng(3).standard_normal(1 << 16), -16)])
    with np.errstate(all="ignore"):
        narrow = np.concatenate([wide.astype(np.float32), f32_inputs()])
        for name, x in (("f32_to_f16", narrow), ("f64_to_f16", wide)):
            expected = x.astype(np.float16)
            result = strict(name, x, out=np.uint32).astype(np.uint16).view(np.float16)
            assert np.array_equal(result, expected, equal_nan=True)
            assert np.array_equal(np.signbit(result), np.signbit(expected))
        same = strict("f64_to_f32", wide)
        assert np.array_equal(same, wide.astype(np.float32), equal_nan=True)
        exact = narrow.astype(np.float64)
    assert np.array_equal(strict("f32_to_f64", narrow, out=np.float64), exact, equal_nan=True)


def test_bfloat16_conversions(strict: Map) -> None:
    half = np.arange(65536, dtype=np.uint32)
    values = (half << np.uint32(16)).view(np.float32)
    assert np.array_equal(strict("bf16_to_f32", half), values, equal_nan=True)
    assert np.array_equal(
        strict("f32_to_bf16", values, out=np.uint32)[~np.isnan(values)], half[~np.isnan(values)]
    )
    kept = values[:0x7F80].astype(np.float64)
    middle = (kept[:-1] + kept[1:]) / 2
    even = half[:0x7F7F] + (half[:0x7F7F] & 1)
    assert np.array_equal(strict("f64_to_bf16", middle, out=np.uint32), even)
    assert np.array_equal(strict("f64_to_bf16", np.nextafter(middle, 0), out=np.uint32), half[:0x7F7F])
    assert np.array_equal(strict("f64_to_bf16", np.nextafter(middle, np.inf), out=np.uint32), half[1:0x7F80])
    assert np.array_equal(strict("f32_to_bf16", middle.astype(np.float32), out=np.uint32), even)
    ends = np.array([3.3961775292304957e38, 3.4e38, np.inf, -np.inf, -0.0, 2.0**-134, -(2.0**-134) * 1.5])
    want = np.array([0x7F80, 0x7F80, 0x7F80, 0xFF80, 0x8000, 0, 0x8001], np.uint32)
    assert np.array_equal(strict("f64_to_bf16", ends, out=np.uint32), want)
    assert strict("f64_to_bf16", np.array([np.nan]), out=np.uint32)[0] & 0x7FFF == 0x7FC0


def test_constants_are_what_the_generators_give() -> None:
    pytest.importorskip("mpmath", reason="needs mpmath to compute the constants again")
    subprocess.run([sys.executable, str(LIBRARY / "strict" / "gen" / "generate.py"), "--check"], check=True)


@pytest.mark.slow
def test_sweep_of_rounded_functions(tmp_path: Path) -> None:
    """Every 997th input against the double and long double libraries; step 1 after changing a function."""
    truth, target = tmp_path / "truth.o", tmp_path / "strict_sweep_cr"
    fast = ["-O3", "-ffast-math", "-c", str(TRUTH), "-o", str(truth)]
    subprocess.run([compiler(), *fast], check=True)
    source = str(HERE / "strict_sweep_cr.c")
    subprocess.run([compiler(), *FLAGS, source, str(truth), "-o", str(target), "-lm"], check=True)
    lines = subprocess.run([str(target), "all", "997"], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in lines.splitlines() if not line.startswith("tie ")]
    assert {row[0] for row in rows} == set(ROUNDED)
    assert all(int(row[3]) == 0 for row in rows), rows


@pytest.mark.slow
def test_sweep(tmp_path: Path) -> None:
    """Every 61st input of every f32 function; run strict_sweep.c with step 1 after changing a function."""
    target = tmp_path / "strict_sweep"
    subprocess.run([compiler(), *FLAGS, str(HERE / "strict_sweep.c"), "-o", str(target), "-lm"], check=True)
    lines = subprocess.run(
        [str(target), "all", "61"], check=True, capture_output=True, text=True
    ).stdout.split("\n")
    bounds = {name: bound for name, (_, bound) in F32.items()}
    for line in filter(None, lines):
        name, worst, _, inexact, wrong = line.split()
        assert float(worst) <= bounds.get(name, 0.0), line
        assert int(wrong) == 0, line
        assert name not in ("exp_cr", "rcp", "div", "sqrt") or int(inexact) == 0, line


@pytest.mark.slow
def test_fast_paths_are_vectorised(tmp_path: Path) -> None:
    """A loop over any fast path becomes vector code; a branch in one costs five to ten times the time."""
    version = subprocess.run([compiler(), "--version"], check=True, capture_output=True, text=True).stdout
    if "Free Software Foundation" not in version or int(re.findall(r"\) (\d+)", version)[0]) < 12:
        pytest.skip("needs gcc 12 or newer, whose vectoriser tells what it did")
    lines = ['#include "strict/extra.h"', "uint in[4096], out[4096], left[4096];"]
    for name in ROUNDED:
        body = f"st_u64 r = st_{name}_cr_try(in[i]); out[i] = r.h; left[i] = r.l;"
        lines.append(f"void loop_{name}(void) {{ for (int i = 0; i < 4096; i++) {{ {body} }} }}")
    source = tmp_path / "loops.c"
    source.write_text("\n".join(lines))
    told = [
        "-fno-trapping-math",
        "-fopt-info-vec-optimized",
        "-c",
        str(source),
        "-o",
        str(tmp_path / "loops.o"),
    ]
    report = subprocess.run([compiler(), *FLAGS, *told], check=True, capture_output=True, text=True).stderr
    done = {int(line.split(":")[1]) - 3 for line in report.splitlines() if "loops.c" in line}
    assert [name for k, name in enumerate(ROUNDED) if k not in done] == []
