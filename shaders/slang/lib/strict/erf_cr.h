/* erf and gelu_erf in f32, correctly rounded, bits in and bits out. */
#ifndef ST_ERF_CR_H
#define ST_ERF_CR_H
#include "base.h"
#include "exp_more.h"
#include "fixed.h"
#include "sigmoid.h"
#include "tables.h"
#include "erf_cr_constants.h"

/* R(z) = exp(z^2/2) times the normal probability below -z, in fixed point, z < 15 in Q4.60: a polynomial of degree 12
 * in the distance from the left end of one of 31 pieces, in (1/4, 1) times 2^-scale; error about 2^-59 of the result. */
FN st_wide st_tail_wide(st_u64 Z) {
  uint top = Z.h >> 28;
  uint w = SEL(top < 4u, 26u, SEL(top < 8u, 27u, 28u));
  uint piece = (Z.h >> w) + SEL(top < 4u, 0u, SEL(top < 8u, 8u, 16u));
  st_u64 r = st_shl64(st_mk64(Z.h & ((1u << w) - 1u), Z.l), 30u - w);
  uint at = ST_T_TAIL_Q + piece * 26u + 24u;
  st_u64 p = st_mk64(ST_TABLE(at), ST_TABLE(at + 1u));
  for (uint k = 0u; k < 12u; k++) {
    at = at - 2u;
    st_u64 m = st_mulhi64(p, r);
    if ((p.h >> 31) != 0u) m = st_add64(m, st_neg64(r));             /* p is signed */
    p = st_add64(m, st_mk64(ST_TABLE(at), ST_TABLE(at + 1u)));
  }
  uint scale = SEL(top < 1u, 0u, SEL(top < 2u, 1u, SEL(top < 4u, 2u, SEL(top < 8u, 3u, 4u))));
  return st_mkwide(p, -(int)scale);
}
/* exp(-s) R(z), normalised; s modulo 1 in Q0.64, sf about s. */
FN st_wide st_tail_product(st_u64 S, float sf, st_u64 Z) {
  st_wide E = st_exp_wide_at(st_neg64(S), st_exp_index(U2F(F2U(sf) | 0x80000000u)) - 1);
  st_wide R = st_tail_wide(Z);
  st_u64 m = st_mulhi64(st_mk64(E.h, E.l), st_mk64(R.h, R.l));
  uint z = st_nlz64(m);
  return st_mkwide(st_shl64(m, z), E.e + R.e + 1 - (int)z);
}
/* A positive number below 1/2 in Q0.64. */
FN st_u64 st_wide_fraction(st_wide a) {
  if (a.e < -64) return st_mk64(0u, 0u);
  return st_shr64(st_mk64(a.h, a.l), (uint)(-1 - a.e));
}
/* mant^2, moved by a signed number of bits, modulo 2^64. */
FN st_u64 st_square_moved(uint mant, int up) {
  st_u64 M = st_mk64(st_mulhi32(mant, mant), mant * mant);
  if (up >= 0) return st_shl64(M, (uint)up);
  return st_shr64(M, (uint)(-up));
}

/* erf in fixed point, 0 < |x| < 4. Below 1/4 the series of erf(x)/x times the mantissa, otherwise
 * 1 - 2 exp(-x^2) R(x sqrt 2). */
#define ST_ERFCR_STEP(k) p = st_alternate(p, w, ST_ERFCR_Q##k##H, ST_ERFCR_Q##k##L)
FN uint st_erf_cr_fixed(uint ux) {
  uint ax = ux & 0x7fffffffu; uint sign = ux & 0x80000000u;
  bool tiny = ax < 0x00800000u;
  uint mant = (ax & 0x7fffffu) | SEL(tiny, 0u, 0x800000u); int ex = SEL(tiny, -126, (int)(ax >> 23) - 127);
  if (ax < 0x3e800000u) {
    st_u64 w = st_square_moved(mant, SEL(ex < -40, -63, 2 * ex + 18));
    st_u64 p = st_mk64(ST_ERFCR_Q10H, ST_ERFCR_Q10L);
    ST_ERFCR_STEP(9); ST_ERFCR_STEP(8); ST_ERFCR_STEP(7); ST_ERFCR_STEP(6); ST_ERFCR_STEP(5);
    ST_ERFCR_STEP(4); ST_ERFCR_STEP(3); ST_ERFCR_STEP(2); ST_ERFCR_STEP(1); ST_ERFCR_STEP(0);
    return st_round_any(st_mulhi64(st_mk64(mant << 8, 0u), p), ex + 1) | sign;
  }
  float x = U2F(ax);
  st_u64 Y = st_mulhi64(st_mk64(mant << 8, 0u), st_mk64(ST_ERFCR_ROOTH, ST_ERFCR_ROOTL));
  st_wide t = st_tail_product(st_square_moved(mant, 2 * ex + 18), x * x, st_shr64(Y, (uint)(2 - ex)));
  st_u64 f = st_neg64(st_shl64(st_wide_fraction(t), 1u));
  return st_round_any(f, -1) | sign;
}
/* The fast path of erf: erf(c) + erf'(c) (d - c d^2 + d^3 (...)) about the nearest of 113 centres c, sixteen a binade
 * from 2^-5 on and 0 below; the series goes in c d and d^2. The constant, the slope's first product and half of the
 * curvature's are summed exactly. A tiny x is scaled up to 2^-29. */
