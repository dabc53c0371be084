"""Which instructions the host's processor has, as far as compiled code depends on it."""

from __future__ import annotations

import functools
import platform
from collections.abc import Iterable
from pathlib import Path

#: The levels of the x86-64 psABI with what each adds, by the names of Linux; a processor has a level with all below.
_LEVELS: tuple[tuple[str, frozenset[str]], ...] = (
    ("v2", frozenset({"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"})),
    ("v3", frozenset({"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"})),
    ("v4", frozenset({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"})),
)
_CPUINFO = Path("/proc/cpuinfo")


@functools.cache
def instruction_set() -> str:
    """Returns the architecture, on x86-64 under Linux with its level: "x86_64-v4", "aarch64".

    C kernels and CPU drivers compile code for the level they find; two processors of one level run the same code.
    """
    machine = platform.machine()
    if machine not in ("x86_64", "AMD64"):
        return machine
    try:
        text = _CPUINFO.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return machine
    line = next((row for row in text.splitlines() if row.startswith("flags")), "")
    return f"{machine}-{level(line.partition(':')[2].split())}"


def level(flags: Iterable[str]) -> str:
    """Returns the highest level of x86-64 ("v1" to "v4") that a processor with these flags has."""
    have, found = set(flags), "v1"
    for name, wanted in _LEVELS:
        if not wanted <= have:
            break
        found = name
    return found
