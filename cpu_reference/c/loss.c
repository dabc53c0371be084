/* Cross-entropy: losses of rows, their sum, and the gradient. */
#include "common.h"
#include "compensated.h"
#include "strict/exp_difference.h"
#include "strict/log_d.h"

#define BODY "loss.inc"
#include "for_floats.inc"
#undef BODY

/* *result = F32(sum of the losses), over `count` unless that is negative. */
static int loss_total(const double *losses, float *result, int64_t rows, int64_t count, int64_t begin, int64_t end)
{
    if (begin >= end) return 0;
    double total = fv_exactsum_f64(losses, rows);
    if (count >= 0) total = st_div_d(total, (double)count);
    *result = st_f64_to_f32(total);
    return 0;
}

/* result = F32(losses); units are rows. */
static int loss_each(const double *losses, float *result, int64_t rows, int64_t begin, int64_t end)
{
    (void)rows;
    for (int64_t i = begin; i < end; i++) result[i] = st_f64_to_f32(losses[i]);
    return 0;
}
