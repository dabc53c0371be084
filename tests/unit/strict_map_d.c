/* The f64 functions of extra_d.h as loops over arrays, for tests/unit/test_strict_d.py. */
#define ST_F64
#include "strict/extra_d.h"

#define MAP(name) \
  void map_##name(const double *a, double *out, long n) { for (long i = 0; i < n; i++) out[i] = st_##name##_d(a[i]); }

MAP(exp2)
MAP(expm1)
MAP(log)
MAP(log2)
MAP(log1p)
MAP(sin)
MAP(cos)
MAP(sin_near)
MAP(cos_near)
MAP(sigmoid)
MAP(silu)
MAP(softplus)
MAP(gelu)
