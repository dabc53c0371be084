/* x in quarter turns, for arguments too large for a float reduction: Payne and Hanek on 32-bit words. */
#ifndef ST_SINCOS_TURNS_H
#define ST_SINCOS_TURNS_H
#include "base.h"
#include "cheap_constants.h"

#define ST_TURNS_PICK(a, b, c, d, e) SEL(w < 2u, SEL(w == 0u, a, b), SEL(w == 2u, c, SEL(w == 3u, d, e)))

/* |x| 2/pi modulo 4 in Q2.62, at most 4 units low; ax the bits of |x|, 64 <= |x| finite. The mantissa times the 96
 * bits of 2/pi that begin where the product weighs 2; what lies above them counts whole turns. */
FN st_u64 st_turns(uint ax) {
  uint mant = (ax & 0x007fffffu) | 0x00800000u;
  uint at = (ax >> 23) - 120u; uint w = at >> 5; uint s = at & 31u; uint back = 31u - s;
  uint w0 = ST_TURNS_PICK(ST_TURNS0, ST_TURNS1, ST_TURNS2, ST_TURNS3, ST_TURNS4);
  uint w1 = ST_TURNS_PICK(ST_TURNS1, ST_TURNS2, ST_TURNS3, ST_TURNS4, ST_TURNS5);
  uint w2 = ST_TURNS_PICK(ST_TURNS2, ST_TURNS3, ST_TURNS4, ST_TURNS5, ST_TURNS6);
  uint w3 = ST_TURNS_PICK(ST_TURNS3, ST_TURNS4, ST_TURNS5, ST_TURNS6, ST_TURNS7);
  uint t0 = (w0 << s) | ((w1 >> 1) >> back);
  uint t1 = (w1 << s) | ((w2 >> 1) >> back);
  uint t2 = (w2 << s) | ((w3 >> 1) >> back);
  st_u64 a; a.l = mant * t1; a.h = mant * t0 + st_mulhi32(mant, t1);
  uint c = st_mulhi32(mant, t2);
  a.l = a.l + c; a.h = a.h + SEL(a.l < c, 1u, 0u);
  return a;
}

/* A signed Q0.64 fraction (two's complement, |f| <= 1/2) as a sum of two floats, the lower one within half a unit of
 * the upper; relative error about 2^-47, and below 2^-64 absolute. Every conversion is exact. */
FN st_ff st_fraction_ff(st_u64 f) {
  float a = (float)(int)(f.h & 0xffffff00u) * U2F(0x2f800000u);                        /* 2^-32 */
  float b = (float)(int)(((f.h & 0xffu) << 16) | (f.l >> 16)) * U2F(0x27800000u);      /* 2^-48 */
  float c = (float)(int)(f.l & 0xffffu) * U2F(0x1f800000u);                            /* 2^-64 */
  float s = a + b; float g = ((a - s) + b) + c;
  st_ff y; y.h = s + g; y.l = (s - y.h) + g; return y;
}
#endif
