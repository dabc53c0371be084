/* sigmoid, silu and softplus in f32, correctly rounded. */
#ifndef ST_SIGMOID_H
#define ST_SIGMOID_H
#include "base.h"
#include "divide.h"
#include "exp_more.h"
#include "log_more.h"

/* exp(-|x|) = (h + l) * 2^n and 1/(1 + exp(-|x|)) = rh + rl, for 2^-25 < |x| < 87; uh + ul + um the sum
 * below it. Of -|x| = k ln2/8 + r, or of x as bits. */
#ifdef ST_LANGUAGE_C
typedef struct { float h; float l; int n; float rh; float rl; float uh; float ul; float um; } st_logistic;
#else
struct st_logistic { float h; float l; int n; float rh; float rl; float uh; float ul; float um; };
#endif
FN st_logistic st_logistic_of(int k, st_ff r) {
  st_ff y = st_exp_spread(st_exp_head(r.h, r.l), k);
  st_logistic g; g.h = y.h + y.l; g.l = (y.h - g.h) + y.l; g.n = k >> 3;
  float f = U2F((uint)(127 + g.n) << 23);
  float A = g.h * f; g.uh = ST_ONE + A; g.ul = (ST_ONE - g.uh) + A; g.um = g.l * f;
  float q = st_rcp_guess(g.uh);
  st_ff p = st_two_prod(g.uh, q);
  float e = (ST_ONE - p.h) - (p.l + (g.ul + g.um) * q);
  g.rh = q; g.rl = q * e + q * e * e;
  return g;
}
FN st_logistic st_logistic_parts(uint ax) {
  float x = U2F(ax | 0x80000000u);
  int k = st_exp_index(x); return st_logistic_of(k, st_exp_rest(x, k));
}
/* sigmoid(x) as h + l times 2^n: the quotient, for negative x times the exponential. */
FN st_ff st_sigmoid_ff(st_logistic g, bool neg) {
  st_ff p = st_two_prod(g.h, g.rh);
  float l = p.l + (g.h * g.rl + g.l * g.rh);
  st_ff y; y.h = U2F(SEL(neg, F2U(p.h), F2U(g.rh))); y.l = U2F(SEL(neg, F2U(l), F2U(g.rl)));
  return y;
}

/* 2^127 / D for D in [2^63, 2^64), i.e. the reciprocal of a Q1.63 number in Q0.64 (below 1), by two Newton steps. */
FN st_u64 st_rcp_step(st_u64 R, st_u64 D) {
  st_u64 t = st_add64(st_mk64(0x80000000u, 0u), st_neg64(st_mulhi64(D, R)));
  if ((t.h >> 31) != 0u) return st_add64(R, st_neg64(st_shl64(st_mulhi64(R, st_neg64(t)), 1u)));
  st_u64 s = st_add64(R, st_shl64(st_mulhi64(R, t), 1u));
  if (st_less64(s, R)) s = st_mk64(0xffffffffu, 0xffffffffu);
  return s;
}
FN st_u64 st_rcp_fixed(st_u64 D) {
  float g = st_rcp_guess(U2F(0x3f800000u | ((D.h >> 8) & 0x7fffffu)));
  int w = (int)(g * U2F(0x4e800000u));
  st_u64 R = st_mk64((uint)SEL(w > 0x3fffffff, 0x3fffffff, w) << 2, 0u);
  return st_rcp_step(st_rcp_step(R, D), D);
}
/* sigmoid in fixed point: normalised number and exponent, from y = exp(-|x|), or for 2^-13 < |x|. */
FN st_wide st_logistic_wide(st_wide y, bool neg) {
  st_u64 m = st_mk64(y.h, y.l);
  st_u64 D = st_mk64(0x80000000u, 0u);
  if (y.e > -64) D = st_add64(D, st_shr64(m, (uint)(-y.e)));
  st_u64 R = st_rcp_fixed(D); int e = -1;
  if (neg) { R = st_mulhi64(m, R); e = y.e; }
  uint z = st_nlz64(R);
  return st_mkwide(st_shl64(R, z), e - (int)z);
}
FN st_wide st_sigmoid_wide(uint ux) { return st_logistic_wide(st_exp_wide(ux | 0x80000000u), (ux >> 31) != 0u); }

/* sigmoid in fixed point. |x| <= 2^-13: 1/2 + x/4 exactly, less x^3/48 rounded up by at most two units, so that what
 * lies next to a tie falls on its right side. */
