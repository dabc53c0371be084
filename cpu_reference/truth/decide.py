"""Holds the results for consecutive inputs against the truth."""

from __future__ import annotations

import bisect
import ctypes
import hashlib
import importlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from cpu_reference.truth import exact
from cpu_reference.truth.table import FUNCTIONS, Flat, Function, Kind
from fuelvk.base import env
from fuelvk.base.errors import UnknownNameError, UnsupportedError, closest

Array = np.ndarray[Any, Any]

_FOLDER = Path(__file__).parent
_SHARED = ("-O3", "-march=native", "-fPIC")
#: Only the functions themselves; the comparison needs NaN, infinities and one rounding per operation.
_FLAGS = {
    "functions.c": (*_SHARED, "-ffast-math"),
    "judge.c": (*_SHARED, "-ffp-contract=off", "-fno-trapping-math", "-fno-math-errno"),
}
#: Of the NumPy oracles in float64, where they stand in for the C functions.
_ORACLE_SLACK = 2.0**-40
_SMALL = 1 << 16
_SCAN = 1 << 20


@dataclass(slots=True)
class Judgement:
    """What was found over a number of inputs; ``merge`` adds another.

    ``wrong`` counts results that are not the correctly rounded ones, ``worst`` is the largest distance from the
    exact value in ULPs (infinite for a NaN or a special value that is another), ``worst_at`` the bits of its input,
    ``settled`` the inputs that mpmath decided.
    """

    inputs: int = 0
    wrong: int = 0
    worst: float = 0.0
    worst_at: int = 0
    settled: int = 0

    def merge(self, other: Judgement) -> None:
        self.inputs += other.inputs
        self.wrong += other.wrong
        self.settled += other.settled
        if other.worst > self.worst:
            self.worst, self.worst_at = other.worst, other.worst_at


class _Found(ctypes.Structure):
    _fields_ = (
        ("wrong", ctypes.c_int64), ("undecided", ctypes.c_int64), ("worst", ctypes.c_double),
        ("worst_at", ctypes.c_uint32),
    )  # fmt: skip


def judge(name: str, first: int, results: Array) -> Judgement:
    """The same for one array of results."""
    return judge_all(name, first, [results])[0]


def judge_all(name: str, first: int, results: Sequence[Array]) -> list[Judgement]:
    """Judges arrays of F32 results (one axis) of function ``name`` for the inputs of bits ``first``, ``first + 1``, ...

    The truth is computed once for all of them, which is quickest where they are equal to the first. Thread-safe;
    releases the GIL in the C functions. Raises UnknownNameError for a function that is not in the table,
    UnsupportedError where mpmath is needed and missing.
    """
    function = _function(name)
    bits = [np.ascontiguousarray(r).view(np.uint32) for r in results]
    found = [Judgement() for _ in bits]
    flats = function.flats
    at, stop = first, first + bits[0].size
    while at < stop:
        flat = _covering(flats, at)
        if flat is not None:
            end = min(stop, flat.last + 1)
            pieces = [_judge_flat(flat, at, b[at - first : end - first]) for b in bits]
        else:
            end = min([stop, *(f.first for f in flats if f.first > at)])
            pieces = _judge_live(name, function.slack, at, [b[at - first : end - first] for b in bits])
        for whole, piece in zip(found, pieces, strict=True):
            whole.merge(piece)
        at = end
    return found


def near_boundaries(name: str, first: int, last: int, within: float) -> list[int]:
    """Returns the inputs from bits ``first`` to ``last`` whose exact result lies near a boundary between two floats.

    Near is at most ``within`` of the result's size, beside the error of the double truth. Raises as ``judge_all``
    does, and UnsupportedError where nothing compiles C.
    """
    function, library = _function(name), _library()
    if library is None:
        raise UnsupportedError("the scan needs a C compiler", asked=name)
    found: list[int] = []
    at = first
    while at <= last:
        flat = _covering(function.flats, at)
        if flat is not None:
            at = flat.last + 1
            continue
        end = min([last + 1, at + _SCAN, *(f.first for f in function.flats if f.first > at)])
        nothing = [np.zeros(end - at, np.uint32)]
        found += _by_c(library, name, within + function.slack, at, nothing)[1]
        at = end
    return found


def _function(name: str) -> Function:
    function = FUNCTIONS.get(name)
    if function is None:
        raise UnknownNameError(
            "the sweep has no truth for this function", asked=name, allowed=", ".join(FUNCTIONS),
            hint=closest(name, FUNCTIONS) or None,
        )  # fmt: skip
    return function


def _covering(flats: tuple[Flat, ...], at: int) -> Flat | None:
    index = bisect.bisect_right(flats, at, key=lambda f: f.first) - 1
    return flats[index] if index >= 0 and at <= flats[index].last else None


def _judge_flat(flat: Flat, first: int, bits: Array) -> Judgement:
    if flat.kind is Kind.NAN:
        good = (bits & np.uint32(0x7FFFFFFF)) > 0x7F800000
    elif flat.kind is Kind.CONSTANT:
        good = bits == flat.value
    else:
        return _judge_halves(first, bits)
    wrong = int(bits.size - np.count_nonzero(good))
    if not wrong:
        return Judgement(bits.size)
    return Judgement(bits.size, wrong, float("inf"), first + int(np.argmin(good)))


