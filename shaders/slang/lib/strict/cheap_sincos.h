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
FN uint st_arc_bits(uint ax, uint turn) {
  bool tiny = ax < 0x39800000u; bool far = ax > ST_SINCOS_NEAR && ax < ST_INF;          /* 2^-12 */
  st_arc r = st_arc_near(SEL(tiny || ax > ST_SINCOS_NEAR, 0x3f800000u, ax));
  if (far) r = st_arc_far(ax);
  uint b = SEL(tiny, SEL(turn == 0u, ax, 0x3f800000u), st_arc_sin(r, turn));
  return SEL(ax < ST_INF, b, ST_NAN);
}

FN float st_sin(float x) {
  uint u = F2U(x); uint b = st_arc_bits(u & 0x7fffffffu, 0u);
  return U2F(SEL((u & 0x7fffffffu) < ST_INF, b ^ (u & 0x80000000u), b));
}
FN float st_cos(float x) { return U2F(st_arc_bits(F2U(x) & 0x7fffffffu, 1u)); }
#endif
