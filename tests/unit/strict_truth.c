/* The truth of strict_sweep_cr.c in double, apart so that it alone may be compiled with fast mathematics, which makes
 * the C library's vector functions reachable (4 units of the last place of a double). */
#include <math.h>

#define TRUTH(name, expression) \
  void truth_##name(const double *in, double *out, long n) { \
    for (long i = 0; i < n; i++) { double x = in[i]; out[i] = expression; } \
  }
TRUTH(exp_cr, exp(x))
TRUTH(rsqrt_cr, 1.0 / sqrt(x))
TRUTH(recip_cr, 1.0 / x)
TRUTH(log_cr, log(x))
TRUTH(sin_cr, sin(x))
TRUTH(cos_cr, cos(x))
TRUTH(log2_cr, log2(x))
TRUTH(log1p_cr, log1p(x))
TRUTH(exp2_cr, exp2(x))
TRUTH(expm1_cr, expm1(x))
TRUTH(sigmoid_cr, 1.0 / (1.0 + exp(-x)))
TRUTH(silu_cr, x / (1.0 + exp(-x)))
TRUTH(softplus_cr, log1p(exp(-fabs(x))) + (x > 0.0 ? x : 0.0))
TRUTH(gelu_cr, x / (1.0 + exp(-1.59576912160573071175978 * (x + 0.044715 * x * x * x))))
TRUTH(tanh_cr, tanh(x))
TRUTH(erf_cr, erf(x))
TRUTH(gelu_erf_cr, 0.5 * x * erfc(x * -0.70710678118654752440))
