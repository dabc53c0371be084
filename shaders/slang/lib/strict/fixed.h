/* 64-bit fixed point on 32-bit words: what the undecided results of the correctly rounded functions need. */
#ifndef ST_FIXED_H
#define ST_FIXED_H
#include "base.h"
#include "exp_cr.h"

/* h, l and an exponent (the number is h:l * 2^(e - 63)), or a fraction h:l beside a whole part e. */
#ifdef ST_LANGUAGE_C
typedef struct { uint h; uint l; int e; } st_wide;
#else
struct st_wide { uint h; uint l; int e; };
#endif
FN st_wide st_mkwide(st_u64 m, int e) { st_wide r; r.h = m.h; r.l = m.l; r.e = e; return r; }

/* A result of a fast path: h the bits, l nonzero where only the fixed-point path can decide. */
FN st_u64 st_decided(uint bits, bool undecided) { return st_mk64(bits, SEL(undecided, 1u, 0u)); }

/* Leading zeros; 31 for 0. */
FN uint st_nlz32(uint v) {
  uint n = 0u;
  if (v < 0x10000u) { n = n + 16u; v = v << 16; }
  if (v < 0x1000000u) { n = n + 8u; v = v << 8; }
  if (v < 0x10000000u) { n = n + 4u; v = v << 4; }
  if (v < 0x40000000u) { n = n + 2u; v = v << 2; }
  if (v < 0x80000000u) n = n + 1u;
  return n;
}
/* Shifts by 0 .. 63. */
FN st_u64 st_shl64(st_u64 a, uint n) {
  st_u64 r = a;
  if (n >= 32u) { r.h = r.l; r.l = 0u; n = n - 32u; }
  if (n > 0u) { r.h = (r.h << n) | (r.l >> (32u - n)); r.l = r.l << n; }
  return r;
}
FN st_u64 st_shr64(st_u64 a, uint n) {
  st_u64 r = a;
  if (n >= 32u) { r.l = r.h; r.h = 0u; n = n - 32u; }
  if (n > 0u) { r.l = (r.l >> n) | (r.h << (32u - n)); r.h = r.h >> n; }
  return r;
}
FN bool st_less64(st_u64 a, st_u64 b) { return a.h < b.h || (a.h == b.h && a.l < b.l); }
/* Leading zeros of a nonzero number. */
FN uint st_nlz64(st_u64 a) { return SEL(a.h == 0u, 32u + st_nlz32(a.l), st_nlz32(a.h)); }
/* m * 2^(e - 63), m nonzero, rounded to f32. */
FN uint st_round_any(st_u64 m, int e) {
  uint z = st_nlz64(m);
  return st_round_fixed(st_shl64(m, z), e - (int)z);
}
/* Top 64 bits of a 64x64-bit product, exactly. */
FN st_u64 st_mulhi64_floor(st_u64 a, st_u64 b) {
  st_u64 r = st_mulhi64(a, b);
  uint p = a.h * b.l; uint s = p + a.l * b.h; uint c = st_mulhi32(a.l, b.l); uint t = s + c;
  return st_add64(r, st_mk64(0u, SEL(s < p, 1u, 0u) + SEL(t < c, 1u, 0u)));
}
/* c - p r and c + p r. */
FN st_u64 st_alternate(st_u64 p, st_u64 r, uint h, uint l) {
  return st_add64(st_mk64(h, l), st_neg64(st_mulhi64(p, r)));
}
FN st_u64 st_signed_step(st_u64 p, st_u64 r, bool minus, uint h, uint l) {
  st_u64 t = st_mulhi64(p, r);
  if (minus) t = st_neg64(t);
  return st_add64(t, st_mk64(h, l));
}
#endif
