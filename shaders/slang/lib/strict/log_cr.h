/* log in f32, correctly rounded for every input. */
#ifndef ST_LOG_CR_H
#define ST_LOG_CR_H
#include "base.h"
#include "fixed.h"
#include "tables.h"
#include "log_constants.h"

/* A positive finite f32 as mant * 2^(e - 23) (24-bit mant) and its nearest centre: 1/c_j, j = the five leading fraction
 * bits, rounded, c_j = C_j/256; R/2^31 = mant/2^23 * c_j - 1 exactly. */
#ifdef ST_LANGUAGE_C
typedef struct { int e; uint j; int R; } st_log_parts;
#else
struct st_log_parts { int e; uint j; int R; };
#endif
FN st_log_parts st_log_split(uint ux) {
  uint tiny = ux - 0x00800000u;                                      /* negative for subnormal numbers */
  uint u = st_where_negative(tiny, F2U((float)(int)ux), ux);
  st_log_parts s; s.e = (int)(u >> 23) - (int)st_where_negative(tiny, 276u, 127u);
  s.j = ((u & 0x7fffffu) + 0x20000u) >> 18;
  s.R = (int)(((u & 0x7fffffu) | 0x800000u) * ST_TABLE(ST_T_LOG_C + s.j) - 0x80000000u);
  return s;
}

/* ux, or the bits of 1.5 for what is not positive and finite; by masks, so that C compilers make no branch around the
 * table. */
FN uint st_log_live(uint ux) {
  uint c = st_where_negative(ux - 1u, 0x3fc00000u, ux);
  return st_where_negative(0x7f7fffffu - c, 0x3fc00000u, c);
}

/* log(1 + v)/v for v = +-r, r < 2^-5 in Q0.64, as Q1.63: the series to degree 11. */
#define ST_LOG_STEP(k) p = st_signed_step(p, r, pos, ST_LOG_Q##k##H, ST_LOG_Q##k##L)
FN st_u64 st_log_series(st_u64 r, bool pos) {
  st_u64 p = st_mk64(ST_LOG_Q12H, ST_LOG_Q12L);
  ST_LOG_STEP(11); ST_LOG_STEP(10); ST_LOG_STEP(9); ST_LOG_STEP(8); ST_LOG_STEP(7); ST_LOG_STEP(6);
  ST_LOG_STEP(5); ST_LOG_STEP(4); ST_LOG_STEP(3); ST_LOG_STEP(2); ST_LOG_STEP(1);
  return p;
}

/* e ln2 as a whole part and a Q0.64 fraction. */
FN st_wide st_log_scale(int e) {
  uint ea = (uint)SEL(e < 0, -e, e);
  st_u64 P; uint whole;
  P.l = ea * ST_LOG_LNL; P.h = ea * ST_LOG_LNH; whole = st_mulhi32(ea, ST_LOG_LNH);
  uint c = st_mulhi32(ea, ST_LOG_LNL);
  P.h = P.h + c; whole = whole + SEL(P.h < c, 1u, 0u);
  c = st_mulhi32(ea, ST_LOG_LNX);
  P.l = P.l + c; c = SEL(P.l < c, 1u, 0u); P.h = P.h + c; whole = whole + SEL(P.h < c, 1u, 0u);
  if (e < 0) { whole = ~whole; P = st_neg64(P); if (P.h == 0u && P.l == 0u) whole = whole + 1u; }
  return st_mkwide(P, (int)whole);
}
/* a + f or a - f, f a Q0.64 fraction. */
FN st_wide st_wide_add(st_wide a, st_u64 f, bool plus) {
  st_u64 P = st_mk64(a.h, a.l); int whole = a.e;
  if (plus) { P = st_add64(P, f); if (st_less64(P, f)) whole = whole + 1; }
  else { if (st_less64(P, f)) whole = whole - 1; P = st_add64(P, st_neg64(f)); }
  return st_mkwide(P, whole);
}
/* A whole part and a fraction, rounded, sign apart. */
FN uint st_wide_round(st_wide a) {
  st_u64 P = st_mk64(a.h, a.l); uint whole = (uint)a.e;
  uint sign = whole & 0x80000000u;
  if (sign != 0u) { whole = ~whole; P = st_neg64(P); if (P.h == 0u && P.l == 0u) whole = whole + 1u; }
  st_u64 m; int ex;
  if (whole != 0u) {
    uint z = st_nlz32(whole); uint s = 32u - z; ex = (int)s - 1;
    m.h = (whole << z) | (P.h >> s); m.l = (P.h << z) | (P.l >> s);
  } else { uint z = st_nlz64(P); m = st_shl64(P, z); ex = -1 - (int)z; }
  return st_round_fixed(m, ex) | sign;
}

