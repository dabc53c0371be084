"""Constants of exp2, log, log2, log1p, sin, cos and gelu (f64)."""

from __future__ import annotations

from fit import Header, chebyshev_fit, round_to
from mpmath import mp, mpf


def two_parts(header: Header, name: str, value: mpf) -> None:
    """value as the sum of two doubles."""
    high = header.f64(name + "_H", value)
    header.f64(name + "_L", value - high)


def series(header: Header, name: str, f: object, edge: mpf, degree: int) -> None:
    """A polynomial in a non-negative variable up to edge."""
    for i, c in enumerate(chebyshev_fit(f, mpf(0), edge, degree)):  # type: ignore[arg-type]
        header.f64(f"{name}{i}", c)


def log_rest(z: mpf) -> mpf:
    """(2 atanh(s) - 2 s) / (s z), z = s^2."""
    if z < mpf(2) ** -100:
        return mpf(2) / 3 + mpf(2) / 5 * z
    s = mp.sqrt(z)
    return (2 * mp.atanh(s) - 2 * s) / (s * z)


def sine_rest(z: mpf) -> mpf:
    """(sin(r) / r - 1) / z, z = r^2."""
    r = mp.sqrt(z)
    return (mp.sin(r) / r - 1) / z if z > mpf(2) ** -100 else -mpf(1) / 6 + z / 120


def cosine_rest(z: mpf) -> mpf:
    """(cos(r) - 1 + z / 2) / z^2, z = r^2."""
    return (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2 if z > mpf(2) ** -100 else mpf(1) / 24 - z / 720


def build() -> Header:
    """The header extra_d_constants.h."""
    header = Header("ST_EXTRA_D_CONSTANTS_H", "gen_extra_d.py")
    two_parts(header, "ST_LN2D", mp.log(2))
    two_parts(header, "ST_INV_LN2D", 1 / mp.log(2))
    low, high = (mp.sqrt(mpf(1) / 2) - 1) / 2, (mp.sqrt(2) - 1) / 2
    for i, c in enumerate(chebyshev_fit(lambda t: 1 / (1 + t), low, high, 2)):
        header.f64(f"ST_LOGD_G{i}", c)
    series(header, "ST_LOGD_P", log_rest, mpf("0.02945"), 7)
    header.f64("ST_SIND_INV", 2 / mp.pi)
    two_parts(header, "ST_PIO2D", mp.pi / 2)
    rest = mp.pi / 2
    for i in range(3):
        rest -= header.f64(f"ST_SIND_P{i + 1}", round_to(rest, 33))
    header.f64("ST_SIND_P4", rest)
    series(header, "ST_SIND_S", sine_rest, mpf("0.62"), 6)
    series(header, "ST_SIND_C", cosine_rest, mpf("0.62"), 6)
    scale = 2 * mp.sqrt(2 / mp.pi)
    two_parts(header, "ST_GELUD_A", scale)
    two_parts(header, "ST_GELUD_B", scale * mpf(44715) / mpf(1000000))
    return header
