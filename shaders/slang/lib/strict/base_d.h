/* The f64 half of base.h: bits as two 32-bit words (no 64-bit integers), mantissa and exponent, exact products. */
#ifndef ST_BASE_D_H
#define ST_BASE_D_H
#include "base.h"

#ifdef ST_LANGUAGE_C
typedef struct { double h; double l; } st_dd;
typedef struct { double m; int e; } st_split_d;
FN double U2D(uint h, uint l) { uint64_t u = ((uint64_t)h << 32) | l; double d; memcpy(&d, &u, 8); return d; }
FN st_u64 D2U(double d) {
  uint64_t u; memcpy(&u, &d, 8); st_u64 r; r.h = (uint)(u >> 32); r.l = (uint)u; return r;
}
#else
struct st_dd { double h; double l; };
struct st_split_d { double m; int e; };
#define U2D(h, l) asdouble(l, h)
FN st_u64 D2U(double d) { st_u64 r; uint l; uint h; asuint(d, l, h); r.h = h; r.l = l; return r; }
#endif

#define ST_NAN_D U2D(0x7ff80000u, 0u)
#define ST_ZERO_D U2D(0u, 0u)
#define ST_ONE_D U2D(0x3ff00000u, 0u)
#define ST_TWO_D U2D(0x40000000u, 0u)
#define ST_HALF_D U2D(0x3fe00000u, 0u)

/* 2^n, n in [-1022, 1023]. */
FN double st_power_d(int n) { return U2D((uint)(n + 1023) << 20, 0u); }
/* |x| and x with the sign bit of the word s. */
FN double st_abs_d(double x) { st_u64 u = D2U(x); return U2D(u.h & 0x7fffffffu, u.l); }
FN double st_sign_d(double x, uint s) { st_u64 u = D2U(x); return U2D((u.h & 0x7fffffffu) | (s & 0x80000000u), u.l); }
/* Is the double with these words (sign cleared) a NaN? */
FN bool st_is_nan_d(uint h, uint l) { return h > 0x7ff00000u || (h == 0x7ff00000u && l != 0u); }

/* x rounded to 26 bits, so that products of such parts and of the rests are exact (Veltkamp), |x| < 2^900. */
FN double st_hi26(double x) { double c = x * U2D(0x41a00000u, 0x02000000u); return c - (c - x); }

/* a * b as an exact sum of the rounded product and its error (no underflow inside for factors near 1). */
FN st_dd st_two_prod_d(double a, double b) {
  double ah = st_hi26(a); double al = a - ah; double bh = st_hi26(b); double bl = b - bh;
  st_dd r; r.h = a * b; r.l = (((ah * bh - r.h) + ah * bl) + al * bh) + al * bl; return r;
}

/* The words of a positive finite value as m * 2^e, m in [1, 2); zero gives nonsense, no trap. */
FN st_split_d st_unpack_d(uint h, uint l) {
  bool tiny = h < 0x00100000u;
  st_u64 t = D2U(U2D(0x43300000u | h, l) - U2D(0x43300000u, 0u));   /* the integer, exact where tiny */
  uint th = SEL(tiny, t.h, h); uint tl = SEL(tiny, t.l, l);
  st_split_d r; r.m = U2D((th & 0x000fffffu) | 0x3ff00000u, tl);
  r.e = (int)(th >> 20) - SEL(tiny, 2097, 1023);
  return r;
}

/* v * 2^n rounded to nearest even, v positive and normal, any n. */
FN double st_pack_d(double v, int n) {
  st_u64 u = D2U(v); int e = (int)(u.h >> 20);
  int c = SEL(n < -60 - e, -60 - e, SEL(n > 2047 - e, 2047 - e, n));
  uint h = u.h + ((uint)c << 20);
  st_u64 s = D2U(U2D(h + 0x43200000u, u.l) + U2D(0x43300000u, 0u));
  bool small = (int)h < 0x00100000; bool over = e + c > 2046;
  return U2D(SEL(small, s.h - 0x43300000u, SEL(over, 0x7ff00000u, h)), SEL(small, s.l, SEL(over, 0u, u.l)));
}
#endif
