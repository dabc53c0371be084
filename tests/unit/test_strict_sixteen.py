"""The 16-bit forms of the strict functions: the correctly rounded result for every F16 and every BF16 input."""

from __future__ import annotations

import ctypes
import math
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

HERE = Path(__file__).parent
LIBRARY = HERE.parents[1] / "shaders" / "slang" / "lib"

Array = np.ndarray[Any, np.dtype[Any]]
Map = Callable[..., Array]

GELU = 2 * math.sqrt(2 / math.pi)


@dataclass(frozen=True)
class Format:
    """A 16-bit float: significant bits, exponent of the least subnormal, largest finite value."""

    bits: int
    least: int
    top: float

    def widen(self, words: Array) -> Array:
        """The float32 of 16-bit words."""
        if self.bits == 11:
            return words.astype(np.uint16).view(np.float16).astype(np.float32)
        return np.asarray(words.astype(np.uint32) << np.uint32(16)).view(np.float32)

    def unit(self, exponent: Array) -> Array:
        """The unit of the last place of numbers in [2^(exponent - 1), 2^exponent)."""
        return np.asarray(np.maximum(exponent - self.bits, self.least))

    def rounded(self, value: Array) -> Array:
        """float64 values rounded to the format, ties to even, kept as float64."""
        finite = np.where(np.isfinite(value), value, 1.0)
        unit = self.unit(np.frexp(finite)[1])
        near = np.ldexp(np.rint(np.ldexp(np.abs(finite), -unit)), unit)
        near = np.copysign(np.where(near > self.top, np.inf, near), value)
        return np.asarray(np.where(np.isfinite(value), near, value))


FORMATS = {"f16": Format(11, -24, 65504.0), "bf16": Format(8, -133, float(np.float32(2.0**128 - 2.0**120)))}


def softplus(m: Any, x: Any) -> Any:
    """softplus by mpmath."""
    return m.log1p(m.exp(-abs(x))) + max(x, 0)


def gelu(m: Any, x: Any) -> Any:
    """gelu (tanh form) by mpmath."""
    return x / (1 + m.exp(-2 * m.sqrt(2 / m.pi) * (x + m.mpf("0.044715") * x**3)))


def logistic(x: Array) -> Array:
    """sigmoid in float64."""
    return np.asarray(1 / (1 + np.exp(-x)))


def gated(x: Array, gate: Array) -> Array:
    """x gate(x), -0 at -inf."""
    return np.where(np.isneginf(x), -0.0, x * gate)


ERF = np.vectorize(math.erf, otypes=[np.float64])
ERFC = np.vectorize(math.erfc, otypes=[np.float64])

FUNCTIONS: dict[str, tuple[Callable[[Array], Any], Callable[[Any, Any], Any]]] = {
    "exp": (np.exp, lambda m, x: m.exp(x)),
    "exp2": (np.exp2, lambda m, x: m.mpf(2) ** x),
    "expm1": (np.expm1, lambda m, x: m.expm1(x)),
    "log": (np.log, lambda m, x: m.log(x)),
    "log2": (np.log2, lambda m, x: m.log(x, 2)),
    "log1p": (np.log1p, lambda m, x: m.log1p(x)),
    "sin": (np.sin, lambda m, x: m.sin(x)),
    "cos": (np.cos, lambda m, x: m.cos(x)),
    "tanh": (np.tanh, lambda m, x: m.tanh(x)),
    "sigmoid": (logistic, lambda m, x: 1 / (1 + m.exp(-x))),
    "silu": (lambda x: gated(x, logistic(x)), lambda m, x: x / (1 + m.exp(-x))),
    "softplus": (lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))), softplus),
    "erf": (ERF, lambda m, x: m.erf(x)),
    "gelu": (lambda x: gated(x, logistic(GELU * (x + 0.044715 * x**3))), gelu),
    "gelu_erf": (
        lambda x: gated(x, 0.5 * ERFC(-x * math.sqrt(0.5))),
        lambda m, x: x * m.erfc(-x / m.sqrt(2)) / 2,
    ),
    "rsqrt": (lambda x: np.where(x == 0, np.copysign(np.inf, x), 1 / np.sqrt(x)), lambda m, x: 1 / m.sqrt(x)),
    "recip": (lambda x: 1 / x, lambda m, x: 1 / x),
    "sqrt": (np.sqrt, lambda m, x: m.sqrt(x)),
}
"""Function: float64 oracle, exact value by mpmath."""


