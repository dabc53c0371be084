/* Elementary functions of one operand on contiguous arrays; units are elements. */
#include "common.h"
#include "strict/extra.h"
#include "strict/extra_d.h"
#include "strict/sixteen.h"
#include "strict/names.h"

#define FOR_EACH_FUNCTION(F)                                                                                          \
    F(exp) F(exp2) F(expm1) F(log) F(log2) F(log1p) F(sin) F(cos) F(tanh) F(sigmoid) F(silu) F(softplus) F(erf) F(gelu) \
    F(gelu_erf) F(rsqrt) F(recip)

/* Elements whose undecided results wait for the slow path together: the fast one is then a loop without a branch. */
#define FUNCTION_BLOCK 256

#if defined(_MSC_VER)
#define APART __declspec(noinline)
#else
#define APART __attribute__((noinline))
#endif

/* F32, correctly rounded: every element by the fast path, then those it left undecided by the slow one. */
#define ROUNDED(f)                                                                                                    \
    static APART uint32_t fv_settled_##f(float v) { return st_##f##_cr_fixed(fv_bits_f32(v)); }                       \
    static CLONES int f##_f32(const float *RESTRICT x, float *RESTRICT y, int64_t n, int64_t begin, int64_t end)     \
    {                                                                                                                 \
        (void)n;                                                                                                      \
        uint32_t bits[FUNCTION_BLOCK], open[FUNCTION_BLOCK];                                                          \
        for (int64_t i = begin; i < end; i += FUNCTION_BLOCK) {                                                       \
            const int count = (int)fv_min(end - i, FUNCTION_BLOCK);                                                   \
            uint32_t any = 0;                                                                                         \
            for (int j = 0; j < count; j++) {                                                                         \
                const st_u64 t = st_##f##_cr_try(fv_bits_f32(x[i + j]));                                              \
                bits[j] = t.h;                                                                                        \
                open[j] = t.l;                                                                                        \
            }                                                                                                         \
            for (int j = 0; j < count; j++) any |= open[j];                                                           \
            for (int j = 0; any && j < count; j++)                                                                    \
                if (open[j]) bits[j] = fv_settled_##f(x[i + j]);                                                      \
            memcpy(y + i, bits, (size_t)count * sizeof *y);                                                           \
        }                                                                                                             \
        return 0;                                                                                                     \
    }

/* The other types, in one rounding of a function that needs no second path. */
#define DIRECT(f, key, T, widen, function, narrow)                                                                    \
    static CLONES_256 int f##_##key(const T *RESTRICT x, T *RESTRICT y, int64_t n, int64_t begin, int64_t end)           \
    {                                                                                                                 \
        (void)n;                                                                                                      \
        for (int64_t i = begin; i < end; i++) y[i] = (T)narrow(function(widen(x[i])));                                \
        return 0;                                                                                                     \
    }

#define FV_AS_IT_IS(v) (v)
#define DOUBLE(f) DIRECT(f, f64, double, FV_AS_IT_IS, st_##f##_d, FV_AS_IT_IS)
#define HALVES(f)                                                                 \
    DIRECT(f, f16, uint16_t, st_f16_to_f32, st_##f##_16, st_f32_to_f16)           \
    DIRECT(f, bf16, uint16_t, st_bf16_to_f32, st_##f##_16, st_f32_to_bf16)

FOR_EACH_FUNCTION(ROUNDED)
FOR_EACH_FUNCTION(HALVES)
FOR_EACH_FUNCTION(DOUBLE)
