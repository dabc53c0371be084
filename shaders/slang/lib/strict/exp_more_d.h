/* exp2 and expm1 in f64. */
#ifndef ST_EXP_MORE_D_H
#define ST_EXP_MORE_D_H
#include "exp_d.h"
#include "sums_d.h"
#include "extra_d_constants.h"

/* 2^x, at most 1 ULP (worst of 6 million samples 0.750, a subnormal result), exact for whole x: x = n + r, then exp of
 * r ln 2 in two parts. */
FN double st_exp2_d(double x) {
  st_u64 u = D2U(x); uint a = u.h & 0x7fffffffu;
  bool big = a >= 0x40914000u;                                       /* 1104 */
  double z = SEL(big, st_sign_d(U2D(0x40914000u, 0u), u.h), x);
  double t = z + ST_EXPD_MAGIC; double r = z - (t - ST_EXPD_MAGIC);
  st_dd p = st_two_prod_d(r, ST_LN2D_H);
  st_dd g = st_exp_dd(p.h, p.l + r * ST_LN2D_L, ST_EXPD_MAGIC);
  st_u64 n = D2U(t);
  return SEL(st_is_nan_d(a, u.l), ST_NAN_D, st_pack_d(g.h, (int)n.l));
}

/* exp(x) - 1, at most 1 ULP (worst of 6 million samples 0.612): x = k ln 2 + r, m = exp(r) - 1 in two parts with an
 * exact square, then 2^k ((1 - 2^-k) + m). Below 2^-54 the result is x, at most -40 it is -1. */
FN double st_expm1_d(double x) {
  st_u64 u = D2U(x); uint a = u.h & 0x7fffffffu; bool neg = (u.h >> 31) != 0u;
  bool tiny = a < 0x3c900000u;
  bool low = neg && a >= 0x40440000u; bool high = !neg && a >= 0x40864000u;   /* -40, 712 */
  double z = SEL(low, U2D(0xc0440000u, 0u), SEL(high, U2D(0x40864000u, 0u), SEL(tiny, ST_ONE_D, x)));
  double t = st_exp_t_d(z); double kd = t - ST_EXPD_MAGIC; int k = st_exp_n_d(t);
  double d = z - kd * ST_EXPD_LN2_H; double w = ST_ZERO_D - kd * ST_EXPD_LN2_L;
  double r = d + w; double bb = r - d; double e = (d - (r - bb)) + (w - bb);
  double p = st_hi26(r); double q = r - p; double s0 = p * p * ST_HALF_D;
  double c = st_power_d(0 - SEL(k > 100, 100, k));
  double ch = ST_ONE_D - c; double cl = SEL(k < 0, ST_ONE_D - (ch + c), (ST_ONE_D - ch) - c);
  st_dd m = st_quick_sum_d(r, s0); st_dd s = st_two_sum_d(ch, m.h);
  double rest = e + (e * r + (q * (p + q * ST_HALF_D) + (r * r) * r * st_exp_tail_d(r)));
  st_u64 v = D2U(s.h + (s.l + (cl + (m.l + rest))));
  double y = st_sign_d(st_pack_d(U2D(v.h & 0x7fffffffu, v.l), k), u.h);
  y = SEL(tiny, x, y);
  return SEL(st_is_nan_d(a, u.l), ST_NAN_D, y);
}
#endif
