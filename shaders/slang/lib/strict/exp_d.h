/* exp in f64: st_exp_d and its wide form. */
#ifndef ST_EXP_D_H
#define ST_EXP_D_H
#include "base_d.h"
#include "exp_d_constants.h"

/* (exp(r) - 1 - r - r^2/2) / r^3 for |r| < 0.41, degree 10. */
FN double st_exp_tail_d(double r) {
  double q = ST_EXPD_P11 + r * (ST_EXPD_P12 + r * ST_EXPD_P13);
  q = ST_EXPD_P7 + r * (ST_EXPD_P8 + r * (ST_EXPD_P9 + r * (ST_EXPD_P10 + r * q)));
  return ST_EXPD_P3 + r * (ST_EXPD_P4 + r * (ST_EXPD_P5 + r * (ST_EXPD_P6 + r * q)));
}

/* exp(x), at most 1 ULP (worst of 16 million samples 0.858), gradual underflow; the method of st_exp. */
FN double st_exp_d(double x) {
  st_u64 u = D2U(x); uint a = u.h & 0x7fffffffu;
  bool nan = st_is_nan_d(a, u.l);
  bool neg = (u.h >> 31) != 0u;
  bool low = neg && a >= 0x40875000u;                                /* at most -746 */
  bool high = !neg && a >= 0x40864000u;                              /* at least 712 */
  double z = SEL(low, U2D(0xc0875000u, 0u), SEL(high, U2D(0x40864000u, 0u), x));
  double t = z * ST_EXPD_INV_LN2 + ST_EXPD_MAGIC; double k = t - ST_EXPD_MAGIC;
  double d = z - k * ST_EXPD_LN2_H; double w = k * ST_EXPD_LN2_L; double r = d - w;
  double p = ST_ONE_D + (d + ((r * r) * (ST_HALF_D + r * st_exp_tail_d(r)) - w));
  st_u64 n = D2U(t);
  double y = st_pack_d(p, (int)n.l);
  return SEL(nan, ST_NAN_D, y);
}

/* exp(xh + xl) = (h + l) * 2^n to about 2^-58 relative, for |xh| <= 800, |xl| <= 0.06, t as in st_exp_ff. */
FN double st_exp_t_d(double x) { return x * ST_EXPD_INV_LN2 + ST_EXPD_MAGIC; }
FN int st_exp_n_d(double t) { st_u64 n = D2U(t); return (int)n.l; }
FN st_dd st_exp_dd(double xh, double xl, double t) {
  double k = t - ST_EXPD_MAGIC;
  double d = xh - k * ST_EXPD_LN2_H; double w = xl - k * ST_EXPD_LN2_L;
  double r = d + w; double bb = r - d; double e = (d - (r - bb)) + (w - bb);
  double a = st_hi26(r); double b = r - a; double s0 = a * a * ST_HALF_D;
  double h1 = ST_ONE_D + r; double h = h1 + s0; double q = (r * r) * r * st_exp_tail_d(r);
  double l = ((ST_ONE_D - h1) + r) + (((h1 - h) + s0) + ((e + e * r) + (a * b + (b * b * ST_HALF_D + q))));
  st_dd y; y.h = h + l; y.l = (h - y.h) + l; return y;
}
#endif
