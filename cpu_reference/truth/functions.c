/* F32 functions in double, one loop each. Apart from judge.c so that this file alone may be compiled with fast
 * mathematics, which makes the C library's vector functions reachable: at most 4 units of the last place of a double
 * (glibc, libmvec). Only live inputs come here: no NaN, no infinity, no zero, nothing outside the domain. */
#include <math.h>

#define TRUTH(name, expression)                                              \
  void fv_truth_##name(const double *in, double *out, long n) {              \
    for (long i = 0; i < n; i++) { const double x = in[i]; out[i] = expression; } \
  }

#define ROOT_HALF 0.70710678118654752440
#define GELU_TWICE 1.5957691216057307117 /* 2 sqrt(2/pi) */

TRUTH(exp, exp(x))
TRUTH(exp2, exp2(x))
TRUTH(expm1, expm1(x))
TRUTH(log, log(x))
TRUTH(log2, log2(x))
TRUTH(log1p, log1p(x))
TRUTH(sin, sin(x))
TRUTH(cos, cos(x))
TRUTH(tanh, tanh(x))
TRUTH(sigmoid, 1.0 / (1.0 + exp(-x)))
TRUTH(silu, x / (1.0 + exp(-x)))
TRUTH(softplus, log1p(exp(-fabs(x))) + (x > 0.0 ? x : 0.0))
TRUTH(erf, erf(x))
TRUTH(gelu, x / (1.0 + exp(-GELU_TWICE * (x + 0.044715 * x * x * x))))
TRUTH(gelu_erf, 0.5 * x * erfc(-x * ROOT_HALF))
TRUTH(rsqrt, 1.0 / sqrt(x))
TRUTH(recip, 1.0 / x)
TRUTH(sqrt, sqrt(x))
TRUTH(sqr, x * x)
