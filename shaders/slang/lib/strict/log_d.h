/* log, log2 and log1p in f64. */
#ifndef ST_LOG_D_H
#define ST_LOG_D_H
#include "sums_d.h"
#include "exp_d_constants.h"
#include "extra_d_constants.h"

/* c + cl + log(1 + f) in two parts to about 2^-57 of the larger, for 1 + f within [0.70, 1.42], c zero or whole times
 * ST_EXPD_LN2_H. With s = f / (2 + f): log(1 + f) = f - f^2/2 + s (f^2/2 + R(s^2)), f^2/2 exact in two parts. */
FN st_dd st_log_dd(double f, double c, double cl) {
  double t = f * ST_HALF_D; double h = ST_ONE_D + t;
  double r = ST_LOGD_G0 + t * (ST_LOGD_G1 + t * ST_LOGD_G2);         /* 1 / h to 2^-9, three Newton steps */
  r = r * (ST_TWO_D - h * r);
  r = r * (ST_TWO_D - h * r);
  r = r * (ST_TWO_D - h * r);
  double s = t * r; double z = s * s;
  double p = ST_LOGD_P4 + z * (ST_LOGD_P5 + z * (ST_LOGD_P6 + z * ST_LOGD_P7));
  p = ST_LOGD_P0 + z * (ST_LOGD_P1 + z * (ST_LOGD_P2 + z * (ST_LOGD_P3 + z * p)));
  double q = s * (f * t + z * p);
  double a = st_hi26(f); double b = f - a; double s0 = a * a * ST_HALF_D;
  st_dd g = st_two_sum_d(c, f); double g2 = g.h - s0;
  double l = ((g.h - g2) - s0) + (g.l + ((q - b * (a + b * ST_HALF_D)) + cl));
  return st_quick_sum_d(g2, l);
}

/* Is m in [1, 2) above the square root of 2 (its first 32 bits)? */
FN bool st_above_root_d(double m) { st_u64 u = D2U(m); return u.h > 0x3ff6a09eu; }

/* The result for zero (-inf), negative numbers and NaN (NaN), +inf (inf), by the words of the argument of log. */
FN double st_log_special_d(uint h, uint l) {
  bool zero = ((h & 0x7fffffffu) | l) == 0u; bool inf = h == 0x7ff00000u && l == 0u;
  return U2D(SEL(zero, 0xfff00000u, SEL(inf, 0x7ff00000u, 0x7ff80000u)), 0u);
}

/* log(x), at most 1 ULP (worst of 6 million samples 0.737). */
FN double st_log_d(double x) {
  st_u64 u = D2U(x); bool special = (u.h | u.l) == 0u || u.h >= 0x7ff00000u;
  st_split_d s = st_unpack_d(SEL(special, 0x3ff00000u, u.h), SEL(special, 0u, u.l));
  bool up = st_above_root_d(s.m);
  double e = st_int_d(s.e + SEL(up, 1, 0)); double f = SEL(up, s.m * ST_HALF_D, s.m) - ST_ONE_D;
  st_dd y = st_log_dd(f, e * ST_EXPD_LN2_H, e * ST_EXPD_LN2_L);
  return SEL(special, st_log_special_d(u.h, u.l), y.h);
}

/* log2(x), at most 1 ULP (worst of 6 million samples 0.849), exact for powers of two. */
FN double st_log2_d(double x) {
  st_u64 u = D2U(x); bool special = (u.h | u.l) == 0u || u.h >= 0x7ff00000u;
  st_split_d s = st_unpack_d(SEL(special, 0x3ff00000u, u.h), SEL(special, 0u, u.l));
  bool up = st_above_root_d(s.m);
  double e = st_int_d(s.e + SEL(up, 1, 0)); double f = SEL(up, s.m * ST_HALF_D, s.m) - ST_ONE_D;
  st_dd y = st_log_dd(f, ST_ZERO_D, ST_ZERO_D);
  st_dd p = st_mul_dd(y.h, y.l, ST_INV_LN2D_H, ST_INV_LN2D_L);
  st_dd t = st_quick_sum_d(e, p.h);
  return SEL(special, st_log_special_d(u.h, u.l), t.h + (t.l + p.l));
}

/* log(1 + x), at most 1 ULP (worst of 6 million samples 0.778), x below 2^-54 gives x. Within [-0.29, 0.41] f is x
 * itself; beyond, 1 + x is taken in two parts and the low one enters through the derivative. */
FN double st_log1p_d(double x) {
  st_u64 u = D2U(x); uint a = u.h & 0x7fffffffu;
  st_dd w = st_two_sum_d(ST_ONE_D, x); st_u64 v = D2U(w.h);
  bool special = (v.h | v.l) == 0u || v.h >= 0x7ff00000u;
  st_split_d s = st_unpack_d(SEL(special, 0x3ff00000u, v.h), SEL(special, 0u, v.l));
  bool up = st_above_root_d(s.m); int k = s.e + SEL(up, 1, 0);
  uint edge = st_where_negative(u.h, 0x3fd2bec3u, 0x3fda8279u);
  uint far = SEL(a < edge, 0u, 0xffffffffu);                         /* a mask, for the sake of C: see base.h */
  st_u64 c = D2U(SEL(up, s.m * ST_HALF_D, s.m) - ST_ONE_D);
  double f = U2D((c.h & far) | (u.h & ~far), (c.l & far) | (u.l & ~far));
  double fl = w.l * U2D((uint)(1023 - SEL(k > 200, 200, k)) << 20 & far, 0u);
  double e = st_int_d(k & (int)far);
  st_dd y = st_log_dd(f, e * ST_EXPD_LN2_H, e * ST_EXPD_LN2_L + fl * ((ST_ONE_D - f) + f * f));
  double res = SEL(a < 0x3c900000u, x, y.h);
  return SEL(special, st_log_special_d(v.h, v.l), res);
}
#endif
