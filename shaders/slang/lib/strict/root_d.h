/* Square root (correctly rounded) and its reciprocal (at most 1 ULP) in f64. */
#ifndef ST_ROOT_D_H
#define ST_ROOT_D_H
#include "base_d.h"

/* 1/sqrt(m) for m in [1, 4) to about 2^-51: integer first guess, four Newton steps. */
FN double st_rsqrt_guess_d(double m) {
  double h = m * ST_HALF_D; st_u64 u = D2U(m); double c = U2D(0x3ff80000u, 0u);
  double y = U2D(0x5fe6eb50u - (u.h >> 1), 0u);
  y = y * (c - h * y * y);
  y = y * (c - h * y * y);
  y = y * (c - h * y * y);
  return y * (c - h * y * y);
}

/* sqrt(x), correctly rounded; negative numbers and NaN give NaN, -0 gives -0.
 * One refinement with the exact remainder v - s^2, then the remainder of the result decides between neighbours. */
FN double st_sqrt_d(double x) {
  st_u64 u = D2U(x);
  bool zero = ((u.h & 0x7fffffffu) | u.l) == 0u;
  bool special = zero || u.h >= 0x7ff00000u;
  st_split_d s = st_unpack_d(SEL(special, 0x3ff00000u, u.h), SEL(special, 0u, u.l));
  bool odd = (s.e & 1) != 0; int half = (s.e - SEL(odd, 1, 0)) / 2;
  double v = SEL(odd, s.m + s.m, s.m);
  double y = st_rsqrt_guess_d(v);
  double r = v * y;
  st_dd p = st_two_prod_d(r, r);
  r = r + ((v - p.h) - p.l) * (y * ST_HALF_D);
  p = st_two_prod_d(r, r);
  double rem = (v - p.h) - p.l; double unit = U2D(0x3cb00000u, 0u); double step = r * unit;
  r = SEL(rem > step, r + unit, SEL(rem <= ST_ZERO_D - step, r - unit, r));
  st_u64 b = D2U(r); double res = U2D(b.h + ((uint)half << 20), b.l);
  bool keep = zero || (u.h == 0x7ff00000u && u.l == 0u);
  return SEL(special, SEL(keep, x, ST_NAN_D), res);
}

/* 1/sqrt(x), at most 1 ULP (all of 16 million samples gave the nearest double).
 * +-0 gives +-inf, +inf gives 0, negative numbers and NaN give NaN. */
FN double st_rsqrt_d(double x) {
  st_u64 u = D2U(x);
  bool zero = ((u.h & 0x7fffffffu) | u.l) == 0u;
  bool special = zero || u.h >= 0x7ff00000u;
  st_split_d s = st_unpack_d(SEL(special, 0x3ff00000u, u.h), SEL(special, 0u, u.l));
  bool odd = (s.e & 1) != 0; int half = (s.e - SEL(odd, 1, 0)) / 2;
  double v = SEL(odd, s.m + s.m, s.m);
  double y = st_rsqrt_guess_d(v);
  st_dd p = st_two_prod_d(v, y); st_dd q = st_two_prod_d(p.h, y);
  double res = (ST_ONE_D - q.h) - (q.l + p.l * y);
  st_u64 b = D2U(y + y * (res * ST_HALF_D));
  double w = U2D(b.h - ((uint)half << 20), b.l);
  bool inf = u.h == 0x7ff00000u && u.l == 0u;
  double limit = SEL(zero, U2D(u.h | 0x7ff00000u, 0u), SEL(inf, ST_ZERO_D, ST_NAN_D));
  return SEL(special, limit, w);
}
#endif
