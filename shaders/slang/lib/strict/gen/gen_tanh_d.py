"""Constants of tanh (f64)."""

from __future__ import annotations

from fit import Header, chebyshev_fit
from mpmath import mp, mpf


def build() -> Header:
    """The header tanh_d_constants.h."""
    header = Header("ST_TANH_D_CONSTANTS_H", "gen_tanh_d.py")

    def tail(u: mpf) -> mpf:
        x = mp.sqrt(u)
        return (mp.tanh(x) / x - 1) / u

    for i, c in enumerate(chebyshev_fit(tail, mpf(0), mpf("0.4001") ** 2, 9)):
        header.f64(f"ST_TANHD_P{i}", c)
    return header