/* log in 64-bit fixed point, x positive, finite and not 1: error about 2^-62 absolute; next to 1 the series times the
 * normalised distance keeps that relative. */
FN uint st_log_cr_fixed(uint ux) {
  st_log_parts s = st_log_split(ux);
  bool pos = s.R > 0; uint a = (uint)SEL(pos, s.R, -s.R); st_u64 r = st_mk64(a << 1, 0u);
  st_u64 p = st_log_series(r, pos);
  int e = s.e + SEL(s.j == 32u, 1, 0);
  bool unit = s.j == 0u || s.j == 32u;
  if (unit && e == 0) {
    uint z = st_nlz32(a);
    return st_round_any(st_mulhi64(st_mk64(a << z, 0u), p), 1 - (int)z) | SEL(pos, 0u, 0x80000000u);
  }
  st_u64 q = st_mk64(ST_TABLE(ST_T_LOG_QH + s.j), ST_TABLE(ST_T_LOG_QL + s.j));
  return st_wide_round(st_wide_add(st_wide_add(st_log_scale(e), q, true), st_shl64(st_mulhi64(r, p), 1u), pos));
}

/* The fast path of log: e ln2 - log c_j + r - r^2/2 + r^3 Q(r) as hi + lo, r exact in two parts, the high parts of the
 * constants on a 2^-16 grid so that their sum is exact. The error is below |hi| EPS, plus EPA away from 1. */
FN st_u64 st_log_cr_try(uint ux) {
  bool live = (ux > 0u) & (ux < ST_INF);
  st_log_parts s = st_log_split(st_log_live(ux));
  float a = (float)(s.R & (int)0xffffc000u) * U2F(0x30000000u); float b = (float)(s.R & 0x3fff) * U2F(0x30000000u);
  float rh = a + b; float rl = b - (rh - a);
  float s0 = a * a * ST_HALF;
  float q = rh * rh * rh * (ST_LOG_C3 - rh * (ST_LOG_C4 - rh * (ST_LOG_C5 - rh * (ST_LOG_C6 - rh * ST_LOG_C7))));
  float ef = (float)(s.e + SEL(s.j >= 13u, 1, 0));
  float H = ef * ST_LOG_LN2_H + U2F(ST_TABLE(ST_T_LOG_H + s.j));
  float S = H + rh; float bb = S - H; float se = (H - (S - bb)) + (rh - bb);
  float hi = S - s0; float he = (S - hi) - s0;
  float low = ef * ST_LOG_LN2_L + U2F(ST_TABLE(ST_T_LOG_L + s.j));
  float lo = he + (se + (low + (rl - (rl * rh + (a * b + (b * b * ST_HALF - q))))));
  float ep = U2F(F2U(hi) & 0x7fffffffu) * ST_LOG_EPS + U2F(SEL(F2U(H) == 0u, 0u, F2U(ST_LOG_EPA)));
  uint up = F2U(hi + (lo + ep)); uint dn = F2U(hi + (lo - ep));
  uint res = SEL(ux == 0x3f800000u, 0u, up);
  uint limit = SEL((ux & 0x7fffffffu) == 0u, 0xff800000u, SEL(ux == ST_INF, ST_INF, ST_NAN));
  return st_decided(SEL(live, res, limit), live & (up != dn) & (ux != 0x3f800000u));
}

/* log, bits in and bits out, correctly rounded for all 2^32 inputs (all tried; the fast path leaves 955,673 undecided).
 * -inf at either zero, NaN below. */
FN uint st_log_cr(uint ux) {
  st_u64 t = st_log_cr_try(ux);
  if (t.l != 0u) return st_log_cr_fixed(ux);
  return t.h;
}
#endif
