/* Conversions between float formats as integer work: one rounding to nearest even, subnormals kept on every device,
 * NaN made quiet, overflow to infinity. 16-bit values travel in the low half of a uint. */
#ifndef ST_CONVERT_H
#define ST_CONVERT_H
#include "base.h"

/* v / 2^n rounded to nearest even, n in [1, 31], v < 2^31. */
FN uint st_round_shift(uint v, uint n) { return (v + ((1u << (n - 1u)) - 1u) + ((v >> n) & 1u)) >> n; }

/* f16 bits to f32, exact. */
FN float st_f16_to_f32(uint h) {
  uint sign = (h & 0x8000u) << 16; uint a = h & 0x7fffu;
  uint normal = (a << 13) + 0x38000000u;
  uint tiny = F2U((float)(int)a) - SEL(a == 0u, 0u, 24u << 23);       /* a * 2^-24, exact */
  uint r = SEL(a < 0x0400u, tiny, normal);
  r = SEL(a >= 0x7c00u, (a << 13) | ST_INF | SEL(a > 0x7c00u, 0x00400000u, 0u), r);
  return U2F(r | sign);
}

/* f32 to f16 bits. */
FN uint st_f32_to_f16(float f) {
  uint u = F2U(f); uint sign = (u >> 16) & 0x8000u; uint a = u & 0x7fffffffu;
  uint normal = (a + 0xfffu + ((a >> 13) & 1u) - 0x38000000u) >> 13;
  uint e = a >> 23; uint m = (a & 0x007fffffu) | 0x00800000u;
  uint n = SEL(e < 102u, 25u, SEL(e > 112u, 14u, 126u - e));
  uint tiny = SEL(e < 102u, 0u, st_round_shift(m, n));
  uint r = SEL(a < 0x38800000u, tiny, normal);
  r = SEL(a >= 0x477ff000u, 0x7c00u, r);
  r = SEL(a > ST_INF, 0x7e00u | ((a >> 13) & 0x1ffu), r);
  return r | sign;
}

/* bf16 bits to f32, exact. */
FN float st_bf16_to_f32(uint b) {
  uint u = b << 16;
  return U2F(SEL((u & 0x7fffffffu) > ST_INF, u | 0x00400000u, u));
}

/* f32 to bf16 bits. */
FN uint st_f32_to_bf16(float f) {
  uint u = F2U(f);
  uint r = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  return SEL((u & 0x7fffffffu) > ST_INF, (u >> 16) | 0x0040u, r);
}

#ifdef ST_F64
#include "base_d.h"

/* f32 bits to f64, exact. */
FN double st_f32_to_f64(float f) {
  uint u = F2U(f); uint a = u & 0x7fffffffu;
  bool tiny = a < 0x00800000u;
  uint t = SEL(tiny, F2U((float)(int)a), a);
  uint e = (t >> 23) + SEL(tiny, 747u, 896u);
  uint m = t & 0x007fffffu;
  uint h = (e << 20) | (m >> 3); uint l = m << 29;
  h = SEL(a == 0u, 0u, h);
  h = SEL(a >= ST_INF, 0x7ff00000u | (m >> 3) | SEL(a > ST_INF, 0x00080000u, 0u), h);
  return U2D(h | (u & 0x80000000u), l);
}

/* The bits of |v| rounded to a format with `mant` stored mantissa bits and exponents from 2^(1 - bias), `inf` its
 * infinity: one rounding of the 53-bit value, 25 leading bits and a sticky bit. */
FN uint st_narrow(uint h, uint l, uint mant, int bias, uint inf) {
  int e = (int)((h >> 20) & 0x7ffu) - 1023 + bias;                   /* exponent field in the target */
  uint top = (h & 0x000fffffu) | 0x00100000u;                        /* 21 bits */
  uint m = (top << 10) | (l >> 22);                                  /* 31 bits */
  uint sticky = SEL((l & 0x003fffffu) != 0u, 1u, 0u);
  int n = 30 - (int)mant + SEL(e < 1, 1 - e, 0);
  uint c = (uint)SEL(n > 31, 31, n);
  m = SEL(n > 31, 1u, m) | sticky;
  uint r = st_round_shift(m, c) + SEL(e < 1, 0u, (uint)(e - 1) << mant);
  r = SEL(e > 2 * bias, inf, r);
  r = SEL((h & 0x7fffffffu) < 0x00100000u, 0u, r);                   /* zero and subnormal f64 */
  bool nan = (h & 0x7ff00000u) == 0x7ff00000u && ((h & 0x000fffffu) | l) != 0u;
  return SEL(nan, inf | (inf >> 1), r);
}
/* f64 to f32, f16, bf16: a single rounding each. */
FN float st_f64_to_f32(double d) {
  st_u64 u = D2U(d); return U2F(st_narrow(u.h, u.l, 23u, 127, ST_INF) | (u.h & 0x80000000u));
}
FN uint st_f64_to_f16(double d) {
  st_u64 u = D2U(d); return st_narrow(u.h, u.l, 10u, 15, 0x7c00u) | ((u.h >> 16) & 0x8000u);
}
FN uint st_f64_to_bf16(double d) {
  st_u64 u = D2U(d); return st_narrow(u.h, u.l, 7u, 127, 0x7f80u) | ((u.h >> 16) & 0x8000u);
}
FN double st_f16_to_f64(uint h) { return st_f32_to_f64(st_f16_to_f32(h)); }
FN double st_bf16_to_f64(uint b) { return st_f32_to_f64(st_bf16_to_f32(b)); }
#endif
#endif
