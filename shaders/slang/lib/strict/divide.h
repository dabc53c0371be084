/* Quotients in f32, correctly rounded for every pair of operands, without a division instruction. */
#ifndef ST_DIVIDE_H
#define ST_DIVIDE_H
#include "base.h"

/* 1/m for m in [1, 2) to about 2^-22: integer first guess, three Newton steps. */
FN float st_rcp_guess(float m) {
  float r = U2F(0x7ef311c7u - F2U(m));
  r = r * (U2F(0x40000000u) - m * r);
  r = r * (U2F(0x40000000u) - m * r);
  return r * (U2F(0x40000000u) - m * r);
}

/* a / b, correctly rounded (ties to even, gradual underflow, overflow to infinity; 0/0, inf/inf and NaN give NaN).
 * A float quotient of the mantissas (relative error below 2^-22) is turned into an integer; the remainder, exact modulo
 * 2^32, corrects it, first by its own float quotient, then in steps of one; one integer rounding at whatever bit the
 * exponent says. */
FN float st_div(float a, float b) {
  uint ua = F2U(a); uint ub = F2U(b); uint xa = ua & 0x7fffffffu; uint xb = ub & 0x7fffffffu;
  uint sign = (ua ^ ub) & 0x80000000u;
  bool special = xa == 0u || xb == 0u || xa >= ST_INF || xb >= ST_INF;
  st_split sa = st_unpack(SEL(special, 0x3f800000u, xa)); st_split sb = st_unpack(SEL(special, 0x3f800000u, xb));
  uint ma = F2U(sa.m) - 0x3f000000u; uint mb = F2U(sb.m) - 0x3f000000u;   /* 24-bit mantissas */
  bool less = ma < mb;
  float r = st_rcp_guess(sb.m);
  float qf = sa.m * r * U2F(SEL(less, 0x4b800000u, 0x4b000000u));
  int e = sa.e - sb.e - SEL(less, 1, 0);
  uint q = (uint)(int)qf;                                    /* near ma * 2^(23 or 24) / mb, within 8 */
  uint rem = (ma << SEL(less, 24u, 23u)) - q * mb;
  int k = (int)((float)((int)rem >> 4) * r * U2F(0x36000000u));      /* rem / mb, toward zero */
  q = q + (uint)k; rem = rem - (uint)k * mb;
  bool low = (int)rem < 0; q = SEL(low, q - 1u, q); rem = SEL(low, rem + mb, rem);
  low = (int)rem < 0; q = SEL(low, q - 1u, q); rem = SEL(low, rem + mb, rem);
  bool high = rem >= mb; q = SEL(high, q + 1u, q); rem = SEL(high, rem - mb, rem);
  uint r2 = rem << 1;
  uint w = (q << 2) | SEL(r2 >= mb, 2u, 0u) | SEL(rem != 0u && r2 != mb, 1u, 0u);
  int under = SEL(e < -126, -126 - e, 0);
  uint cut = 2u + (uint)SEL(under > 25, 25, under);
  uint res = (w + (1u << (cut - 1u)) - 1u + ((w >> cut) & 1u)) >> cut;
  uint bits = SEL(under > 0, res, res + ((uint)(e + 126) << 23));
  bits = SEL(e > 127, ST_INF, bits);
  uint limit = SEL(xb == 0u || xa == ST_INF, ST_INF, 0u);
  bool nan = xa > ST_INF || xb > ST_INF || (xa == 0u && xb == 0u) || (xa == ST_INF && xb == ST_INF);
  bits = SEL(special, limit, bits);
  return U2F(SEL(nan, ST_NAN, bits | sign));
}

/* 1 / x, correctly rounded (all inputs tried). */
FN float st_rcp(float x) { return st_div(ST_ONE, x); }
#endif
