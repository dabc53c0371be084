/* The strict library's inner functions as kernels of their own, for tests and for probing a device against them. */
#include "common.h"
#include "strict/exp_difference.h"

#define INNER(key, name, F, expression)                                                                          \
    static int strict_##name##_##key(const F *RESTRICT x, F *RESTRICT y, int64_t n, int64_t begin, int64_t end) \
    {                                                                                                            \
        (void)n;                                                                                                 \
        for (int64_t i = begin; i < end; i++) {                                                                  \
            const F v = x[i];                                                                                    \
            y[i] = expression;                                                                                   \
        }                                                                                                        \
        return 0;                                                                                                \
    }

#define INNER_TWO(key, name, F, function)                                                                      \
    static int strict_##name##_##key(const F *RESTRICT a, const F *RESTRICT b, F *RESTRICT y, int64_t n, int64_t begin, \
                                       int64_t end)                                                            \
    {                                                                                                          \
        (void)n;                                                                                               \
        for (int64_t i = begin; i < end; i++) y[i] = function(a[i], b[i]);                                     \
        return 0;                                                                                              \
    }

INNER(f32, exp, float, st_exp(v))
INNER(f32, rcp, float, st_rcp(v))
INNER(f32, sqrt, float, st_sqrt(v))
INNER(f32, rsqrt, float, st_rsqrt(v))
INNER(f32, tanh, float, st_tanh(v))
INNER(f32, erf, float, st_erf(v))
INNER(f32, gelu_erf, float, st_gelu_erf(v))
INNER_TWO(f32, div, float, st_div)
INNER_TWO(f32, exp_difference, float, st_exp_difference)
INNER(f64, exp, double, st_exp_d(v))
INNER(f64, rcp, double, st_rcp_d(v))
INNER(f64, sqrt, double, st_sqrt_d(v))
INNER(f64, rsqrt, double, st_rsqrt_d(v))
INNER(f64, tanh, double, st_tanh_d(v))
INNER(f64, erf, double, st_erf_d(v))
INNER(f64, gelu_erf, double, st_gelu_erf_d(v))
INNER_TWO(f64, div, double, st_div_d)
INNER_TWO(f64, exp_difference, double, st_exp_difference_d)
