/* log2 and log1p in f32, correctly rounded. */
#ifndef ST_LOG_MORE_H
#define ST_LOG_MORE_H
#include "base.h"
#include "log_cr.h"

/* log2 in fixed point, x positive, finite, no power of two. */
FN uint st_log2_cr_fixed(uint ux) {
  st_log_parts s = st_log_split(ux);
  bool pos = s.R > 0; uint a = (uint)SEL(pos, s.R, -s.R); st_u64 r = st_mk64(a << 1, 0u);
  st_u64 p = st_mulhi64(st_log_series(r, pos), st_mk64(ST_LOG_INVH, ST_LOG_INVL));    /* Q2.62 */
  int e = s.e + SEL(s.j == 32u, 1, 0);
  bool unit = s.j == 0u || s.j == 32u;
  if (unit && e == 0) {
    uint z = st_nlz32(a);
    return st_round_any(st_mulhi64(st_mk64(a << z, 0u), p), 2 - (int)z) | SEL(pos, 0u, 0x80000000u);
  }
  st_u64 q = st_mk64(ST_TABLE(ST_T_LOG2_QH + s.j), ST_TABLE(ST_T_LOG2_QL + s.j));
  st_wide v = st_wide_add(st_mkwide(st_mk64(0u, 0u), e), q, true);
  return st_wide_round(st_wide_add(v, st_shl64(st_mulhi64(r, p), 2u), pos));
}
/* The fast path of log2: as log, times 1/ln2 in two parts; e and the centre's log2 are added exactly. */
FN st_u64 st_log2_cr_try(uint ux) {
  bool live = (ux > 0u) & (ux < ST_INF);
  st_log_parts s = st_log_split(st_log_live(ux));
  float a = (float)(s.R & (int)0xffffc000u) * U2F(0x30000000u); float b = (float)(s.R & 0x3fff) * U2F(0x30000000u);
  float rh = a + b; float rl = b - (rh - a);
  float s0 = a * a * ST_HALF;
  float q = rh * rh * rh * (ST_LOG_C3 - rh * (ST_LOG_C4 - rh * (ST_LOG_C5 - rh * (ST_LOG_C6 - rh * ST_LOG_C7))));
  float ph = rh - s0; float pl = ((rh - ph) - s0) + (rl - (rl * rh + (a * b + (b * b * ST_HALF - q))));
  float pa = st_hi12(ph); float u = ST_LOG2_INV_H * pa;
  float H = (float)(s.e + SEL(s.j >= 13u, 1, 0)) + U2F(ST_TABLE(ST_T_LOG2_H + s.j));
  float hi = H + u; float bb = hi - H; float se = (H - (hi - bb)) + (u - bb);
  float w = ST_LOG2_INV_H * (ph - pa) + ((ST_LOG2_INV_H + ST_LOG2_INV_L) * pl + ST_LOG2_INV_L * ph);
  float lo = se + (U2F(ST_TABLE(ST_T_LOG2_L + s.j)) + w);
  bool origin = F2U(H) == 0u;
  float part = U2F(SEL(origin, F2U(ST_LOG2_EP0), F2U(ST_LOG2_EPS)));
  float ep = U2F(F2U(hi) & 0x7fffffffu) * part + U2F(SEL(origin | (s.R == 0), 0u, F2U(ST_LOG2_EPA)));
  uint up = F2U(hi + (lo + ep)); uint dn = F2U(hi + (lo - ep));
  uint limit = SEL((ux & 0x7fffffffu) == 0u, 0xff800000u, SEL(ux == ST_INF, ST_INF, ST_NAN));
  return st_decided(SEL(live, up, limit), live & (up != dn));
}
/* log2, bits in and bits out, correctly rounded for all 2^32 inputs (all tried; 842,817 undecided by the fast path,
 * whose worst error is 2^-36.43 at 0x3f09fa1b). */
FN uint st_log2_cr(uint ux) {
  st_u64 t = st_log2_cr_try(ux);
  if (t.l != 0u) return st_log2_cr_fixed(ux);
  return t.h;
}

/* log(1 + v) in two parts and its error bound, 1 + v = uh + ul + um, |ul| at most half a unit of uh and um
 * as small beside v. */
#ifdef ST_LANGUAGE_C
typedef struct { float h; float l; float ep; } st_bounded;
#else
struct st_bounded { float h; float l; float ep; };
#endif
FN st_bounded st_log1p_parts(float uh, float ul, float um, float relative) {
  st_log_parts s = st_log_split(F2U(uh));
  float a0 = (float)(s.R & (int)0xffffc000u) * U2F(0x30000000u);
  float b0 = (float)(s.R & 0x3fff) * U2F(0x30000000u);
  float r0 = a0 + b0; float l0 = b0 - (r0 - a0);
  float scale = U2F((uint)(127 - s.e) << 23) * ((float)(int)ST_TABLE(ST_T_LOG_C + s.j) * U2F(0x3b800000u));
  float d = ul * scale;
  float rh = r0 + d; float bd = rh - r0; float rl = ((r0 - (rh - bd)) + (d - bd)) + (l0 + um * scale);
  float a = st_hi12(rh); float b = rh - a;
  float s0 = a * a * ST_HALF;
  float q = rh * rh * rh * (ST_LOG_C3 - rh * (ST_LOG_C4 - rh * (ST_LOG_C5 - rh * (ST_LOG_C6 - rh * ST_LOG_C7))));
  float ef = (float)(s.e + SEL(s.j >= 13u, 1, 0));
  float H = ef * ST_LOG_LN2_H + U2F(ST_TABLE(ST_T_LOG_H + s.j));
  float S = H + rh; float bb = S - H; float se = (H - (S - bb)) + (rh - bb);
  st_bounded y; y.h = S - s0; float he = (S - y.h) - s0;
  float low = ef * ST_LOG_LN2_L + U2F(ST_TABLE(ST_T_LOG_L + s.j));
  y.l = he + (se + (low + (rl - (rl * rh + (a * b + (b * b * ST_HALF - q))))));
  y.ep = U2F(F2U(y.h) & 0x7fffffffu) * relative + U2F(SEL(F2U(H) == 0u, 0u, F2U(ST_LOG_EPA)));
  return y;
}
/* log(1 + v), v = +-V * 2^(ev - 63), V normalised, as a whole part and a Q0.64 fraction; where 1 + v lies next to 1
 * and `near` is set, instead log(1 + v)/v as Q1.63 with e = ST_LOG1P_RATIO. */
