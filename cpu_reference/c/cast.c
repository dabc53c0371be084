/* Conversions: every pair of the eleven plain types, and F8E4M3 to and from F32, F16 and BF16.
 *
 * Every source value goes exactly into one of three carriers (float, double, int64_t), every target rounds once from
 * each carrier: 33 small functions instead of 127. Floats round to nearest even; float to integer truncates,
 * saturates and makes NaN 0; integer to integer wraps; anything to BOOL is x != 0. */
#include "common.h"

#undef bool /* a macro before C23, which would turn the key of a kernel's name into _Bool */

/* ---- sources: exact ---- */

static inline float fv_load_f8e4m3(uint8_t b)
{
    const uint32_t sign = (uint32_t)(b & 0x80u) << 24, e = (b >> 3) & 15u, m = b & 7u;
    if ((b & 0x7fu) == 0x7fu) return fv_from_f32(sign | 0x7fc00000u);
    if (e == 0) return fv_from_f32(sign | fv_bits_f32((float)m * 0x1p-9f));
    return fv_from_f32(sign | ((e + 120u) << 23) | (m << 20));
}

#define fv_load_f64(v) (v)
#define fv_load_f32(v) (v)
#define fv_load_f16(v) st_f16_to_f32(v)
#define fv_load_bf16(v) st_bf16_to_f32(v)
#define fv_load_integer(v) ((int64_t)(v))
#define fv_load_bool(v) ((int64_t)((v) != 0))

/* ---- targets: one rounding ---- */

/* A double that rounds to any format of at most 50 bits as v does: bits too low to matter become one sticky bit. */
static inline double fv_sticky(int64_t v)
{
    const uint64_t size = v < 0 ? 0u - (uint64_t)v : (uint64_t)v;
    uint64_t kept = size;
    if (size >> 53) kept = (size & ~UINT64_C(0x7ff)) | ((size & 0x7ff) != 0 ? 0x800u : 0u);
    return v < 0 ? -(double)kept : (double)kept;
}

static inline uint8_t fv_f8_from_f32(float v)
{
    const uint32_t bits = fv_bits_f32(v), size = bits & 0x7fffffffu;
    const uint8_t sign = (uint8_t)((bits >> 24) & 0x80u);
    if (size > 0x7f800000u) return sign | 0x7fu;
    if (size >= 0x43e00000u) return sign | 0x7eu; /* 448 and all above it, infinity included */
    if (size < 0x3c800000u) {                     /* below 2^-6: steps of 2^-9 */
        const float steps = (fv_from_f32(size) * 512.0f + 8388608.0f) - 8388608.0f;
        return sign | (uint8_t)steps;
    }
    return sign | (uint8_t)((size + 0x7ffffu + ((size >> 20) & 1u) - 0x3c000000u) >> 20);
}

#define f64_from_f32(v) ((double)(v))
#define f64_from_f64(v) (v)
#define f64_from_i64(v) ((double)(v))
#define f32_from_f32(v) (v)
#define f32_from_f64(v) ((float)(v))
#define f32_from_i64(v) ((float)(v))
#define f16_from_f32(v) ((uint16_t)st_f32_to_f16(v))
#define f16_from_f64(v) ((uint16_t)st_f64_to_f16(v))
#define f16_from_i64(v) ((uint16_t)st_f64_to_f16(fv_sticky(v)))
#define bf16_from_f32(v) ((uint16_t)st_f32_to_bf16(v))
#define bf16_from_f64(v) ((uint16_t)st_f64_to_bf16(v))
#define bf16_from_i64(v) ((uint16_t)st_f64_to_bf16(fv_sticky(v)))
#define f8e4m3_from_f32(v) fv_f8_from_f32(v)
#define bool_from_f32(v) ((uint8_t)((v) != 0))
#define bool_from_f64(v) ((uint8_t)((v) != 0))
#define bool_from_i64(v) ((uint8_t)((v) != 0))

/* above is the first power of two beyond the type, an exact double where the type's last value may not be. */
#define INTEGER_TARGET(key, I, lowest, highest, above)                                             \
    static inline I key##_from_f64(double v)                                                       \
    {                                                                                              \
        return v >= (above) ? (highest) : v <= (double)(lowest) ? (lowest) : v == v ? (I)v : (I)0; \
    }                                                                                              \
    static inline I key##_from_f32(float v) { return key##_from_f64((double)v); }                  \
    static inline I key##_from_i64(int64_t v) { return (I)v; }

INTEGER_TARGET(i64, int64_t, INT64_MIN, INT64_MAX, 0x1p63)
INTEGER_TARGET(i32, int32_t, INT32_MIN, INT32_MAX, 0x1p31)
INTEGER_TARGET(i16, int16_t, INT16_MIN, INT16_MAX, 0x1p15)
INTEGER_TARGET(i8, int8_t, INT8_MIN, INT8_MAX, 0x1p7)
INTEGER_TARGET(u32, uint32_t, 0u, UINT32_MAX, 0x1p32)
INTEGER_TARGET(u8, uint8_t, 0u, UINT8_MAX, 0x1p8)

/* ---- pairs; units are elements ---- */

#define CAST(source, S, carrier, load, target, D)                                                        \
    static int cast_##source##_##target(const S *RESTRICT x, D *RESTRICT y, int64_t n, int64_t begin, int64_t end) \
    {                                                                                                    \
        (void)n;                                                                                         \
        for (int64_t i = begin; i < end; i++) y[i] = target##_from_##carrier(load(x[i]));                \
        return 0;                                                                                        \
    }

#define CAST_FROM(source, S, carrier, load)          \
    CAST(source, S, carrier, load, f64, double)      \
    CAST(source, S, carrier, load, f32, float)       \
    CAST(source, S, carrier, load, f16, uint16_t)    \
    CAST(source, S, carrier, load, bf16, uint16_t)   \
    CAST(source, S, carrier, load, i64, int64_t)     \
    CAST(source, S, carrier, load, i32, int32_t)     \
    CAST(source, S, carrier, load, i16, int16_t)     \
    CAST(source, S, carrier, load, i8, int8_t)       \
    CAST(source, S, carrier, load, u32, uint32_t)    \
    CAST(source, S, carrier, load, u8, uint8_t)      \
    CAST(source, S, carrier, load, bool, uint8_t)

CAST_FROM(f64, double, f64, fv_load_f64)
CAST_FROM(f32, float, f32, fv_load_f32)
CAST_FROM(f16, uint16_t, f32, fv_load_f16)
CAST_FROM(bf16, uint16_t, f32, fv_load_bf16)
CAST_FROM(i64, int64_t, i64, fv_load_integer)
CAST_FROM(i32, int32_t, i64, fv_load_integer)
CAST_FROM(i16, int16_t, i64, fv_load_integer)
CAST_FROM(i8, int8_t, i64, fv_load_integer)
CAST_FROM(u32, uint32_t, i64, fv_load_integer)
CAST_FROM(u8, uint8_t, i64, fv_load_integer)
CAST_FROM(bool, uint8_t, i64, fv_load_bool)

CAST(f32, float, f32, fv_load_f32, f8e4m3, uint8_t)
CAST(f16, uint16_t, f32, fv_load_f16, f8e4m3, uint8_t)
CAST(bf16, uint16_t, f32, fv_load_bf16, f8e4m3, uint8_t)
CAST(f8e4m3, uint8_t, f32, fv_load_f8e4m3, f32, float)
CAST(f8e4m3, uint8_t, f32, fv_load_f8e4m3, f16, uint16_t)
CAST(f8e4m3, uint8_t, f32, fv_load_f8e4m3, bf16, uint16_t)
