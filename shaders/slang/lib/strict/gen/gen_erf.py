"""Constants of erf and gelu_erf (f32)."""

from __future__ import annotations

from fit import Header, chebyshev_fit, round_to
from mpmath import mp, mpf

PHI_DEGREE = 10
"""Degree of the six polynomials of the scaled normal tail."""


def scaled_tail(z: mpf) -> mpf:
    """exp(z^2/2) times the normal probability below -z."""
    return mp.erfc(z / mp.sqrt(2)) / 2 * mp.exp(z * z / 2)


def segments() -> list[tuple[mpf, mpf, mpf]]:
    """(scale, low t, high t) of each segment: z = scale * (t + 1.5), except the first where z = t."""
    rows = [(mpf(1), mpf(0), mpf("0.5"))]
    return rows + [(mpf(2) ** e, mpf("-0.5"), mpf("0.5")) for e in (-1, 0, 1, 2, 3)]


def build() -> Header:
    """The header erf_constants.h."""
    header = Header("ST_ERF_CONSTANTS_H", "gen_erf.py")

    def head(u: mpf) -> mpf:
        x = mp.sqrt(u)
        return mp.erf(x) / x - 1

    for i, c in enumerate(chebyshev_fit(head, mpf(0), mpf("0.5626"), 6)):
        header.f32(f"ST_ERF_A{i}", c)
    top = header.f32("ST_ERF_TOP", mp.erf(mpf("1.0625")))
    for i, c in enumerate(
        chebyshev_fit(lambda t: top - mp.erf(t + mpf("1.0625")), mpf("-0.3125"), mpf("0.3125"), 13)
    ):
        header.f32(f"ST_ERF_B{i}", c)
    for i, c in enumerate(
        chebyshev_fit(lambda t: mp.erfc(t + mpf("2.625")), mpf("-1.25"), mpf("1.3125"), 13)
    ):
        header.f32(f"ST_ERF_C{i}", c)
    for j, (scale, low, high) in enumerate(segments()):
        middle = mpf(0) if j == 0 else mpf("1.5")

        def tail(t: mpf, scale: mpf = scale, middle: mpf = middle) -> mpf:
            return scaled_tail(scale * (t + middle))

        fit = chebyshev_fit(tail, low, high, PHI_DEGREE)
        constant = header.f32(f"ST_PHI_H_{j}", fit[0])
        header.f32(f"ST_PHI_L_{j}", fit[0] - constant)
        slope = header.f32(f"ST_PHI_S_{j}", round_to(fit[1], 12))
        for i, c in enumerate([fit[1] - slope, *fit[2:]]):
            header.f32(f"ST_PHI_{i + 1}_{j}", c)
    return header
