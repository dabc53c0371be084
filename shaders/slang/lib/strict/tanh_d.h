/* tanh in f64. */
#ifndef ST_TANH_D_H
#define ST_TANH_D_H
#include "base_d.h"
#include "divide_d.h"
#include "exp_d.h"
#include "tanh_d_constants.h"

/* tanh(x), at most 1 ULP (worst of 16 million samples 0.619).
 * The method of st_tanh with a degree 9 polynomial below 0.4. */
FN double st_tanh_d(double x) {
  st_u64 u = D2U(x); uint a = u.h & 0x7fffffffu;
  uint ch = SEL(a >= 0x40340000u, 0x40340000u, SEL(a < 0x3e000000u, 0x3e000000u, a));  /* 2^-31 .. 20 */
  double z = U2D(ch, SEL(ch == a, u.l, 0u)); double w = z * z;
  double q = ST_TANHD_P7 + w * (ST_TANHD_P8 + w * ST_TANHD_P9);
  q = ST_TANHD_P4 + w * (ST_TANHD_P5 + w * (ST_TANHD_P6 + w * q));
  q = ST_TANHD_P0 + w * (ST_TANHD_P1 + w * (ST_TANHD_P2 + w * (ST_TANHD_P3 + w * q)));
  double small = z + (z * w) * q;
  double y = z + z; double t = st_exp_t_d(y);
  st_dd g = st_exp_dd(y, ST_ZERO_D, t);
  double f = st_power_d(st_exp_n_d(t));
  double eh = g.h * f; double el = g.l * f;
  double dh = eh + ST_ONE_D; double bb = dh - eh; double dl = ((eh - (dh - bb)) + (ST_ONE_D - bb)) + el;
  st_u64 ud = D2U(dh); int ed = (int)(ud.h >> 20) - 1023;
  double r = st_rcp_guess_d(U2D((ud.h & 0x000fffffu) | 0x3ff00000u, ud.l)) * st_power_d(-ed);
  st_dd p = st_two_prod_d(dh, r);
  double e = (ST_ONE_D - p.h) - (p.l + dl * r);
  double r2 = r + r; double s = ST_ONE_D - r2;
  double large = s + (((ST_ONE_D - s) - r2) - r2 * e);
  double res = SEL(a < 0x3fd9999au, small, large);
  res = SEL(a < 0x3e400000u, x, res);                                /* 2^-27 */
  res = SEL(a >= 0x40340000u, ST_ONE_D, res);
  return SEL(st_is_nan_d(a, u.l), ST_NAN_D, st_sign_d(res, u.h));
}
#endif
