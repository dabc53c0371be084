"""Writes fuelvk/runtime/probe_cases.json: the inputs of the device probe and the results expected of them.

`python gen_cases.py [--check]`; needs gcc or clang. Results come from functions.h compiled as C. Half of the inputs of
exp, log and sin in F32 are of those nearest to a tie (hard.txt).
"""

from __future__ import annotations

import ctypes
import json
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
TARGET = ROOT / "fuelvk" / "runtime" / "probe_cases.json"
LIBRARY = ROOT / "shaders" / "slang" / "lib"
CASES = 64
TWO_OVER_PI = 39
"""Words of 2/pi in the table, two zeros before them included."""

Words = list[int]
Pair = tuple[int, int]

_SOURCE = """
#include "functions.h"
void run(uint which, const uint *x, uint *y, long n) {
  for (long i = 0; i < n; i++) {
    st_u64 r = probe_value(which, st_mk64(x[4 * i], x[4 * i + 1]), st_mk64(x[4 * i + 2], x[4 * i + 3]));
    y[2 * i] = r.h; y[2 * i + 1] = r.l;
  }
}
"""


def noise(seed: int) -> Iterator[int]:
    """64-bit numbers (splitmix64), the same everywhere and for ever."""
    mask = 2**64 - 1
    while True:
        seed = (seed + 0x9E3779B97F4A7C15) & mask
        z = seed
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
        yield z ^ z >> 31


class Float:
    """Bits of one float type."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.fraction = 23 if width == 32 else 52
        self.bias = 127 if width == 32 else 1023
        self.code = "<f" if width == 32 else "<d"

    def bits(self, value: float) -> int:
        return int.from_bytes(struct.pack(self.code, value), "little")

    def value(self, bits: int) -> float:
        return float(struct.unpack(self.code, bits.to_bytes(self.width // 8, "little"))[0])

    def near(self, draw: Iterator[int], low: int, high: int) -> int:
        """A number of either sign with an exponent in [low, high]."""
        word = next(draw)
        exponent = low + (word >> 56) % (high - low + 1)
        return (
            (word & 1) << (self.width - 1)
            | (exponent + self.bias) << self.fraction
            | word >> (64 - self.fraction)
        )


def operands(kind: Float, name: str, draw: Iterator[int]) -> Iterator[Pair]:
    """Endless operand pairs of a function; the interesting ones are picked by `choose`."""
    digits, top = kind.fraction, kind.width - 1
    while True:
        word = next(draw)
        if name == "tiny":
            small = word >> (64 - digits) | (word & 1) << top
            yield (
                (small, kind.bits(1.5))
                if word & 2
                else (kind.near(draw, -kind.bias + 1, -kind.bias + 2), kind.bits(0.1484375))
            )
        elif name in ("order", "sum"):
            yield kind.near(draw, 0, 3), kind.near(draw, -digits - 1, -digits + 8)
        elif name == "exp":
            yield kind.near(draw, -6, 5), 0
        elif name == "log":
            yield kind.near(draw, -9, 9) & ~(1 << top), 0
        elif name == "sqrt":
            yield kind.near(draw, -kind.bias + 1, kind.bias) & ~(1 << top), 0
        elif name == "sin":
            yield kind.near(draw, -6, kind.bias if word & 1 else 4), 0
        elif name == "tanh":
            yield kind.near(draw, -8, 3), 0
        elif name == "div":
            yield kind.near(draw, -60, 60), kind.near(draw, -60, 60)
        elif name in ("contract", "product"):
            yield kind.near(draw, -2, 2), kind.near(draw, -2, 2)
        else:
            yield word & (2**kind.width - 1), next(draw) & (2**kind.width - 1)


def contracts(kind: Float, a: int, b: int) -> bool:
    """Whether x * y + y differs when it is rounded once instead of twice."""
    x, y = kind.value(a), kind.value(b)
    once = float(Fraction(x) * Fraction(y) + Fraction(y))
    return kind.bits(once) != kind.bits(kind.value(kind.bits(x * y)) + y)


def ties(kind: Float, name: str, draw: Iterator[int]) -> list[Pair]:
    """Operands whose sum or product lies in the middle of two numbers."""
    found = []
    half = 2.0 ** -(kind.fraction + 1)
    for _ in range(CASES // 4):
        odd = 1 + ((next(draw) >> (64 - kind.fraction)) | 1) * 2.0**-kind.fraction
        sign = -1.0 if next(draw) & 1 else 1.0
        pair = (sign * odd, sign * half) if name == "sum" else (sign * odd, 1.5)
        found.append((kind.bits(pair[0]), kind.bits(pair[1])))
    return found


def choose(kind: Float, name: str) -> list[Pair]:
    """The operands of one function: special values, hard ones, telling ones."""
    draw = noise(sum(name.encode()) * 64 + kind.width)
    specials = [0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan"), 3.0]
    pairs: list[Pair] = []
    if name in ("div", "sqrt", "exp", "log", "sin", "tanh"):
        other = [2.0, -3.0, 0.0, 7.0]
        pairs = [(kind.bits(v), kind.bits(other[i % 4])) for i, v in enumerate(specials)]
    if name in ("sum", "product"):
        pairs = ties(kind, name, draw)
    if kind.width == 32:
        pairs += [(word, 0) for word in hard_inputs().get(name, [])]
    stream = operands(kind, name, draw)
    while len(pairs) < CASES:
        pair = next(stream)
        if name != "contract" or contracts(kind, *pair):
            pairs.append(pair)
    return pairs


def hard_inputs() -> dict[str, Words]:
    """The bits of the hard F32 inputs by function."""
    lines = (HERE / "hard.txt").read_text(encoding="utf-8").splitlines()[1:]
    return {name: [int(word, 16) for word in words] for name, *words in (line.split() for line in lines)}


def halves(kind: Float, bits: int) -> Pair:
    """The two words of an operand: an F32 has one."""
    return (bits, 0) if kind.width == 32 else (bits >> 32, bits & 0xFFFFFFFF)


def hexadecimal(words: Words) -> str:
    return struct.pack(f">{len(words)}I", *words).hex()


def table() -> Words:
    """The words of the strict library's table that the functions read: all up to those of 2/pi for doubles."""
    text = (LIBRARY / "strict" / "tables_constants.h").read_text(encoding="utf-8")
    words = [int(word, 16) for word in re.findall(r"0x([0-9a-f]{8})u", text[text.index("ST_TABLE_WORDS") :])]
    return words[: int(text.split("#define ST_T_2PID ", 1)[1].split("u", 1)[0]) + TWO_OVER_PI]


