"""The word table of log, log2, log1p, sin, cos, erf and gelu_erf: one list, which a shader reads from one buffer."""

from __future__ import annotations

from fit import Header, f32_bits, round_to
from gen_erf_cr import erf_rows, tail_fixed, tail_rows
from mpmath import mp, mpf


def grid(x: mpf, exponent: int) -> mpf:
    """x rounded to a multiple of 2^exponent."""
    return mpf(int(mp.nint(x * mpf(2) ** -exponent))) * mpf(2) ** exponent


def log_rows(base: mpf) -> dict[str, list[int]]:
    """-log_base of the 33 centres 1/c: f32 high part on a 2^-16 grid and rest, and Q0.64; row C is 256 c.

    From row 13 on the f32 parts belong to half the centre, so that their size stays below log 2 / 2. Rows 0 and 32 are
    exactly zero (Q0.64: row 32 counts as the next binade).
    """
    rows: dict[str, list[int]] = {"C": [], "H": [], "L": [], "QH": [], "QL": []}
    for j in range(33):
        c = int(mp.nint(256 / (1 + mpf(j) / 32)))
        unit = j in (0, 32)
        whole = mpf(0) if unit else -mp.log(mpf(c) / 256) / base
        part = mpf(0) if unit else whole - (mp.log(2) / base if j >= 13 else 0)
        high = grid(part, -16)
        number = int(mp.nint(whole * mpf(2) ** 64))
        words = (c, f32_bits(high), f32_bits(part - high), number >> 32, number & 0xFFFFFFFF)
        for key, word in zip(rows, words, strict=True):
            rows[key].append(word)
    return rows


def sine_rows() -> dict[str, list[int]]:
    """sin(j pi/32), j < 64: 12-bit high part and rest."""
    rows: dict[str, list[int]] = {"H": [], "L": []}
    for j in range(64):
        value = mpf(int(mp.nint(mp.sin(j * mp.pi / 32)))) if j % 16 == 0 else mp.sin(j * mp.pi / 32)
        high = round_to(value, 12)
        rows["H"].append(f32_bits(high))
        rows["L"].append(f32_bits(value - high))
    return rows


def two_over_pi_words(count: int) -> list[int]:
    """The first count 32-bit words of 2/pi behind the binary point."""
    with mp.workprec(32 * count + 64):
        number = int(mp.floor(2 / mp.pi * mpf(2) ** (32 * count)))
    return [number >> (32 * (count - 1 - i)) & 0xFFFFFFFF for i in range(count)]


def build() -> Header:
    """The header tables_constants.h: offsets ST_T_* and the list ST_TABLE_WORDS."""
    header = Header("ST_TABLES_CONSTANTS_H", "gen_tables.py")
    logs, twos = log_rows(mpf(1)), log_rows(mp.log(2))
    two_over_pi = int(mp.floor(2 / mp.pi * mpf(2) ** 256))
    parts = {f"LOG_{key}": row for key, row in logs.items()}
    parts |= {f"LOG2_{key}": row for key, row in twos.items() if key != "C"}
    parts |= {f"SIN_{key}": row for key, row in sine_rows().items()}
    parts["2PI"] = [0, 0, *[two_over_pi >> (32 * (7 - i)) & 0xFFFFFFFF for i in range(8)], 0]
    parts["2PID"] = [0, 0, *two_over_pi_words(37)]
    parts |= {f"ERF_{key}": row for key, row in erf_rows().items()}
    parts |= {f"TAIL_{key}": row for key, row in tail_rows().items()}
    parts["TAIL_Q"] = tail_fixed()
    words: list[int] = []
    for name, row in parts.items():
        header.lines.append(f"#define ST_T_{name} {len(words)}u")
        words += row
    header.lines.append(f"#define ST_TABLE_COUNT {len(words)}")
    lines = [", ".join(f"0x{word:08x}u" for word in words[i : i + 8]) for i in range(0, len(words), 8)]
    header.lines.append("#define ST_TABLE_WORDS " + ", \\\n  ".join(lines))
    return header
