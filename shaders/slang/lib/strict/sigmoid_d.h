/* sigmoid, silu, softplus and gelu (the tanh form) in f64. */
#ifndef ST_SIGMOID_D_H
#define ST_SIGMOID_D_H
#include "divide_d.h"
#include "exp_d.h"
#include "log_d.h"

/* A value (h + l) * 2^n. */
#ifdef ST_LANGUAGE_C
typedef struct { double h; double l; int n; } st_scaled_d;
#else
struct st_scaled_d { double h; double l; int n; };
#endif

/* 1 / (1 + exp(-y)) for y = -(h + l) where neg, else h + l, with h in [-800, 0] the value of -|y|: 1 / (1 + E) or
 * E / (1 + E), E = exp(h + l). */
FN st_scaled_d st_sigmoid_scaled_d(double h, double l, bool neg) {
  double t = st_exp_t_d(h); int n = st_exp_n_d(t); st_dd g = st_exp_dd(h, l, t);
  double f = st_power_d(SEL(n < -100, -100, n)); double eh = g.h * f;
  st_dd d = st_quick_sum_d(ST_ONE_D, eh); double dl = d.l + g.l * f;
  double r = st_rcp_guess_d(d.h); st_dd p = st_two_prod_d(d.h, r);
  double e = (ST_ONE_D - p.h) - (p.l + dl * r);
  uint m = SEL(neg, 0xffffffffu, 0u); st_u64 gh = D2U(g.h); st_u64 gl = D2U(g.l);
  double ah = U2D((gh.h & m) | (0x3ff00000u & ~m), gh.l & m); double al = U2D(gl.h & m, gl.l & m);
  st_dd q = st_two_prod_d(ah, r);
  st_scaled_d y; y.h = q.h; y.l = q.l + (q.h * e + al * r); y.n = n & (int)m; return y;
}

/* sigmoid(x) = 1 / (1 + exp(-x)), at most 1 ULP (worst of 6 million samples 0.754, a subnormal result). */
FN double st_sigmoid_d(double x) {
  st_u64 u = D2U(x); uint a = u.h & 0x7fffffffu;
  double z = SEL(a >= 0x40890000u, U2D(0xc0890000u, 0u), U2D(u.h | 0x80000000u, u.l));   /* at most 800 */
  st_scaled_d y = st_sigmoid_scaled_d(z, ST_ZERO_D, (u.h >> 31) != 0u);
  return SEL(st_is_nan_d(a, u.l), ST_NAN_D, st_pack_d(y.h + y.l, y.n));
}

/* x times a scaled value in [0, 1], with x's sign: x itself at 0 and +inf, -0 at -inf, NaN at NaN. */
FN double st_times_scaled_d(double x, st_scaled_d y) {
  st_u64 u = D2U(x); uint a = u.h & 0x7fffffffu; bool special = (a | u.l) == 0u || a >= 0x7ff00000u;
  st_split_d s = st_unpack_d(SEL(special, 0x3ff00000u, a), SEL(special, 0u, u.l));
  st_dd m = st_two_prod_d(s.m, y.h);
  double v = st_sign_d(st_pack_d(m.h + (m.l + s.m * y.l), SEL(y.n < -1100, -4000, s.e + y.n)), u.h);
  double limit = U2D(SEL(st_is_nan_d(a, u.l), 0x7ff80000u, SEL(u.h == 0xfff00000u, 0x80000000u, u.h)), 0u);
  return SEL(special, limit, v);
}

/* silu(x) = x sigmoid(x), at most 1 ULP (worst of 6 million samples 0.750, a subnormal result). */
FN double st_silu_d(double x) {
  st_u64 u = D2U(x); uint a = u.h & 0x7fffffffu;
  double z = SEL(a >= 0x40890000u, U2D(0xc0890000u, 0u), U2D(u.h | 0x80000000u, u.l));
  return st_times_scaled_d(x, st_sigmoid_scaled_d(z, ST_ZERO_D, (u.h >> 31) != 0u));
}

/* gelu(x) = x (1 + tanh(y)) / 2 = x sigmoid(2 y), 2 y = x (A + B x^2) in two parts, at most 1 ULP (worst of
 * 6 million samples 0.750, a subnormal result). From 22 on the sigmoid is 1 or the result underflows. */
FN double st_gelu_d(double x) {
  st_u64 u = D2U(x); uint a = u.h & 0x7fffffffu; bool beyond = a >= 0x40360000u;
  uint ch = SEL(beyond, 0x40360000u, SEL(a < 0x3c000000u, 0x3c000000u, a));
  double z = U2D(ch, SEL(ch == a && !beyond, u.l, 0u));
  st_dd s = st_two_prod_d(z, z); st_dd v = st_mul_dd(s.h, s.l, ST_GELUD_B_H, ST_GELUD_B_L);
  st_dd w = st_two_sum_d(ST_GELUD_A_H, v.h);
  st_dd y = st_mul_dd(w.h, w.l + (v.l + ST_GELUD_A_L), ST_ZERO_D - z, ST_ZERO_D);
  return st_times_scaled_d(x, st_sigmoid_scaled_d(y.h, y.l, (u.h >> 31) != 0u));
}

/* softplus(x) = log(1 + exp(x)) = max(x, 0) + log(1 + E), at most 1 ULP (worst of 6 million samples 0.753, a subnormal
 * result), E = exp(-|x|) in two parts; below 2^-90 the logarithm is E, and for negative x the result. */
FN double st_softplus_d(double x) {
  st_u64 u = D2U(x); uint a = u.h & 0x7fffffffu; uint m = SEL((u.h >> 31) != 0u, 0xffffffffu, 0u);
  double z = SEL(a >= 0x40890000u, U2D(0xc0890000u, 0u), U2D(u.h | 0x80000000u, u.l));
  double t = st_exp_t_d(z); int n = st_exp_n_d(t); st_dd g = st_exp_dd(z, ST_ZERO_D, t);
  double f = st_power_d(SEL(n < -100, -100, n)); double eh = g.h * f; double el = g.l * f;
  st_u64 ue = D2U(eh);
  uint big = 0u - SEL(ue.h >= 0x3fda8279u, 1u, 0u);                  /* 1 + E above the square root of 2: halved */
  st_dd d = st_two_sum_d(eh, U2D(0xbff00000u, 0u)); st_u64 ud = D2U(d.h * ST_HALF_D);
  double fh = U2D((ud.h & big) | (ue.h & ~big), (ud.l & big) | (ue.l & ~big));
  double k = U2D(0x3ff00000u & big, 0u);                             /* 1 or 0 */
  double fl = (k * d.l + el) * U2D(0x3ff00000u - (0x00100000u & big), 0u);
  fl = fl * ((ST_ONE_D - fh) + fh * fh);
  st_dd y = st_log_dd(fh, k * ST_EXPD_LN2_H, k * ST_EXPD_LN2_L + fl);
  st_dd s = st_two_sum_d(U2D(u.h & ~m, u.l & ~m), y.h);
  uint under = 0u - SEL(n < -90, m & 1u, 0u);
  st_u64 us = D2U(s.h + (s.l + y.l)); st_u64 ug = D2U(g.h);
  double res = st_pack_d(U2D((ug.h & under) | (us.h & ~under), (ug.l & under) | (us.l & ~under)), n & (int)under);
  bool inf = a == 0x7ff00000u && u.l == 0u;
  return SEL(a >= 0x7ff00000u, SEL(inf, U2D(u.h & ~m, 0u), ST_NAN_D), res);
}
#endif