def functions() -> list[str]:
    """The names of the functions, in the order of their numbers."""
    text = (HERE / "functions.h").read_text(encoding="utf-8")
    return text.split("/* PROBE_NAMES ", 1)[1].split(" */", 1)[0].split()


def document() -> str:
    """The file's text."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise SystemExit("needs a C compiler (cc, gcc or clang)")
    names = functions()
    parts: dict[str, dict[str, dict[str, str]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "run.c"
        source.write_text(_SOURCE, encoding="utf-8")
        for width in (32, 64):
            library = Path(folder) / f"run{width}.so"
            flags = ["-O2", "-ffp-contract=off", "-shared", "-fPIC", "-I", str(HERE), "-I", str(LIBRARY)]
            flags += ["-DST_F64"] if width == 64 else []
            subprocess.run([compiler, *flags, str(source), "-o", str(library)], check=True)
            run = ctypes.CDLL(str(library)).run
            kind = Float(width)
            rows = parts[f"f{width}"] = {}
            for which, name in enumerate(names):
                x = [w for pair in choose(kind, name) for bits in pair for w in halves(kind, bits)]
                given, result = (ctypes.c_uint32 * len(x))(*x), (ctypes.c_uint32 * (2 * CASES))()
                run(which, given, result, ctypes.c_long(CASES))
                rows[name] = {"x": hexadecimal(x), "want": hexadecimal(list(result))}
    return json.dumps({"table": hexadecimal(table()), "parts": parts}, indent=0) + "\n"


def main(arguments: list[str]) -> int:
    """Write the file, or say whether it is what the sources give."""
    text = document()
    if "--check" in arguments:
        return 0 if TARGET.is_file() and TARGET.read_text(encoding="utf-8") == text else 1
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
