/* What every kernel file shares: the strict library, decorations, bit access, error codes.
 *
 * Kernels return 0, FV_NO_MEMORY or FV_OUT_OF_RANGE. The last two arguments of each, begin and end, select a
 * range of independent units (rows, elements, tiles; cpu_reference/_table.py says which), so that a caller may
 * spread a call over threads without changing a bit.
 */
#ifndef FUELVK_CPU_COMMON_H
#define FUELVK_CPU_COMMON_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ST_F64 1
#include "strict/base.h"

/* The strict functions choose between integers by masks here: a compiler that makes a branch of a choice does not
 * vectorise the loop around it. The same bits, as both values are computed anyway. */
static inline uint fv_choose_uint(bool c, uint a, uint b) { const uint m = (uint)0 - (uint)c; return (a & m) | (b & ~m); }
static inline int fv_choose_int(bool c, int a, int b) { return (int)fv_choose_uint(c, (uint)a, (uint)b); }
static inline float fv_choose_float(bool c, float a, float b) { return c ? a : b; }
static inline double fv_choose_double(bool c, double a, double b) { return c ? a : b; }
#undef SEL
#define SEL(c, a, b)                                                                                              \
    _Generic((a), int: fv_choose_int, uint: fv_choose_uint, float: fv_choose_float, double: fv_choose_double)(c, a, b)
#include "strict/strict.h"

#define FV_NO_MEMORY 1
#define FV_OUT_OF_RANGE 2

/* Elements of one block of a sum (order.inc). */
#define FV_BLOCK ((int64_t)16384)

#if defined(_MSC_VER)
#define RESTRICT __restrict
#else
#define RESTRICT __restrict__
#endif

/* Wider vectors where the processor has them; CLONES_256 for kernels that gain little from more than 256 bits, each
 * clone being a third of the code and of the time to compile it. Contraction is off by flag, so every clone gives the
 * same bits. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12 && defined(__x86_64__) && defined(__gnu_linux__)
#define CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#define CLONES_256 __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define CLONES
#define CLONES_256
#endif

#define FV_PASTE_(a, b) a##_##b
#define FV_PASTE(a, b) FV_PASTE_(a, b)

static inline uint32_t fv_bits_f32(float v) { uint32_t b; memcpy(&b, &v, 4); return b; }
static inline uint64_t fv_bits_f64(double v) { uint64_t b; memcpy(&b, &v, 8); return b; }
static inline float fv_from_f32(uint32_t b) { float v; memcpy(&v, &b, 4); return v; }
static inline double fv_from_f64(uint64_t b) { double v; memcpy(&v, &b, 8); return v; }

static inline int64_t fv_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t fv_max(int64_t a, int64_t b) { return a > b ? a : b; }

/* Scratch memory of count elements; never asks for zero bytes, whose answer may be NULL. */
static inline void *fv_scratch(int64_t count, size_t size) { return malloc((size_t)(count > 0 ? count : 1) * size); }

#define ACC float
#define ACC_KEY f32
#include "order.inc"
#undef ACC
#undef ACC_KEY
#define ACC double
#define ACC_KEY f64
#include "order.inc"
#undef ACC
#undef ACC_KEY

#endif
