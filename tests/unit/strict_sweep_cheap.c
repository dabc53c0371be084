/* Error of the cheap f32 functions of the strict library over all inputs, over every STEP-th, or over a range of them:
 *   cc -O3 -march=native -ffast-math -c tests/unit/strict_truth.c -o strict_truth.o
 *   cc -O3 -march=native -ffp-contract=off -fno-trapping-math -I shaders/slang/lib tests/unit/strict_sweep_cheap.c \
 *     strict_truth.o -o strict_sweep_cheap -lm
 *   ./strict_sweep_cheap NAME|all [STEP [FIRST [LAST]]]
 * One line a function: name, inputs, worst error in ULP, its input, results that are not the nearest float, wrong (above
 * 1 ULP, or a wrong special value or sign). The truth is a double from the C library's vector functions; what does not
 * agree with it to 1 ULP is judged again by the scalar long double function. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "strict/cheap.h"

#define BLOCK 4096
static float in[BLOCK], out[BLOCK];
static double wide[BLOCK], truth[BLOCK], unit[BLOCK], error[BLOCK];

typedef struct {
  const char *name; void (*map)(void); void (*truth)(const double *, double *, long); long double (*exact)(long double);
} row;

#define FUNCTION(name, limit)                                                              \
  void truth_##name##_cr(const double *, double *, long);                                  \
  static void map_##name(void) { for (int i = 0; i < BLOCK; i++) out[i] = st_##name(in[i]); } \
  static long double exact_##name(long double x) { return limit; }

#define GELU_Y (1.59576912160573071175978L * (x + 0.044715L * x * x * x))
FUNCTION(exp2, exp2l(x))
FUNCTION(expm1, expm1l(x))
FUNCTION(log, logl(x))
FUNCTION(log2, log2l(x))
FUNCTION(log1p, log1pl(x))
FUNCTION(sin, sinl(x))
FUNCTION(cos, cosl(x))
FUNCTION(sigmoid, 1.0L / (1.0L + expl(-x)))
FUNCTION(silu, x == -INFINITY ? -0.0L : x / (1.0L + expl(-x)))
FUNCTION(softplus, log1pl(expl(-fabsl(x))) + (x > 0.0L ? x : 0.0L))
FUNCTION(gelu, x == -INFINITY ? -0.0L : x / (1.0L + expl(-GELU_Y)))

#define ROW(name) {#name, map_##name, truth_##name##_cr, exact_##name}
static const row rows[] = {ROW(exp2), ROW(expm1), ROW(log), ROW(log2), ROW(log1p), ROW(sin), ROW(cos), ROW(sigmoid),
                           ROW(silu), ROW(softplus), ROW(gelu)};

/* The unit of the last place of an f32 near t, never below the least subnormal. */
static double last_place(double t) {
  int e = -125;
  if (t != 0.0) frexp(t, &e);
  return ldexp(1.0, (e < -125 ? -125 : e) - 24);
}
/* Error of r in units of the last place of the truth; 1e30 where a special value or sign is wrong. */
static double exact_error(float r, long double t) {
  if (isnan(t)) return F2U(r) == ST_NAN ? 0.0 : 1e30;
  if (isnan(r) || !signbit(r) != !signbit(t)) return 1e30;
  if (F2U(r) == F2U((float)t)) return 0.0;
  if (isinf(t)) return 1e30;
  long double value = isinf(r) ? copysignl(0x1p128L, r) : (long double)r;
  return (double)(fabsl(value - t) / last_place((double)t));
}

int main(int count, char **words) {
  const char *wanted = count > 1 ? words[1] : "all";
  unsigned long step = count > 2 ? strtoul(words[2], 0, 0) : 1;
  unsigned long first = count > 3 ? strtoul(words[3], 0, 0) : 0;
  unsigned long last = count > 4 ? strtoul(words[4], 0, 0) : 0xffffffffull;
  for (unsigned k = 0; k < sizeof rows / sizeof *rows; k++) {
    const row *f = &rows[k];
    if (strcmp(wanted, "all") != 0 && strcmp(wanted, f->name) != 0) continue;
    double worst = 0.0; uint at = 0; unsigned long tried = 0, inexact = 0, wrong = 0;
    for (unsigned long base = first; base <= last; base += BLOCK * step) {
      for (int i = 0; i < BLOCK; i++) { in[i] = U2F((uint)(base + (unsigned long)i * step)); wide[i] = (double)in[i]; }
      f->map();
      f->truth(wide, truth, BLOCK);
      int suspects = 0;
      for (int i = 0; i < BLOCK; i++) {
        uint64_t bits; memcpy(&bits, &truth[i], 8);
        uint64_t e = bits >> 52 & 2047u; e = e < 897u ? 897u : e;
        uint64_t scale = (uint64_t)(2046u + 23u - e) << 52;             /* 1/unit */
        memcpy(&unit[i], &scale, 8);
        error[i] = fabs((double)out[i] - truth[i]) * unit[i];
        uint ob = F2U(out[i]);
        bool fine = error[i] <= 1.0 && (ob & 0x7f800000u) != 0u && e < 1150u && (ob >> 31) == (uint)(bits >> 63);
        suspects += !fine;
      }
      tried += BLOCK;
      for (int i = 0; i < BLOCK; i++) {
        if (suspects) {
          uint64_t bits; memcpy(&bits, &truth[i], 8);
          uint ob = F2U(out[i]); uint64_t e = bits >> 52 & 2047u;
          bool fine = error[i] <= 1.0 && (ob & 0x7f800000u) != 0u && e < 1150u && (ob >> 31) == (uint)(bits >> 63);
          if (!fine) error[i] = exact_error(out[i], f->exact((long double)wide[i]));
          if (!(error[i] <= 1.0)) {
            if (wrong < 8) fprintf(stderr, "%s 0x%08x gives 0x%08x (%g ULP)\n", f->name, F2U(in[i]), ob, error[i]);
            wrong++;
          }
        }
        inexact += error[i] > 0.5;
        if (error[i] > worst) { worst = error[i]; at = F2U(in[i]); }
      }
    }
    printf("%s %lu %.4f 0x%08x %lu %lu\n", f->name, tried, worst, at, inexact, wrong);
    fflush(stdout);
  }
  return 0;
}
