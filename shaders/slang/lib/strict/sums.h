/* Sums of many f32 terms: compensated, in cascades and by fixed trees. Define ST_F64 before the include for f64.
 *
 * u = 2^-24 (f64: 2^-53), S the exact sum, A the sum of |terms|, n their number, g(k) = k u / (1 - k u).
 *
 *   method                        |result - S| <=                          operations a term
 *   one accumulator               g(n - 1) A                               1
 *   st_pair4, st_pair8            g(2) A, g(3) A                           1
 *   a balanced tree of leaves     g(depth + leaf - 1) A                    1
 *   st_cascade                    g(96 + n / 2^15) A                       1
 *   st_sum                        u |S| + g(n)^2 A                         7
 *   st_dot (terms a b)            u |S| + g(n)^2 A                         23
 *   either, st_sum_normal after
 *   at most k terms               u |S| + 3 n (k + 1) u^2 A                + 3 / k
 *
 * The bounds are those of Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, section 4.2 (trees), and of
 * Ogita, Rump and Oishi, Accurate Sum and Dot Product (2005), theorem 4.5 and 5.1 (compensated). In the last row the
 * part l takes in at most k roundings of u A before it goes back into h exactly, so that what it loses grows with n k,
 * not n^2: for long sums of one sign the h of a plain st_sum drifts and its l follows with errors of its own. The bounds
 * hold for any order and any merging of partial sums (each counts as a term), without overflow, the dot product also
 * without underflow of a product's error, that is for |a b| >= 2^-102 or a b = 0. An infinite or NaN total is returned as the plain sum gives it.
 * st_sum and st_dot need n u < 1: at most 2^23 terms of f32.
 */
#ifndef ST_SUMS_H
#define ST_SUMS_H
#include "base.h"

/* a + b as an exact sum of the rounded sum and its error, in either order (Knuth). */
FN st_ff st_two_sum(float a, float b) {
  st_ff r; r.h = a + b; float t = r.h - a; r.l = (a - (r.h - t)) + (b - t); return r;
}
/* The same where a is zero or no smaller than b in exponent (Dekker). */
FN st_ff st_quick_sum(float a, float b) { st_ff r; r.h = a + b; r.l = b - (r.h - a); return r; }

/* A compensated sum: the running sum h and the sum l of its rounding errors. Start from zero or from a term. */
FN st_ff st_sum_start(float x) { st_ff s; s.h = x; s.l = U2F(0u); return s; }
FN st_ff st_sum_add(st_ff s, float x) {
  st_ff t = st_two_sum(s.h, x); t.l = s.l + t.l; return t;
}
/* One term a b more, its product's error included. */
FN st_ff st_dot_add(st_ff s, float a, float b) {
  st_ff p = st_two_prod(a, b); st_ff t = st_two_sum(s.h, p.h);
  t.l = s.l + (t.l + p.l); return t;
}
/* Two partial sums as one. */
FN st_ff st_sum_merge(st_ff a, st_ff b) {
  st_ff t = st_two_sum(a.h, b.h); t.l = (a.l + b.l) + t.l; return t;
}
/* Behind an infinity the compensation is NaN and does not count. */
FN float st_finite_or_zero(float l) { uint u = F2U(l); return U2F(SEL((u & ST_INF) == ST_INF, 0u, u)); }
/* The same sum with l no larger than half a unit of h, exact. */
FN st_ff st_sum_normal(st_ff s) { return st_quick_sum(s.h, st_finite_or_zero(s.l)); }
FN float st_sum_value(st_ff s) { return s.h + st_finite_or_zero(s.l); }

/* Sums by a fixed tree: neighbours first. */
FN float st_pair4(float a, float b, float c, float d) { return (a + b) + (c + d); }
FN float st_pair8(float a, float b, float c, float d, float e, float f, float g, float h) {
  return st_pair4(a, b, c, d) + st_pair4(e, f, g, h);
}

/* A stream in levels of 32: nearly as good as a tree, without one. Term i = 0, 1, ... of the stream. */
#ifdef ST_LANGUAGE_C
typedef struct { float a; float b; float c; float d; } st_cascade;
#else
struct st_cascade { float a; float b; float c; float d; };
#endif
FN st_cascade st_cascade_of(float a, float b, float c, float d) {
  st_cascade s; s.a = a; s.b = b; s.c = c; s.d = d; return s;
}
#define ST_CASCADE_ZERO st_cascade_of(U2F(0u), U2F(0u), U2F(0u), U2F(0u))
FN st_cascade st_cascade_add(st_cascade s, float x, uint i) {
  st_cascade t = s; t.a = s.a + x;
  if ((i & 31u) == 31u) { t.b = s.b + t.a; t.a = U2F(0u); }
  if ((i & 0x3ffu) == 0x3ffu) { t.c = s.c + t.b; t.b = U2F(0u); }
  if ((i & 0x7fffu) == 0x7fffu) { t.d = s.d + t.c; t.c = U2F(0u); }
  return t;
}
FN float st_cascade_value(st_cascade s) { return s.d + (s.c + (s.b + s.a)); }

#ifdef ST_F64
#include "base_d.h"
#include "sums_d.h"
FN st_dd st_sum_start_d(double x) { st_dd s; s.h = x; s.l = ST_ZERO_D; return s; }
FN st_dd st_sum_add_d(st_dd s, double x) {
  st_dd t = st_two_sum_d(s.h, x); t.l = s.l + t.l; return t;
}
FN st_dd st_dot_add_d(st_dd s, double a, double b) {
  st_dd p = st_two_prod_d(a, b); st_dd t = st_two_sum_d(s.h, p.h);
  t.l = s.l + (t.l + p.l); return t;
}
FN st_dd st_sum_merge_d(st_dd a, st_dd b) {
  st_dd t = st_two_sum_d(a.h, b.h); t.l = (a.l + b.l) + t.l; return t;
}
FN double st_finite_or_zero_d(double l) {
  st_u64 u = D2U(l); bool finite = (u.h & 0x7ff00000u) != 0x7ff00000u;
  return U2D(SEL(finite, u.h, 0u), SEL(finite, u.l, 0u));
}
FN st_dd st_sum_normal_d(st_dd s) { return st_quick_sum_d(s.h, st_finite_or_zero_d(s.l)); }
FN double st_sum_value_d(st_dd s) { return s.h + st_finite_or_zero_d(s.l); }
#endif
#endif
