"""Constants of erf and gelu_erf (f64)."""

from __future__ import annotations

from fit import Header, chebyshev_fit, round_to
from gen_erf import scaled_tail
from mpmath import mp, mpf

CENTRES = (
    ("C", "1.8125", "-0.4375", "0.4375"),
    ("D", "3", "-0.75", "0.75"),
    ("E", "4.84375", "-1.09375", "1.09375"),
)
"""Name, centre and range of t of the polynomials of erfc."""


def build() -> Header:
    """The header erf_d_constants.h."""
    header = Header("ST_ERF_D_CONSTANTS_H", "gen_erf_d.py")

    def head(u: mpf) -> mpf:
        x = mp.sqrt(u)
        return mp.erf(x) / x - 1

    for i, c in enumerate(chebyshev_fit(head, mpf(0), mpf("0.5626"), 12)):
        header.f64(f"ST_ERFD_A{i}", c)
    top = header.f64("ST_ERFD_TOP", mp.erf(mpf("1.0625")))
    first = chebyshev_fit(lambda t: top - mp.erf(t + mpf("1.0625")), mpf("-0.3126"), mpf("0.3125"), 21)
    for i, c in enumerate(first):
        header.f64(f"ST_ERFD_B{i}", c)
    for name, centre, low, high in CENTRES:

        def rest(t: mpf, centre: str = centre) -> mpf:
            return mp.erfc(t + mpf(centre))

        for i, c in enumerate(chebyshev_fit(rest, mpf(low), mpf(high), 21)):
            header.f64(f"ST_ERFD_{name}{i}", c)

    def mapped(t: mpf) -> mpf:
        z = 3 * (1 + t) / (1 - t)
        return (z + 3) * scaled_tail(z)

    fit = chebyshev_fit(mapped, mpf(-1), mpf(36) / 42, 26)
    constant = header.f64("ST_PHID_H", fit[0])
    header.f64("ST_PHID_L", fit[0] - constant)
    slope = header.f64("ST_PHID_S", round_to(fit[1], 26))
    for i, c in enumerate([fit[1] - slope, *fit[2:]]):
        header.f64(f"ST_PHID_{i + 1}", c)
    return header
