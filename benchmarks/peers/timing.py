"""What all probes share: inputs, repetition, output. Needs NumPy and the standard library only.

A probe prints JSON lines, each a part of its figures, as soon as they are known, so that a peer that dies
keeps those it reached. The figures:

    init_ms          import of the library and opening the device (NumPy imported before)
    rt_us            a 1,024-element F32 add of resident inputs, result back as a NumPy array
    rt_up_us         the same from NumPy to NumPy: both inputs uploaded each time
    add16m_gbs       a 16Mi-element F32 add, resident, waited for (12 bytes an element)
    mul16m_gbs, relu16m_gbs the same of mul, and of relu (8 bytes an element)
    up_gbs, down_gbs 64 MiB from NumPy to the device and back
    argmax_ms, cumsum_ms    along the rows of 4096 x 4096 F32, resident, waited for
    NAME_ns          an elementary function of 4Mi F32 elements, resident, waited for: time of one element
    mm1024_gflops    a 1024^3 F32 product, resident, waited for (2 n^3 operations)
    mm_maxrel        its largest difference from float64 over the largest value
    mm_bits          whether three runs gave the same bits
    softmax_ms, rms_norm_ms, layer_norm_ms    over rows of 4096 x 1024 F32, resident, waited for
    attention_ms     8 heads x 512 queries and keys x 64, causal, F32
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = Any  # np.ndarray; the peers' environments carry other NumPy versions

SMALL, BIG, SIDE, FUNCTION = 1024, 1 << 24, 1024, 1 << 22
ROWS, COLUMNS = 4096, 1024
SQUARE = 4096
HEADS, LENGTH, HEAD_SIZE = 8, 512, 64

QUICK = "--quick" in sys.argv
_asked = [a for a in sys.argv[1:] if not a.startswith("-")]


def wants(*figures: str) -> bool:
    """True when one of the figures was asked for on the command line; without any asked for, all are."""
    return not _asked or any(f in _asked for f in figures)


def median(
    call: Callable[[], object], repeats: int, warm: int = 2, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Returns the median time of a call in seconds, after ``warm`` calls that are not counted."""
    for _ in range(warm):
        call()
    times = []
    for _ in range(max(3, repeats // 4) if QUICK else repeats):
        start = clock()
        call()
        times.append(clock() - start)
    return statistics.median(times)


def normal(seed: int, *shape: int) -> Array:
    """Returns normally distributed F32 values."""
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def small() -> tuple[Array, Array]:
    return normal(7, SMALL), normal(17, SMALL)


def function_input(name: str) -> Array:
    """Returns the input of an elementary function: where it is neither flat nor infinite; sine up to 1,000."""
    values = np.random.default_rng(9).uniform(-1, 1, FUNCTION).astype(np.float32)
    if name == "log":
        return np.exp2(values * 30)
    return values * np.float32(1000 if name == "sin" else 80 if name == "exp" else 8)


def big() -> tuple[Array, Array]:
    return normal(8, BIG), normal(18, BIG)


def matrices() -> tuple[Array, Array]:
    return normal(9, SIDE, SIDE), normal(19, SIDE, SIDE)


def square() -> Array:
    return normal(21, SQUARE, SQUARE)


def rows() -> Array:
    return normal(4, ROWS, COLUMNS)


def check_sum(got: Array, a: Array, b: Array) -> None:
    """Stops the probe when a peer's sum is wrong: its time would mean nothing."""
    if not np.array_equal(np.asarray(got).reshape(a.shape), a + b):
        raise SystemExit("the sum is wrong")


def product_quality(results: Sequence[Array], a: Array, b: Array) -> dict[str, object]:
    """Returns mm_maxrel and mm_bits of several runs of one product."""
    exact = a.astype(np.float64) @ b.astype(np.float64)
    first = np.asarray(results[0]).reshape(exact.shape)
    worst = float(np.abs(first - exact).max() / np.abs(exact).max())
    return {"mm_maxrel": worst, "mm_bits": all(np.array_equal(first.ravel(), np.ravel(r)) for r in results)}


def gbs(nbytes: int, seconds: float) -> float:
    return nbytes / seconds / 1e9


def gflops(seconds: float) -> float:
    return 2 * SIDE**3 / seconds / 1e9


def emit(**figures: object) -> None:
    """Prints one JSON line of figures."""
    print(
        json.dumps({k: float(f"{v:.5g}") if isinstance(v, float) else v for k, v in figures.items()}),
        flush=True,
    )


def each_row_op(run: Callable[[str], Callable[[], object] | None], repeats: int = 7) -> None:
    """Times softmax, rms_norm, layer_norm; ``run`` gives the call of one, None where the peer has none."""
    for op in ("softmax", "rms_norm", "layer_norm"):
        if not wants(f"{op}_ms"):
            continue
        try:
            call = run(op)
            if call is not None:
                emit(**{f"{op}_ms": median(call, repeats) * 1e3})
        except Exception as error:  # a peer that fails at one op is still timed at the others
            emit(**{f"{op}_ms": f"{type(error).__name__}: {error}"[:120]})
