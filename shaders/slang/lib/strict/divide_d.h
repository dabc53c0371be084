/* Quotients in f64, correctly rounded for every pair of operands, without a division instruction. */
#ifndef ST_DIVIDE_D_H
#define ST_DIVIDE_D_H
#include "base_d.h"

/* 1/m for m in [1, 2) to about 2^-51: integer first guess, four Newton steps. */
FN double st_rcp_guess_d(double m) {
  st_u64 u = D2U(m); double r = U2D(0x7fde6238u - u.h, 0u);
  r = r * (ST_TWO_D - m * r);
  r = r * (ST_TWO_D - m * r);
  r = r * (ST_TWO_D - m * r);
  return r * (ST_TWO_D - m * r);
}

/* (q + sign(rem) * something below half a unit of q) * 2^e rounded into the subnormal range, q in [1, 2), e < -1022. */
FN double st_round_under_d(double q, int rem, int e) {
  st_u64 u = D2U(q); uint h = (u.h & 0x000fffffu) | 0x00100000u; uint l = u.l;
  h = (h << 2) | (l >> 30); l = l << 2;                              /* 4 q, then one up or down */
  if (rem > 0) l = l + 1u;
  if (rem < 0) { h = h - SEL(l == 0u, 1u, 0u); l = l - 1u; }
  uint cut = (uint)SEL(e < -1076, 56, -1020 - e); uint below = 0u;   /* 3 .. 56 bits go */
  if (cut >= 32u) { below = l; l = h; h = 0u; cut = cut - 32u; }
  uint lost = below; bool rest = false;
  if (cut > 0u) {
    lost = l << (32u - cut); rest = below != 0u;
    l = (l >> cut) | (h << (32u - cut)); h = h >> cut;
  }
  bool up = lost > 0x80000000u || (lost == 0x80000000u && (rest || (l & 1u) != 0u));
  if (up) { l = l + 1u; h = h + SEL(l == 0u, 1u, 0u); }
  return U2D(h, l);
}

/* a / b, correctly rounded (ties to even, gradual underflow, overflow to infinity; 0/0, inf/inf and NaN give NaN).
 * The mantissas' quotient is refined once with its exact remainder; the remainder of the result then decides between
 * it and its neighbours, and gives the direction when the result has to be rounded again into the subnormal range. */
FN double st_div_d(double a, double b) {
  st_u64 ua = D2U(a); st_u64 ub = D2U(b); uint ha = ua.h & 0x7fffffffu; uint hb = ub.h & 0x7fffffffu;
  uint sign = (ua.h ^ ub.h) & 0x80000000u;
  bool za = (ha | ua.l) == 0u; bool zb = (hb | ub.l) == 0u;
  bool special = za || zb || ha >= 0x7ff00000u || hb >= 0x7ff00000u;
  st_split_d sa = st_unpack_d(SEL(special, 0x3ff00000u, ha), SEL(special, 0u, ua.l));
  st_split_d sb = st_unpack_d(SEL(special, 0x3ff00000u, hb), SEL(special, 0u, ub.l));
  bool less = sa.m < sb.m;
  double x = SEL(less, sa.m + sa.m, sa.m); double y = sb.m;
  int e = sa.e - sb.e - SEL(less, 1, 0);
  double r = st_rcp_guess_d(y);
  double q = x * r;
  st_dd p = st_two_prod_d(q, y);
  q = q + ((x - p.h) - p.l) * r;
  p = st_two_prod_d(q, y);
  double rem = (x - p.h) - p.l; double half = y * U2D(0x3ca00000u, 0u);
  double unit = U2D(0x3cb00000u, 0u);
  double twice = half + half;
  bool up = rem > half; bool down = rem < ST_ZERO_D - half;
  q = SEL(up, q + unit, SEL(down, q - unit, q));
  rem = SEL(up, rem - twice, SEL(down, rem + twice, rem));
  double res = st_pack_d(q, e);
  if (e < -1022) res = st_round_under_d(q, SEL(rem > ST_ZERO_D, 1, SEL(rem < ST_ZERO_D, -1, 0)), e);
  bool ia = ha == 0x7ff00000u && ua.l == 0u; bool ib = hb == 0x7ff00000u && ub.l == 0u;
  bool nan = st_is_nan_d(ha, ua.l) || st_is_nan_d(hb, ub.l) || (za && zb) || (ia && ib);
  res = SEL(special, U2D(SEL(zb || ia, 0x7ff00000u, 0u), 0u), res);
  return SEL(nan, ST_NAN_D, st_sign_d(res, sign));
}

/* 1 / x, correctly rounded. */
FN double st_rcp_d(double x) { return st_div_d(ST_ONE_D, x); }
#endif
