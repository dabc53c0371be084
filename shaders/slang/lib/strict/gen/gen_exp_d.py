"""Constants of exp (f64)."""

from __future__ import annotations

from fit import Header, chebyshev_fit, round_to
from mpmath import mp, mpf


def build() -> Header:
    """The header exp_d_constants.h."""
    header = Header("ST_EXP_D_CONSTANTS_H", "gen_exp_d.py")
    ln2 = mp.log(2)
    header.f64("ST_EXPD_INV_LN2", 1 / ln2)
    header.f64("ST_EXPD_MAGIC", mpf(3) * mpf(2) ** 51)
    high = round_to(ln2, 41)
    header.f64("ST_EXPD_LN2_H", high)
    header.f64("ST_EXPD_LN2_L", ln2 - high)

    def tail(r: mpf) -> mpf:
        return (mp.exp(r) - 1 - r - r * r / 2) / r**3 if abs(r) > mpf(2) ** -60 else mpf(1) / 6 + r / 24

    edge = mpf("0.36")
    for i, c in enumerate(chebyshev_fit(tail, -edge, edge, 10)):
        header.f64(f"ST_EXPD_P{i + 3}", c)
    return header
