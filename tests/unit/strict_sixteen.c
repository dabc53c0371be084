/* The cheap f32 functions and the 16-bit forms of the strict library as loops over arrays, for
 * tests/unit/test_strict_cheap.py and test_strict_sixteen.py. */
#include "strict/sixteen.h"

#define LOOP(name, function)                                             \
  void map_##name(const float *in, float *out, long n) {                 \
    for (long i = 0; i < n; i++) out[i] = function(in[i]);               \
  }
#define CHEAP(name) LOOP(cheap_##name, st_##name)
#define MAP(name) LOOP(name, st_##name##_16)

CHEAP(exp2)
CHEAP(expm1)
CHEAP(log)
CHEAP(log2)
CHEAP(log1p)
CHEAP(sin)
CHEAP(cos)
CHEAP(sigmoid)
CHEAP(silu)
CHEAP(softplus)
CHEAP(gelu)

static float pieces(st_u64 fast, uint far) { return U2F(fast.l != 0u ? far : fast.h); }
#define SIN_PIECES(x) pieces(st_sin_try(F2U(x)), st_sin_far(F2U(x)))
#define COS_PIECES(x) pieces(st_cos_try(F2U(x)), st_cos_far(F2U(x)))
LOOP(sin_pieces, SIN_PIECES)
LOOP(cos_pieces, COS_PIECES)

MAP(exp)
MAP(exp2)
MAP(expm1)
MAP(log)
MAP(log2)
MAP(log1p)
MAP(sin)
MAP(cos)
MAP(tanh)
MAP(sigmoid)
MAP(silu)
MAP(softplus)
MAP(erf)
MAP(gelu)
MAP(gelu_erf)
MAP(rsqrt)
MAP(recip)
MAP(sqrt)

void map_div(const float *a, const float *b, float *out, long n) {
  for (long i = 0; i < n; i++) out[i] = st_div_16(a[i], b[i]);
}
