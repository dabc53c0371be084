/* Exact sums in f64 and the whole number as a double: what the double-double parts below are made of. */
#ifndef ST_SUMS_D_H
#define ST_SUMS_D_H
#include "base_d.h"

/* a + b as an exact sum of the rounded sum and its error. */
FN st_dd st_two_sum_d(double a, double b) {
  st_dd r; r.h = a + b; double t = r.h - a; r.l = (a - (r.h - t)) + (b - t); return r;
}
/* The same where a is zero or no smaller than b in exponent. */
FN st_dd st_quick_sum_d(double a, double b) { st_dd r; r.h = a + b; r.l = b - (r.h - a); return r; }

/* (ah + al) * (bh + bl) to about 2^-100 relative. */
FN st_dd st_mul_dd(double ah, double al, double bh, double bl) {
  st_dd p = st_two_prod_d(ah, bh); p.l = p.l + (ah * bl + al * bh); return p;
}

/* An int and a word as doubles, exact. */
FN double st_int_d(int n) { return U2D(0x43300000u, (uint)n ^ 0x80000000u) - U2D(0x43300000u, 0x80000000u); }
FN double st_word_d(uint n) { return U2D(0x43300000u, n) - U2D(0x43300000u, 0u); }
#endif
