/* Is a correctly rounded function right over all inputs, over every STEP-th, or over a range of them?
 *   cc -O3 -march=native -ffast-math -c cpu_reference/truth/functions.c -o functions.o
 *   cc -O3 -march=native -ffp-contract=off -fno-trapping-math -I shaders/slang/lib tests/unit/strict_sweep_cr.c \
 *     functions.o -o strict_sweep_cr -lm
 *   ./strict_sweep_cr NAME|all [STEP [FIRST [LAST [near]]]]
 * One line a function: name, inputs, left undecided by the fast path, wrong, worst error in ULP among the wrong, its
 * input. The truth is a double; within 2^-46 (or the row's own width) of a boundary between two floats the C library's long
 * double decides, and what is within 2^-60 (or the row's own) is printed as `tie NAME INPUT RESULT`, to be decided with
 * more digits. With `near` the inputs that the long double decided are printed: the lists strict_hard_*.u32. Ranges where the result
 * is a constant or the input itself (see `flat`) are checked against that. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "strict/extra.h"

#define BLOCK 4096
static uint in[BLOCK], out[BLOCK], open_[BLOCK], low[BLOCK], high[BLOCK];
static double wide[BLOCK], truth[BLOCK];

typedef struct {
  const char *name; void (*map)(void); uint (*fixed)(uint); void (*truth)(const double *, double *, long);
  long double (*exact)(long double); double width; long double fine;
} row;

#define FUNCTION(name, fast, slow, limit)                                                             \
  void fv_truth_##name(const double *, double *, long);                                                  \
  static void map_##name(void) {                                                                      \
    for (int i = 0; i < BLOCK; i++) { uint x = in[i]; st_u64 r = fast; out[i] = r.h; open_[i] = r.l; } \
  }                                                                                                   \
  static uint fixed_##name(uint x) { return slow; }                                                   \
  static long double exact_##name(long double x) { return limit; }

FUNCTION(exp, st_exp_cr_try(x), st_exp_cr_fixed(x), expl(x))
FUNCTION(rsqrt, st_rsqrt_cr_try(x), st_rsqrt_cr_fixed(x), x == 0.0L ? copysignl(INFINITY, x) : 1.0L / sqrtl(x))
FUNCTION(recip, st_recip_cr_try(x), st_recip_cr_fixed(x), 1.0L / x)
FUNCTION(log, st_log_cr_try(x), st_log_cr_fixed(x), logl(x))
FUNCTION(sin, st_sin_cr_try(x), st_sin_cr_fixed(x), sinl(x))
FUNCTION(cos, st_cos_cr_try(x), st_cos_cr_fixed(x), cosl(x))
FUNCTION(log2, st_log2_cr_try(x), st_log2_cr_fixed(x), log2l(x))
FUNCTION(log1p, st_log1p_cr_try(x), st_log1p_cr_fixed(x), log1pl(x))
FUNCTION(exp2, st_exp2_cr_try(x), st_exp2_cr_fixed(x), exp2l(x))
FUNCTION(expm1, st_expm1_cr_try(x), st_expm1_cr_fixed(x), expm1l(x))
FUNCTION(sigmoid, st_sigmoid_cr_try(x), st_sigmoid_cr_fixed(x), 1.0L / (1.0L + expl(-x)))
FUNCTION(silu, st_silu_cr_try(x), st_silu_cr_fixed(x), x == -INFINITY ? -0.0L : x / (1.0L + expl(-x)))
FUNCTION(softplus, st_softplus_cr_try(x), st_softplus_cr_fixed(x), log1pl(expl(-fabsl(x))) + (x > 0.0L ? x : 0.0L))

FUNCTION(tanh, st_tanh_cr_try(x), st_tanh_cr_fixed(x), tanhl(x))
#define GELU_A 1.59576912160573071175978L
#define GELU_B 0.07135481627260024877634L
FUNCTION(gelu, st_gelu_cr_try(x), st_gelu_cr_fixed(x), x / (1.0L + expl(-x * (GELU_A + GELU_B * x * x))))
FUNCTION(erf, st_erf_cr_try(x), st_erf_cr_fixed(x), erfl(x))
FUNCTION(gelu_erf, st_gelu_erf_cr_try(x), st_gelu_erf_cr_fixed(x), 0.5L * x * erfcl(x * -0.707106781186547524400844L))

#define ROW(name) {#name, map_##name, fixed_##name, fv_truth_##name, exact_##name, 0x1p-46, 0x1p-60L}
#define NEAR(name, width, fine) {#name, map_##name, fixed_##name, fv_truth_##name, exact_##name, width, fine}
static const row rows[] = {ROW(exp), ROW(rsqrt), ROW(recip), ROW(log), ROW(sin), ROW(cos), ROW(log2), ROW(log1p),
                           ROW(exp2), ROW(expm1), ROW(sigmoid), ROW(silu), ROW(softplus),
                           NEAR(tanh, 0x1p-42, 0x1p-60L), NEAR(gelu, 0x1p-42, 0x1p-54L),
                           NEAR(erf, 0x1p-42, 0x1p-60L), NEAR(gelu_erf, 0x1p-42, 0x1p-54L)};

/* NAME from FIRST to LAST gives VALUE, or the input where VALUE is SAME. Why SAME and 1: the next term of the series is
 * below a quarter of a unit of the last place for |x| <= 2^-25. */
