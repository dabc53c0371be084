"""The cheap f32 functions of the strict library compiled as C: error in ULP and special values."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.unit.test_strict_c import (
    FLAGS,
    HERE,
    LIBRARY,
    ROUNDED,
    TRUTH,
    Oracle,
    compiler,
    f32_inputs,
    logistic,
    ulps,
)
from tests.unit.test_strict_sixteen import GELU, Array, Map, build


def gelu(x: Array) -> Array:
    """gelu (tanh form) in float64, with its limits."""
    return np.where(np.isneginf(x), -0.0, x * logistic(GELU * (x + 0.044715 * x**3)))


BOUNDS = {
    "exp2": 0.77,
    "expm1": 0.83,
    "log": 0.89,
    "log2": 0.77,
    "log1p": 0.89,
    "sin": 0.9,
    "cos": 0.9,
    "sigmoid": 0.79,
    "silu": 0.84,
    "softplus": 0.96,
    "gelu": 0.9,
}
"""Worst error in ULP (what strict_sweep_cheap.c found over all inputs, rounded up)."""

ORACLES: dict[str, Oracle] = {**ROUNDED, "gelu": gelu}

ENDS = [
    0x33000000,
    0x39800000,
    0x3E800000,
    0x3ED00000,
    0x3FB504F3,
    0x41A00000,
    0x42C40000,
    0x42E00000,
    0x43000000,
]
"""Inputs at which some function changes its formula."""


@pytest.fixture(scope="module")
def maps(tmp_path_factory: pytest.TempPathFactory) -> Map:
    """maps(name, x): one loop of strict_sixteen.c."""
    return build(tmp_path_factory.mktemp("cheap"))


@pytest.fixture(scope="module")
def cheap(maps: Map) -> Map:
    """cheap(name, x): one function over float32 values."""
    return lambda name, x: maps(f"cheap_{name}", x)


@pytest.mark.parametrize("name", BOUNDS)
def test_error(cheap: Map, name: str) -> None:
    near = [np.arange(end - 512, end + 512).astype(np.uint32) for end in ENDS]
    ends = np.concatenate([*near, *(part | np.uint32(1 << 31) for part in near)])
    x = np.concatenate([f32_inputs(), ends.view(np.float32)])
    with np.errstate(all="ignore"):
        truth = np.asarray(ORACLES[name](x.astype(np.float64)), np.float64)
    assert ulps(cheap(name, x), truth).max() <= BOUNDS[name]


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_pieces_make_the_whole(cheap: Map, maps: Map, name: str) -> None:
    near = np.arange(ENDS[6] - 512, ENDS[6] + 512).astype(np.uint32).view(np.float32)
    x = np.concatenate([f32_inputs(1 << 16), near, -near])
    assert np.array_equal(maps(f"{name}_pieces", x).view(np.uint32), cheap(name, x).view(np.uint32))


LIMITS = {
    "exp2": [1.0, 1.0, np.inf, 0.0],
    "expm1": [0.0, -0.0, np.inf, -1.0],
    "log": [-np.inf, -np.inf, np.inf, np.nan],
    "log2": [-np.inf, -np.inf, np.inf, np.nan],
    "log1p": [0.0, -0.0, np.inf, np.nan],
    "sin": [0.0, -0.0, np.nan, np.nan],
    "cos": [1.0, 1.0, np.nan, np.nan],
    "sigmoid": [0.5, 0.5, 1.0, 0.0],
    "silu": [0.0, -0.0, np.inf, -0.0],
    "softplus": [np.log(2.0), np.log(2.0), np.inf, 0.0],
    "gelu": [0.0, -0.0, np.inf, -0.0],
}
"""Values at 0, -0, inf, -inf; a NaN always gives the quiet NaN."""


@pytest.mark.parametrize("name", LIMITS)
def test_limits(cheap: Map, name: str) -> None:
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan], np.float32)
    want = np.array([*LIMITS[name], np.nan], np.float32).view(np.uint32)
    want[np.isnan(want.view(np.float32))] = 0x7FC00000
    assert np.array_equal(cheap(name, x).view(np.uint32), want)


def test_all_headers_together(tmp_path: Path) -> None:
    """No two headers use one name for two things: a kernel may include any of them."""
    source = tmp_path / "all.c"
    headers = sorted(path.name for path in (LIBRARY / "strict").glob("*.h"))
    source.write_text("#define ST_F64\n" + "".join(f'#include "strict/{name}"\n' for name in headers))
    subprocess.run(
        [compiler(), *FLAGS, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", str(source)], check=True
    )


@pytest.mark.slow
def test_sweep(tmp_path: Path) -> None:
    """Every 997th input; run strict_sweep_cheap.c with step 1 after changing a function."""
    truth, target = tmp_path / "truth.o", tmp_path / "strict_sweep_cheap"
    fast = ["-O3", "-ffast-math", "-c", str(TRUTH), "-o", str(truth)]
    subprocess.run([compiler(), *fast], check=True)
    source = str(HERE / "strict_sweep_cheap.c")
    subprocess.run([compiler(), *FLAGS, source, str(truth), "-o", str(target), "-lm"], check=True)
    lines = subprocess.run([str(target), "all", "997"], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in lines.splitlines()]
    assert {row[0] for row in rows} == set(BOUNDS)
    assert all(float(row[2]) <= BOUNDS[row[0]] and row[5] == "0" for row in rows), rows
