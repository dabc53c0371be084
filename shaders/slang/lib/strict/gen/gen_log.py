"""Constants of log, log2 and log1p (f32), correctly rounded."""

from __future__ import annotations

from fit import Header, round_to
from gen_tables import grid
from mpmath import mp, mpf


def build() -> Header:
    """The header log_constants.h."""
    header = Header("ST_LOG_CONSTANTS_H", "gen_log.py")
    ln2 = mp.log(2)
    high = header.f32("ST_LOG_LN2_H", grid(ln2, -16))
    header.f32("ST_LOG_LN2_L", ln2 - high)
    for k in range(3, 8):
        header.f32(f"ST_LOG_C{k}", mpf(1) / k)
    header.f32("ST_LOG_EPS", mpf(2) ** -36 * mpf("1.25"))
    header.f32("ST_LOG_EPA", mpf(2) ** -38 * mpf("1.6"))
    inverse = header.f32("ST_LOG2_INV_H", round_to(1 / ln2, 12))
    header.f32("ST_LOG2_INV_L", 1 / ln2 - inverse)
    header.f32("ST_LOG2_EP0", mpf(2) ** -34)
    header.f32("ST_LOG2_EPS", mpf(2) ** -36)
    header.f32("ST_LOG2_EPA", mpf(2) ** -36)
    header.f32("ST_LOG1P_EP0", mpf(2) ** -35)
    number = int(mp.nint(ln2 * mpf(2) ** 96))
    header.word("ST_LOG_LNH", number >> 64)
    header.word("ST_LOG_LNL", number >> 32 & 0xFFFFFFFF)
    header.word("ST_LOG_LNX", number & 0xFFFFFFFF)
    header.fixed("ST_LOG_INV", 1 / ln2, 63)
    for k in range(1, 13):
        header.fixed(f"ST_LOG_Q{k}", mpf(1) / k, 63)
    return header
