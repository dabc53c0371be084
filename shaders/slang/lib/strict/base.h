/* The common subset of C and Slang in which the strict functions are written: functions on uint, int, float,
 * double and small structs, `if`, no pointers, no loops, no tables.
 *
 * FN starts a function, SEL chooses between two values that are both computed, U2F/F2U and U2D/D2U reinterpret
 * bits. Float constants are given as bits so that no compiler's decimal parser matters. Define ST_F64 before the
 * include for the double half. C must be compiled with contraction off, Slang with `-fp-mode precise`.
 */
#ifndef ST_BASE_H
#define ST_BASE_H

#if defined(__STDC__) || defined(__cplusplus) || defined(_MSC_VER)
#define ST_LANGUAGE_C 1
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
typedef uint32_t uint;
#if defined(__GNUC__)
#define FN static inline __attribute__((always_inline, unused))
#else
#define FN static inline
#endif
#define SEL(c, a, b) ((c) ? (a) : (b))
typedef struct { uint h; uint l; } st_u64;
typedef struct { float h; float l; } st_ff;
typedef struct { float m; int e; } st_split;
FN float U2F(uint u) { float f; memcpy(&f, &u, 4); return f; }
FN uint F2U(float f) { uint u; memcpy(&u, &f, 4); return u; }
#else
#define FN
#define SEL(c, a, b) select(c, a, b)
#define U2F(u) asfloat(u)
#define F2U(f) asuint(f)
struct st_u64 { uint h; uint l; };
struct st_ff { float h; float l; };
struct st_split { float m; int e; };
#endif

#define ST_NAN 0x7fc00000u
#define ST_INF 0x7f800000u
#define ST_ONE U2F(0x3f800000u)
#define ST_HALF U2F(0x3f000000u)

/* ---- 32-bit words as 64-bit numbers ---- */

/* High word of a 32x32-bit product, from four 16-bit products. */
FN uint st_mulhi32(uint a, uint b) {
  uint al = a & 0xffffu; uint ah = a >> 16; uint bl = b & 0xffffu; uint bh = b >> 16;
  uint t = al * bl; uint u = ah * bl + (t >> 16); uint v = al * bh + (u & 0xffffu);
  return ah * bh + (u >> 16) + (v >> 16);
}
FN st_u64 st_mk64(uint h, uint l) { st_u64 r; r.h = h; r.l = l; return r; }
FN st_u64 st_add64(st_u64 a, st_u64 b) {
  st_u64 r; r.l = a.l + b.l; r.h = a.h + b.h + SEL(r.l < a.l, 1u, 0u); return r;
}
FN st_u64 st_neg64(st_u64 a) { st_u64 r; r.l = 0u - a.l; r.h = ~a.h + SEL(a.l == 0u, 1u, 0u); return r; }
/* Top 64 bits of a 64x64-bit product, at most 3 units low. */
FN st_u64 st_mulhi64(st_u64 a, st_u64 b) {
  st_u64 r; r.l = a.h * b.h; r.h = st_mulhi32(a.h, b.h);
  uint p = st_mulhi32(a.h, b.l); uint q = st_mulhi32(a.l, b.h);
  r.l = r.l + p; r.h = r.h + SEL(r.l < p, 1u, 0u);
  r.l = r.l + q; r.h = r.h + SEL(r.l < q, 1u, 0u);
  return r;
}

/* a where x is negative, else b. The sign bit becomes a mask, which C compilers do not turn into a branch around the
 * float arithmetic behind a or b, as they do with SEL: a loop around it can be vectorised. */
FN uint st_where_negative(uint x, uint a, uint b) { uint m = (uint)((int)x >> 31); return (a & m) | (b & ~m); }

/* ---- f32 pieces ---- */

/* x with its low 12 mantissa bits cleared: the product of two such parts is exact, and so is x - st_hi12(x). */
FN float st_hi12(float x) { return U2F(F2U(x) & 0xfffff000u); }

/* a * b as an exact sum of the rounded product and its error (no underflow inside for factors near 1). */
FN st_ff st_two_prod(float a, float b) {
  float ah = st_hi12(a); float al = a - ah; float bh = st_hi12(b); float bl = b - bh;
  st_ff r; r.h = a * b; r.l = (((ah * bh - r.h) + ah * bl) + al * bh) + al * bl; return r;
}

/* The bits of a positive finite value as m * 2^e, m in [1, 2); a subnormal is decoded by an exact integer
 * conversion, so that a device that flushes subnormals gives the same answer. Zero gives nonsense, no trap. */
FN st_split st_unpack(uint bits) {
  bool tiny = bits < 0x00800000u;
  uint t = SEL(tiny, F2U((float)(int)bits), bits);
  st_split r; r.m = U2F((t & 0x007fffffu) | 0x3f800000u);
  r.e = (int)(t >> 23) - SEL(tiny, 276, 127);
  return r;
}

/* The bits of v * 2^n rounded to nearest even, v positive and normal, any n: subnormal results are rounded by an
 * addition in the normal range, overflow gives infinity. */
FN uint st_pack(float v, int n) {
  uint u = F2U(v); int e = (int)(u >> 23);
  int c = SEL(n < -30 - e, -30 - e, SEL(n > 255 - e, 255 - e, n));
  uint b = u + ((uint)c << 23);
  uint s = F2U(U2F(b + 0x4a800000u) + U2F(0x4b000000u)) - 0x4b000000u;
  return SEL((int)b < 0x00800000, s, SEL(e + c > 254, ST_INF, b));
}
#endif