FN uint st_sigmoid_cr_fixed(uint ux) {
  uint ax = ux & 0x7fffffffu; bool neg = (ux >> 31) != 0u;
  if (ax <= 0x39000000u) {
    st_u64 X = st_fraction(ux);
    st_u64 c = st_mulhi64(st_mulhi64(st_mulhi64(X, X), X), st_mk64(ST_SIXTH8H, ST_SIXTH8L));
    st_u64 d = st_add64(st_shr64(X, 2u), st_neg64(st_add64(c, st_mk64(0u, 1u))));
    if (neg) d = st_neg64(d);
    return st_round_any(st_add64(st_mk64(0x80000000u, 0u), d), -1);
  }
  st_wide y = st_sigmoid_wide(ux);
  return st_round_fixed(st_mk64(y.h, y.l), y.e);
}
/* The fast path of sigmoid. */
FN st_u64 st_sigmoid_cr_try(uint ux) {
  uint ax = ux & 0x7fffffffu; bool neg = (ux >> 31) != 0u;
  bool one = (int)ux >= 0x418b0000; bool gone = ux >= 0xc2d10000u; bool tiny = ax <= 0x33000000u;
  bool live = !one & !gone & !tiny; bool under = ux > 0xc2ae0000u;                     /* -87 */
  st_logistic g = st_logistic_parts(SEL(live & !under, ax, 0x3f800000u));
  st_ff y = st_sigmoid_ff(g, neg);
  float ep = y.h * ST_SIGMOID_EPS;
  uint up = F2U(y.h + (y.l + ep)); uint dn = F2U(y.h + (y.l - ep));
  uint res = up + st_where_negative(ux, (uint)g.n << 23, 0u);
  res = SEL(live, res, SEL(one, 0x3f800000u, SEL(gone, 0u, 0x3f000000u)));
  return st_decided(SEL(ax > ST_INF, ST_NAN, res), live & ((up != dn) | under));
}
/* sigmoid(x) = 1/(1 + exp(-x)), bits in and bits out, correctly rounded for all 2^32 inputs (all tried; 3,210,353 left to
 * fixed point). */
FN uint st_sigmoid_cr(uint ux) {
  st_u64 t = st_sigmoid_cr_try(ux);
  if (t.l != 0u) return st_sigmoid_cr_fixed(ux);
  return t.h;
}

/* softplus in fixed point, 2^-25 < |x|, -104.5 < x < 18.25. */
FN uint st_softplus_cr_fixed(uint ux) {
  bool neg = (ux >> 31) != 0u;
  st_wide y = st_exp_wide(ux | 0x80000000u); st_u64 V = st_mk64(y.h, y.l);
  st_wide s = st_log1p_wide(V, y.e, false, neg);
  if (s.e == ST_LOG1P_RATIO) return st_round_any(st_mulhi64(V, st_mk64(s.h, s.l)), y.e + 1);
  if (!neg) {
    int ex = (int)(ux >> 23) - 127;
    s.e = s.e + SEL(ex < 0, 0, (int)(((ux & 0x7fffffu) | 0x800000u) >> (uint)(23 - SEL(ex < 0, 0, ex))));
    s = st_wide_add(s, st_fraction(ux), true);
  }
  return st_wide_round(s);
}
/* The fast path of softplus: x + log(1 + exp(-|x|)), without x where that is negative. */
FN st_u64 st_softplus_cr_try(uint ux) {
  uint ax = ux & 0x7fffffffu;
  bool same = (int)ux >= 0x41920000; bool gone = ux >= 0xc2d10000u; bool tiny = ax <= 0x33000000u;
  bool live = !same & !gone & !tiny;
  bool under = ux > 0xc2480000u;                                     /* -50: above it no part is subnormal */
  uint c = st_where_negative(ax - 0x33000001u, 0x3f800000u, ax);
  c = st_where_negative(0x42480000u - c, 0x3f800000u, c);
  st_logistic g = st_logistic_parts(c);
  st_bounded y = st_log1p_parts(g.uh, g.ul, g.um, ST_SIGMOID_EPS);
  float x = U2F(st_where_negative(ux, 0u, c));
  float hi = x + y.h; float bb = hi - x; float lo = ((x - (hi - bb)) + (y.h - bb)) + y.l;
  float ep = y.ep + ST_SIGMOID_EPS * U2F(st_where_negative(ux, 0u, 0x3e800000u));
  uint up = F2U(hi + (lo + ep)); uint dn = F2U(hi + (lo - ep));
  uint res = st_where_negative((0x4191ffffu - ux) & ~ux, ux, up);
  res = st_where_negative(ax - 0x33000001u, 0x3f317218u, st_where_negative((0xc2d0ffffu - ux) & ux, 0u, res));
  return st_decided(SEL(ax > ST_INF, ST_NAN, res), live & ((up != dn) | under));
}
/* softplus(x) = log(1 + exp(x)), bits in and bits out, correctly rounded. */
FN uint st_softplus_cr(uint ux) {
  st_u64 t = st_softplus_cr_try(ux);
  if (t.l != 0u) return st_softplus_cr_fixed(ux);
  return t.h;
}

