/* Samples the f64 functions of the strict library against libquadmath: strict_sweep_d NAME|all COUNT [SEED] prints, for
 * each function, its name, the worst error in units of the last place, the input, and the number of wrong specials.
 *
 * Inputs, a quarter each: any bits; a chosen exponent over the whole range; uniform in the function's range; close to one
 * of the function's hard points (0, 1, -1, multiples of pi/2, ends of the range) at every distance.
 */
#define ST_F64
#include "strict/extra_d.h"
#include <math.h>
#include <quadmath.h>
#include <stdio.h>
#include <stdlib.h>

typedef __float128 quad;
typedef struct { const char *name; double (*f)(double); quad (*truth)(quad); double low, high, points[4]; } row;

#define WRAP(name) static double f_##name(double x) { return st_##name##_d(x); }
WRAP(sin) WRAP(cos) WRAP(sigmoid) WRAP(silu) WRAP(softplus) WRAP(gelu)
WRAP(exp) WRAP(exp2) WRAP(expm1) WRAP(log) WRAP(log2) WRAP(log1p)
static quad t_sigmoid(quad x) { return 1 / (1 + expq(-x)); }
static quad t_silu(quad x) { return x / (1 + expq(-x)); }
static quad t_softplus(quad x) { return (x > 0 ? x : 0) + log1pq(expq(-fabsq(x))); }
static quad t_gelu(quad x)
{
  const quad y = 2 * sqrtq(2 / M_PIq) * (x + 44715 * x * x * x / 1000000);
  return x == 0 ? x : x < -1000 ? -0.0q : x / (1 + expq(-y));
}

static const row ROWS[] = {
  {"exp", f_exp, expq, -746, 710, {0, -745.13321910194122, 709.782712893384, -708.3964185322641}},
  {"exp2", f_exp2, exp2q, -1076, 1025, {0, 0.5, 1024, -1022}},
  {"expm1", f_expm1, expm1q, -40, 710, {0, 0.34657359027997264, -0.34657359027997264, 709.782712893384}},
  {"log", f_log, logq, 0, 4, {1, 0.70710678118654757, 1.4142135623730951, 2}},
  {"log2", f_log2, log2q, 0, 4, {1, 0.70710678118654757, 1.4142135623730951, 2}},
  {"sin", f_sin, sinq, -1e6, 1e6, {0, 3.1415926535897931, 1048576, 0.78539816339744828}},
  {"cos", f_cos, cosq, -1e6, 1e6, {0, 1.5707963267948966, 1048576, 0.78539816339744828}},
  {"sigmoid", f_sigmoid, t_sigmoid, -750, 40, {0, -708.3964185322641, 36.7, -745.13321910194122}},
  {"silu", f_silu, t_silu, -760, 40, {0, -708.3964185322641, 36.7, -751.7}},
  {"softplus", f_softplus, t_softplus, -750, 40, {0, -0.8814, 0.8814, -708.3964185322641}},
  {"gelu", f_gelu, t_gelu, -22, 9, {0, -1, -21.4, 5.5}},
  {"log1p", f_log1p, log1pq, -1, 4, {0, -1, 0.41421356237309515, -0.29289321881345248}},
};

static uint64_t state = 88172645463325252u;
static uint64_t next(void) { state ^= state << 13; state ^= state >> 7; state ^= state << 17; return state * 2685821657736338717u; }
static double unit(void) { return (double)(next() >> 11) * 0x1p-53; }
static double bits(uint64_t u) { double d; memcpy(&d, &u, 8); return d; }

static double input(const row *r, long i)
{
  switch (i & 3) {
    case 0: return bits(next());
    case 1: return bits((next() & 0x800fffffffffffffu) | (uint64_t)((i >> 2) % 2047) << 52);
    case 2: return r->low + (r->high - r->low) * unit();
    default: {
      double p = r->points[(i >> 2) & 3], d = ldexp(1 + unit(), -(int)((i >> 4) % 64));
      return p + (next() >> 63 ? d : -d);
    }
  }
}

int main(int argc, char **argv)
{
  const long count = argc > 2 ? atol(argv[2]) : 1000000;
  if (argc > 3) state ^= (uint64_t)atol(argv[3]) * 0x9e3779b97f4a7c15u;
  for (size_t k = 0; k < sizeof ROWS / sizeof *ROWS; k++) {
    const row *r = &ROWS[k];
    if (argc > 1 && strcmp(argv[1], "all") && strcmp(argv[1], r->name)) continue;
    double worst = 0, at = 0; long wrong = 0;
    for (long i = 0; i < count; i++) {
      const double x = input(r, i), y = r->f(x);
      const quad t = r->truth(x);
      const double n = (double)t;
      if (isnan(n) || isnan(y)) { wrong += isnan(n) != isnan(y); continue; }
      if (n == y) { wrong += n == 0 && x != 0 && t != 0 && signbit(n) != signbit(y); if (isinf(n) || n == 0) continue; }
      if (isinf(t) || (t == 0)) { wrong += n != y; continue; }
      int e; frexpq(t, &e);
      const quad value = isinf(y) ? (y > 0 ? 0x1p1023q * 2 : -0x1p1023q * 2) : (quad)y;
      if (isinf(y) && isinf(n)) continue;
      const double error = (double)fabsq(ldexpq(value - t, 53 - (e < -1021 ? -1021 : e)));
      if (error > worst) { worst = error; at = x; }
    }
    printf("%s %.4f %a %ld\n", r->name, worst, at, wrong);
    fflush(stdout);
  }
  return 0;
}
