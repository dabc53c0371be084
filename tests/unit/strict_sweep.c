/* Error of the f32 functions of the strict library over all inputs, or over every STEP-th:
 *   cc -O3 -ffp-contract=off -I shaders/slang/lib tests/unit/strict_sweep.c -o strict_sweep -lm
 *   ./strict_sweep NAME|all [STEP]
 * One line a function: name, worst error in ULP, its input, results that are not the nearest float, wrong special
 * values. The truth is the C library's double function, good to well below a thousandth of a f32 ULP. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "strict/strict.h"

#define BLOCK 65536
static float in[BLOCK], out[BLOCK];

typedef struct { const char *name; void (*map)(void); double (*truth)(double); } row;

#define FUNCTION(name, expression, exact)                                                                  \
  static void map_##name(void) { for (int i = 0; i < BLOCK; i++) { float x = in[i]; out[i] = expression; } } \
  static double truth_##name(double x) { return exact; }

FUNCTION(exp, st_exp(x), exp(x))
FUNCTION(exp_cr, U2F(st_exp_cr(F2U(x))), exp(x))
FUNCTION(rcp, st_rcp(x), 1.0 / x)
FUNCTION(div, st_div(1e-30f, x), (double)1e-30f / x)
FUNCTION(sqrt, st_sqrt(x), sqrt(x))
FUNCTION(rsqrt, st_rsqrt(x), 1.0 / sqrt(x))
FUNCTION(tanh, st_tanh(x), tanh(x))
FUNCTION(erf, st_erf(x), erf(x))
FUNCTION(gelu_erf, st_gelu_erf(x), isinf(x) ? (x < 0 ? -0.0 : x) : 0.5 * x * erfc(-x * 0.70710678118654752440))

#define ROW(name) {#name, map_##name, truth_##name}
static const row rows[] = {ROW(exp), ROW(exp_cr), ROW(rcp), ROW(div), ROW(sqrt), ROW(rsqrt), ROW(tanh), ROW(erf),
                           ROW(gelu_erf)};

/* Error of r in units of the last place of the truth; -1 where a special value or sign is wrong. */
static double ulps(float r, double truth) {
  float nearest = (float)truth;
  if (isnan(truth)) return F2U(r) == ST_NAN ? 0.0 : -1.0;
  if (F2U(r) == F2U(nearest)) return 0.0;
  if (isnan(r) || signbit(r) != signbit(nearest) || isinf(truth)) return -1.0;
  int e = -125;
  if (truth != 0.0) frexp(truth, &e);
  if (e < -125) e = -125;
  double value = isinf(r) ? copysign(0x1p128, r) : (double)r;
  return fabs(value - truth) / ldexp(1.0, e - 24);
}

int main(int count, char **words) {
  const char *wanted = count > 1 ? words[1] : "all";
  unsigned long step = count > 2 ? strtoul(words[2], 0, 10) : 1;
  for (unsigned k = 0; k < sizeof rows / sizeof *rows; k++) {
    if (strcmp(wanted, "all") != 0 && strcmp(wanted, rows[k].name) != 0) continue;
    double worst = 0.0; uint at = 0; unsigned long inexact = 0, wrong = 0;
    for (unsigned long base = 0; base < 1ul << 32; base += BLOCK * step) {
      for (int i = 0; i < BLOCK; i++) in[i] = U2F((uint)(base + (unsigned long)i * step));
      rows[k].map();
      for (int i = 0; i < BLOCK; i++) {
        double error = ulps(out[i], rows[k].truth((double)in[i]));
        wrong += error < 0.0; inexact += error != 0.0;
        if (error > worst) { worst = error; at = F2U(in[i]); }
      }
    }
    printf("%s %.4f 0x%08x %lu %lu\n", rows[k].name, worst, at, inexact, wrong);
  }
  return 0;
}
