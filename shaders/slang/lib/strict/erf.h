/* erf and gelu_erf in f32. */
#ifndef ST_ERF_H
#define ST_ERF_H
#include "base.h"
#include "exp.h"
#include "erf_constants.h"

#define ST_ERF_B(k) SEL(near, ST_ERF_B##k, ST_ERF_C##k)

/* erf(x), at most 0.846 ULP (all inputs; worst at 0x3f40b7c2).
 * |x| < 0.75: x + x A(x^2), A of degree 6, on the mantissa scaled out of the subnormal range; 0.75 <= |x| < 1.375 and
 * 1.375 <= |x| < 3.9375: a constant minus a polynomial of degree 13 in the distance from the range's centre;
 * beyond, 1. */
FN float st_erf(float x) {
  uint u = F2U(x); uint a = u & 0x7fffffffu;
  bool live = a != 0u && a < 0x407c0000u;
  uint c = SEL(live, a, 0x3f800000u);
  st_split s = st_unpack(c);
  bool tiny = c < 0x2b800000u;                                       /* 2^-40: only the first term counts */
  float z = U2F(SEL(tiny, 0x2b800000u, c)); float f = SEL(tiny, s.m, z); float w = z * z;
  float g = ST_ERF_A3 + w * (ST_ERF_A4 + w * (ST_ERF_A5 + w * ST_ERF_A6));
  g = ST_ERF_A0 + w * (ST_ERF_A1 + w * (ST_ERF_A2 + w * g));
  float small = f + f * g;
  bool near = c < 0x3fb00000u;                                       /* 1.375 */
  float t = z - U2F(SEL(near, 0x3f880000u, 0x40280000u));            /* 1.0625, 2.625 */
  float h = ST_ERF_B(10) + t * (ST_ERF_B(11) + t * (ST_ERF_B(12) + t * ST_ERF_B(13)));
  h = ST_ERF_B(6) + t * (ST_ERF_B(7) + t * (ST_ERF_B(8) + t * (ST_ERF_B(9) + t * h)));
  h = ST_ERF_B(2) + t * (ST_ERF_B(3) + t * (ST_ERF_B(4) + t * (ST_ERF_B(5) + t * h)));
  h = ST_ERF_B(0) + t * (ST_ERF_B(1) + t * h);
  float large = SEL(near, ST_ERF_TOP, ST_ONE) - h;
  uint b = st_pack(SEL(c < 0x3f400000u, small, large), SEL(tiny, s.e, 0));
  b = SEL(live, b, SEL(a == 0u, 0u, 0x3f800000u)) | (u & 0x80000000u);
  return U2F(SEL(a > ST_INF, ST_NAN, b));
}

FN float st_pick6(uint j, float a0, float a1, float a2, float a3, float a4, float a5) {
  return SEL(j < 3u, SEL(j == 0u, a0, SEL(j == 1u, a1, a2)), SEL(j == 3u, a3, SEL(j == 4u, a4, a5)));
}
#define ST_PHI(j, k) st_pick6(j, ST_PHI_##k##_0, ST_PHI_##k##_1, ST_PHI_##k##_2, ST_PHI_##k##_3, \
                              ST_PHI_##k##_4, ST_PHI_##k##_5)

/* gelu_erf(x) = x times the normal probability below x, at most 0.759 ULP for either sign (all inputs; worst at
 * 0xc15302b0), -0 at -inf.
 * The tail below -z, z = |x|, is exp(-z^2/2) R(z): the square and the exponential in two parts, R by a polynomial of
 * degree 10 in the mantissa of z, one per binade (one for z < 1/2), its three lowest terms in two parts.
 * Positive x takes one minus that. The product with x is exact before its one rounding at the result's exponent. */
FN float st_gelu_erf(float x) {
  uint u = F2U(x); uint a = u & 0x7fffffffu; bool neg = (u >> 31) != 0u;
  bool special = a == 0u || a >= ST_INF;
  st_split s = st_unpack(SEL(special, 0x3f800000u, a));
  uint c = SEL(a > 0x41700000u, 0x41700000u, SEL(a < 0x2b800000u, 0x2b800000u, a));    /* 2^-40 .. 15 */
  float z = U2F(c);
  st_ff sq = st_two_prod(z, z);
  float xh = sq.h * U2F(0xbf000000u); float xl = sq.l * U2F(0xbf000000u);
  float et = st_exp_t(xh); int n = ST_EXP_N(et);
  st_ff g = st_exp_ff(xh, xl, et);
  uint ez = c >> 23; uint j = SEL(ez < 126u, 0u, ez - 125u);
  float t = SEL(j == 0u, z, U2F((c & 0x007fffffu) | 0x3f800000u) - U2F(0x3fc00000u));
  float q = ST_PHI(j, 8) + t * (ST_PHI(j, 9) + t * ST_PHI(j, 10));
  q = ST_PHI(j, 4) + t * (ST_PHI(j, 5) + t * (ST_PHI(j, 6) + t * (ST_PHI(j, 7) + t * q)));
  q = t * (ST_PHI(j, 3) + t * q);
  float c2 = ST_PHI(j, 2); float s2 = c2 + q;
  st_ff t2 = st_two_prod(t, t); st_ff v2 = st_two_prod(t2.h, s2);
  v2.l = v2.l + (t2.l * s2 + t2.h * ((c2 - s2) + q));
  float c0 = ST_PHI(j, H); float c1 = ST_PHI(j, S); float th = st_hi12(t); float p = c1 * th;
  float h1 = c0 + p; float h = h1 + v2.h;
  float l = ((c0 - h1) + p) + (((h1 - h) + v2.h) + (c1 * (t - th) + (v2.l + (t * ST_PHI(j, 1) + ST_PHI(j, L)))));
  st_ff r = st_two_prod(g.h, h); r.l = r.l + (g.h * l + g.l * h);
  float f = U2F((uint)(SEL(n < -60, -60, n) + 127) << 23);
  float ph = r.h * f; float pl = r.l * f;
  float w = ST_ONE - ph; float wl = ((ST_ONE - w) - ph) - pl;
  float vh = SEL(neg, r.h, w); float vl = SEL(neg, r.l, wl);
  st_ff y = st_two_prod(s.m, vh);
  float v = y.h + (y.l + s.m * vl);
  uint b = st_pack(v, s.e + SEL(neg, n, 0)) | (u & 0x80000000u);
  uint limit = SEL(a == 0u || (a == ST_INF && !neg), u, SEL(a > ST_INF, ST_NAN, 0x80000000u));
  return U2F(SEL(special || (neg && a > 0x41700000u), limit, b));
}
#endif
