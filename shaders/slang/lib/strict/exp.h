/* exp in f32: st_exp, the cheap one for use inside softmax and attention, and st_exp_ff, its wide form. */
#ifndef ST_EXP_H
#define ST_EXP_H
#include "base.h"
#include "exp_constants.h"

/* exp(x), at most 0.967 ULP (all inputs; worst at 0x41798909), gradual underflow, no branch.
 * n = round(x / ln 2) by the magic-number addition, r = x - n ln 2 in two parts (the first product and difference
 * are exact), 1 + r + r^2 P(r) with P of degree 4 (r's low part joins the last
 * sum late, which saves a quarter ULP), 2^n put into the exponent by an integer addition; a subnormal
 * result is rounded by adding 2^23 to result * 2^149.
 * Budget in ULP of a result just below 1: 0.5 the last sum, 0.25 the sum before it, 0.2 coefficients and r^2 P. */
FN float st_exp(float x) {
  uint u = F2U(x);
  uint c = SEL(u > 0xc2d00000u, 0xc2d00000u, u);              /* -104 */
  c = SEL((int)c > 0x42b20000, 0x42b20000u, c);               /* 89 */
  float z = U2F(c);
  float t = z * ST_EXP_INV_LN2 + ST_EXP_MAGIC; float k = t - ST_EXP_MAGIC;
  float d = z - k * ST_EXP_LN2_H; float w = k * ST_EXP_LN2_L; float r = d - w;
  float q = ST_EXP_P2 + r * (ST_EXP_P3 + r * (ST_EXP_P4 + r * (ST_EXP_P5 + r * ST_EXP_P6)));
  float p = ST_ONE + (d + ((r * r) * q - w));
  uint b = F2U(p) + (F2U(t) << 23);
  uint s = F2U(U2F(b + 0x4a800000u) + U2F(0x4b000000u)) - 0x4b000000u;
  b = st_where_negative(b - 0x00800000u, s, b);
  b = SEL((int)b > 0x7f800000, ST_INF, b);
  b = st_where_negative(ST_INF - (u & 0x7fffffffu), ST_NAN, b);
  return U2F(b);
}

/* exp(xh + xl) = (h + l) * 2^n to about 2^-30 relative, for |xh| <= 110, |xl| <= 0.06, n = ST_EXP_N(t) of the t
 * that st_exp_t gives for xh + xl rounded. */
FN float st_exp_t(float x) { return x * ST_EXP_INV_LN2 + ST_EXP_MAGIC; }
#define ST_EXP_N(t) ((int)F2U(t) - 0x4b400000)
FN st_ff st_exp_ff(float xh, float xl, float t) {
  float k = t - ST_EXP_MAGIC;
  float d = xh - k * ST_EXP_LN2_H; float w = xl - k * ST_EXP_LN2_L;
  float r = d + w; float bb = r - d; float e = (d - (r - bb)) + (w - bb);
  float q = ST_EXP_W3 + r * (ST_EXP_W4 + r * (ST_EXP_W5 + r * (ST_EXP_W6 + r * ST_EXP_W7)));
  float a = st_hi12(r); float b = r - a; float s0 = a * a * ST_HALF;
  float h1 = ST_ONE + r; float h = h1 + s0;
  float l = ((ST_ONE - h1) + r) + (((h1 - h) + s0) + ((e + e * r) + (a * b + (b * b * ST_HALF + (r * r) * r * q))));
  st_ff y; y.h = h + l; y.l = (h - y.h) + l; return y;
}
#endif
