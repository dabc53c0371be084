"""Constants of erf and gelu_erf (f32), correctly rounded, and their rows of the word table.

R(z) = exp(z^2/2) times the normal probability below -z.
"""

from __future__ import annotations

from fit import Header, chebyshev_fit, f32_bits, round_to
from mpmath import mp, mpf

TERMS = 10
"""Of the series in x^2 of erf(x)/x; the next is below 2^-72 for x < 1/4."""
FIXED_DEGREE = 12
"""Of R in fixed point: within 2^-66 of it."""
FAST_DEGREE = 5
"""Of R in floats: within 2^-35.8 of it."""


def scaled_tail(z: mpf) -> mpf:
    """R(z)."""
    return mp.erfc(z / mp.sqrt(2)) / 2 * mp.exp(z * z / 2)


def pieces(low: int, high: int) -> list[tuple[mpf, mpf]]:
    """(centre, half width) of zero to 2^low, then of sixteen pieces a binade up to 2^high."""
    rows = [(mpf(0), mpf(2) ** low)]
    for e in range(low, high):
        step = mpf(2) ** (e - 5)
        rows += [(mpf(2) ** e + (2 * i + 1) * step, step) for i in range(16)]
    return rows


def split(value: mpf, bits: int) -> tuple[int, int]:
    """Bits of the high part of `bits` bits and of the rest."""
    high = round_to(value, bits)
    return f32_bits(high), f32_bits(value - high)


def erf_rows() -> dict[str, list[int]]:
    """erf(c) in two parts and its slope at c as a 12-bit high part and the rest, up to c = 4."""
    rows: dict[str, list[int]] = {"H": [], "L": [], "SH": [], "SL": []}
    for centre, _ in pieces(-5, 2):
        words = (*split(mp.erf(centre), 24), *split(2 / mp.sqrt(mp.pi) * mp.exp(-centre * centre), 12))
        for key, word in zip(rows, words, strict=True):
            rows[key].append(word)
    return rows


def tail_rows() -> dict[str, list[int]]:
    """R up to z = 16: constant in two parts, slope as a 12-bit high part and the rest, coefficients 2 to 5."""
    rows: dict[str, list[int]] = {key: [] for key in ("H", "L", "SH", "SL", "2", "3", "4", "5")}
    for centre, half in pieces(-5, 4):
        low = mpf(0) if centre == 0 else -half
        fit = chebyshev_fit(lambda t, centre=centre: scaled_tail(centre + t), low, half, FAST_DEGREE)
        words = (*split(fit[0], 24), *split(fit[1], 12), *(f32_bits(c) for c in fit[2:]))
        for key, word in zip(rows, words, strict=True):
            rows[key].append(word)
    return rows


def tail_fixed() -> list[int]:
    """R in fixed point: 31 pieces (width 1/4 to z = 4, 1/2 to 8, 1 to 15), words high and low of each coefficient.

    In r = distance from the left end / (4 widths), times 2^scale so that the sum lies in (1/4, 1), 63 fraction bits,
    two's complement.
    """
    words: list[int] = []
    starts = [(mpf(i) / 4, mpf(1) / 4) for i in range(16)] + [(mpf(i) / 2, mpf(1) / 2) for i in range(8, 16)]
    starts += [(mpf(i), mpf(1)) for i in range(8, 15)]
    for left, width in starts:
        scale = 0 if left < 1 else 1 if left < 2 else 2 if left < 4 else 3 if left < 8 else 4
        fit = chebyshev_fit(lambda t, left=left: scaled_tail(left + t), mpf(0), width, FIXED_DEGREE)
        for k, c in enumerate(fit):
            number = int(mp.nint(c * (4 * width) ** k * mpf(2) ** (63 + scale))) % 2**64
            words += [number >> 32, number & 0xFFFFFFFF]
    return words


def build() -> Header:
    """The header erf_cr_constants.h."""
    header = Header("ST_ERF_CR_CONSTANTS_H", "gen_erf_cr.py")
    for n in range(TERMS + 1):
        header.fixed(f"ST_ERFCR_Q{n}", 2 / mp.sqrt(mp.pi) / mp.factorial(n) / (2 * n + 1), 63)
    header.fixed("ST_ERFCR_ROOT", mp.sqrt(2), 63)
    header.word("ST_ERFCR_ONE", f32_bits(mp.erfinv(1 - mpf(2) ** -25)) + 1)
    ratios = {
        "V1": (-1, 3), "V2": (1, 10), "V3": (-1, 42), "T1": (1, 2), "T2": (-1, 6), "S0": (2, 3), "S1": (-2, 5),
        "S2": (1, 7), "R0": (-1, 3), "R1": (2, 9), "P0": (2, 15), "P1": (-2, 21), "O": (-2, 45), "N": (4, 315),
    }  # fmt: skip
    for name, (top, bottom) in ratios.items():
        header.f32(f"ST_ERFCR_{name}", mpf(top) / bottom)
    header.f32("ST_ERFCR_EPS", mpf(2) ** -38 * mpf("1.4"))
    header.f32("ST_ERFCR_EP0", mpf(2) ** -35 * mpf("1.4"))
    header.f32("ST_ERFCR_EP2", mpf(2) ** -24 * mpf("1.4"))
    header.f32("ST_GELUERFCR_EPS", mpf(2) ** -34)
    return header