def truth(name: str, x: Array, kind: Format) -> Array:
    """The correctly rounded results as float64: from the float64 function, and from mpmath where that lies within
    1e-9 (relative) of the middle between two neighbours."""
    mpmath = pytest.importorskip("mpmath", reason="needs mpmath for exact values")
    oracle, exact = FUNCTIONS[name]
    wide = x.astype(np.float64)
    value = np.asarray(oracle(wide), np.float64)
    result = kind.rounded(value)
    live = np.isfinite(value) & np.isfinite(wide) & (wide != 0)
    exponent = kind.unit(np.frexp(np.where(live, value, 1.0))[1])
    scaled = np.ldexp(np.abs(np.where(live, value, 1.0)), -exponent)
    close = live & (np.abs(scaled - np.floor(scaled) - 0.5) <= np.maximum(scaled, 1e-3) * 1e-9)
    with mpmath.workprec(600):
        for i in np.flatnonzero(close):
            number = abs(exact(mpmath, mpmath.mpf(float(wide[i])))) / mpmath.mpf(2) ** int(exponent[i])
            whole = int(mpmath.floor(number))
            above = number - whole - mpmath.mpf(0.5)
            up = above > 0 or (above == 0 and whole % 2 == 1)
            near = math.ldexp(whole + int(up), int(exponent[i]))
            result[i] = math.copysign(math.inf if near > kind.top else near, value[i])
    return result


def build(folder: Path) -> Map:
    """The maps of strict_sixteen.c, compiled in a folder: f(name, x, ...) over float32 values."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("needs a C compiler (cc, gcc or clang) to build the strict headers")
    target = folder / "sixteen.so"
    flags = [
        "-O2",
        "-ffp-contract=off",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-shared",
        "-fPIC",
        "-I",
        str(LIBRARY),
    ]
    subprocess.run([compiler, *flags, str(HERE / "strict_sixteen.c"), "-o", str(target)], check=True)
    library = ctypes.CDLL(str(target))

    def call(name: str, *arrays: Array) -> Array:
        inputs = [np.ascontiguousarray(array, np.float32) for array in arrays]
        out: Array = np.empty(inputs[0].shape, np.float32)
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*inputs, out)]
        getattr(library, f"map_{name}")(*pointers, ctypes.c_long(out.size))
        return out

    return call


@pytest.fixture(scope="module")
def sixteen(tmp_path_factory: pytest.TempPathFactory) -> Map:
    """sixteen(name, x, ...): one 16-bit form over float32 values."""
    return build(tmp_path_factory.mktemp("sixteen"))


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_input_is_rounded_correctly(sixteen: Map, name: str, kind: str) -> None:
    form = FORMATS[kind]
    with np.errstate(all="ignore"):
        x = form.widen(np.arange(65536))
        want = truth(name, x, form)
        wide = sixteen(name, x)
        got = form.rounded(wide.astype(np.float64))
    nan = np.isnan(want)
    assert np.all(wide.view(np.uint32)[nan] == 0x7FC00000)
    same = (got == want) & (np.signbit(got) == np.signbit(want)) | nan
    wrong = [
        f"0x{word:08x}: {value:.9g}, not {near:.9g}"
        for word, value, near in zip(x.view(np.uint32)[~same], wide[~same], want[~same], strict=True)
    ]
    assert not wrong


@pytest.mark.parametrize("kind", FORMATS)
def test_quotients_are_rounded_correctly(sixteen: Map, kind: str) -> None:
    """A double quotient of 11-bit numbers rounds as the exact one: it has more than twice as many bits."""
    form = FORMATS[kind]
    words = np.random.default_rng(2).integers(0, 65536, (2, 1 << 19))
    with np.errstate(all="ignore"):
        a, b = form.widen(words[0]), form.widen(words[1])
        want = form.rounded(a.astype(np.float64) / b)
        got = form.rounded(sixteen("div", a, b).astype(np.float64))
    nan = np.isnan(want)
    assert np.array_equal(np.isnan(got), nan)
    assert np.array_equal(got[~nan], want[~nan])
    assert np.array_equal(np.signbit(got[~nan]), np.signbit(want[~nan]))