#define SAME 1u
/* silu(x) = x/2 + x^2/4 - ...: for tiny x the half, moved up by less than anything representable. */
#define HALF 2u
typedef struct { const char *name; uint first, last, value; } flat;
static const flat flats[] = {
  {"erf", 0x407ad445u, 0x7f800000u, 0x3f800000u}, {"erf", 0x7f800001u, 0x7fffffffu, ST_NAN},
  {"erf", 0xc07ad445u, 0xff800000u, 0xbf800000u}, {"erf", 0xff800001u, 0xffffffffu, ST_NAN},
  {"gelu_erf", 0u, 0x00ffffffu, HALF}, {"gelu_erf", 0x80000000u, 0x80ffffffu, HALF},
  {"gelu_erf", 0x40b40000u, 0x7f800000u, SAME}, {"gelu_erf", 0x7f800001u, 0x7fffffffu, ST_NAN},
  {"gelu_erf", 0xc1680000u, 0xff800000u, 0x80000000u}, {"gelu_erf", 0xff800001u, 0xffffffffu, ST_NAN},
  {"gelu", 0u, 0x00ffffffu, HALF}, {"gelu", 0x80000000u, 0x80ffffffu, HALF},
  {"gelu", 0x40a80000u, 0x7f800000u, SAME}, {"gelu", 0x7f800001u, 0x7fffffffu, ST_NAN},
  {"gelu", 0xc12d0000u, 0xff800000u, 0x80000000u}, {"gelu", 0xff800001u, 0xffffffffu, ST_NAN},
  {"tanh", 0u, 0x397fffffu, SAME}, {"tanh", 0x80000000u, 0xb97fffffu, SAME},
  {"tanh", 0x41102cb4u, 0x7f800000u, 0x3f800000u}, {"tanh", 0x7f800001u, 0x7fffffffu, ST_NAN},
  {"tanh", 0xc1102cb4u, 0xff800000u, 0xbf800000u}, {"tanh", 0xff800001u, 0xffffffffu, ST_NAN},
  {"exp", 0u, 0x33000000u, 0x3f800000u}, {"exp", 0x80000000u, 0xb3000000u, 0x3f800000u},
  {"exp", 0x42b17218u, 0x7f800000u, ST_INF}, {"exp", 0x7f800001u, 0x7fffffffu, ST_NAN},
  {"exp", 0xc2d10000u, 0xff800000u, 0u}, {"exp", 0xff800001u, 0xffffffffu, ST_NAN},
  {"rsqrt", 0x7f800001u, 0x7fffffffu, ST_NAN}, {"rsqrt", 0x80000001u, 0xffffffffu, ST_NAN},
  {"recip", 0x7f800001u, 0x7fffffffu, ST_NAN}, {"recip", 0xff800001u, 0xffffffffu, ST_NAN},
  {"log", 0x7f800001u, 0x7fffffffu, ST_NAN}, {"log", 0x80000001u, 0xffffffffu, ST_NAN},
  {"log2", 0x7f800001u, 0x7fffffffu, ST_NAN}, {"log2", 0x80000001u, 0xffffffffu, ST_NAN},
  {"log1p", 0u, 0x33000000u, SAME}, {"log1p", 0x80000000u, 0xb3000000u, SAME},
  {"log1p", 0x7f800001u, 0x7fffffffu, ST_NAN}, {"log1p", 0xbf800001u, 0xffffffffu, ST_NAN},
  {"exp2", 0u, 0x33000000u, 0x3f800000u}, {"exp2", 0x80000000u, 0xb3000000u, 0x3f800000u},
  {"exp2", 0x43000000u, 0x7f800000u, ST_INF}, {"exp2", 0x7f800001u, 0x7fffffffu, ST_NAN},
  {"exp2", 0xc3160000u, 0xff800000u, 0u}, {"exp2", 0xff800001u, 0xffffffffu, ST_NAN},
  {"expm1", 0u, 0x33000000u, SAME}, {"expm1", 0x80000000u, 0xb3000000u, SAME},
  {"expm1", 0x42b17218u, 0x7f800000u, ST_INF}, {"expm1", 0x7f800001u, 0x7fffffffu, ST_NAN},
  {"expm1", 0xc18c0001u, 0xff800000u, 0xbf800000u}, {"expm1", 0xff800001u, 0xffffffffu, ST_NAN},
  {"sigmoid", 0u, 0x33000000u, 0x3f000000u}, {"sigmoid", 0x80000000u, 0xb3000000u, 0x3f000000u},
  {"sigmoid", 0x418b0000u, 0x7f800000u, 0x3f800000u}, {"sigmoid", 0x7f800001u, 0x7fffffffu, ST_NAN},
  {"sigmoid", 0xc2d10000u, 0xff800000u, 0u}, {"sigmoid", 0xff800001u, 0xffffffffu, ST_NAN},
  {"softplus", 0u, 0x33000000u, 0x3f317218u}, {"softplus", 0x80000000u, 0xb3000000u, 0x3f317218u},
  {"softplus", 0x41920000u, 0x7f800000u, SAME}, {"softplus", 0x7f800001u, 0x7fffffffu, ST_NAN},
  {"softplus", 0xc2d10000u, 0xff800000u, 0u}, {"softplus", 0xff800001u, 0xffffffffu, ST_NAN},
  {"silu", 0u, 0x00ffffffu, HALF}, {"silu", 0x80000000u, 0x80ffffffu, HALF},
  {"silu", 0x41920000u, 0x7f800000u, SAME}, {"silu", 0x7f800001u, 0x7fffffffu, ST_NAN},
  {"silu", 0xc2dc0000u, 0xff800000u, 0x80000000u}, {"silu", 0xff800001u, 0xffffffffu, ST_NAN},
};
static uint flat_value(uint value, uint x) {
  if (value == SAME) return x;
  if (value != HALF) return value;
  return F2U(fabsf((float)nextafterl((long double)U2F(x) * 0.5L, INFINITY))) | (x & 0x80000000u);
}
/* The flat range that holds the inputs from `low_end` to `high_end`, or null. */
static const flat *flat_of(const char *name, uint low_end, uint high_end) {
  for (unsigned i = 0; i < sizeof flats / sizeof *flats; i++)
    if (strcmp(name, flats[i].name) == 0 && low_end >= flats[i].first && high_end <= flats[i].last) return &flats[i];
  return 0;
}

