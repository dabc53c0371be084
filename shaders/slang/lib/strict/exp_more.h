/* exp2 and expm1 in f32, correctly rounded, and the exponential in two parts and in fixed point for other functions. */
#ifndef ST_EXP_MORE_H
#define ST_EXP_MORE_H
#include "base.h"
#include "exp_cr.h"
#include "fixed.h"
#include "exp_more_constants.h"

/* exp(r) - 1 for r = rh + rl, |rh| < 0.0434, as h + l. */
FN st_ff st_exp_head(float rh, float rl) {
  float a = st_hi12(rh); float b = rh - a;
  float s0 = a * a * ST_HALF;
  float rr = rh * rh;
  float q = rr * rh * (ST_ECR_C3 + rh * (ST_ECR_C4 + rh * (ST_ECR_C5 + rh * (ST_ECR_C6 + rh * ST_ECR_C7))));
  float ph = rh + s0; float pe = (rh - ph) + s0;
  st_ff y; y.h = ph; y.l = pe + (a * b + (rl + (rl * ph + (b * b * ST_HALF + q))));
  return y;
}
/* st_pick8 on masks: two picks with the same j stay free of branches, so that a C loop around them is vectorised. */
FN uint st_mask8(uint j, uint w0, uint w1, uint w2, uint w3, uint w4, uint w5, uint w6, uint w7) {
  uint a = st_where_negative(j << 31, w1, w0); uint b = st_where_negative(j << 31, w3, w2);
  uint c = st_where_negative(j << 31, w5, w4); uint d = st_where_negative(j << 31, w7, w6);
  a = st_where_negative(j << 30, b, a); c = st_where_negative(j << 30, d, c);
  return st_where_negative(j << 29, c, a);
}
#define ST_ECR_MASK(name)                                                                                      \
  st_mask8(j, ST_ECR_##name##0, ST_ECR_##name##1, ST_ECR_##name##2, ST_ECR_##name##3, ST_ECR_##name##4,         \
           ST_ECR_##name##5, ST_ECR_##name##6, ST_ECR_##name##7)

/* 2^((k mod 8)/8) (1 + p) as h + l, within ST_ECR_EPS. */
FN st_ff st_exp_spread(st_ff p, int k) {
  uint j = (uint)k;
  float Th = U2F(ST_ECR_MASK(TH));
  float Tl = U2F(ST_ECR_MASK(TL));
  float pa = st_hi12(p.h); float pb = p.h - pa;
  float u = Th * pa;
  st_ff y; y.h = Th + u; float se = (Th - y.h) + u;
  y.l = Tl + (Th * pb + (se + (Tl * p.h + (Th + Tl) * p.l)));
  return y;
}
/* x - k ln2/8 in two parts, k = round(8 x/ln2). */
FN int st_exp_index(float x) { return (int)(F2U(x * ST_ECR_INV + ST_EXP_MAGIC) - 0x4b400000u); }
FN st_ff st_exp_rest(float x, int k) {
  float kf = (float)k;
  float t1 = x - kf * ST_ECR_L1; float p2 = kf * ST_ECR_L2;
  st_ff r; r.h = t1 - p2; float bb = r.h - t1; float re = (t1 - (r.h - bb)) - (p2 + bb);
  r.l = re - kf * ST_ECR_L3;
  return r;
}

/* exp(r) for r < 1/7 in Q0.64, as Q1.63. */
FN st_u64 st_exp_series(st_u64 r) {
  st_u64 y = st_mk64(ST_ECR_Q12H, ST_ECR_Q12L);
  ST_ECR_STEP(11); ST_ECR_STEP(10); ST_ECR_STEP(9); ST_ECR_STEP(8); ST_ECR_STEP(7); ST_ECR_STEP(6);
  ST_ECR_STEP(5); ST_ECR_STEP(4); ST_ECR_STEP(3); ST_ECR_STEP(2); ST_ECR_STEP(1); ST_ECR_STEP(0);
  return y;
}
/* y 2^(k/8), normalised. */
FN st_wide st_exp_finish(st_u64 y, int k) {
  uint j = (uint)k & 7u;
  uint th = ST_ECR_PICK(PH);
  uint tl = ST_ECR_PICK(PL);
  st_u64 m = st_mulhi64(y, st_mk64(th, tl)); int e = (k >> 3) + 1;
  if ((m.h >> 31) == 0u) { m = st_shl64(m, 1u); e = e - 1; }
  return st_mkwide(m, e);
}
/* |x| modulo 1 in Q0.64, exact for 2^-39 <= |x| < 2^31. */
FN st_u64 st_fraction(uint ux) {
  uint mant = (ux & 0x7fffffu) | 0x800000u; int sh = (int)((ux >> 23) & 255u) - 86;
  st_u64 X;
  if (sh >= 32) { X.h = mant << (uint)(sh - 32); X.l = 0u; }
  else { X = st_shl64(st_mk64(0u, mant), (uint)sh); }
  return X;
}
/* exp in 64-bit fixed point as in st_exp_cr_fixed, before the rounding: of x = X modulo 1 with
 * kk = round(8 x/ln2) - 1, or of 2^-25 < |x| < 128 as bits. */
FN st_wide st_exp_wide_at(st_u64 X, int kk) {
  uint ka = (uint)SEL(kk < 0, -kk, kk);
  st_u64 P; P.l = ka * ST_ECR_LNL; P.h = ka * ST_ECR_LNH + st_mulhi32(ka, ST_ECR_LNL);
  uint c = st_mulhi32(ka, ST_ECR_LNX); P.l = P.l + c; P.h = P.h + SEL(P.l < c, 1u, 0u);
  if (kk >= 0) P = st_neg64(P);
  return st_exp_finish(st_exp_series(st_add64(X, P)), kk);
}
FN st_wide st_exp_wide(uint ux) {
  st_u64 X = st_fraction(ux);
  if ((ux >> 31) != 0u) X = st_neg64(X);
  return st_exp_wide_at(X, st_exp_index(U2F(ux)) - 1);
}

/* exp2 in fixed point, 2^-25 < |x| < 150: the fraction's upper three bits choose the table entry. */
FN uint st_exp2_cr_fixed(uint ux) {
  st_u64 X = st_fraction(ux); int ex = (int)((ux >> 23) & 255u) - 127;
  int n = SEL(ex < 0, 0, (int)(((ux & 0x7fffffu) | 0x800000u) >> (uint)(23 - SEL(ex < 0, 0, ex))));
  if ((ux >> 31) != 0u) { n = -n - SEL(X.h != 0u || X.l != 0u, 1, 0); X = st_neg64(X); }
  int k = (n << 3) + (int)(X.h >> 29);
  X.h = X.h & 0x1fffffffu;
  st_wide y = st_exp_finish(st_exp_series(st_mulhi64(X, st_mk64(ST_EXP2_LN2H, ST_EXP2_LN2L))), k);
  return st_round_fixed(st_mk64(y.h, y.l), y.e);
}
/* The fast path of exp2: k = round(8 x), (x - k/8) ln2 in two parts, then as exp. */
FN st_u64 st_exp2_cr_try(uint ux) {
  uint ax = ux & 0x7fffffffu;
  bool over = (int)ux >= 0x43000000; bool gone = ux >= 0xc3160000u;                  /* 128, -150 */
  bool live = (ax > 0x33000000u) & !over & !gone;
  float x = U2F(SEL(live, ux, 0x3f800000u));
  float t = x * U2F(0x41000000u) + ST_EXP_MAGIC; int k = (int)(F2U(t) - 0x4b400000u);
  float d = x - (t - ST_EXP_MAGIC) * U2F(0x3e000000u);
  float a = st_hi12(d); float g = ST_EXP2_LN2_H * a; float w = ST_EXP2_LN2_H * (d - a) + ST_EXP2_LN2_L * d;
  float rh = g + w; float rl = (g - rh) + w;
  st_ff y = st_exp_spread(st_exp_head(rh, rl), k);
  uint up = F2U(y.h + (y.l + ST_ECR_EPS)); uint dn = F2U(y.h + (y.l - ST_ECR_EPS));
  uint res = SEL(live, up + ((uint)(k >> 3) << 23), 0x3f800000u);
  res = SEL(over, ST_INF, SEL(gone, 0u, res));
  return st_decided(SEL(ax > ST_INF, ST_NAN, res), live & ((up != dn) | (ux > 0xc2fa0000u)));   /* -125 */
}
/* exp2, bits in and bits out, correctly rounded for all 2^32 inputs (all tried; 2,382,415 left to fixed point, most of
 * them for subnormal results). */
FN uint st_exp2_cr(uint ux) {
  st_u64 t = st_exp2_cr_try(ux);
  if (t.l != 0u) return st_exp2_cr_fixed(ux);
  return t.h;
}

/* expm1 in fixed point, 2^-25 < |x|, -17.5 < x < 89. Below 1/16 the series of (exp(x) - 1)/x times the mantissa. */
#define ST_EXPM1_STEP(k) p = st_signed_step(p, r, neg, ST_ECR_Q##k##H, ST_ECR_Q##k##L)
FN uint st_expm1_cr_fixed(uint ux) {
  bool neg = (ux >> 31) != 0u; uint sign = ux & 0x80000000u; uint ax = ux & 0x7fffffffu;
  if (ax < 0x3d800000u) {
    st_u64 r = st_fraction(ux);
    st_u64 p = st_mk64(ST_ECR_Q12H, ST_ECR_Q12L);
    ST_EXPM1_STEP(11); ST_EXPM1_STEP(10); ST_EXPM1_STEP(9); ST_EXPM1_STEP(8); ST_EXPM1_STEP(7); ST_EXPM1_STEP(6);
    ST_EXPM1_STEP(5); ST_EXPM1_STEP(4); ST_EXPM1_STEP(3); ST_EXPM1_STEP(2); ST_EXPM1_STEP(1);
    uint mant = (ux & 0x7fffffu) | 0x800000u;
    return st_round_any(st_mulhi64(st_mk64(mant << 8, 0u), p), (int)(ax >> 23) - 126) | sign;
  }
  st_wide y = st_exp_wide(ux); st_u64 m = st_mk64(y.h, y.l);
  if (neg) return st_round_any(st_neg64(st_shr64(m, (uint)(-1 - y.e))), -1) | sign;
  if (y.e < 64) m = st_add64(m, st_neg64(st_shl64(st_mk64(0u, 1u), (uint)(63 - y.e))));
  return st_round_any(m, y.e);
}
/* The fast path of expm1: exp in two parts minus one, exactly; the head itself where k = 0. */
FN st_u64 st_expm1_cr_try(uint ux) {
  uint ax = ux & 0x7fffffffu; bool neg = (ux >> 31) != 0u;
  bool over = !neg && ax > 0x42b17217u; bool gone = neg && ax > 0x418c0000u;          /* -17.5 */
  bool live = ax > 0x33000000u && !over && !gone;
  float x = U2F(SEL(live, ux, 0x3f800000u));
  int k = st_exp_index(x); st_ff r = st_exp_rest(x, k);
  st_ff p = st_exp_head(r.h, r.l);
  st_ff y = st_exp_spread(p, k);
  int n = k >> 3; int below = SEL(n < 0, n, 0); int above = SEL(n < 0, 0, SEL(n > 100, 100, n));
  float f = U2F((uint)(127 + below) << 23); float one = U2F((uint)(127 - above) << 23);
  float A = y.h * f; float hi = A - one; float bb = hi - A; float se = (A - (hi - bb)) - (one + bb);
  float lo = se + y.l * f; float ep = ST_ECR_EPS * f;
  bool head = k == 0;
  hi = U2F(SEL(head, F2U(p.h), F2U(hi))); lo = U2F(SEL(head, F2U(p.l), F2U(lo)));
  ep = U2F(SEL(head, F2U(U2F(F2U(hi) & 0x7fffffffu) * ST_EXPM1_EP0), F2U(ep)));
  uint up = F2U(hi + (lo + ep)); uint dn = F2U(hi + (lo - ep));
  uint res = SEL(live, up + SEL(n < 0 || head, 0u, (uint)n << 23), ux);
  res = SEL(over, ST_INF, SEL(gone, 0xbf800000u, res));
  return st_decided(SEL(ax > ST_INF, ST_NAN, res), live && up != dn);
}
/* expm1, bits in and bits out, correctly rounded for all 2^32 inputs (all tried; 1,109,522 left undecided
 * by the fast path). */
FN uint st_expm1_cr(uint ux) {
  st_u64 t = st_expm1_cr_try(ux);
  if (t.l != 0u) return st_expm1_cr_fixed(ux);
  return t.h;
}
#endif
