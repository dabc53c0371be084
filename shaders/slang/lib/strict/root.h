/* Square root (correctly rounded) and its reciprocal (at most 1 ULP) in f32. */
#ifndef ST_ROOT_H
#define ST_ROOT_H
#include "base.h"

/* 1/sqrt(m) for m in [1, 4) to about 2^-22: integer first guess, three Newton steps. */
FN float st_rsqrt_guess(float m) {
  float h = m * ST_HALF; float y = U2F(0x5f375a86u - (F2U(m) >> 1));
  y = y * (U2F(0x3fc00000u) - h * y * y);
  y = y * (U2F(0x3fc00000u) - h * y * y);
  return y * (U2F(0x3fc00000u) - h * y * y);
}

/* sqrt(x), correctly rounded (all inputs tried); negative numbers and NaN give NaN, -0 gives -0.
 * The float root of the mantissa becomes an integer, corrected by the remainder N - s^2, exact modulo 2^32. */
FN float st_sqrt(float x) {
  uint u = F2U(x);
  bool special = u == 0u || u >= ST_INF;                    /* the sign bit counts as large */
  st_split s = st_unpack(SEL(special, 0x3f800000u, u));
  uint odd = (uint)s.e & 1u; int half = (s.e - (int)odd) / 2;
  uint m = F2U(s.m) - 0x3f000000u;
  float v = U2F(F2U(s.m) + (odd << 23));
  uint r = (uint)(int)(v * st_rsqrt_guess(v) * U2F(0x4b000000u));   /* near sqrt(m * 2^(23 + odd)) */
  uint rem = (m << (23u + odd)) - r * r;
  bool low = (int)rem < 0; r = SEL(low, r - 1u, r); rem = SEL(low, rem + 2u * r + 1u, rem);
  low = (int)rem < 0; r = SEL(low, r - 1u, r); rem = SEL(low, rem + 2u * r + 1u, rem);
  low = (int)rem < 0; r = SEL(low, r - 1u, r); rem = SEL(low, rem + 2u * r + 1u, rem);
  bool high = rem > 2u * r; rem = SEL(high, rem - 2u * r - 1u, rem); r = SEL(high, r + 1u, r);
  high = rem > 2u * r; rem = SEL(high, rem - 2u * r - 1u, rem); r = SEL(high, r + 1u, r);
  high = rem > 2u * r; rem = SEL(high, rem - 2u * r - 1u, rem); r = SEL(high, r + 1u, r);
  uint bits = r + SEL(rem > r, 1u, 0u) + ((uint)(half + 126) << 23);
  uint limit = SEL((u & 0x7fffffffu) == 0u || u == ST_INF, u, ST_NAN);
  return U2F(SEL(special, limit, bits));
}

/* 1/sqrt(x), at most 0.5001 ULP (all inputs tried; 386 results are not the nearest float).
 * +-0 gives +-inf, +inf gives 0, negative numbers and NaN give NaN.
 * A float guess y, then y + y (1 - m y^2) / 2 with the residual from exact split products. */
FN float st_rsqrt(float x) {
  uint u = F2U(x);
  bool special = u == 0u || u >= ST_INF;
  st_split s = st_unpack(SEL(special, 0x3f800000u, u));
  uint odd = (uint)s.e & 1u; int half = (s.e - (int)odd) / 2;
  float v = U2F(F2U(s.m) + (odd << 23));
  float y = st_rsqrt_guess(v);
  st_ff p = st_two_prod(v, y); st_ff q = st_two_prod(p.h, y);
  float res = (ST_ONE - q.h) - (q.l + p.l * y);
  float w = y + y * (res * ST_HALF);
  uint bits = F2U(w) - ((uint)half << 23);
  uint limit = SEL((u & 0x7fffffffu) == 0u, u | ST_INF, SEL(u == ST_INF, 0u, ST_NAN));
  return U2F(SEL(special, limit, bits));
}
#endif
