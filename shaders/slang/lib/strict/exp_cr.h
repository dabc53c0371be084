/* exp in f32, correctly rounded for every input. */
#ifndef ST_EXP_CR_H
#define ST_EXP_CR_H
#include "base.h"
#include "convert.h"
#include "exp_constants.h"

/* m * 2^(e - 63), top bit of m set, rounded to the nearest f32 (ties cannot occur), any exponent. */
FN uint st_round_fixed(st_u64 m, int e) {
  if (e > 127) return ST_INF;
  if (e >= -126) return ((uint)(e + 126) << 23) + (m.h >> 8) + ((m.h >> 7) & 1u);
  int s = -119 - e;
  uint t = SEL(s > 31, 0u, m.h >> (uint)(s & 31));
  return (t + 1u) >> 1;
}

/* One of eight words by the low three bits of j. */
FN uint st_pick8(uint j, uint w0, uint w1, uint w2, uint w3, uint w4, uint w5, uint w6, uint w7) {
  bool j1 = (j & 1u) != 0u; bool j2 = (j & 2u) != 0u;
  return SEL((j & 4u) != 0u, SEL(j2, SEL(j1, w7, w6), SEL(j1, w5, w4)), SEL(j2, SEL(j1, w3, w2), SEL(j1, w1, w0)));
}
#define ST_ECR_PICK(name)                                                                                      \
  st_pick8(j, ST_ECR_##name##0, ST_ECR_##name##1, ST_ECR_##name##2, ST_ECR_##name##3, ST_ECR_##name##4,         \
           ST_ECR_##name##5, ST_ECR_##name##6, ST_ECR_##name##7)
#define ST_ECR_STEP(k) y = st_add64(st_mulhi64(y, r), st_mk64(ST_ECR_Q##k##H, ST_ECR_Q##k##L))

/* exp in 64-bit fixed point, for 2^-25 < |x| < 104.5; k = nearest integer to 8 x / ln 2 (one off is harmless).
 * x - (k - 1) ln2/8 modulo 1 lies in (0.04, 0.14); its exponential by Taylor to degree 12 in Q1.63, times 2^(j/8);
 * error about 2^-60, one rounding. */
FN uint st_exp_cr_fixed(uint ux, int k) {
  uint mant = (ux & 0x7fffffu) | 0x800000u; int ex = (int)((ux >> 23) & 255u) - 127;
  int sh = ex + 41; st_u64 X;
  if (sh >= 32) { X.h = mant << (uint)(sh - 32); X.l = 0u; }
  else { X.h = mant >> (uint)(32 - sh); X.l = mant << (uint)sh; }
  if ((ux >> 31) != 0u) X = st_neg64(X);
  int kk = k - 1; uint ka = (uint)SEL(kk < 0, -kk, kk);
  st_u64 P; P.l = ka * ST_ECR_LNL; P.h = ka * ST_ECR_LNH + st_mulhi32(ka, ST_ECR_LNL);
  uint c = st_mulhi32(ka, ST_ECR_LNX); P.l = P.l + c; P.h = P.h + SEL(P.l < c, 1u, 0u);
  if (kk >= 0) P = st_neg64(P);
  st_u64 r = st_add64(X, P);
  st_u64 y = st_mk64(ST_ECR_Q12H, ST_ECR_Q12L);
  ST_ECR_STEP(11); ST_ECR_STEP(10); ST_ECR_STEP(9); ST_ECR_STEP(8); ST_ECR_STEP(7); ST_ECR_STEP(6);
  ST_ECR_STEP(5); ST_ECR_STEP(4); ST_ECR_STEP(3); ST_ECR_STEP(2); ST_ECR_STEP(1); ST_ECR_STEP(0);
  uint j = (uint)kk & 7u; int n = kk >> 3;
  uint th = ST_ECR_PICK(PH);
  uint tl = ST_ECR_PICK(PL);
  st_u64 m = st_mulhi64(y, st_mk64(th, tl));
  int e = n + 1;
  if ((m.h >> 31) == 0u) { m.h = (m.h << 1) | (m.l >> 31); m.l = m.l << 1; e = n; }
  return st_round_fixed(m, e);
}

/* exp, bits in and bits out, correctly rounded for all 2^32 inputs (all tried).
 * Fast path: k = round(8x/ln2), x - k ln2/8 = rh + rl exactly enough, 2^(j/8) (1 + r + r^2/2 + r^3 Q(r)) as
 * hi + lo with an error below ST_ECR_EPS; when hi + (lo +- eps) agree that is the answer, otherwise (0.05 % of
 * inputs, and all that may be subnormal) the fixed-point path decides. */
FN uint st_exp_cr(uint ux) {
  uint ax = ux & 0x7fffffffu;
  bool live = ax > 0x33000000u && ax < 0x42d10000u;                  /* 2^-25 < |x| < 104.5 */
  float x = U2F(SEL(live, ux, 0x3f800000u));
  float t = x * ST_ECR_INV + ST_EXP_MAGIC;
  float kf = t - ST_EXP_MAGIC; int k = (int)(F2U(t) - 0x4b400000u);
  float t1 = x - kf * ST_ECR_L1; float p2 = kf * ST_ECR_L2;
  float rh = t1 - p2; float bb = rh - t1; float re = (t1 - (rh - bb)) - (p2 + bb);
  float rl = re - kf * ST_ECR_L3;
  float a = st_hi12(rh); float b = rh - a;
  float s0 = a * a * ST_HALF;
  float rr = rh * rh;
  float q = rr * rh * (ST_ECR_C3 + rh * (ST_ECR_C4 + rh * (ST_ECR_C5 + rh * (ST_ECR_C6 + rh * ST_ECR_C7))));
  float ph = rh + s0; float pe = (rh - ph) + s0;
  float pl = pe + (a * b + (rl + (rl * ph + (b * b * ST_HALF + q))));
  uint j = (uint)k & 7u; int n = k >> 3;
  float Th = U2F(ST_ECR_PICK(TH));
  float Tl = U2F(ST_ECR_PICK(TL));
  float pa = st_hi12(ph); float pb = ph - pa;
  float u = Th * pa;
  float s = Th + u; float se = (Th - s) + u;
  float lo = Tl + (Th * pb + (se + (Tl * ph + (Th + Tl) * pl)));
  float up = s + (lo + ST_ECR_EPS); float dn = s + (lo - ST_ECR_EPS);
  uint res = F2U(up) + ((uint)n << 23);
  bool under = (ux >> 31) != 0u && ax > 0x42ae0000u;                 /* below -87 the result may be subnormal */
  bool over = (ux >> 31) == 0u && ax > 0x42b17217u;
  if (live && !over && (up != dn || under)) res = st_exp_cr_fixed(ux, k);
  res = SEL(live, res, 0x3f800000u);
  if (ax > 0x33000000u) {
    res = SEL(over, ST_INF, res);
    res = SEL((ux >> 31) != 0u && ax >= 0x42d10000u, 0u, res);
    res = SEL(ax > ST_INF, ST_NAN, res);
  }
  return res;
}

/* exp on f16 and on bf16 bits, correctly rounded. Rounding the correctly rounded f32 result again is right for every
 * bf16 input and for all f16 inputs but two, whose exponentials lie just below a tie (all inputs were tried). */
FN uint st_exp_cr_f16(uint h) {
  uint r = st_f32_to_f16(U2F(st_exp_cr(F2U(st_f16_to_f32(h)))));
  return r - SEL(h == 0x1f79u || h == 0x25cfu, 1u, 0u);
}
FN uint st_exp_cr_bf16(uint b) { return st_f32_to_bf16(U2F(st_exp_cr(F2U(st_bf16_to_f32(b))))); }
#endif
