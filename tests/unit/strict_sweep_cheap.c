/* Error of the cheap f32 functions of the strict library over all inputs, over every STEP-th, or over a range of them:
 *   cc -O3 -march=native -ffast-math -c cpu_reference/truth/functions.c -o functions.o
 *   cc -O3 -march=native -ffp-contract=off -fno-trapping-math -I shaders/slang/lib tests/unit/strict_sweep_cheap.c \
 *     functions.o -o strict_sweep_cheap -lm
 *   ./strict_sweep_cheap NAME|all [STEP [FIRST [LAST]]]
 * One line a function: name, inputs, worst error in ULP, its input, results above half a unit, wrong (above 1 ULP, or a
 * wrong special value or sign). The truth is a double from the C library's vector functions; what does not
 * agree with it to 1 ULP is judged again by the scalar long double function. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "strict/cheap.h"

#define BLOCK 4096
static float in[BLOCK], out[BLOCK];
static double wide[BLOCK], truth[BLOCK], error[BLOCK];
static uint64_t doubt[BLOCK];

typedef struct {
  const char *name; void (*map)(void); void (*truth)(const double *, double *, long); long double (*exact)(long double);
} row;

#define FUNCTION(name, limit)                                                              \
  void fv_truth_##name(const double *, double *, long);                                  \
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

#define ROW(name) {#name, map_##name, fv_truth_##name, exact_##name}
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

static uint64_t bits_of(double d) { uint64_t u; memcpy(&u, &d, 8); return u; }
static double of_bits(uint64_t u) { double d; memcpy(&d, &u, 8); return d; }

/* error[i] by the truth in double; doubt[i] where that does not settle it: above 1 ULP or of another sign, unless both
 * are NaN or the same infinity. Returns whether there is any doubt. */
static uint64_t judge(void) {
  uint64_t any = 0;
  for (int i = 0; i < BLOCK; i++) {
    uint64_t t = bits_of(truth[i]); uint64_t e = t >> 52 & 2047u; e = e < 897u ? 897u : e > 1150u ? 1150u : e;
    uint64_t far = bits_of(fabs((double)out[i] - truth[i]) * of_bits((2069u - e) << 52));    /* times 1/unit */
    uint64_t r = F2U(out[i]); uint64_t wild = (t & ~0ull >> 1) > 0x7ff0000000000000u;
    uint64_t same = F2U((float)truth[i]) == r; uint64_t nan = r == ST_NAN;
    uint64_t settled = same | (wild & nan);
    far = settled & (e == 1150u) ? 0 : far;
    error[i] = of_bits(far);
    doubt[i] = (far > 0x3ff0000000000000u) | ((r >> 31 ^ t >> 63) & (settled ^ 1u));
    any |= doubt[i];
  }
  return any;
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
      tried += BLOCK;
      if (judge() != 0)
        for (int i = 0; i < BLOCK; i++) {
          if (doubt[i] == 0) continue;
          error[i] = exact_error(out[i], f->exact((long double)wide[i]));
          if (error[i] <= 1.0) continue;
          if (wrong < 8)
            fprintf(stderr, "%s 0x%08x gives 0x%08x (%g ULP)\n", f->name, F2U(in[i]), F2U(out[i]), error[i]);
          wrong++;
        }
      uint64_t most = 0, beyond = 0;
      for (int i = 0; i < BLOCK; i++) {
        uint64_t e = bits_of(error[i]); most = e > most ? e : most; beyond += e > 0x3fe0000000000000u;
      }
      inexact += beyond;
      if (most > bits_of(worst))
        for (int i = 0; i < BLOCK; i++)
          if (bits_of(error[i]) == most) { worst = error[i]; at = F2U(in[i]); }
    }
    printf("%s %lu %.4f 0x%08x %lu %lu\n", f->name, tried, worst, at, inexact, wrong);
    fflush(stdout);
  }
  return 0;
}
