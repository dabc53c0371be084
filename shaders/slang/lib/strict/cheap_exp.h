/* exp2 and expm1 in f32, and the exponential as two floats for other functions. No branch, no table. */
#ifndef ST_CHEAP_EXP_H
#define ST_CHEAP_EXP_H
#include "base.h"
#include "exp_constants.h"
#include "cheap_constants.h"

/* The bits of p 2^k, p in [0.7, 1.5), -153 <= k <= 128, shift = k << 23: gradual underflow as in st_exp, overflow to
 * infinity. */
FN uint st_exp_bits(float p, uint shift) {
  uint b = F2U(p) + shift;
  uint s = F2U(U2F(b + 0x4a800000u) + U2F(0x4b000000u)) - 0x4b000000u;
  b = st_where_negative(b - 0x00800000u, s, b);
  return SEL((int)b > 0x7f800000, ST_INF, b);
}

/* exp(xh + xl) = 2^k (1 + h + l), k = round(xh/ln 2) <= 170, h exact, l within 2^-27 of the whole; |xl| <= 2^-16. */
FN st_ff st_exp_step(float xh, float xl, float k) {
  float d = xh - k * ST_EXP_LN2_H; float w = k * ST_EXP_LN2_L - xl; float r = d - w;
  float rr = r * r;
  float q = ST_EXP_W3 + r * (ST_EXP_W4 + r * (ST_EXP_W5 + r * (ST_EXP_W6 + r * ST_EXP_W7)));
  st_ff y; y.h = d; y.l = rr * ST_HALF + ((rr * r) * q - w); return y;
}
/* The same with 1 + h added: exp(xh + xl) = 2^k (h + l), h in [0.7, 1.5), l within half a unit of h. */
FN st_ff st_exp_pair(float xh, float xl, float k) {
  st_ff s = st_exp_step(xh, xl, k);
  float h = ST_ONE + s.h; float l = ((ST_ONE - h) + s.h) + s.l;
  st_ff y; y.h = h + l; y.l = (h - y.h) + l; return y;
}

/* exp2(x), at most 0.765 ULP (all inputs; worst at 0xc2fcbc2c). k = round(x); (x - k) ln2 with an exact leading
 * product. */
FN float st_exp2(float x) {
  uint u = F2U(x);
  uint c = SEL(u > 0xc3170000u, 0xc3170000u, u);                      /* -151 */
  c = SEL((int)c > 0x43000000, 0x43000000u, c);                      /* 128 */
  c = SEL((c & 0x7fffffffu) < 0x2b800000u, 0x2b800000u, c);          /* 2^-40 */
  float z = U2F(c);
  float t = z + ST_EXP_MAGIC; float r = z - (t - ST_EXP_MAGIC);
  float a = st_hi12(r); float h = a * ST_CHEAP_LN2_H;
  float q = ST_EXP2_P4 + r * (ST_EXP2_P5 + r * (ST_EXP2_P6 + r * ST_EXP2_P7));
  q = ST_EXP2_P2 + r * (ST_EXP2_P3 + r * q);
  float l = (r - a) * ST_CHEAP_LN2_H + (r * ST_CHEAP_LN2_L + (r * r) * q);
  float s = ST_ONE + h;
  uint b = st_exp_bits(s + (((ST_ONE - s) + h) + l), F2U(t) << 23);
  return U2F(st_where_negative(ST_INF - (u & 0x7fffffffu), ST_NAN, b));
}

/* expm1(x), at most 0.823 ULP (all inputs; worst at 0x3ebd5c7c). 2^k ((1 - 2^-k) + h + l) with the first sums exact;
 * k = 0 for -0.3466 < x < 0.40625 (where the result is 1/2): tiny arguments keep their relative accuracy. */
FN float st_expm1(float x) {
  uint u = F2U(x); uint a = u & 0x7fffffffu;
  uint c = SEL(u > 0xc187d000u, 0xc187d000u, u);                      /* -16.9766 */
  c = SEL((int)c > 0x42b20000, 0x42b20000u, c);                      /* 89 */
  bool tiny = a < 0x33000000u;                                       /* 2^-25 */
  float z = U2F(SEL(tiny, 0x3f800000u, c));
  float t = z * ST_EXP_INV_LN2 + ST_EXP_MAGIC;
  t = U2F(SEL(c - 0x3e800000u < 0x00500000u, F2U(ST_EXP_MAGIC), F2U(t)));              /* 1/4 .. 0.40625 */
  uint shift = F2U(t) << 23;
  st_ff e = st_exp_step(z, U2F(0u), t - ST_EXP_MAGIC);
  int n = ST_EXP_N(t);
  float g = U2F(0x3f800000u - ((uint)SEL(n > 60, 60, n) << 23)); float f = ST_ONE - g;
  float s = f + e.h;
  uint b = F2U(s + (((f - s) + e.h) + (((ST_ONE - f) - g) + e.l))) + shift;
  b = SEL((int)b > 0x7f800000, ST_INF, b);
  b = SEL(u > 0xc187d000u, SEL(u > 0xc18aa124u, 0xbf800000u, 0xbf7fffffu), b);         /* -17.3287 */
  b = SEL(tiny, u, b);
  return U2F(st_where_negative(ST_INF - a, ST_NAN, b));
}
#endif