FN st_u64 st_erf_cr_try(uint ux) {
  uint ax = ux & 0x7fffffffu;
  bool one = ax >= ST_ERFCR_ONE; bool zero = ax == 0u; bool live = !one & !zero;
  bool tiny = ax < 0x31000000u;
  uint b = st_where_negative(ax - 0x31000000u, (ax & 0x7fffffu) | 0x31000000u, ax);
  b = st_where_negative(b - ST_ERFCR_ONE, b, 0x3f800000u);
  float x = U2F(b);
  uint row = b - 0x3d000000u;                                        /* negative below 2^-5 */
  uint j = st_where_negative(row, 0u, (row >> 19) + 1u);
  float c = U2F(st_where_negative(row, 0u, (b & 0xfff80000u) | 0x00040000u));
  float C = U2F(ST_TABLE(ST_T_ERF_H + j)); float Cl = U2F(ST_TABLE(ST_T_ERF_L + j));
  float S = U2F(ST_TABLE(ST_T_ERF_SH + j)); float Sl = U2F(ST_TABLE(ST_T_ERF_SL + j));
  float d = x - c; float dh = st_hi12(d); float dl = d - dh;
  float u = S * dh; float s = C + u; float se = (C - s) + u;
  float K = S * c; float Kh = st_hi12(K); float Kl = K - Kh;          /* exact: c has five bits */
  float e2 = dh * dh; float eh = st_hi12(e2); float el = (e2 - eh) + dl * (dh + d);
  float u2 = Kh * eh; float hi = s - u2; float he = (s - hi) - u2;
  float v = d * d; float t = c * d;
  float g = v * (ST_ERFCR_V1 + v * (ST_ERFCR_V2 + v * ST_ERFCR_V3));
  float g1 = v * (ST_ERFCR_T1 + v * ST_ERFCR_T2);
  float g2 = ST_ERFCR_S0 + v * (ST_ERFCR_S1 + v * ST_ERFCR_S2);
  float g3 = ST_ERFCR_R0 + v * ST_ERFCR_R1; float g4 = ST_ERFCR_P0 + v * ST_ERFCR_P1;
  g = g + t * (g1 + t * (g2 + t * (g3 + t * (g4 + t * (ST_ERFCR_O + t * ST_ERFCR_N)))));
  float w = S + Sl;
  float lo = (se + he) + (Cl + (S * dl + (Sl * (d - t * d) + (((w * d) * g - K * el) - Kl * eh))));
  float ep = hi * U2F(st_where_negative(row, F2U(ST_ERFCR_EP0 + v * ST_ERFCR_EP2), F2U(ST_ERFCR_EPS)));
  uint up = F2U(hi + (lo + ep)); uint dn = F2U(hi + (lo - ep));
  uint res = SEL(one, 0x3f800000u, SEL(zero, 0u, up - SEL(tiny, (98u - (ax >> 23)) << 23, 0u))) | (ux & 0x80000000u);
  return st_decided(SEL(ax > ST_INF, ST_NAN, res), live & ((up != dn) | (ax < 0x00800000u)));
}
/* erf(x), correctly rounded for all 2^32 inputs (all tried; 18,851,402 left to fixed point, 16,777,214 of them
 * subnormal; nearest to a tie 2^-56.4, at 0x3940ead6). */
FN uint st_erf_cr(uint ux) {
  st_u64 t = st_erf_cr_try(ux);
  if (t.l != 0u) return st_erf_cr_fixed(ux);
  return t.h;
}

/* gelu_erf in fixed point, 2^-26 < |x| < 15: x T or x (1 - T), T = exp(-x^2/2) R(|x|). */
FN uint st_gelu_erf_cr_fixed(uint ux) {
  uint ax = ux & 0x7fffffffu; uint sign = ux & 0x80000000u;
  uint mant = (ax & 0x7fffffu) | 0x800000u; int ex = (int)(ax >> 23) - 127;
  float x = U2F(ax);
  st_wide t = st_tail_product(st_square_moved(mant, 2 * ex + 17), x * x * ST_HALF,
                              st_shl64(st_mk64(0u, mant), (uint)(ex + 37)));
  st_u64 m = st_mk64(mant << 8, 0u);
  if (sign != 0u) return st_round_any(st_mulhi64(st_mk64(t.h, t.l), m), t.e + ex + 1) | sign;
  return st_round_any(st_mulhi64(st_neg64(st_wide_fraction(t)), m), ex);
}
/* The fast path of gelu_erf: the exponential in two parts, R by a polynomial of degree 5 about one of 145 centres, its
 * constant, slope and the leading part of the curvature summed exactly. What chooses a row is masked, not selected: C
 * compilers make a branch around the table of a SEL. */
