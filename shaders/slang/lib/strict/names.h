/* One naming scheme over the functions the ops call: st_<f>_cr_try and st_<f>_cr_fixed in F32, st_<f>_16 for 16-bit types,
 * st_<f>_d in F64. Macros only: the header of the function comes with whoever calls it. */
#ifndef ST_NAMES_H
#define ST_NAMES_H
/* Correctly rounded to F32; the second rounding, to a 16-bit type, may go wrong at a tie. */
#define ST_TWICE(f, x) U2F(f(F2U(x)))
#define st_exp2_16(x) ST_TWICE(st_exp2_cr, x)
#define st_expm1_16(x) ST_TWICE(st_expm1_cr, x)
#define st_log_16(x) ST_TWICE(st_log_cr, x)
#define st_log2_16(x) ST_TWICE(st_log2_cr, x)
#define st_log1p_16(x) ST_TWICE(st_log1p_cr, x)
#define st_sin_16(x) ST_TWICE(st_sin_cr, x)
#define st_cos_16(x) ST_TWICE(st_cos_cr, x)
#define st_sigmoid_16(x) ST_TWICE(st_sigmoid_cr, x)
#define st_silu_16(x) ST_TWICE(st_silu_cr, x)
#define st_softplus_16(x) ST_TWICE(st_softplus_cr, x)
#endif
