/* log, log2 and log1p in f32. No branch, no table. */
#ifndef ST_CHEAP_LOG_H
#define ST_CHEAP_LOG_H
#include "base.h"
#include "cheap_constants.h"

/* A positive normal mantissa m in [1, 2) halved above sqrt(2) (e grows): m - 1, exact, in [-0.293, 0.414]. */
FN st_split st_log_centre(float m, int e) {
  bool upper = F2U(m) > 0x3fb504f3u;
  st_split r; r.m = U2F(F2U(m) - SEL(upper, 0x00800000u, 0u)) - ST_ONE; r.e = e + SEL(upper, 1, 0);
  return r;
}
/* log(1 + r) - r + r^2/2 for such r, absolute error about 2^-29. */
FN float st_log_cubic(float r) {
  float p = ST_CHEAP_LOG_P5 + r * (ST_CHEAP_LOG_P6 + r * (ST_CHEAP_LOG_P7 + r * ST_CHEAP_LOG_P8));
  p = ST_CHEAP_LOG_P1 + r * (ST_CHEAP_LOG_P2 + r * (ST_CHEAP_LOG_P3 + r * (ST_CHEAP_LOG_P4 + r * p)));
  return (r * r) * r * (ST_CHEAP_LOG_P0 + r * p);
}
/* e ln2 + log(1 + r) as h + l, h exact but for what l takes up; extra joins l. */
FN st_ff st_log_sum(int e, float r, float extra) {
  float k = (float)e; float H = k * ST_CHEAP_LOG2_H;
  st_ff y; y.h = H + r; float err = r - (y.h - H);
  y.l = SEL(e == 0, U2F(0u), err) + ((st_log_cubic(r) - r * r * ST_HALF) + (k * ST_CHEAP_LOG2_L + extra));
  return y;
}

/* log(x), at most 0.887 ULP (all inputs; worst at 0x3f32cc21): -inf at either zero, NaN below. */
FN float st_log(float x) {
  uint u = F2U(x); bool live = u - 1u < 0x7f7fffffu;
  st_split s = st_unpack(SEL(live, u, 0x3f800000u)); s = st_log_centre(s.m, s.e);
  st_ff y = st_log_sum(s.e, s.m, U2F(0u));
  uint limit = SEL((u & 0x7fffffffu) == 0u, 0xff800000u, SEL(u == ST_INF, ST_INF, ST_NAN));
  return U2F(SEL(live, F2U(y.h + y.l), limit));
}

/* log2(x), at most 0.769 ULP (all inputs; worst at 0x3fb3b403), exact for powers of two. r - r^2/2
 * and its product with 1/ln2 have exact leading parts. */
FN float st_log2(float x) {
  uint u = F2U(x); bool live = u - 1u < 0x7f7fffffu;
  st_split s = st_unpack(SEL(live, u, 0x3f800000u)); s = st_log_centre(s.m, s.e);
  float r = s.m; float a = st_hi12(r); float half_ = a * a * ST_HALF; float rest = (r - a) * (r + a) * ST_HALF;
  float g = r - half_; float gl = ((r - g) - half_) + (st_log_cubic(r) - rest);
  float b = st_hi12(g); float h = b * ST_CHEAP_INV_H;
  float l = (g - b) * ST_CHEAP_INV_H + (g * ST_CHEAP_INV_L + gl * (ST_CHEAP_INV_H + ST_CHEAP_INV_L));
  float k = (float)s.e; float v = k + h; float err = SEL(s.e == 0, U2F(0u), h - (v - k));
  uint limit = SEL((u & 0x7fffffffu) == 0u, 0xff800000u, SEL(u == ST_INF, ST_INF, ST_NAN));
  return U2F(SEL(live, F2U(v + (err + l)), limit));
}

/* log(h + l + m) for normal h >= 2^-25, |l| at most half a unit of h, m far below it: both join r before the series. */
FN st_ff st_log_triple(float h, float l, float m) {
  uint b = F2U(h);
  st_split s = st_log_centre(U2F((b & 0x007fffffu) | 0x3f800000u), (int)(b >> 23) - 127);
  float f = U2F((uint)SEL(s.e > 126, 0, 127 - s.e) << 23);           /* 0: beyond 2^126 l does not count */
  float d = l * f;
  float r = s.m + d; float rl = ((s.m - r) + d) + m * f;
  return st_log_sum(s.e, r, rl - rl * r);
}

/* log1p(x), at most 0.887 ULP (all inputs; worst at 0xbe9a67be): -inf at -1, NaN below. */
FN float st_log1p(float x) {
  uint u = F2U(x); uint a = u & 0x7fffffffu;
  bool live = a >= 0x33000000u && (int)a < (int)ST_INF && (int)u < (int)ST_INF && u < 0xbf800000u;
  float z = U2F(SEL(live, u, 0x3f800000u));
  float h = ST_ONE + z; float b = h - ST_ONE;
  st_ff y = st_log_triple(h, (ST_ONE - (h - b)) + (z - b), U2F(0u));
  uint pole = SEL(u == 0xbf800000u, 0xff800000u, ST_NAN);
  uint limit = SEL(a < 0x33000000u || u == ST_INF, u, pole);
  return U2F(SEL(live, F2U(y.h + y.l), limit));
}
#endif
