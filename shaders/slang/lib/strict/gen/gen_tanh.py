"""Constants of tanh (f32): the odd polynomial around zero."""

from __future__ import annotations

from fit import Header, chebyshev_fit
from mpmath import mp, mpf


def build() -> Header:
    """The header tanh_constants.h."""
    header = Header("ST_TANH_CONSTANTS_H", "gen_tanh.py")

    def tail(u: mpf) -> mpf:
        x = mp.sqrt(u)
        return (mp.tanh(x) / x - 1) / u

    for i, c in enumerate(chebyshev_fit(tail, mpf(0), mpf("0.405") ** 2, 4)):
        header.f32(f"ST_TANH_P{i}", c)
    return header
