/* exp(x - m) for m >= x as softmax needs it: the difference is not rounded before the exponential sees it. */
#ifndef ST_EXP_DIFFERENCE_H
#define ST_EXP_DIFFERENCE_H
#include "exp.h"
#ifdef ST_F64
#include "exp_d.h"
#endif

/* st_exp of the rounded difference z with its error e (exact, by two_sum) folded into the low part of the reduction:
 * at most 0.97 ULP of exp(x - m) whatever the size of the difference, where st_exp(x - m) alone is off by up to
 * 52 ULP at a difference of 104. Same limits: NaN stays NaN, an infinite difference gives 0. */
FN float st_exp_difference(float x, float m) {
  float z0 = x - m; float b0 = z0 - x; float e0 = (x - (z0 - b0)) - (m + b0);
  uint u = F2U(z0);
  bool far = u > 0xc2d00000u;                                 /* below -104, or NaN */
  float z = U2F(SEL(far, 0xc2d00000u, u)); float e = SEL(far, U2F(0u), e0);
  float t = z * ST_EXP_INV_LN2 + ST_EXP_MAGIC; float k = t - ST_EXP_MAGIC;
  float d = z - k * ST_EXP_LN2_H; float w = k * ST_EXP_LN2_L - e; float r = d - w;
  float q = ST_EXP_P2 + r * (ST_EXP_P3 + r * (ST_EXP_P4 + r * (ST_EXP_P5 + r * ST_EXP_P6)));
  float p = ST_ONE + (d + ((r * r) * q - w));
  uint b = F2U(p) + (F2U(t) << 23);
  uint s = F2U(U2F(b + 0x4a800000u) + U2F(0x4b000000u)) - 0x4b000000u;
  b = st_where_negative(b - 0x00800000u, s, b);
  b = st_where_negative(ST_INF - (u & 0x7fffffffu), ST_NAN, b);
  return U2F(b);
}

#ifdef ST_F64
/* The same in f64: at most 1 ULP of exp(x - m). */
FN double st_exp_difference_d(double x, double m) {
  double z0 = x - m; double b0 = z0 - x; double e0 = (x - (z0 - b0)) - (m + b0);
  st_u64 u = D2U(z0); uint a = u.h & 0x7fffffffu;
  bool nan = st_is_nan_d(a, u.l);
  bool far = a >= 0x40875000u;                                /* at most -746, or NaN */
  double z = SEL(far, U2D(0xc0875000u, 0u), z0); double e = SEL(far, ST_ZERO_D, e0);
  double t = z * ST_EXPD_INV_LN2 + ST_EXPD_MAGIC; double k = t - ST_EXPD_MAGIC;
  double d = z - k * ST_EXPD_LN2_H; double w = k * ST_EXPD_LN2_L - e; double r = d - w;
  double p = ST_ONE_D + (d + ((r * r) * (ST_HALF_D + r * st_exp_tail_d(r)) - w));
  st_u64 n = D2U(t);
  double y = st_pack_d(p, (int)n.l);
  return SEL(nan, ST_NAN_D, y);
}
#endif
#endif
