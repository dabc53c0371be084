/* tanh in f32, correctly rounded, bits in and bits out. */
#ifndef ST_TANH_CR_H
#define ST_TANH_CR_H
#include "base.h"
#include "divide.h"
#include "exp_more.h"
#include "fixed.h"
#include "sigmoid.h"
#include "tanh_cr_constants.h"

/* tanh in fixed point, 2^-12 <= |x| < 9.011. Below 1/8 the series of tanh(x)/x times the mantissa, otherwise
 * (1 - E)/(1 + E), E = exp(-2|x|); error about 2^-61 and 2^-59 of the result. */
#define ST_TANH_STEP(k) p = st_alternate(p, w, ST_TANHCR_Q##k##H, ST_TANHCR_Q##k##L)
FN uint st_tanh_cr_fixed(uint ux) {
  uint ax = ux & 0x7fffffffu; uint sign = ux & 0x80000000u;
  if (ax < 0x3e000000u) {
    st_u64 X = st_fraction(ax); st_u64 w = st_mulhi64(X, X);
    st_u64 p = st_mk64(ST_TANHCR_Q9H, ST_TANHCR_Q9L);
    ST_TANH_STEP(8); ST_TANH_STEP(7); ST_TANH_STEP(6); ST_TANH_STEP(5); ST_TANH_STEP(4);
    ST_TANH_STEP(3); ST_TANH_STEP(2); ST_TANH_STEP(1); ST_TANH_STEP(0);
    uint mant = (ax & 0x7fffffu) | 0x800000u;
    return st_round_any(st_mulhi64(st_mk64(mant << 8, 0u), p), (int)(ax >> 23) - 126) | sign;
  }
  st_wide y = st_exp_wide(ax + 0x80800000u);
  st_u64 one = st_mk64(0x80000000u, 0u); st_u64 E = st_shr64(st_mk64(y.h, y.l), (uint)(-y.e));
  st_u64 R = st_rcp_fixed(st_add64(one, E));
  return st_round_any(st_mulhi64(st_add64(one, st_neg64(E)), R), 0) | sign;
}
/* The fast path of tanh: N/(2 - N), N = 1 - exp(-2|x|) in two parts, exactly the head of the exponential for
 * |x| < ln2/32, which is off by the rounding of its cubic term. What N is off by counts 2/(2 - N)^2 in the quotient. */
FN st_u64 st_tanh_cr_try(uint ux) {
  uint ax = ux & 0x7fffffffu;
  bool one = ax >= ST_TANHCR_ONE; bool tiny = ax < 0x39800000u; bool live = !one & !tiny;
  float x = U2F(SEL(live, ax + 0x80800000u, 0xbf800000u));
  int k = st_exp_index(x); st_ff r = st_exp_rest(x, k);
  st_ff p = st_exp_head(r.h, r.l);
  st_ff y = st_exp_spread(p, k);
  float f = U2F((uint)(127 + (k >> 3)) << 23);
  float A = y.h * f; float a = ST_ONE - A; float al = ((ST_ONE - a) - A) - y.l * f;
  uint away = (uint)k;                                               /* negative unless k = 0 */
  float b = U2F(st_where_negative(away, F2U(a), F2U(p.h) ^ 0x80000000u));
  float bl = U2F(st_where_negative(away, F2U(al), F2U(p.l) ^ 0x80000000u));
  float nh = b + bl; float nl = (b - nh) + bl;
  float two = U2F(0x40000000u);
  float dh = two - nh; float dl = ((two - dh) - nh) - nl;
  float q = st_rcp_guess(dh);
  st_ff s = st_two_prod(dh, q); float e = (ST_ONE - s.h) - (s.l + dl * q);
  st_ff t = st_two_prod(nh, q); float lo = t.l + (t.h * e + nl * q);
  float far = (f * (q * q)) * ST_TANHCR_EPS; float near = (x * x) * t.h * ST_TANHCR_EP0;
  float ep = U2F(st_where_negative(away, F2U(far), F2U(near))) + t.h * ST_TANHCR_EP1;
  uint up = F2U(t.h + (lo + ep)); uint dn = F2U(t.h + (lo - ep));
  uint res = SEL(live, up, SEL(one, 0x3f800000u, ax)) | (ux & 0x80000000u);
  return st_decided(SEL(ax > ST_INF, ST_NAN, res), live & (up != dn));
}
/* tanh(x), correctly rounded for all 2^32 inputs (all tried; 290,802 left to fixed point; the result
 * nearest to a tie is 2^-50.3 of itself away from it, at 0x3ac37de2). */
FN uint st_tanh_cr(uint ux) {
  st_u64 t = st_tanh_cr_try(ux);
  if (t.l != 0u) return st_tanh_cr_fixed(ux);
  return t.h;
}
#endif
