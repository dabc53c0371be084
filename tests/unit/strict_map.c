/* Every function of the strict library as a loop over arrays, for tests/unit/test_strict_c.py. */
#define ST_F64
#include "strict/extra.h"

/* st_exp_cr from its two pieces. */
FN uint exp_pieces(uint x) { st_u64 t = st_exp_cr_try(x); return t.l != 0u ? st_exp_cr_fixed(x) : t.h; }

#define MAP(name, in_t, out_t, expression)                                    \
  void map_##name(const in_t *a, const in_t *b, out_t *out, long n) {         \
    for (long i = 0; i < n; i++) {                                            \
      in_t x = a[i]; in_t y = b[i];                                           \
      (void)y;                                                                \
      out[i] = expression;                                                    \
    }                                                                         \
  }

MAP(exp, float, float, st_exp(x))
MAP(exp_cr, uint, uint, st_exp_cr(x))
MAP(exp_cr_f16, uint, uint, st_exp_cr_f16(x))
MAP(exp_cr_bf16, uint, uint, st_exp_cr_bf16(x))
MAP(div, float, float, st_div(x, y))
MAP(rcp, float, float, st_rcp(x))
MAP(sqrt, float, float, st_sqrt(x))
MAP(rsqrt, float, float, st_rsqrt(x))
MAP(tanh, float, float, st_tanh(x))
MAP(erf, float, float, st_erf(x))
MAP(gelu_erf, float, float, st_gelu_erf(x))

MAP(exp_pieces, uint, uint, exp_pieces(x))
MAP(rsqrt_cr, uint, uint, st_rsqrt_cr(x))
MAP(recip_cr, uint, uint, st_recip_cr(x))
MAP(tanh_cr, uint, uint, st_tanh_cr(x))
MAP(gelu_cr, uint, uint, st_gelu_cr(x))
MAP(erf_cr, uint, uint, st_erf_cr(x))
MAP(gelu_erf_cr, uint, uint, st_gelu_erf_cr(x))
MAP(log_cr, uint, uint, st_log_cr(x))
MAP(sin_cr, uint, uint, st_sin_cr(x))
MAP(cos_cr, uint, uint, st_cos_cr(x))
MAP(log2_cr, uint, uint, st_log2_cr(x))
MAP(log1p_cr, uint, uint, st_log1p_cr(x))
MAP(exp2_cr, uint, uint, st_exp2_cr(x))
MAP(expm1_cr, uint, uint, st_expm1_cr(x))
MAP(sigmoid_cr, uint, uint, st_sigmoid_cr(x))
MAP(silu_cr, uint, uint, st_silu_cr(x))
MAP(softplus_cr, uint, uint, st_softplus_cr(x))

MAP(exp_d, double, double, st_exp_d(x))
MAP(div_d, double, double, st_div_d(x, y))
MAP(rcp_d, double, double, st_rcp_d(x))
MAP(sqrt_d, double, double, st_sqrt_d(x))
MAP(rsqrt_d, double, double, st_rsqrt_d(x))
MAP(tanh_d, double, double, st_tanh_d(x))
MAP(erf_d, double, double, st_erf_d(x))
MAP(gelu_erf_d, double, double, st_gelu_erf_d(x))

MAP(f16_to_f32, uint, float, st_f16_to_f32(x))
MAP(f32_to_f16, float, uint, st_f32_to_f16(x))
MAP(bf16_to_f32, uint, float, st_bf16_to_f32(x))
MAP(f32_to_bf16, float, uint, st_f32_to_bf16(x))
MAP(f32_to_f64, float, double, st_f32_to_f64(x))
MAP(f64_to_f32, double, float, st_f64_to_f32(x))
MAP(f64_to_f16, double, uint, st_f64_to_f16(x))
MAP(f64_to_bf16, double, uint, st_f64_to_bf16(x))
