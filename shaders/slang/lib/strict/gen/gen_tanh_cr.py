"""Constants of tanh (f32), correctly rounded."""

from __future__ import annotations

from fit import Header, f32_bits
from mpmath import mp, mpf

TERMS = 9
"""Of the series in x^2 of tanh(x)/x; the next is below 2^-70 for x < 1/8."""


def build() -> Header:
    """The header tanh_cr_constants.h."""
    header = Header("ST_TANH_CR_CONSTANTS_H", "gen_tanh_cr.py")
    series = mp.taylor(mp.tanh, 0, 2 * TERMS + 1)
    for n in range(TERMS + 1):
        header.fixed(f"ST_TANHCR_Q{n}", abs(mp.mpf(series[2 * n + 1])), 63)
    end = mp.atanh(1 - mpf(2) ** -25)
    header.word("ST_TANHCR_ONE", f32_bits(end) + 1)
    header.f32("ST_TANHCR_EPS", mpf(2) ** -34 * mpf("1.1"))
    header.f32("ST_TANHCR_EP0", mpf(2) ** -24 * mpf("0.95"))
    header.f32("ST_TANHCR_EP1", mpf(2) ** -42)
    return header