static double ulps(float r, double t) {
  int e = -125;
  if (isnan(r) || isnan(t) || isinf(t)) return 1e30;
  if (t != 0.0) frexp(t, &e);
  if (e < -125) e = -125;
  return fabs((isinf(r) ? copysign(0x1p128, r) : (double)r) - t) / ldexp(1.0, e - 24);
}

int main(int count, char **words) {
  const char *wanted = count > 1 ? words[1] : "all";
  unsigned long step = count > 2 ? strtoul(words[2], 0, 0) : 1;
  unsigned long first = count > 3 ? strtoul(words[3], 0, 0) : 0;
  unsigned long last = count > 4 ? strtoul(words[4], 0, 0) : 0xffffffffull;
  bool listed = count > 5;
  for (unsigned k = 0; k < sizeof rows / sizeof *rows; k++) {
    const row *f = &rows[k];
    if (strcmp(wanted, "all") != 0 && strcmp(wanted, f->name) != 0) continue;
    double worst = 0.0; uint at = 0; unsigned long undecided = 0, wrong = 0, tried = 0;
    for (unsigned long base = first; base <= last; base += BLOCK * step) {
      for (int i = 0; i < BLOCK; i++) { in[i] = (uint)(base + (unsigned long)i * step); wide[i] = (double)U2F(in[i]); }
      f->map();
      for (int i = 0; i < BLOCK; i++)
        if (open_[i] != 0) { out[i] = f->fixed(in[i]); undecided++; }
      uint bad = 0;
      const flat *constant = flat_of(f->name, in[0], in[BLOCK - 1]);
      tried += BLOCK;
      if (constant) {
        for (int i = 0; i < BLOCK; i++) bad |= out[i] ^ flat_value(constant->value, in[i]);
        if (bad == 0) continue;
      }
      f->truth(wide, truth, BLOCK);
      for (int i = 0; i < BLOCK; i++) {
        low[i] = F2U((float)(truth[i] * (1.0 - f->width))); high[i] = F2U((float)(truth[i] * (1.0 + f->width)));
        bad |= (low[i] ^ out[i]) | (high[i] ^ out[i]);
      }
      if (bad == 0) continue;
      for (int i = 0; i < BLOCK; i++) {
        if (low[i] == out[i] && high[i] == out[i]) continue;
        const flat *single = flat_of(f->name, in[i], in[i]);
        if (single && flat_value(single->value, in[i]) == out[i]) continue;
        long double t = f->exact((long double)wide[i]);
        if (listed) printf("near %s 0x%08x\n", f->name, in[i]);
        uint want = F2U((float)t);
        if (isnan(t)) { if (out[i] == ST_NAN) continue; }
        else {
          if (F2U((float)(t * (1.0L - f->fine))) != F2U((float)(t * (1.0L + f->fine)))) {
            printf("tie %s 0x%08x 0x%08x\n", f->name, in[i], out[i]); continue;
          }
          if (want == out[i]) continue;
        }
        double error = ulps(U2F(out[i]), (double)t);
        if (error > worst || wrong == 0) { worst = error; at = in[i]; }
        if (wrong < 8) fprintf(stderr, "%s 0x%08x gives 0x%08x, not 0x%08x\n", f->name, in[i], out[i], want);
        wrong++;
      }
    }
    printf("%s %lu %lu %lu %.4f 0x%08x\n", f->name, tried, undecided, wrong, worst, at);
    fflush(stdout);
  }
  return 0;
}
