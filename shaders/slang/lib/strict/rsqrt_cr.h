/* The reciprocal square root and the reciprocal in f32, correctly rounded, bits in and bits out. */
#ifndef ST_RSQRT_CR_H
#define ST_RSQRT_CR_H
#include "base.h"
#include "divide.h"
#include "fixed.h"
#include "root.h"

#define ST_RSQRT_EPS U2F(0x2a800000u) /* 2^-42 */

/* rsqrt by integers: the nearest float is st_rsqrt or next to it; with y = R 2^-24 and v = M 2^-23 the midpoint above R
 * lies below the root's reciprocal just when (2R + 1)^2 M < 2^73, as the low 64 bits of the product, signed, tell. */
FN bool st_rsqrt_below(uint odd_twice, uint M) {
  uint l = odd_twice * odd_twice; uint h = st_mulhi32(odd_twice, odd_twice);
  return ((h * M + st_mulhi32(l, M)) >> 31) != 0u;
}
FN uint st_rsqrt_cr_fixed(uint ux) {
  uint b = F2U(st_rsqrt(U2F(ux)));
  bool special = ux == 0u || ux >= ST_INF;                  /* the sign bit counts as large */
  st_split s = st_unpack(SEL(special, 0x3f800000u, ux));
  uint odd = (uint)s.e & 1u; int half = (s.e - (int)odd) / 2;
  uint M = (F2U(s.m) - 0x3f000000u) << odd;
  uint R = (uint)(int)(U2F(SEL(special, 0x3f800000u, b + ((uint)half << 23))) * U2F(0x4b800000u));
  bool more = st_rsqrt_below(2u * R + 1u, M); bool less = !st_rsqrt_below(2u * R - 1u, M);
  return SEL(special, b, b + SEL(more, 1u, 0u) - SEL(less, 1u, 0u));
}
/* The fast path of rsqrt: st_rsqrt with its correction kept apart; the error is below 2^-43, mostly the square of the
 * residual, which is left out. */
FN st_u64 st_rsqrt_cr_try(uint ux) {
  bool special = ux == 0u || ux >= ST_INF;
  st_split s = st_unpack(SEL(special, 0x3f800000u, ux));
  uint odd = (uint)s.e & 1u; int half = (s.e - (int)odd) / 2;
  float v = U2F(F2U(s.m) + (odd << 23));
  float y = st_rsqrt_guess(v);
  st_ff p = st_two_prod(v, y); st_ff q = st_two_prod(p.h, y);
  float lo = y * (((ST_ONE - q.h) - (q.l + p.l * y)) * ST_HALF);
  uint up = F2U(y + (lo + ST_RSQRT_EPS)); uint dn = F2U(y + (lo - ST_RSQRT_EPS));
  uint limit = SEL((ux & 0x7fffffffu) == 0u, ux | ST_INF, SEL(ux == ST_INF, 0u, ST_NAN));
  return st_decided(SEL(special, limit, up - ((uint)half << 23)), !special && up != dn);
}
/* 1/sqrt(x), correctly rounded for all 2^32 inputs (all tried). +-0 gives +-inf, +inf gives 0, negative numbers and NaN
 * give NaN. */
FN uint st_rsqrt_cr(uint ux) {
  st_u64 t = st_rsqrt_cr_try(ux);
  if (t.l != 0u) return st_rsqrt_cr_fixed(ux);
  return t.h;
}

/* 1/x in integers: st_rcp is already correctly rounded. */
FN uint st_recip_cr_fixed(uint ux) { return F2U(st_rcp(U2F(ux))); }
/* The fast path of recip, which does not take the steps of a general quotient: the guess and its correction, error
 * below 2^-43 (the square of the residual). Results below 2^-125 are left to the other. */
FN st_u64 st_recip_cr_try(uint ux) {
  uint ax = ux & 0x7fffffffu;
  uint c = st_where_negative(ax - 1u, 0x3f800000u, ax);
  st_split s = st_unpack(st_where_negative(0x7f7fffffu - c, 0x3f800000u, c));
  float y = st_rcp_guess(s.m);
  st_ff p = st_two_prod(s.m, y);
  float lo = y * ((ST_ONE - p.h) - p.l);
  uint up = F2U(y + (lo + ST_RSQRT_EPS)); uint dn = F2U(y + (lo - ST_RSQRT_EPS));
  uint res = SEL(ax <= 0x00200000u, ST_INF, SEL(ax == ST_INF, 0u, up - ((uint)s.e << 23)));           /* 2^-128 */
  res = SEL(ax > ST_INF, ST_NAN, res | (ux & 0x80000000u));
  return st_decided(res, (ax > 0x00200000u) & (ax < ST_INF) & ((up != dn) | (ax > 0x7e000000u)));
}
/* 1/x, correctly rounded for all 2^32 inputs (all tried). */
FN uint st_recip_cr(uint ux) {
  st_u64 t = st_recip_cr_try(ux);
  if (t.l != 0u) return st_recip_cr_fixed(ux);
  return t.h;
}
#endif
