/* gelu, the tanh form, in f32, correctly rounded, bits in and bits out. */
#ifndef ST_GELU_CR_H
#define ST_GELU_CR_H
#include "base.h"
#include "exp_more.h"
#include "fixed.h"
#include "sigmoid.h"
#include "gelu_cr_constants.h"

/* gelu in fixed point, 2^-26 < |x| < 11: x sigmoid(v), v = x (A + B x^2). The sum is off by 2^-60, the products with
 * the mantissa are exact, so v is off by |x| 2^-60. */
FN uint st_gelu_cr_fixed(uint ux) {
  uint ax = ux & 0x7fffffffu;
  uint mant = (ax & 0x7fffffu) | 0x800000u; int ex = (int)(ax >> 23) - 127;
  int up = 2 * ex + 11;                                              /* x^2 as Q7.57 */
  st_u64 Z = st_mk64(st_mulhi32(mant, mant), mant * mant);
  if (up >= 0) Z = st_shl64(Z, (uint)up); else Z = st_shr64(Z, (uint)(-up));
  st_u64 T = st_mulhi64_floor(st_mk64(ST_GELUCR_QBH, ST_GELUCR_QBL), Z);
  T = st_add64(T, st_mk64(ST_GELUCR_QAH, ST_GELUCR_QAL));
  uint w0 = mant * T.l; uint c = st_mulhi32(mant, T.l);              /* v 2^(83 - ex) in three words */
  uint w1 = mant * T.h + c; uint w2 = st_mulhi32(mant, T.h) + SEL(w1 < c, 1u, 0u);
  uint s = (uint)(19 - ex);
  if (s >= 32u) { w0 = w1; w1 = w2; w2 = 0u; s = s - 32u; }
  if (s > 0u) { w0 = (w0 >> s) | (w1 << (32u - s)); w1 = (w1 >> s) | (w2 << (32u - s)); }
  float v = U2F(ax) * ((float)(int)(T.h >> 1) * U2F(0x32000000u));   /* good enough to choose the table entry */
  st_wide y = st_exp_wide_at(st_neg64(st_mk64(w1, w0)), st_exp_index(U2F(F2U(v) | 0x80000000u)) - 1);
  st_wide g = st_logistic_wide(y, (ux >> 31) != 0u);
  return st_round_any(st_mulhi64(st_mk64(g.h, g.l), st_mk64(mant << 8, 0u)), g.e + ex + 1) | (ux & 0x80000000u);
}
/* The fast path of gelu: v in two parts, then as silu. */
FN st_u64 st_gelu_cr_try(uint ux) {
  uint ax = ux & 0x7fffffffu; bool neg = (ux >> 31) != 0u;
  bool same = (int)ux >= 0x40a80000; bool gone = ux >= 0xc12d0000u; bool tiny = ax <= 0x32800000u;
  bool live = !same & !gone & !tiny; bool under = ux > 0xc11f0000u;  /* 5.25, -10.8, 2^-26; -9.94 */
  uint c = SEL(live & !under, ax, 0x3f800000u);
  float z = U2F(c);
  st_ff s = st_two_prod(z, z);
  st_ff w = st_two_prod(ST_GELUCR_BH, s.h); w.l = w.l + (ST_GELUCR_BH * s.l + ST_GELUCR_BL * s.h);
  float t = ST_GELUCR_AH + w.h; float bt = t - ST_GELUCR_AH;
  float tl = ((ST_GELUCR_AH - (t - bt)) + (w.h - bt)) + (w.l + ST_GELUCR_AL);
  st_ff v = st_two_prod(z, t); v.l = v.l + z * tl;
  float x = U2F(F2U(v.h) | 0x80000000u);
  int k = st_exp_index(x); st_ff r = st_exp_rest(x, k);
  st_ff q; q.h = r.h - v.l; float bq = q.h - r.h; q.l = ((r.h - (q.h - bq)) - (v.l + bq)) + r.l;
  st_logistic g = st_logistic_of(k, q);
  st_ff y = st_sigmoid_ff(g, neg);
  float mx = U2F((c & 0x7fffffu) | 0x3f800000u);
  st_ff p = st_two_prod(mx, y.h); float lo = p.l + mx * y.l;
  float ep = p.h * ST_GELUCR_EPS;
  uint up = F2U(p.h + (lo + ep)); uint dn = F2U(p.h + (lo - ep));
  uint res = up + ((uint)((int)(c >> 23) - 127 + SEL(neg, g.n, 0)) << 23);
  res = SEL(live, res, SEL(tiny, st_half_up(ux), SEL(same, ax, 0u))) | (ux & 0x80000000u);
  return st_decided(SEL(ax > ST_INF, ST_NAN, res), live & ((up != dn) | under));
}
/* gelu(x) = x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))/2, correctly rounded for all 2^32 inputs
 * (all tried; 1,301,665 left to fixed point; nearest to a tie 2^-53.3, at 0x37b0a46f); -0 at -inf. */
FN uint st_gelu_cr(uint ux) {
  st_u64 t = st_gelu_cr_try(ux);
  if (t.l != 0u) return st_gelu_cr_fixed(ux);
  return t.h;
}
#endif
