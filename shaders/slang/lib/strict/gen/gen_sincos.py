"""Constants of sin and cos (f32), correctly rounded."""

from __future__ import annotations

from fit import Header, f32_bits, round_to
from gen_tables import grid
from mpmath import mp, mpf


def build() -> Header:
    """The header sincos_constants.h."""
    header = Header("ST_SINCOS_CONSTANTS_H", "gen_sincos.py")
    step = mp.pi / 32
    header.f32("ST_SC_INV", 1 / step)
    rest = step
    for i, exponent in enumerate((-13, -23, -33)):
        part = grid(rest, exponent)
        header.lines.append(f"#define ST_SC_P{i + 1} U2F(0x{f32_bits(part):08x}u)")
        rest -= part
    header.f32("ST_SC_P4", rest)
    for name, k in (("S3", 3), ("S5", 5), ("S7", 7), ("K4", 4), ("K6", 6)):
        header.f32(f"ST_SC_{name}", 1 / mp.factorial(k))
    header.f32("ST_SC_EP0", mpf(2) ** -33 * mpf("0.92"))
    header.f32("ST_SC_EPR", mpf(2) ** -37)
    header.f32("ST_SC_EPA", mpf(2) ** -36 * mpf("0.92"))
    header.f32("ST_SC_EPK", mpf(2) ** -43)
    header.f32("ST_SC_EPF", mpf(2) ** -40)
    high = round_to(step, 12)
    header.f32("ST_SC_STEP_H", high)
    header.f32("ST_SC_STEP_L", step - high)
    header.fixed("ST_SC_PIO2", mp.pi / 2, 63)
    for k in range(11):
        header.fixed(f"ST_SC_QS{k}", 1 / mp.factorial(2 * k + 1), 63)
        header.fixed(f"ST_SC_QC{k}", 1 / mp.factorial(2 * k), 63)
    return header
