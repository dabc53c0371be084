/* sin and cos in f32, correctly rounded for every input. */
#ifndef ST_SINCOS_CR_H
#define ST_SINCOS_CR_H
#include "base.h"
#include "fixed.h"
#include "exp_constants.h"
#include "tables.h"
#include "sincos_constants.h"
#include "sincos_turns.h"

#define ST_SC_NEAR 0x44c00000u                                       /* 1536 */
#define ST_SC_SIN(k) p = st_alternate(p, rr, ST_SC_QS##k##H, ST_SC_QS##k##L)
#define ST_SC_COS(k) p = st_alternate(p, rr, ST_SC_QC##k##H, ST_SC_QC##k##L)

/* sin (turn = 0) or cos (turn = 1) in 64-bit fixed point, 2^-38 <= |x| finite. Payne and Hanek: 128 bits of 2/pi,
 * chosen by the exponent, times the mantissa modulo 2^128 give the quarter turn and the fraction f to 2^-126; |f|
 * normalised to 64 bits, times pi/2, then Taylor to degree 21 (sine) or 20. */
FN uint st_sincos_cr_fixed(uint ux, uint turn) {
  uint mant = (ux & 0x7fffffu) | 0x800000u; int ex = (int)((ux >> 23) & 255u) - 127;
  uint pos = (uint)(ex + 39); uint at = ST_T_2PI + (pos >> 5); uint sh = pos & 31u; uint rs = (32u - sh) & 31u;
  uint t0 = ST_TABLE(at); uint t1 = ST_TABLE(at + 1u); uint t2 = ST_TABLE(at + 2u); uint t3 = ST_TABLE(at + 3u);
  uint t4 = ST_TABLE(at + 4u);
  if (sh != 0u) {
    t0 = (t0 << sh) | (t1 >> rs); t1 = (t1 << sh) | (t2 >> rs); t2 = (t2 << sh) | (t3 >> rs);
    t3 = (t3 << sh) | (t4 >> rs);
  }
  uint a3 = mant * t3; uint c = st_mulhi32(mant, t3);
  uint a2 = mant * t2 + c; c = st_mulhi32(mant, t2) + SEL(a2 < c, 1u, 0u);
  uint a1 = mant * t1 + c; c = st_mulhi32(mant, t1) + SEL(a1 < c, 1u, 0u);
  uint a0 = mant * t0 + c;
  uint quarter = (a0 + 0x20000000u) >> 30; bool neg = (a0 & 0x20000000u) != 0u;
  a0 = a0 & 0x3fffffffu;
  if (neg) { a3 = ~a3; a2 = ~a2; a1 = ~a1; a0 = ~a0 & 0x3fffffffu; }   /* 1 - f, one unit of 2^-126 short: harmless */
  a0 = (a0 << 2) | (a1 >> 30); a1 = (a1 << 2) | (a2 >> 30); a2 = (a2 << 2) | (a3 >> 30);
  uint z = 0u;
  if (a0 == 0u) { a0 = a1; a1 = a2; a2 = a3 << 2; z = 32u; }
  uint z1 = st_nlz32(a0); z = z + z1;
  if (z1 != 0u) { a0 = (a0 << z1) | (a1 >> (32u - z1)); a1 = (a1 << z1) | (a2 >> (32u - z1)); }
  st_u64 rn = st_mulhi64(st_mk64(a0, a1), st_mk64(ST_SC_PIO2H, ST_SC_PIO2L));      /* r = rn * 2^(-63 - z) */
  st_u64 rf = st_shr64(rn, z - 1u);
  st_u64 rr = st_mulhi64(rf, rf);
  uint which = quarter + turn; st_u64 m; int e;
  uint sign = SEL((which & 2u) != 0u, 0x80000000u, 0u);
  if ((which & 1u) == 0u) {
    st_u64 p = st_mk64(ST_SC_QS10H, ST_SC_QS10L);
    ST_SC_SIN(9); ST_SC_SIN(8); ST_SC_SIN(7); ST_SC_SIN(6); ST_SC_SIN(5);
    ST_SC_SIN(4); ST_SC_SIN(3); ST_SC_SIN(2); ST_SC_SIN(1); ST_SC_SIN(0);
    m = st_mulhi64(rn, p); e = 1 - (int)z;
    if (neg) sign = sign ^ 0x80000000u;
  } else {
    st_u64 p = st_mk64(ST_SC_QC10H, ST_SC_QC10L);
    ST_SC_COS(9); ST_SC_COS(8); ST_SC_COS(7); ST_SC_COS(6); ST_SC_COS(5);
    ST_SC_COS(4); ST_SC_COS(3); ST_SC_COS(2); ST_SC_COS(1); ST_SC_COS(0);
    m = p; e = 0;
  }
  if (turn == 0u) sign = sign ^ (ux & 0x80000000u);
  return st_round_any(m, e) | sign;
}

