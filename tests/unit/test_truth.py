"""The truth of the sweep: against mpmath, against results that are wrong on purpose, and in both of its forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cpu_reference.truth import FUNCTIONS, Kind, decide, exact, judge, judge_all, near_boundaries
from fuelvk.base.errors import UnknownNameError

Array = np.ndarray[Any, Any]
N = 64


def starts(name: str) -> list[int]:
    """Blocks of inputs of every size and sign, and around every edge of the table."""
    edges = [b for f in FUNCTIONS[name].flats for b in (f.first, f.last)]
    rng = np.random.default_rng(8)
    some = [0x33000000, 0x39800000, 0x3F800000, 0x41100000, 0x42B00000, 0x00FFFFF0, 0xC1500000, 0xC2CE0000]
    return sorted({max(0, min(2**32 - N, b - N // 2)) for b in (*edges, *some, *rng.integers(0, 2**32, 6))})


def right(name: str, first: int) -> Array:
    """Returns the correctly rounded results by mpmath alone."""
    results = []
    for bits in range(first, first + N):
        flat = next((f for f in FUNCTIONS[name].flats if f.first <= bits <= f.last), None)
        if flat is not None and flat.kind is not Kind.UP_HALF:
            results.append(flat.value if flat.kind is Kind.CONSTANT else 0x7FC00000)
        elif bits & 0x7FFFFFFF == 0:
            results.append(bits)
        else:
            results.append(exact.correctly_rounded(name, bits)[0])
    return np.array(results, np.uint32).view(np.float32)


@pytest.mark.parametrize("by", ["c", "numpy"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_right_results_are_right_and_others_are_counted(
    name: str, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if by == "numpy":
        pytest.importorskip(f"cpu_reference.numpy.{name}")
        monkeypatch.setattr(decide, "_library", lambda: None)
    elif decide._library() is None:
        pytest.skip("needs a C compiler")
    for first in starts(name):
        results = right(name, first)
        found = judge(name, first, results)
        assert (found.inputs, found.wrong) == (N, 0), hex(first)
        assert found.worst <= 0.5
        broken = results.copy().view(np.uint32)
        broken[5] ^= 1
        if np.isnan(results[5]):
            broken[5] = 0x3F800000
        found = judge(name, first, broken.view(np.float32))
        assert found.wrong == 1, hex(first)
        assert found.worst >= 0.5
        assert found.worst_at == first + 5 or found.worst == 0.5


def test_special_values_count_as_infinitely_wrong() -> None:
    for first, value in ((0x7F800000, 3.0), (0xFF800000, np.nan), (0x7FC00000, 0.0)):
        found = judge("exp", first, np.array([value], np.float32))
        assert (found.wrong, found.worst, found.worst_at) == (1, np.inf, first)
    assert judge("exp", 0x3F800000, np.array([np.nan], np.float32)).worst == np.inf
    assert judge("tanh", 0x00000000, np.array([-0.0], np.float32)).wrong == 1
    # A finite result where infinity is right is as far off as any other.
    top = np.array([np.finfo(np.float32).max], np.float32)
    off = judge("exp", int(np.array(89.0, np.float32).view(np.uint32)), top).worst
    assert off == pytest.approx((np.exp(89.0) - float(top[0])) / 2.0**104)


def test_ties_of_halved_subnormals_go_up() -> None:
    inputs = np.array([1, 2, 3, 0x00FFFFFF], np.uint32)
    for bits, half in zip(inputs, (1, 1, 2, 0x00800000), strict=True):
        assert exact.correctly_rounded("silu", int(bits))[0] == half
        assert judge("silu", int(bits), np.array([half], np.uint32)).wrong == 0
    assert judge("silu", 0x80000001, np.array([0x80000000], np.uint32)).wrong == 0
    assert exact.correctly_rounded("gelu_erf", 0x80000003)[0] == 0x80000001


@pytest.mark.parametrize(
    ("value", "bits"),
    [
        ("1", 0x3F800000), ("-1", 0xBF800000), ("0", 0), ("2**-149", 1), ("2**-150", 0), ("2**-150 * 1.001", 1),
        ("3 * 2**-150", 2), ("2**128", 0x7F800000), ("2**128 - 2**103", 0x7F800000), ("2**128 - 2**103 - 1", 0x7F7FFFFF),
        ("1 + 2**-24", 0x3F800000), ("1 + 3 * 2**-24", 0x3F800002), ("1 + 2**-24 + 2**-200", 0x3F800001),
        ("2**-126 - 2**-150", 0x00800000), ("1e300", 0x7F800000),
    ],
)  # fmt: skip
def test_rounding(value: str, bits: int) -> None:
    from mpmath import mp, mpf

    with mp.workprec(320):
        assert exact.rounded(eval(value.replace("2**", "two**"), {"two": mpf(2)}) + mpf(0)) == bits


def test_an_unknown_function_is_named() -> None:
    with pytest.raises(UnknownNameError, match="tanh"):
        judge("tahn", 0, np.zeros(1, np.float32))


def test_several_results_are_judged_each_for_itself() -> None:
    first = 0x3F800000
    good = right("exp", first).view(np.uint32)
    one, two = good.copy(), good.copy()
    one[7] += 1
    two[[3, 9]] += 2
    for order in ([good, one, two, good], [two, good, one], [one, one, good]):
        found = judge_all("exp", first, [r.view(np.float32) for r in order])
        alone = [judge("exp", first, r.view(np.float32)) for r in order]
        assert found == alone
        assert [f.wrong for f in found] == [int(np.count_nonzero(r != good)) for r in order]


def test_the_scan_finds_the_inputs_near_a_boundary_and_no_others() -> None:
    if decide._library() is None:
        pytest.skip("needs a C compiler")
    pytest.importorskip("mpmath")
    first, last, within = 0x3EFFF000, 0x3F000FFF, 2.0**-33
    distances = {}
    for bits in range(first, last + 1):
        result, value = exact.correctly_rounded("exp", bits)
        spacing = 2.0**-23  # of floats between 1 and 2
        distances[bits] = (0.5 - exact.error_in_ulps(result, value)) * spacing / float(value)
    found = set(near_boundaries("exp", first, last, within))
    assert {b for b, d in distances.items() if d <= within} <= found
    assert all(distances[b] <= 1.1 * within for b in found)
    assert len(found) > 3
    assert near_boundaries("exp", 0x7F800001, 0x7F800FFF, within) == []