FN st_u64 st_gelu_erf_cr_try(uint ux) {
  uint ax = ux & 0x7fffffffu; bool neg = (ux >> 31) != 0u;
  bool same = (int)ux >= 0x40b40000; bool gone = ux >= 0xc1680000u; bool tiny = ax <= 0x32800000u;
  bool live = !same & !gone & !tiny; bool under = ux > 0xc1500000u;  /* 5.625, -14.5, 2^-26; -13 */
  uint b = st_where_negative(ax - 0x32800001u, 0x3f800000u, ax);
  b = st_where_negative(0x41500000u - b, 0x3f800000u, b);
  float z = U2F(b);
  st_ff s = st_two_prod(z, z); float sl = s.l * ST_HALF;
  float x = s.h * U2F(0xbf000000u);
  int k = st_exp_index(x); st_ff r = st_exp_rest(x, k);
  st_ff q; q.h = r.h - sl; float bq = q.h - r.h; q.l = ((r.h - (q.h - bq)) - (sl + bq)) + r.l;
  st_ff y = st_exp_spread(st_exp_head(q.h, q.l), k); int n = k >> 3;
  float E = y.h + y.l; float El = (y.h - E) + y.l;
  uint row = b - 0x3d000000u;                                        /* negative below 2^-5 */
  uint j = st_where_negative(row, 0u, (row >> 19) + 1u);
  float c = U2F(st_where_negative(row, 0u, (b & 0xfff80000u) | 0x00040000u));
  float C = U2F(ST_TABLE(ST_T_TAIL_H + j)); float S = U2F(ST_TABLE(ST_T_TAIL_SH + j));
  float d = z - c; float dh = st_hi12(d); float u = S * dh;
  float h1 = C + u; float e1 = (C - h1) + u;
  float K = U2F(ST_TABLE(ST_T_TAIL_2 + j)); float Kh = st_hi12(K);
  float dl = d - dh; float d2 = dh * dh; float dd = st_hi12(d2); float ds = (d2 - dd) + dl * (dh + d);
  float u2 = Kh * dd; float h = h1 + u2; float e2 = (h1 - h) + u2;
  float g = U2F(ST_TABLE(ST_T_TAIL_4 + j)) + d * U2F(ST_TABLE(ST_T_TAIL_5 + j));
  g = ((d * d) * d) * (U2F(ST_TABLE(ST_T_TAIL_3 + j)) + d * g) + (K * ds + (K - Kh) * dd);
  float l = (e1 + e2) + (U2F(ST_TABLE(ST_T_TAIL_L + j)) + (S * dl + (U2F(ST_TABLE(ST_T_TAIL_SL + j)) * d + g)));
  float R = h + l; float Rl = (h - R) + l;
  st_ff t = st_two_prod(E, R); t.l = t.l + (E * Rl + El * R);
  float f = U2F((uint)(SEL(n < -60, -60, n) + 127) << 23);
  float A = t.h * f; float w = ST_ONE - A; float wl = ((ST_ONE - w) - A) - t.l * f;
  float ph = U2F(st_where_negative(ux, F2U(t.h), F2U(w))); float pl = U2F(st_where_negative(ux, F2U(t.l), F2U(wl)));
  float mx = U2F((b & 0x7fffffu) | 0x3f800000u);
  st_ff p = st_two_prod(mx, ph); float lo = p.l + mx * pl;
  float ep = p.h * ST_GELUERFCR_EPS;
  uint up = F2U(p.h + (lo + ep)); uint dn = F2U(p.h + (lo - ep));
  uint res = up + ((uint)((int)(b >> 23) - 127 + SEL(neg, n, 0)) << 23);
  res = SEL(live, res, SEL(tiny, st_half_up(ux), SEL(same, ax, 0u))) | (ux & 0x80000000u);
  return st_decided(SEL(ax > ST_INF, ST_NAN, res), live & ((up != dn) | under));
}
/* gelu_erf(x) = x times the normal probability below x, correctly rounded for all 2^32 inputs (all tried;
 * 2,277,979 left to fixed point; nearest to a tie 2^-53.4, at 0x37b0a46f); -0 at -inf. */
FN uint st_gelu_erf_cr(uint ux) {
  st_u64 t = st_gelu_erf_cr_try(ux);
  if (t.l != 0u) return st_gelu_erf_cr_fixed(ux);
  return t.h;
}
#endif
