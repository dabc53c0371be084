"""The device probe's expected results: what the generator gives, and right by NumPy and mpmath."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
CASES = json.loads((ROOT / "fuelvk" / "runtime" / "probe_cases.json").read_text(encoding="utf-8"))
TYPES: dict[str, tuple[Any, Any]] = {"f32": (np.float32, np.uint32), "f64": (np.float64, np.uint64)}

Array = np.ndarray[Any, np.dtype[Any]]


def case(part: str, name: str) -> tuple[Array, Array, Array]:
    """The operands and the expected results of one function."""
    kind, word = TYPES[part]
    row = CASES["parts"][part][name]

    def numbers(text: str, per_case: int, at: int) -> Array:
        words = np.frombuffer(bytes.fromhex(text), ">u4").astype(np.uint64).reshape(-1, per_case)
        joined = words[:, at] if part == "f32" else words[:, at] << np.uint64(32) | words[:, at + 1]
        return joined.astype(word).view(kind)

    return numbers(row["x"], 4, 0), numbers(row["x"], 4, 2), numbers(row["want"], 2, 0)


def test_the_file_is_what_the_generator_gives() -> None:
    if shutil.which("cc") is None and shutil.which("gcc") is None and shutil.which("clang") is None:
        pytest.skip("needs a C compiler (cc, gcc or clang)")
    script = ROOT / "shaders" / "slang" / "probe" / "gen_cases.py"
    subprocess.run([sys.executable, str(script), "--check"], check=True)


ARITHMETIC: dict[str, Callable[[Array, Array], Array]] = {
    "contract": lambda x, y: x * y + y,
    "sum": lambda x, y: x + y,
    "product": lambda x, y: x * y,
    "tiny": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "sqrt": lambda x, y: np.sqrt(x),
}


@pytest.mark.parametrize("part", TYPES)
@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic_is_the_processors(part: str, name: str) -> None:
    x, y, want = case(part, name)
    with np.errstate(all="ignore"):
        got = ARITHMETIC[name](x, y)
    word = TYPES[part][1]
    live = ~np.isnan(got)
    assert np.array_equal(np.isnan(want), ~live)
    assert np.array_equal(got.view(word)[live], want.view(word)[live])


@pytest.mark.parametrize("part", TYPES)
def test_cases_tell_what_they_are_for(part: str) -> None:
    """Every contraction would show, a quarter of the sums are ties, tiny results or operands are subnormal."""
    x, y, want = case(part, "contract")
    for a, b, w in zip(x.tolist(), y.tolist(), want.tolist(), strict=True):
        once = float(Fraction(a) * Fraction(b) + Fraction(b))
        assert TYPES[part][0](once) != w
    x, y, _ = case(part, "sum")
    spare = np.abs(y[:16]) * 2 == np.finfo(x.dtype).eps
    assert spare.all()
    x, y, want = case(part, "tiny")
    least = np.finfo(x.dtype).tiny
    assert ((np.abs(x) < least) | (np.abs(want) < least)).all()


EXACT: dict[str, Callable[[Any, Any], Any]] = {
    "exp": lambda m, x: m.exp(x),
    "log": lambda m, x: m.log(x),
    "sin": lambda m, x: m.sin(x),
    "tanh": lambda m, x: m.tanh(x),
}


@pytest.mark.parametrize("part", TYPES)
@pytest.mark.parametrize("name", EXACT)
def test_functions_are_right(part: str, name: str) -> None:
    """In F32 exp, log and sin to the nearest number, everything else within a unit."""
    mpmath = pytest.importorskip("mpmath", reason="needs mpmath for exact values")
    x, _, want = case(part, name)
    digits, least = (24, -125) if part == "f32" else (53, -1021)
    bound = 0.5 if part == "f32" and name != "tanh" else 1.0
    with mpmath.workprec(1200):
        for a, w in zip(x.tolist(), want.tolist(), strict=True):
            if not np.isfinite(a) or a == 0 or (name == "log" and a < 0):
                continue
            exact = EXACT[name](mpmath, mpmath.mpf(a))
            if abs(exact) > mpmath.mpf(2) ** (2 - least):
                assert np.isinf(w)
                continue
            exponent = max(mpmath.frexp(exact)[1], least)
            assert abs(mpmath.mpf(w) - exact) <= mpmath.ldexp(bound, exponent - digits), (a, w)
