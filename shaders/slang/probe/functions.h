/* What the device probe computes, by number, from two operands: the same text for gcc, which makes the expected results
 * (gen_cases.py), and for slangc. The F32 functions read and give the h words alone. PROBE_NAMES is read by the generator.
 *
 * integer to product are what every strict kernel stands on: 32-bit integers, exact conversions, no contraction, no
 * reordering, rounding to nearest even. tiny has subnormal operands or results. The rest are functions of the library.
 */
#ifndef PROBE_FUNCTIONS_H
#define PROBE_FUNCTIONS_H
#include "strict/base.h"
/* PROBE_NAMES integer convert contract order sum product tiny div sqrt exp log sin tanh */

FN uint probe_integer(uint a, uint b) {
  uint r = st_mulhi32(a, b) ^ (a * b + (a >> (b & 31u)));
  return (r - (uint)((int)a >> (int)(b & 31u))) ^ SEL((int)a < (int)b, a << (b & 7u), ~b);
}

#ifdef ST_F64
#include "strict/sincos_d.h"
#include "strict/divide_d.h"
#include "strict/root_d.h"
#include "strict/tanh_d.h"
#include "strict/log_d.h"

FN st_u64 probe_value(uint which, st_u64 a, st_u64 b) {
  double x = U2D(a.h, a.l); double y = U2D(b.h, b.l); double r = ST_ZERO_D;
  if (which == 0u) r = U2D(probe_integer(a.h, b.h) & 0x3fffffffu, probe_integer(a.l, b.l));
  if (which == 1u) r = st_int_d((int)a.h) + st_word_d(b.h);
  if (which == 2u) r = x * y + y;
  if (which == 3u) { st_dd s = st_two_sum_d(x, y); r = s.l + ((x + ST_EXPD_MAGIC) - ST_EXPD_MAGIC); }
  if (which == 4u) r = x + y;
  if (which == 5u || which == 6u) r = x * y;
  if (which == 7u) r = st_div_d(x, y);
  if (which == 8u) r = st_sqrt_d(x);
  if (which == 9u) r = st_exp_d(x);
  if (which == 10u) r = st_log_d(x);
  if (which == 11u) r = st_sin_d(x);
  if (which == 12u) r = st_tanh_d(x);
  return D2U(r);
}
#else
#include "strict/exp_cr.h"
#include "strict/log_cr.h"
#include "strict/sincos_cr.h"
#include "strict/divide.h"
#include "strict/root.h"
#include "strict/tanh.h"

FN float probe_order(float x, float y) {
  float s = x + y; float t = s - x; float m = U2F(0x4b400000u);
  return ((x - (s - t)) + (y - t)) + ((x + m) - m);
}

FN st_u64 probe_value(uint which, st_u64 a, st_u64 b) {
  float x = U2F(a.h); float y = U2F(b.h); uint r = 0u;
  if (which == 0u) r = probe_integer(a.h, b.h);
  if (which == 1u) r = F2U((float)((int)a.h >> 8) + (float)(int)(b.h >> 8));
  if (which == 2u) r = F2U(x * y + y);
  if (which == 3u) r = F2U(probe_order(x, y));
  if (which == 4u) r = F2U(x + y);
  if (which == 5u || which == 6u) r = F2U(x * y);
  if (which == 7u) r = F2U(st_div(x, y));
  if (which == 8u) r = F2U(st_sqrt(x));
  if (which == 9u) r = st_exp_cr(a.h);
  if (which == 10u) r = st_log_cr(a.h);
  if (which == 11u) r = st_sin_cr(a.h);
  if (which == 12u) r = F2U(st_tanh(x));
  return st_mk64(r, 0u);
}
#endif
#endif
