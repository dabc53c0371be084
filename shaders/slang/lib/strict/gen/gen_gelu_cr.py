"""Constants of gelu, the tanh form (f32), correctly rounded: gelu(x) = x sigmoid(x (A + B x^2))."""

from __future__ import annotations

from fit import Header
from mpmath import mp, mpf


def build() -> Header:
    """The header gelu_cr_constants.h."""
    header = Header("ST_GELU_CR_CONSTANTS_H", "gen_gelu_cr.py")
    a = 2 * mp.sqrt(2 / mp.pi)
    b = a * mpf(44715) / 10**6
    high = header.f32("ST_GELUCR_AH", a)
    header.f32("ST_GELUCR_AL", a - high)
    high = header.f32("ST_GELUCR_BH", b)
    header.f32("ST_GELUCR_BL", b - high)
    header.fixed("ST_GELUCR_QA", a, 60)
    header.fixed("ST_GELUCR_QB", b, 67)
    header.f32("ST_GELUCR_EPS", mpf(2) ** -35 * mpf("1.1"))
    return header
