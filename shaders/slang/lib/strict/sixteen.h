/* The functions of 16-bit floats: x is any widened F16 (or BF16) value, and the result, rounded to nearest even to the
 * same format, is the correctly rounded one, for each of the 65,536 inputs of either format.
 *
 * Each is the cheap f32 function, at most 1 ULP off, moved by one unit of its last place for the few inputs (all were
 * tried) where that lies on the wrong side of the middle between two 16-bit neighbours, or on the middle itself while
 * the true value lies beside it. div, recip and sqrt need nothing: their correctly rounded f32 value can be rounded
 * again. */
#ifndef ST_SIXTEEN_H
#define ST_SIXTEEN_H
#include "cheap.h"

/* 1 for one input, else 0. */
#define ST_AT(u, bits) SEL((u) == (bits), 1u, 0u)

FN float st_exp_16(float x) {
  uint u = F2U(x); return U2F(F2U(st_exp(x)) - ST_AT(u, 0x3bef2000u) - ST_AT(u, 0x3cb9e000u));
}
FN float st_exp2_16(float x) { return U2F(F2U(st_exp2(x)) + ST_AT(F2U(x), 0x3a38a000u)); }
FN float st_expm1_16(float x) { return U2F(F2U(st_expm1(x)) + ST_AT(F2U(x), 0x3a350000u)); }

FN float st_log_16(float x) { return U2F(F2U(st_log(x)) - ST_AT(F2U(x), 0x3baf0000u)); }
FN float st_log2_16(float x) { return st_log2(x); }
FN float st_log1p_16(float x) {
  uint u = F2U(x); return U2F(F2U(st_log1p(x)) + ST_AT(u, 0x3bc06000u) - ST_AT(u, 0xbbbfa000u));
}

FN float st_sin_16(float x) {
  uint a = F2U(x) & 0x7fffffffu; return U2F(F2U(st_sin(x)) + ST_AT(a, 0x3e566000u) - ST_AT(a, 0x43960000u));
}
FN float st_cos_16(float x) { return U2F(F2U(st_cos(x)) + ST_AT(F2U(x) & 0x7fffffffu, 0x3d6f8000u)); }

FN float st_tanh_16(float x) { return st_tanh(x); }
/* 1/2 + x/4 - x^3/48: where the first two terms are a middle, the third decides. */
FN float st_sigmoid_16(float x) {
  uint u = F2U(x); uint near = SEL((u & 0x7fffffffu) - 1u < 0x3c7fffffu, 1u, 0u);      /* 0 < |x| < 2^-6 */
  return U2F(F2U(st_sigmoid(x)) + SEL((u >> 31) != 0u, near, 0u - near));
}

/* x/2 + c x^2 for |x| < 2^-22: half an odd input may be a middle, and the second term, always upward, decides. */
FN uint st_16_upward(uint u) {
  uint near = SEL((u & 0x7fffffffu) - 1u < 0x347fffffu, 1u, 0u);
  return SEL((u >> 31) != 0u, 0u - near, near);
}
FN float st_silu_16(float x) {
  uint u = F2U(x); return U2F(F2U(st_silu(x)) + st_16_upward(u) - ST_AT(u, 0xc02e6000u));
}
FN float st_gelu_16(float x) {
  uint u = F2U(x); uint b = F2U(st_gelu(x)) + st_16_upward(u);
  b = b + ST_AT(u, 0xbaaf8000u) - ST_AT(u, 0x3aaf8000u);
  return U2F(b + ST_AT(u, 0x3eb4e000u) - ST_AT(u, 0xbeb4e000u));
}
FN float st_gelu_erf_16(float x) {
  uint u = F2U(x); uint b = F2U(st_gelu_erf(x)) + st_16_upward(u);
  return U2F(b + ST_AT(u, 0xbaaf8000u) - ST_AT(u, 0x3aaf8000u));
}
FN float st_softplus_16(float x) { return U2F(F2U(st_softplus(x)) - ST_AT(F2U(x), 0xb8860000u)); }
FN float st_erf_16(float x) { return U2F(F2U(st_erf(x)) - ST_AT(F2U(x) & 0x7fffffffu, 0x3ac24000u)); }

FN float st_rsqrt_16(float x) { return st_rsqrt(x); }
FN float st_recip_16(float x) { return st_rcp(x); }
FN float st_sqrt_16(float x) { return st_sqrt(x); }
FN float st_div_16(float a, float b) { return st_div(a, b); }
#endif
