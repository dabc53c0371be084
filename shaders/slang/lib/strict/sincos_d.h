/* sin and cos in f64 for every finite argument. */
#ifndef ST_SINCOS_D_H
#define ST_SINCOS_D_H
#include "sums_d.h"
#include "exp_d_constants.h"
#include "extra_d_constants.h"
#include "tables.h"

/* An angle as q quarter turns and a rest h + l of about an eighth of a turn at most. */
#ifdef ST_LANGUAGE_C
typedef struct { double h; double l; uint q; } st_angle_d;
#else
struct st_angle_d { double h; double l; uint q; };
#endif

/* x modulo a quarter turn for |x| < 2^20: k = round(x 2/pi), pi/2 in three parts of 33 bits, whose multiples are exact,
 * and a fourth. */
FN st_angle_d st_reduce_near_d(double x) {
  double t = x * ST_SIND_INV + ST_EXPD_MAGIC; double k = t - ST_EXPD_MAGIC; st_u64 n = D2U(t);
  double d = x - k * ST_SIND_P1;
  st_dd a = st_two_sum_d(d, ST_ZERO_D - k * ST_SIND_P2);
  st_dd b = st_two_sum_d(a.h, ST_ZERO_D - k * ST_SIND_P3);
  st_dd c = st_quick_sum_d(b.h, (a.l + b.l) - k * ST_SIND_P4);
  st_angle_d r; r.h = c.h; r.l = c.l; r.q = n.l; return r;
}

/* a << s | b >> (32 - s) for s in [0, 31]. */
FN uint st_funnel(uint a, uint b, uint s) { return (a << s) | SEL(s == 0u, 0u, b >> ((32u - s) & 31u)); }

/* The same for the words h, l of a finite x with |x| >= 2^20 (Payne and Hanek): the mantissa times a window of 192 bits
 * of 2/pi, modulo 4; 135 bits of the product's fraction are right, where 62 may cancel. */
FN st_angle_d st_reduce_far_d(uint h, uint l) {
  uint m = (h & 0x000fffffu) | 0x00100000u; uint pos = ((h >> 20) & 2047u) - 1013u;
  uint w = ST_T_2PID + (pos >> 5); uint s = pos & 31u;
  uint t0 = ST_TABLE(w); uint t1 = ST_TABLE(w + 1u); uint t2 = ST_TABLE(w + 2u); uint t3 = ST_TABLE(w + 3u);
  uint t4 = ST_TABLE(w + 4u); uint t5 = ST_TABLE(w + 5u);
  uint t6 = ST_TABLE(w + 6u);
  t0 = st_funnel(t0, t1, s); t1 = st_funnel(t1, t2, s); t2 = st_funnel(t2, t3, s); t3 = st_funnel(t3, t4, s);
  t4 = st_funnel(t4, t5, s); t5 = st_funnel(t5, t6, s);
  uint c = st_mulhi32(l, t5);                                        /* a = l * t, its top five words of six */
  uint a4 = l * t4 + c; c = st_mulhi32(l, t4) + SEL(a4 < c, 1u, 0u);
  uint a3 = l * t3 + c; c = st_mulhi32(l, t3) + SEL(a3 < c, 1u, 0u);
  uint a2 = l * t2 + c; c = st_mulhi32(l, t2) + SEL(a2 < c, 1u, 0u);
  uint a1 = l * t1 + c; c = st_mulhi32(l, t1) + SEL(a1 < c, 1u, 0u);
  uint a0 = l * t0 + c;
  uint b4 = m * t5; c = st_mulhi32(m, t5);                           /* b = m * t one word up, added */
  uint b3 = m * t4 + c; c = st_mulhi32(m, t4) + SEL(b3 < c, 1u, 0u);
  uint b2 = m * t3 + c; c = st_mulhi32(m, t3) + SEL(b2 < c, 1u, 0u);
  uint b1 = m * t2 + c; c = st_mulhi32(m, t2) + SEL(b1 < c, 1u, 0u);
  uint b0 = m * t1 + c;
  st_u64 lo = st_add64(st_mk64(a3, a4), st_mk64(b3, b4));
  uint up = SEL(lo.h < b3 || (lo.h == b3 && lo.l < b4), 1u, 0u);
  st_u64 mid = st_add64(st_mk64(a1, a2), st_mk64(b1, b2));
  uint up2 = SEL(mid.h < b1 || (mid.h == b1 && mid.l < b2), 1u, 0u);
  mid = st_add64(mid, st_mk64(0u, up));
  up2 = up2 + SEL(up != 0u && (mid.h | mid.l) == 0u, 1u, 0u);
  uint top = a0 + b0 + up2;
  uint flip = SEL((top & 0x20000000u) != 0u, 0xffffffffu, 0u);       /* more than half a quarter: count from the next */
  double d0 = st_word_d((top ^ flip) & 0x3fffffffu) * st_power_d(-30);
  double d1 = st_word_d(mid.h ^ flip) * st_power_d(-62);
  double d2 = st_word_d(mid.l ^ flip) * st_power_d(-94);
  double d3 = st_word_d(lo.h ^ flip) * st_power_d(-126) + st_word_d(lo.l ^ flip) * st_power_d(-158);
  st_dd p = st_quick_sum_d(d0, d1); st_dd q = st_quick_sum_d(d2, d3);
  st_dd f = st_quick_sum_d(p.h, p.l + q.h);
  st_dd g = st_mul_dd(f.h, f.l + q.l, ST_PIO2D_H, ST_PIO2D_L);
  g = st_quick_sum_d(g.h, g.l);
  uint sign = (flip ^ h) & 0x80000000u; uint n = (top + 0x20000000u) >> 30;
  st_angle_d r; r.q = SEL((h >> 31) != 0u, 0u - n, n);
  r.h = st_sign_d(g.h, sign); st_u64 e = D2U(g.l); r.l = U2D(e.h ^ sign, e.l);
  return r;
}

