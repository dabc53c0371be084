/* Holds F32 results against a truth in double, block by block.
 *
 * The truth t errs by at most |t| * slack. Where t(1 - slack) and t(1 + slack) round to the same float, that float is
 * the correctly rounded result; the other inputs are left undecided, to be settled with more digits. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#define BLOCK 256
#define INFINITE 0x7ff0000000000000u

typedef struct {
  int64_t wrong;      /* decided results that are not the correctly rounded ones */
  int64_t undecided;  /* inputs within the slack of a boundary between two floats */
  double worst;       /* largest distance from the truth in units of the last place; infinity for a NaN */
  uint32_t worst_at;  /* its input */
} fv_judgement;

typedef void (*fv_truth)(const double *, double *, long);

static inline uint32_t bits_of(float v) { uint32_t b; memcpy(&b, &v, 4); return b; }
static inline float float_of(uint32_t b) { float v; memcpy(&v, &b, 4); return v; }
static inline uint64_t wide_bits(double v) { uint64_t b; memcpy(&b, &v, 8); return b; }
static inline double wide_of(uint64_t b) { double v; memcpy(&v, &b, 8); return v; }

/* A float as a double, infinity as 2^128. */
static inline double widened(uint32_t b)
{
  const double v = (double)float_of(b);
  return (b & 0x7fffffffu) == 0x7f800000u ? ((b >> 31) != 0u ? -0x1p128 : 0x1p128) : v;
}

/* One over the spacing of floats at t: 2^(23 - e), e from -126 to 127. */
static inline double per_ulp(double t)
{
  uint64_t e = (wide_bits(t) >> 52) & 2047u;
  e = e < 897u ? 897u : e;
  e = e > 1150u ? 1150u : e;
  return wide_of((2069u - e) << 52);
}

/* Judges results[k][i], k below `kinds`, for the input of bits first + i, into found[k]. The undecided inputs go to
 * `open`, the first `room` of them; undecided results do not count towards wrong and worst. Where the results of a
 * block are those of results[0], so is what is found. */
void fv_judge(fv_truth truth, double slack, uint32_t first, const uint32_t *const *results, int kinds, int64_t n,
              fv_judgement *found, uint32_t *open, int64_t room)
{
  static const double top = 0x1p128;
  double in[BLOCK], t[BLOCK], scale[BLOCK];
  uint64_t error[BLOCK];
  uint32_t low[BLOCK], high[BLOCK], beyond[BLOCK];
  int64_t undecided = 0;
  for (int k = 0; k < kinds; k++) found[k] = (fv_judgement){0, 0, -1.0, first};
  for (int64_t base = 0; base < n; base += BLOCK) {
    const int count = n - base < BLOCK ? (int)(n - base) : BLOCK;
    const uint32_t start = first + (uint32_t)base;
    for (int i = 0; i < count; i++) in[i] = (double)float_of(start + (uint32_t)i);
    truth(in, t, count);
    uint32_t split = 0u;
    for (int i = 0; i < count; i++) {
      low[i] = bits_of((float)(t[i] * (1.0 - slack)));
      high[i] = bits_of((float)(t[i] * (1.0 + slack)));
      split |= low[i] ^ high[i];
      beyond[i] = t[i] >= top ? 0x7f800000u : (t[i] <= -top ? 0xff800000u : 0u);
      scale[i] = per_ulp(t[i]);
    }
    if (split != 0u)
      for (int i = 0; i < count; i++)
        if (low[i] != high[i]) {
          if (undecided < room) open[undecided] = start + (uint32_t)i;
          undecided++;
        }
    fv_judgement same = {0, 0, -1.0, start};
    for (int k = 0; k < kinds; k++) {
      const uint32_t *got = results[k] + base;
      fv_judgement here = same;
      if (k == 0 || memcmp(got, results[0] + base, (size_t)count * sizeof *got) != 0) {
        uint32_t wrong = 0u;
        uint64_t worst = 0u;  /* non-negative doubles are ordered as their bits are */
        for (int i = 0; i < count; i++) {
          const double e = fabs(widened(got[i]) - t[i]) * scale[i];
          const uint64_t d = (beyond[i] != 0u) & (got[i] == beyond[i]) ? 0u : wide_bits(e);
          const uint64_t all = (got[i] & 0x7fffffffu) > 0x7f800000u ? INFINITE : d;
          error[i] = low[i] != high[i] ? 0u : all;
        }
        for (int i = 0; i < count; i++) worst = error[i] > worst ? error[i] : worst;
        for (int i = 0; i < count; i++) wrong += (low[i] == high[i]) & (got[i] != low[i]);
        here.wrong = wrong;
        here.worst = wide_of(worst);
        if (here.worst > found[k].worst || k == 0)
          for (int i = 0; i < count; i++)
            if (error[i] == worst) { here.worst_at = start + (uint32_t)i; break; }
        if (k == 0) same = here;
      }
      found[k].wrong += here.wrong;
      if (here.worst > found[k].worst) { found[k].worst = here.worst; found[k].worst_at = here.worst_at; }
    }
  }
  for (int k = 0; k < kinds; k++) found[k].undecided = undecided;
}