#define ST_LOG1P_RATIO 0x10000
FN st_wide st_log1p_wide(st_u64 V, int ev, bool neg, bool near) {
  st_u64 U = st_mk64(0x80000000u, 0u); int e = 0;
  if (ev > 63) { U = V; e = ev; }
  else if (ev >= 0) {
    U = st_add64(V, st_shl64(st_mk64(0u, 1u), (uint)(63 - ev))); e = ev;
    if (st_less64(U, V)) { U = st_shr64(U, 1u); U.h = U.h | 0x80000000u; e = e + 1; }
  } else {
    st_u64 f = st_shr64(V, (uint)SEL(ev < -63, 63, -ev));
    if (neg) f = st_neg64(f);
    U = st_add64(U, f);
    uint z = st_nlz64(U); U = st_shl64(U, z); e = -(int)z;
  }
  uint j = ((U.h & 0x7fffffffu) + 0x02000000u) >> 26;
  uint C = ST_TABLE(ST_T_LOG_C + j);
  uint w0 = U.l * C; uint c = st_mulhi32(U.l, C);                     /* U C - 2^71 in three words */
  uint w1 = U.h * C + c; uint w2 = st_mulhi32(U.h, C) + SEL(w1 < c, 1u, 0u) - 128u;
  bool pos = (w2 >> 31) == 0u;
  if (!pos) {
    st_u64 t = st_neg64(st_mk64(w1, w0)); w2 = ~w2 + SEL(t.h == 0u && t.l == 0u, 1u, 0u);
    w1 = t.h; w0 = t.l;
  }
  st_u64 r = st_mk64((w2 << 25) | (w1 >> 7), (w1 << 25) | (w0 >> 7));
  e = e + SEL(j == 32u, 1, 0);
  bool unit = j == 0u || j == 32u;
  st_u64 p = st_log_series(r, pos);
  if (unit && e == 0 && near) return st_mkwide(p, ST_LOG1P_RATIO);
  st_u64 q = st_mk64(ST_TABLE(ST_T_LOG_QH + j), ST_TABLE(ST_T_LOG_QL + j));
  return st_wide_add(st_wide_add(st_log_scale(e), q, true), st_shl64(st_mulhi64(r, p), 1u), pos);
}
/* log1p in fixed point, 2^-25 < |x|, -1 < x finite. */
FN uint st_log1p_cr_fixed(uint ux) {
  bool neg = (ux >> 31) != 0u; int ev = (int)((ux >> 23) & 255u) - 127;
  st_u64 V = st_mk64((ux << 8) | 0x80000000u, 0u);
  st_wide y = st_log1p_wide(V, ev, neg, true);
  if (y.e != ST_LOG1P_RATIO) return st_wide_round(y);
  return st_round_any(st_mulhi64(V, st_mk64(y.h, y.l)), ev + 1) | (ux & 0x80000000u);
}
/* The fast path of log1p: 1 + x in two parts, the lower one joining r. */
FN st_u64 st_log1p_cr_try(uint ux) {
  uint ax = ux & 0x7fffffffu;
  bool pole = ux >= 0xbf800000u; bool tiny = ax <= 0x33000000u;
  bool live = !pole & !tiny & (ax < ST_INF);
  uint c = st_where_negative(ax - 0x33000001u, 0x3f800000u, ux);     /* 1 where it is not live */
  c = st_where_negative(0x7f7fffffu - (c & 0x7fffffffu), 0x3f800000u, c);
  float x = U2F(st_where_negative((0xbf7fffffu - c) & c, 0x3f800000u, c));
  float uh = ST_ONE + x; float bb = uh - ST_ONE; float ul = (ST_ONE - (uh - bb)) + (x - bb);
  st_bounded y = st_log1p_parts(uh, ul, U2F(0u), ST_LOG1P_EP0);
  uint up = F2U(y.h + (y.l + y.ep)); uint dn = F2U(y.h + (y.l - y.ep));
  uint res = SEL(live, up, SEL(pole, SEL(ax == 0x3f800000u, 0xff800000u, ST_NAN), ux));
  return st_decided(SEL(ax > ST_INF, ST_NAN, res), live & (up != dn));
}
/* log1p, bits in and bits out, correctly rounded for all 2^32 inputs (all tried; 1,373,142 left undecided
 * by the fast path). */
FN uint st_log1p_cr(uint ux) {
  st_u64 t = st_log1p_cr_try(ux);
  if (t.l != 0u) return st_log1p_cr_fixed(ux);
  return t.h;
}
#endif
