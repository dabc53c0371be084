/* sin and cos in f32. No table; the reduction of large arguments is a branch of its own. */
#ifndef ST_CHEAP_SINCOS_H
#define ST_CHEAP_SINCOS_H
#include "base.h"
#include "exp_constants.h"
#include "cheap_constants.h"
#include "sincos_turns.h"

#define ST_SINCOS_NEAR 0x42c40000u                                   /* 98 */

/* |x| as h + l plus k quarter turns. */
#ifdef ST_LANGUAGE_C
typedef struct { float h; float l; uint k; } st_arc;
#else
struct st_arc { float h; float l; uint k; };
#endif
/* |x| <= 98: k pi/2 in three parts, the first two products exact; absolute error about 2^-55. */
FN st_arc st_arc_near(uint ax) {
  float x = U2F(ax);
  float t = x * ST_SINCOS_INV + ST_EXP_MAGIC; float k = t - ST_EXP_MAGIC;
  float t1 = x - k * ST_SINCOS_P1; float p = k * ST_SINCOS_P2;
  float d = t1 - p; float b = d - t1; float e = (t1 - (d - b)) - (p + b);
  float w = e - k * ST_SINCOS_P3;
  st_arc r; r.h = d + w; r.l = (d - r.h) + w; r.k = F2U(t); return r;
}
/* |x| >= 64: the fraction of a turn from integers, times pi/2 in two parts. */
FN st_arc st_arc_far(uint ax) {
  st_u64 a = st_turns(ax);
  st_ff f = st_fraction_ff(st_mk64((a.h << 2) | (a.l >> 30), a.l << 2));
  float fh = st_hi12(f.h); float p = fh * ST_SINCOS_PIO2_H;
  float q = (f.h - fh) * ST_SINCOS_PIO2_H + (f.h * ST_SINCOS_PIO2_L + f.l * ST_SINCOS_PIO2_H);
  st_arc r; r.h = p + q; r.l = (p - r.h) + q; r.k = (a.h + 0x20000000u) >> 30; return r;
}
/* sin of an arc, `turn` quarter turns on: r + r^3 S(r^2) or 1 - r^2/2 + r^4 C(r^2), the square's half exact. */
FN uint st_arc_sin(st_arc r, uint turn) {
  float w = r.h * r.h; float a = st_hi12(r.h);
  float half_ = a * a * ST_HALF; float rest = (r.h - a) * (r.h + a) * ST_HALF + r.h * r.l;
  float h = ST_ONE - half_;
  float p = ST_SINCOS_S0 + w * (ST_SINCOS_S1 + w * (ST_SINCOS_S2 + w * ST_SINCOS_S3));
  float q = ST_SINCOS_C0 + w * (ST_SINCOS_C1 + w * ST_SINCOS_C2);
  float s = r.h + (r.l * h + (r.h * w) * p);
  float c = h + (((ST_ONE - h) - half_) + ((w * w) * q - rest));
  uint k = r.k + turn;
  return SEL((k & 1u) == 0u, F2U(s), F2U(c)) ^ ((k << 30) & 0x80000000u);
}
/* The sign and limits of sin (turn = 0) or cos (turn = 1) about the bits for |x|. |x| < 2^-12 gives x and 1. */
FN uint st_arc_limit(uint u, uint turn, uint bits) {
  uint a = u & 0x7fffffffu; uint sign = SEL(turn == 0u, u & 0x80000000u, 0u);
  return SEL(a < ST_INF, SEL(a < 0x39800000u, SEL(turn == 0u, a, 0x3f800000u), bits) ^ sign, ST_NAN);
}
FN float st_arc_function(float x, uint turn) {
  uint u = F2U(x); uint a = u & 0x7fffffffu;
  bool far = a > ST_SINCOS_NEAR && a < ST_INF;
  st_arc r = st_arc_near(SEL(a < 0x39800000u || a > ST_SINCOS_NEAR, 0x3f800000u, a));
  if (far) r = st_arc_far(a);
  return U2F(st_arc_limit(u, turn, st_arc_sin(r, turn)));
}
/* sin(x) and cos(x), at most 0.780 and 0.796 ULP over every 109th input. */
FN float st_sin(float x) { return st_arc_function(x, 0u); }
FN float st_cos(float x) { return st_arc_function(x, 1u); }

/* The same in two pieces for a C loop, which is vectorised around the first: h the bits, l nonzero where |x| > 98 is
 * left to the second. */
FN st_u64 st_arc_try(uint u, uint turn) {
  uint a = u & 0x7fffffffu;
  uint off = (a - 0x39800000u) | (ST_SINCOS_NEAR - a);               /* negative outside */
  uint b = st_arc_sin(st_arc_near(st_where_negative(off, 0x3f800000u, a)), turn);
  return st_mk64(st_arc_limit(u, turn, b), 1u - (((a - (ST_SINCOS_NEAR + 1u)) | (ST_INF - 1u - a)) >> 31));
}
FN st_u64 st_sin_try(uint u) { return st_arc_try(u, 0u); }
FN st_u64 st_cos_try(uint u) { return st_arc_try(u, 1u); }
FN uint st_sin_far(uint u) { return st_arc_limit(u, 0u, st_arc_sin(st_arc_far(u & 0x7fffffffu), 0u)); }
FN uint st_cos_far(uint u) { return st_arc_limit(u, 1u, st_arc_sin(st_arc_far(u & 0x7fffffffu), 1u)); }
#endif
