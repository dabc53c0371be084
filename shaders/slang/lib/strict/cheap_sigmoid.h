/* sigmoid, silu, gelu (tanh form) and softplus in f32. No branch, no table. */
#ifndef ST_CHEAP_SIGMOID_H
#define ST_CHEAP_SIGMOID_H
#include "base.h"
#include "divide.h"
#include "exp.h"
#include "cheap_exp.h"
#include "cheap_log.h"

/* 1/(1 + exp(yh + yl)) = r (1 + e) 2^-n to about 2^-27, r of 12 bits, |e| < 2^-10, for -110 <= y <= 116 (the
 * exponential of what lies below does not count). */
#ifdef ST_LANGUAGE_C
typedef struct { float r; float e; int n; } st_odds;
#else
struct st_odds { float r; float e; int n; };
#endif
FN st_odds st_odds_of(float yh, float yl) {
  float t = st_exp_t(yh); int n = ST_EXP_N(t);
  st_ff g = st_exp_pair(yh, yl, t - ST_EXP_MAGIC);
  int below = SEL(n < 0, SEL(n < -60, -60, n), 0); int above = SEL(n < 0, 0, n);
  float f = U2F((uint)(127 + below) << 23);
  float one = U2F((uint)(127 - SEL(above > 60, 60, above)) << 23);
  float A = g.h * f;
  float h = A + one; float b = h - A; float l = ((A - (h - b)) + (one - b)) + g.l * f;
  float r = U2F(0x7ef311c7u - F2U(h));
  r = r * (U2F(0x40000000u) - h * r);
  r = st_hi12(r * (U2F(0x40000000u) - h * r));
  float hh = st_hi12(h);
  float e = ((ST_ONE - hh * r) - (h - hh) * r) - l * r;
  st_odds o; o.r = r; o.e = e + e * e; o.n = above; return o;
}

/* sigmoid(x) = 1/(1 + exp(-x)), at most 0.780 ULP (all inputs; worst at 0xc2af6bec). */
FN float st_sigmoid(float x) {
  uint u = F2U(x); uint a = u & 0x7fffffffu;
  uint c = SEL(a > 0x42d20000u, 0x42d20000u, SEL(a < 0x2b800000u, 0x2b800000u, a));    /* 2^-40 .. 105 */
  st_odds o = st_odds_of(U2F(c | (~u & 0x80000000u)), U2F(0u));
  uint b = st_pack(o.r + o.r * o.e, -o.n);
  return U2F(SEL(a > ST_INF, ST_NAN, b));
}

/* |x| times the odds, the mantissa of |x| split so that the leading product is exact; sign and limits of silu and
 * gelu: the input itself at +inf, -0 below -112. */
FN float st_gate(uint u, st_odds o) {
  uint a = u & 0x7fffffffu; bool gone = u > 0xc2e00000u;                                       /* -112 */
  bool special = a == 0u || a >= ST_INF || gone;
  st_split s = st_unpack(SEL(special, 0x3f800000u, a));
  float m = st_hi12(s.m);
  float v = m * o.r + ((s.m - m) * o.r + (s.m * o.r) * o.e);
  uint b = st_pack(v, s.e - o.n) | (u & 0x80000000u);
  uint limit = SEL(a > ST_INF, ST_NAN, SEL(gone, 0x80000000u, u));
  return U2F(SEL(special, limit, b));
}

/* silu(x) = x sigmoid(x), at most 0.832 ULP (all inputs; worst at 0xc2b7be95). */
FN float st_silu(float x) {
  uint u = F2U(x); uint a = u & 0x7fffffffu;
  uint c = SEL(a > 0x42e00000u, 0x42e00000u, SEL(a < 0x2b800000u, 0x2b800000u, a));    /* 2^-40 .. 112 */
  return st_gate(u, st_odds_of(U2F(c | (~u & 0x80000000u)), U2F(0u)));
}

/* gelu(x) = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) = x sigmoid(x (c1 + c3 x^2)), the inner product in two parts
 * (relative error about 2^-35); at most 0.774 ULP over every 109th input. */
FN float st_gelu(float x) {
  uint u = F2U(x); uint a = u & 0x7fffffffu;
  uint c = SEL(a > 0x41300000u, 0x41300000u, SEL(a < 0x2b800000u, 0x2b800000u, a));    /* 2^-40 .. 11 */
  float z = U2F(c); float zh = st_hi12(z); float zl = z - zh;
  float w = zh * zh; float wl = (z + zh) * zl;
  float wa = st_hi12(w); float wb = (w - wa) + wl;
  float p = ST_GELU_C3_H * wa;
  float s = ST_GELU_C1_H + p; float bb = s - ST_GELU_C1_H;
  float sl = ((ST_GELU_C1_H - (s - bb)) + (p - bb)) + (ST_GELU_C3_H * wb + (ST_GELU_C3_L * (w + wl) + ST_GELU_C1_L));
  float sa = st_hi12(s);
  float P = zh * sa; float Q = zh * (s - sa) + (zl * s + z * sl);
  float y = P + Q; float yl = (P - y) + Q;
  uint sign = ~u & 0x80000000u;
  return st_gate(u, st_odds_of(U2F(F2U(y) | sign), U2F(F2U(yl) ^ sign)));
}

/* softplus(x) = log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|)), at most 0.956 ULP (all inputs; worst at 0xbf6c819e);
 * below -20 exp(x) itself. */
FN float st_softplus(float x) {
  uint u = F2U(x); uint a = u & 0x7fffffffu; bool neg = (u >> 31) != 0u;
  uint c = SEL(a > 0x42d20000u, 0x42d20000u, SEL(a < 0x2b800000u, 0x2b800000u, a));
  float y = U2F(c | 0x80000000u);
  float t = st_exp_t(y); int n = ST_EXP_N(t);
  st_ff g = st_exp_pair(y, U2F(0u), t - ST_EXP_MAGIC);
  float f = U2F((uint)(127 + SEL(n < -60, -60, n)) << 23);
  float A = g.h * f; float h = ST_ONE + A;
  st_ff v = st_log_triple(h, (ST_ONE - h) + A, g.l * f);
  float z = U2F(SEL(neg, 0u, c));
  float s = z + v.h; float bb = s - z; float l = ((z - (s - bb)) + (v.h - bb)) + v.l;
  uint far = SEL(neg, st_exp_bits(g.h + g.l, F2U(t) << 23), u);
  uint b = SEL(a > 0x41a00000u, far, F2U(s + l));                      /* 20 */
  return U2F(SEL(a > ST_INF, ST_NAN, b));
}
#endif
