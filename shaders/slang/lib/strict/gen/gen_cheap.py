"""Constants of the cheap f32 functions: exp2, log, log2, log1p, sin, cos, gelu."""

from __future__ import annotations

from fit import Header, chebyshev_fit, round_to
from gen_tables import grid
from mpmath import mp, mpf


def split(header: Header, name: str, value: mpf, bits: int) -> None:
    """value as a part of ``bits`` bits (name_H) and the rest (name_L)."""
    high = round_to(value, bits)
    header.f32(f"{name}_H", high)
    header.f32(f"{name}_L", value - high)


def powers(header: Header) -> None:
    """2^r = 1 + r ln2 + r^2 Q(r), |r| <= 1/2."""
    ln2 = mp.log(2)
    split(header, "ST_CHEAP_LN2", ln2, 12)

    def tail(r: mpf) -> mpf:
        return (mpf(2) ** r - 1 - r * ln2) / r**2 if abs(r) > mpf(2) ** -40 else ln2**2 / 2

    for i, c in enumerate(chebyshev_fit(tail, mpf(-1) / 2, mpf(1) / 2, 5)):
        header.f32(f"ST_EXP2_P{i + 2}", c)


def logarithms(header: Header) -> None:
    """log(1 + r) = r - r^2/2 + r^3 P(r), sqrt(1/2) <= 1 + r <= sqrt(2)."""
    ln2 = mp.log(2)
    header.f32("ST_CHEAP_LOG2_H", grid(ln2, -16))
    header.f32("ST_CHEAP_LOG2_L", ln2 - grid(ln2, -16))
    split(header, "ST_CHEAP_INV", 1 / ln2, 12)

    def tail(r: mpf) -> mpf:
        return (mp.log1p(r) - r + r**2 / 2) / r**3 if abs(r) > mpf(2) ** -40 else mpf(1) / 3

    low, high = mp.sqrt(mpf(1) / 2) - 1, mp.sqrt(2) - 1
    for i, c in enumerate(chebyshev_fit(tail, low, high, 8)):
        header.f32(f"ST_CHEAP_LOG_P{i}", c)


def circles(header: Header) -> None:
    """sin r = r + r^3 S(r^2), cos r = 1 - r^2/2 + r^4 C(r^2), |r| <= pi/4; pi/2 in parts; 2/pi after 32 zero bits."""
    quarter = mp.pi / 2
    header.f32("ST_SINCOS_INV", 1 / quarter)
    first = round_to(quarter, 18)
    second = round_to(quarter - first, 18)
    header.f32("ST_SINCOS_P1", first)
    header.f32("ST_SINCOS_P2", second)
    header.f32("ST_SINCOS_P3", quarter - first - second)
    split(header, "ST_SINCOS_PIO2", quarter, 12)

    def sine(u: mpf) -> mpf:
        r = mp.sqrt(u)
        return (mp.sin(r) - r) / r**3 if u > mpf(2) ** -60 else mpf(-1) / 6

    def cosine(u: mpf) -> mpf:
        return (mp.cos(mp.sqrt(u)) - 1 + u / 2) / u**2 if u > mpf(2) ** -60 else mpf(1) / 24

    edge = (mp.pi / 4 + mpf(2) ** -12) ** 2
    for name, function, degree in (("S", sine, 3), ("C", cosine, 2)):
        for i, c in enumerate(chebyshev_fit(function, mpf(0), edge, degree)):
            header.f32(f"ST_SINCOS_{name}{i}", c)
    bits = int(mp.floor(2 / mp.pi * mpf(2) ** 224))
    for i in range(8):
        header.word(f"ST_TURNS{i}", bits >> (32 * (7 - i)) & 0xFFFFFFFF)


def gelu(header: Header) -> None:
    """2 sqrt(2/pi) (x + 0.044715 x^3) = x (c1 + c3 x^2)."""
    linear = 2 * mp.sqrt(2 / mp.pi)
    split(header, "ST_GELU_C1", linear, 24)
    split(header, "ST_GELU_C3", linear * mpf("0.044715"), 12)


def build() -> Header:
    """The header cheap_constants.h."""
    header = Header("ST_CHEAP_CONSTANTS_H", "gen_cheap.py")
    for part in (powers, logarithms, circles, gelu):
        part(header)
    return header
