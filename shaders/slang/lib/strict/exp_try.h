/* st_exp_cr in the two pieces of the other correctly rounded functions: a branch-free fast path, which C compilers
 * vectorise, and the fixed-point path that decides the rest. The same bits as st_exp_cr for every input. */
#ifndef ST_EXP_TRY_H
#define ST_EXP_TRY_H
#include "base.h"
#include "exp_cr.h"
#include "exp_more.h"

/* exp in fixed point, 2^-25 < |x| < 104.5. Under the name of the two-argument function it replaces: exp_cr.h has been
 * read by now and calls its own. */
FN uint st_exp_cr_settle(uint ux) {
  st_wide y = st_exp_wide(ux);
  return st_round_fixed(st_mk64(y.h, y.l), y.e);
}
#define st_exp_cr_fixed(ux) st_exp_cr_settle(ux)

/* The fast path of exp. */
FN st_u64 st_exp_cr_try(uint ux) {
  uint ax = ux & 0x7fffffffu;
  bool over = (int)ux > 0x42b17217; bool gone = ux >= 0xc2d10000u;                     /* 88.72, -104.5 */
  bool live = (ax > 0x33000000u) & !over & !gone;
  float x = U2F(SEL(live, ux, 0x3f800000u));
  int k = st_exp_index(x); st_ff r = st_exp_rest(x, k);
  st_ff y = st_exp_spread(st_exp_head(r.h, r.l), k);
  uint up = F2U(y.h + (y.l + ST_ECR_EPS)); uint dn = F2U(y.h + (y.l - ST_ECR_EPS));
  uint res = SEL(live, up + ((uint)(k >> 3) << 23), 0x3f800000u);
  res = SEL(over, ST_INF, SEL(gone, 0u, res));
  return st_decided(SEL(ax > ST_INF, ST_NAN, res), live & ((up != dn) | (ux > 0xc2ae0000u)));   /* -87 */
}
#endif