def _judge_halves(first: int, bits: Array) -> Judgement:
    inputs = np.arange(first, first + bits.size, dtype=np.uint64).astype(np.uint32)
    sign, size = inputs & np.uint32(0x80000000), inputs & np.uint32(0x7FFFFFFF)
    up = np.where(sign != 0, 0, 1).astype(np.uint32)
    wrong = int(np.count_nonzero(bits != (sign | ((size + up) >> 1))))
    doubled = 2.0 * (bits & np.uint32(0x7FFFFFFF))  # below 2^-125 a float is its bits times 2^-149
    error = np.where((bits ^ sign) >> 31, np.inf, np.abs(doubled - size) / 2)
    place = int(error.argmax())
    return Judgement(bits.size, wrong, float(error[place]), first + place)


def _judge_live(name: str, slack: float, first: int, bits: Sequence[Array]) -> list[Judgement]:
    library = _library()
    if library is None:
        by_numpy = [_by_numpy(name, first, b) for b in bits]
        found, undecided = [f for f, _ in by_numpy], by_numpy[0][1]
    else:
        found, undecided = _by_c(library, name, slack, first, bits)
    for at in undecided:
        want, value = exact.correctly_rounded(name, at)
        for each, results in zip(found, bits, strict=True):
            got = int(results[at - first])
            each.wrong += got != want
            error = exact.error_in_ulps(got, value)
            if error > each.worst:
                each.worst, each.worst_at = error, at
    for each in found:
        each.settled = len(undecided)
    return found


def _by_c(
    library: Any, name: str, slack: float, first: int, bits: Sequence[Array]
) -> tuple[list[Judgement], list[int]]:
    truth = ctypes.cast(getattr(library, f"fv_truth_{name}"), ctypes.c_void_p)
    pointers = (ctypes.c_void_p * len(bits))(*(b.ctypes.data for b in bits))
    room = _SMALL
    while True:
        found, waiting = (_Found * len(bits))(), np.empty(room, np.uint32)
        library.fv_judge(
            truth, slack, first, pointers, len(bits), bits[0].size, found, waiting.ctypes.data, room
        )
        if found[0].undecided <= room:
            break
        room = found[0].undecided
    judged = [Judgement(bits[0].size, f.wrong, max(f.worst, 0.0), f.worst_at) for f in found]
    return judged, [int(b) for b in waiting[: found[0].undecided]]


def _by_numpy(name: str, first: int, bits: Array) -> tuple[Judgement, list[int]]:
    """The same in NumPy: the float64 oracle of the op for the truth."""
    reference = importlib.import_module(f"cpu_reference.numpy.{name}").reference
    inputs = np.arange(first, first + bits.size, dtype=np.uint64).astype(np.uint32)
    with np.errstate(all="ignore"):
        truth = np.asarray(reference(inputs.view(np.float32)), np.float64)
        low, high = (
            (truth * factor).astype(np.float32).view(np.uint32)
            for factor in (1 - _ORACLE_SLACK, 1 + _ORACLE_SLACK)
        )
        decided = low == high
        got = bits.view(np.float32).astype(np.float64)
        got = np.where(np.isinf(got), np.copysign(2.0**128, got), got)
        _, exponent = np.frexp(truth)
        exponent = np.where(truth == 0, -125, np.where(np.isinf(truth), 128, exponent))
        error = np.abs(got - truth) * np.ldexp(1.0, 24 - np.clip(exponent, -125, 128))
        overflows = (np.abs(truth) >= 2.0**128) & (np.abs(got) == 2.0**128) & (np.sign(got) == np.sign(truth))
        error = np.where(overflows, 0.0, error)
    error = np.where(decided, np.where(np.isnan(got), np.inf, error), 0.0)
    place = int(error.argmax())
    judged = Judgement(
        bits.size, int(np.count_nonzero(decided & (bits != low))), float(error[place]), first + place
    )
    return judged, [int(b) for b in inputs[~decided]]


@cache
def _library() -> Any:
    """Returns the compiled functions, or None where nothing compiles C."""
    compiler = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc")
    if compiler is None or sys.platform == "win32":
        return None
    sources = {name: (_FOLDER / name).read_bytes() for name in _FLAGS}
    version = subprocess.run([compiler, "--version"], capture_output=True, check=False).stdout
    cpu = _cpu_flags()
    digest = hashlib.blake2b(repr((sources, _FLAGS, compiler, version, cpu)).encode(), digest_size=12)
    target = env.cache_dir() / "truth" / f"{digest.hexdigest()}.so"
    if not target.is_file() and not _compiled(compiler, target):
        return None
    try:
        library = ctypes.CDLL(str(target))
    except OSError:
        return None
    library.fv_judge.restype = None
    library.fv_judge.argtypes = [
        ctypes.c_void_p, ctypes.c_double, ctypes.c_uint32, ctypes.POINTER(ctypes.c_void_p), ctypes.c_int,
        ctypes.c_int64, ctypes.POINTER(_Found), ctypes.c_void_p, ctypes.c_int64,
    ]  # fmt: skip
    return library


def _cpu_flags() -> str:
    """What tells one processor's instructions from another's, for a cache that machines may share."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")


def _compiled(compiler: str, target: Path) -> bool:
    """Compiles the two files and puts the library in place in one step; False when the compiler refuses."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            objects = []
            for name, flags in _FLAGS.items():
                objects.append(str(Path(folder) / f"{name}.o"))
                command = [compiler, *flags, "-c", str(_FOLDER / name), "-o", objects[-1]]
                subprocess.run(command, check=True, capture_output=True)
            built = Path(folder) / "truth.so"
            for libraries in (("-lmvec", "-lm"), ("-lm",)):
                linked = subprocess.run(
                    [compiler, "-shared", *objects, "-o", str(built), *libraries],
                    capture_output=True,
                    check=False,
                )
                if linked.returncode == 0:
                    built.replace(target)
                    return True
    except (OSError, subprocess.CalledProcessError):
        return False
    return False