/* x as k pi/32 + h + l, e bounding its absolute error. */
#ifdef ST_LANGUAGE_C
typedef struct { float h; float l; float e; int k; } st_sc_arc;
#else
struct st_sc_arc { float h; float l; float e; int k; };
#endif
/* |x| <= 1536: k = round(32 x/pi), k pi/32 in four parts, the first three products exact. */
FN st_sc_arc st_sc_near(uint ux) {
  float x = U2F(ux);
  float t = x * ST_SC_INV + ST_EXP_MAGIC; float kf = t - ST_EXP_MAGIC;
  float t1 = x - kf * ST_SC_P1;
  float p2 = kf * ST_SC_P2; float d1 = t1 - p2; float b1 = d1 - t1; float e1 = (t1 - (d1 - b1)) - (p2 + b1);
  float p3 = kf * ST_SC_P3; float d2 = d1 - p3; float b2 = d2 - d1; float e2 = (d1 - (d2 - b2)) - (p3 + b2);
  float w = (e1 + e2) - kf * ST_SC_P4;
  st_sc_arc r; r.k = (int)(F2U(t) - 0x4b400000u);
  r.h = d2 + w; float b3 = r.h - d2; r.l = (d2 - (r.h - b3)) + (w - b3);
  r.e = U2F(SEL(r.k == 0, 0u, F2U(ST_SC_EPK)));
  return r;
}
/* |x| >= 64 finite: k from the leading bits of x in turns, the rest times pi/32 in two parts; k counts some turn more,
 * so that it is never 0. */
FN st_sc_arc st_sc_far(uint ux) {
  uint sign = ux & 0x80000000u;
  st_u64 a = st_turns(ux ^ sign);
  st_ff f = st_fraction_ff(st_mk64((a.h << 6) | (a.l >> 26), a.l << 6));
  float fh = st_hi12(f.h); float p = fh * ST_SC_STEP_H;
  float q = (f.h - fh) * ST_SC_STEP_H + (f.h * ST_SC_STEP_L + f.l * ST_SC_STEP_H);
  float h = p + q; int k = 64 + (int)((a.h + 0x02000000u) >> 26);
  st_sc_arc r; r.h = U2F(F2U(h) ^ sign); r.l = U2F(F2U((p - h) + q) ^ sign);
  r.e = ST_SC_EPF; r.k = SEL(sign != 0u, -k, k);
  return r;
}
/* sin (turn = 0) or cos (turn = 1) of an arc: S + C r - S r^2/2 + ... as hi + lo, S and C = sin and cos of k pi/32
 * (12-bit high part and rest), with the bound of its error. */
