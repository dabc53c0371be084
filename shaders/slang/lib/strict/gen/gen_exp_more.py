"""Constants of exp2, expm1, sigmoid, silu and softplus (f32), correctly rounded."""

from __future__ import annotations

from fit import Header, round_to
from mpmath import mp, mpf


def build() -> Header:
    """The header exp_more_constants.h."""
    header = Header("ST_EXP_MORE_CONSTANTS_H", "gen_exp_more.py")
    high = header.f32("ST_EXP2_LN2_H", round_to(mp.log(2), 12))
    header.f32("ST_EXP2_LN2_L", mp.log(2) - high)
    header.f32("ST_EXPM1_EP0", mpf(2) ** -34 * mpf("1.2"))
    header.f32("ST_SIGMOID_EPS", mpf(2) ** -34 * mpf("1.2"))
    header.fixed("ST_EXP2_LN2", mp.log(2), 64)
    header.fixed("ST_SIXTH8", mpf(1) / 48, 64)
    return header
