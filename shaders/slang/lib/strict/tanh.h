/* tanh in f32. */
#ifndef ST_TANH_H
#define ST_TANH_H
#include "base.h"
#include "divide.h"
#include "exp.h"
#include "tanh_constants.h"

/* tanh(x), at most 0.636 ULP (all inputs; worst at 0x3ecc1f4d).
 * |x| < 0.4: x + x^3 P(x^2), P of degree 4; |x| < 2^-13 is x itself. Otherwise 1 - 2/(exp(2|x|) + 1) with the
 * exponential and the quotient in two parts (relative error about 2^-28 before the last rounding). */
FN float st_tanh(float x) {
  uint u = F2U(x); uint a = u & 0x7fffffffu;
  uint c = SEL(a > 0x41180000u, 0x41180000u, SEL(a < 0x38000000u, 0x38000000u, a));    /* 2^-15 .. 9.5 */
  float z = U2F(c); float w = z * z;
  float q = ST_TANH_P0 + w * (ST_TANH_P1 + w * (ST_TANH_P2 + w * (ST_TANH_P3 + w * ST_TANH_P4)));
  float small = z + (z * w) * q;
  float y = z + z; float t = st_exp_t(y);
  st_ff g = st_exp_ff(y, U2F(0u), t);
  float f = U2F((uint)(ST_EXP_N(t) + 127) << 23);
  float eh = g.h * f; float el = g.l * f;
  float dh = eh + ST_ONE; float bb = dh - eh; float dl = ((eh - (dh - bb)) + (ST_ONE - bb)) + el;
  uint ud = F2U(dh); int ed = (int)(ud >> 23) - 127;
  float r = st_rcp_guess(U2F((ud & 0x007fffffu) | 0x3f800000u)) * U2F((uint)(127 - ed) << 23);
  st_ff p = st_two_prod(dh, r);
  float e = (ST_ONE - p.h) - (p.l + dl * r);
  float r2 = r + r; float s = ST_ONE - r2;
  float large = s + (((ST_ONE - s) - r2) - r2 * e);
  uint b = st_where_negative(a - 0x3ecccccdu, F2U(small), F2U(large));
  b = st_where_negative(a - 0x39000000u, a, b);
  b = st_where_negative(0x41180000u - a, 0x3f800000u, b) | (u & 0x80000000u);
  return U2F(st_where_negative(ST_INF - a, ST_NAN, b));
}
#endif