/* silu in fixed point, 2^-25 < |x|, -110 < x < 18.25. |x| < 2^-13: x/2 + x^2/4 exactly, in units of 2^(2e - 52) on
 * three words, less x^4/48 to whole units and a sticky bit, which puts the sum on the right side of every tie. */
FN uint st_silu_cr_fixed(uint ux) {
  uint ax = ux & 0x7fffffffu; bool neg = (ux >> 31) != 0u; uint sign = ux & 0x80000000u;
  uint mant = (ux & 0x7fffffu) | 0x800000u; int ex = (int)(ax >> 23) - 127;
  if (ax < 0x39000000u) {
    st_u64 A = st_mk64(st_mulhi32(mant, mant), mant * mant);
    st_u64 A16 = st_shl64(A, 16u);
    st_u64 c = st_shr64(st_mulhi64(st_mulhi64(A16, A16), st_mk64(ST_SIXTH8H, ST_SIXTH8L)), (uint)(8 - 2 * ex));
    st_u64 B = st_add64(st_shl64(A, 4u), st_neg64(st_add64(c, st_mk64(0u, SEL(neg, 0u, 1u)))));
    uint sh = (uint)(28 - ex); uint s = sh - 32u;                                      /* mant << sh, sh in 42 .. 53 */
    uint w2 = SEL(s == 0u, 0u, mant >> (32u - s)); st_u64 S = st_mk64(mant << s, 0u);
    st_u64 T;
    if (neg) { T = st_add64(S, st_neg64(B)); if (st_less64(S, B)) w2 = w2 - 1u; }
    else { T = st_add64(S, B); if (st_less64(T, S)) w2 = w2 + 1u; }
    uint z = st_nlz32(w2); uint down = 32u - z;
    st_u64 m = st_shr64(T, down); m.h = m.h | (w2 << z);
    m.l = m.l | 1u;
    return st_round_fixed(m, 2 * ex - 52 + 63 + (int)down) | sign;
  }
  st_wide y = st_sigmoid_wide(ux);
  return st_round_any(st_mulhi64(st_mk64(y.h, y.l), st_mk64(mant << 8, 0u)), y.e + ex + 1) | sign;
}
/* |x/2| as bits, halfway cases moved towards +inf as by the positive next term. */
FN uint st_half_up(uint ux) {
  uint ax = ux & 0x7fffffffu;
  uint whole = SEL(ax < 0x00800000u, ax, (ax & 0x7fffffu) | 0x800000u);
  return SEL(ax < 0x01000000u, (whole + 1u - (ux >> 31)) >> 1, ax - 0x00800000u);
}
/* The fast path of silu: the mantissa times sigmoid in two parts. */
FN st_u64 st_silu_cr_try(uint ux) {
  uint ax = ux & 0x7fffffffu; bool neg = (ux >> 31) != 0u;
  bool same = (int)ux >= 0x41920000; bool gone = ux >= 0xc2dc0000u; bool tiny = ax <= 0x33000000u;
  bool live = !same & !gone & !tiny; bool under = ux > 0xc2ae0000u;
  uint c = SEL(live & !under, ax, 0x3f800000u);
  st_logistic g = st_logistic_parts(c);
  st_ff y = st_sigmoid_ff(g, neg);
  float mx = U2F((c & 0x7fffffu) | 0x3f800000u);
  st_ff p = st_two_prod(mx, y.h); float lo = p.l + mx * y.l;
  float ep = p.h * ST_SIGMOID_EPS;
  uint up = F2U(p.h + (lo + ep)); uint dn = F2U(p.h + (lo - ep));
  uint res = up + ((uint)((int)(c >> 23) - 127 + SEL(neg, g.n, 0)) << 23);
  res = SEL(live, res, SEL(tiny, st_half_up(ux), SEL(same, ax, 0u))) | (ux & 0x80000000u);
  return st_decided(SEL(ax > ST_INF, ST_NAN, res), live & ((up != dn) | under));
}
/* silu(x) = x sigmoid(x), bits in and bits out, correctly rounded for all 2^32 inputs (all tried; 3,915,852 left to fixed
 * point); -0 at -inf. */
FN uint st_silu_cr(uint ux) {
  st_u64 t = st_silu_cr_try(ux);
  if (t.l != 0u) return st_silu_cr_fixed(ux);
  return t.h;
}
#endif