/* sin of the angle and `turn` quarters. The squares' halves are exact in two parts. */
FN double st_sin_angle_d(st_angle_d r, uint turn) {
  double z = r.h * r.h; uint q = r.q + turn;
  double s = ST_SIND_S3 + z * (ST_SIND_S4 + z * (ST_SIND_S5 + z * ST_SIND_S6));
  s = ST_SIND_S0 + z * (ST_SIND_S1 + z * (ST_SIND_S2 + z * s));
  s = r.h + ((r.h * z) * s + (r.l - r.l * (z * ST_HALF_D)));
  double c = ST_SIND_C3 + z * (ST_SIND_C4 + z * (ST_SIND_C5 + z * ST_SIND_C6));
  c = ST_SIND_C0 + z * (ST_SIND_C1 + z * (ST_SIND_C2 + z * c));
  double a = st_hi26(r.h); double b = r.h - a; double v = a * a * ST_HALF_D; double w = ST_ONE_D - v;
  c = w + (((ST_ONE_D - w) - v) + ((z * z) * c - (b * (a + b * ST_HALF_D) + r.h * r.l)));
  st_u64 us = D2U(s); st_u64 uc = D2U(c); uint odd = 0u - (q & 1u);
  return U2D(((us.h & ~odd) | (uc.h & odd)) ^ ((q & 2u) << 30), (us.l & ~odd) | (uc.l & odd));
}

/* sin and cos where |x| < 2^20 (anything else gives nonsense): without a branch, so that C can vectorise it. */
FN double st_sin_near_d(double x) {
  st_u64 u = D2U(x); bool tiny = (u.h & 0x7fffffffu) < 0x3e400000u;  /* 2^-27 */
  double y = st_sin_angle_d(st_reduce_near_d(x), 0u);
  return SEL(tiny, x, y);
}
FN double st_cos_near_d(double x) { return st_sin_angle_d(st_reduce_near_d(x), 1u); }

/* Is |x| >= 2^20, infinite or NaN? Then st_sin_near_d and st_cos_near_d do not apply. */
FN bool st_is_far_d(double x) { st_u64 u = D2U(x); return (u.h & 0x7fffffffu) >= 0x41300000u; }

/* sin(x) and cos(x), at most 1 ULP for every finite x (worst of 6 million samples each 0.771 and 0.804); infinities and
 * NaN give NaN. */
FN double st_sin_far_d(double x, uint turn) {
  st_u64 u = D2U(x); bool special = (u.h & 0x7fffffffu) >= 0x7ff00000u;
  double y = st_sin_angle_d(st_reduce_far_d(SEL(special, 0x41300000u, u.h), u.l), turn);
  return SEL(special, ST_NAN_D, y);
}
FN double st_sin_d(double x) {
  double y = st_sin_near_d(x);
  if (st_is_far_d(x)) y = st_sin_far_d(x, 0u);
  return y;
}
FN double st_cos_d(double x) {
  double y = st_cos_near_d(x);
  if (st_is_far_d(x)) y = st_sin_far_d(x, 1u);
  return y;
}
#endif
