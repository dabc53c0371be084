"""Constants of exp (f32): the cheap st_exp and the correctly rounded st_exp_cr."""

from __future__ import annotations

from fit import Header, chebyshev_fit, f32_bits, round_to
from mpmath import mp, mpf


def build() -> Header:
    """The header exp_constants.h."""
    header = Header("ST_EXP_CONSTANTS_H", "gen_exp.py")
    ln2 = mp.log(2)
    header.f32("ST_EXP_INV_LN2", 1 / ln2)
    header.f32("ST_EXP_MAGIC", mpf(12582912))
    high = round_to(ln2, 15)
    header.f32("ST_EXP_LN2_H", high)
    header.f32("ST_EXP_LN2_L", ln2 - high)

    def tail(r: mpf) -> mpf:
        return (mp.exp(r) - 1 - r) / r**2 if abs(r) > mpf(2) ** -40 else mpf(1) / 2 + r / 6

    edge = ln2 / 2 + mpf(2) ** -14
    for i, c in enumerate(chebyshev_fit(tail, -edge, edge, 4)):
        header.f32(f"ST_EXP_P{i + 2}", c)
    edge = mpf("0.41")

    def third(r: mpf) -> mpf:
        return (tail(r) - mpf(1) / 2) / r if abs(r) > mpf(2) ** -40 else mpf(1) / 6

    for i, c in enumerate(chebyshev_fit(third, -edge, edge, 4)):
        header.f32(f"ST_EXP_W{i + 3}", c)

    step = ln2 / 8
    header.f32("ST_ECR_INV", 1 / step)
    l1 = round_to(step, 13)
    l2 = round_to(step - l1, 13)
    header.f32("ST_ECR_L1", l1)
    header.f32("ST_ECR_L2", l2)
    header.f32("ST_ECR_L3", step - l1 - l2)
    for k in range(3, 8):
        header.f32(f"ST_ECR_C{k}", 1 / mp.factorial(k))
    header.f32("ST_ECR_EPS", mpf(2) ** -35 * mpf("1.5"))
    for j in range(8):
        power = mpf(2) ** (mpf(j) / 8)
        rounded = round_to(power, 12)
        header.word(f"ST_ECR_TH{j}", f32_bits(rounded))
        header.word(f"ST_ECR_TL{j}", f32_bits(power - rounded) if power != rounded else 0)
    number = int(mp.nint(step * mpf(2) ** 96))
    header.word("ST_ECR_LNH", number >> 64)
    header.word("ST_ECR_LNL", number >> 32 & 0xFFFFFFFF)
    header.word("ST_ECR_LNX", number & 0xFFFFFFFF)
    for k in range(13):
        header.fixed(f"ST_ECR_Q{k}", 1 / mp.factorial(k), 63)
    for j in range(8):
        scaled = int(mp.nint(mpf(2) ** (mpf(j) / 8 + 63)))
        header.word(f"ST_ECR_PH{j}", scaled >> 32)
        header.word(f"ST_ECR_PL{j}", scaled & 0xFFFFFFFF)
    return header