FN st_u64 st_sc_round(st_sc_arc r, uint turn) {
  float rh = r.h; float rl = r.l;
  uint js = ((uint)r.k + turn * 16u) & 63u; uint jc = (js + 16u) & 63u;
  uint top = ST_TABLE(ST_T_SIN_H + js); float Sh = U2F(top); float Sl = U2F(ST_TABLE(ST_T_SIN_L + js));
  float Ch = U2F(ST_TABLE(ST_T_SIN_H + jc)); float Cl = U2F(ST_TABLE(ST_T_SIN_L + jc));
  float a = st_hi12(rh); float b = rh - a;
  float u = Ch * a; float s0 = a * a * ST_HALF; float s0h = st_hi12(s0); float s0l = s0 - s0h; float v = Sh * s0h;
  float rr = rh * rh;
  float qs = rh * rr * (ST_SC_S3 - rr * (ST_SC_S5 - rr * ST_SC_S7));
  float qc = rr * rr * (ST_SC_K4 - rr * ST_SC_K6);
  float s = Sh + u; float se = (Sh - s) + u;
  float hi = s - v; float he = (s - hi) - v;
  float lc = Ch * b + (Cl * rh + (Ch + Cl) * (rl - qs));
  float ls = Sl * s0h + (Sh + Sl) * (s0l + (a * b + (b * b * ST_HALF + (rh * rl - qc))));
  float lo = Sl + (he + (se + (lc - ls)));
  float part = U2F(SEL(top == 0u, F2U(ST_SC_EP0), F2U(ST_SC_EPR)));
  float ep = U2F(F2U(hi) & 0x7fffffffu) * part + (U2F(SEL(top == 0u, 0u, F2U(ST_SC_EPA))) + r.e);
  uint up = F2U(hi + (lo + ep)); uint dn = F2U(hi + (lo - ep));
  return st_decided(up, up != dn);
}
FN uint st_sc_limit(uint ux, uint turn, uint bits) {
  uint ax = ux & 0x7fffffffu; uint res = SEL(ax <= 0x39800000u, SEL(turn == 0u, ux, 0x3f800000u), bits);
  return SEL(ax >= ST_INF, ST_NAN, res);
}

/* The fast path for |x| <= 1536; larger |x| is left undecided. |x| <= 2^-12 gives x and 1. The harmless substitute is
 * chosen by a sign mask, so that C compilers do not take the table's entries for it out of the loop. */
FN st_u64 st_sincos_cr_try(uint ux, uint turn) {
  uint ax = ux & 0x7fffffffu;
  uint off = (ax - 0x39800001u) | (ST_SC_NEAR - ax);                 /* negative outside */
  st_u64 t = st_sc_round(st_sc_near(st_where_negative(off, 0x3f800000u, ux)), turn);
  uint far = ((ax - (ST_SC_NEAR + 1u)) | (ST_INF - 1u - ax)) >> 31;
  return st_mk64(st_sc_limit(ux, turn, t.h), st_where_negative(off, 1u - far, t.l));
}
/* What that leaves: the same sums on the reduction by integers, then fixed point. */
FN uint st_sincos_cr_rest(uint ux, uint turn) {
  if ((ux & 0x7fffffffu) > ST_SC_NEAR) {
    st_u64 t = st_sc_round(st_sc_far(ux), turn);
    if (t.l == 0u) return t.h;
  }
  return st_sincos_cr_fixed(ux, turn);
}
FN uint st_sincos_cr(uint ux, uint turn) {
  uint ax = ux & 0x7fffffffu;
  bool live = ax > 0x39800000u && ax < ST_INF; bool far = live && ax > ST_SC_NEAR;
  st_sc_arc r = st_sc_near(SEL(live && !far, ux, 0x3f800000u));
  if (far) r = st_sc_far(ux);
  st_u64 t = st_sc_round(r, turn);
  if (live && t.l != 0u) t.h = st_sincos_cr_fixed(ux, turn);
  return st_sc_limit(ux, turn, t.h);
}

/* sin and cos, bits in and bits out, correctly rounded (all x >= 0 tried: 0 wrong; negative x takes the same steps with
 * signs turned). */
FN st_u64 st_sin_cr_try(uint ux) { return st_sincos_cr_try(ux, 0u); }
FN st_u64 st_cos_cr_try(uint ux) { return st_sincos_cr_try(ux, 1u); }
FN uint st_sin_cr_fixed(uint ux) { return st_sincos_cr_rest(ux, 0u); }
FN uint st_cos_cr_fixed(uint ux) { return st_sincos_cr_rest(ux, 1u); }
FN uint st_sin_cr(uint ux) { return st_sincos_cr(ux, 0u); }
FN uint st_cos_cr(uint ux) { return st_sincos_cr(ux, 1u); }
#endif
