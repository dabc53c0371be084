/* The sums of strict/sums.h over whole arrays, for tests/unit/test_strict_sums.py. */
#define ST_F64
#include "strict/sums.h"

float sum_plain(const float *x, const float *y, long n) {
  float s = 0.0f; (void)y;
  for (long i = 0; i < n; i++) s = s + x[i];
  return s;
}
float sum_compensated(const float *x, const float *y, long n) {
  st_ff s = st_sum_start(0.0f); (void)y;
  for (long i = 0; i < n; i++) s = st_sum_add(s, x[i]);
  return st_sum_value(s);
}
/* Normalised after every 64 terms. */
float sum_normal(const float *x, const float *y, long n) {
  st_ff s = st_sum_start(0.0f); (void)y;
  for (long i = 0; i < n; i++) { s = st_sum_add(s, x[i]); if ((i & 63) == 63) s = st_sum_normal(s); }
  return st_sum_value(s);
}
double sum_normal_d(const double *x, const double *y, long n) {
  st_dd s = st_sum_start_d(0.0); (void)y;
  for (long i = 0; i < n; i++) { s = st_sum_add_d(s, x[i]); if ((i & 63) == 63) s = st_sum_normal_d(s); }
  return st_sum_value_d(s);
}
/* Sixteen lanes, merged by halves. */
float sum_lanes(const float *x, const float *y, long n) {
  st_ff s[16]; (void)y;
  for (int j = 0; j < 16; j++) s[j] = st_sum_start(0.0f);
  for (long i = 0; i < n; i++) s[i & 15] = st_sum_add(s[i & 15], x[i]);
  for (int step = 8; step > 0; step /= 2)
    for (int j = 0; j < step; j++) s[j] = st_sum_merge(s[j], s[j + step]);
  return st_sum_value(s[0]);
}
float sum_cascade(const float *x, const float *y, long n) {
  st_cascade s = ST_CASCADE_ZERO; (void)y;
  for (long i = 0; i < n; i++) s = st_cascade_add(s, x[i], (uint)i);
  return st_cascade_value(s);
}
/* A tree of eights; a ragged end is filled with zeros. */
static float leaf(const float *x, long n, long i) { return i < n ? x[i] : 0.0f; }
static float tree(const float *x, long n, long first, long size) {
  if (size == 8)
    return st_pair8(leaf(x, n, first), leaf(x, n, first + 1), leaf(x, n, first + 2), leaf(x, n, first + 3),
                    leaf(x, n, first + 4), leaf(x, n, first + 5), leaf(x, n, first + 6), leaf(x, n, first + 7));
  return tree(x, n, first, size / 2) + tree(x, n, first + size / 2, size / 2);
}
float sum_tree(const float *x, const float *y, long n) {
  long size = 8; (void)y;
  while (size < n) size *= 2;
  return tree(x, n, 0, size);
}
float sum_dot(const float *x, const float *y, long n) {
  st_ff s = st_sum_start(0.0f);
  for (long i = 0; i < n; i++) s = st_dot_add(s, x[i], y[i]);
  return st_sum_value(s);
}
double sum_compensated_d(const double *x, const double *y, long n) {
  st_dd s = st_sum_start_d(0.0); (void)y;
  for (long i = 0; i < n; i++) s = st_sum_add_d(s, x[i]);
  return st_sum_value_d(s);
}
double sum_lanes_d(const double *x, const double *y, long n) {
  st_dd a = st_sum_start_d(0.0), b = a; (void)y;
  for (long i = 0; i < n; i++) { if (i & 1) a = st_sum_add_d(a, x[i]); else b = st_sum_add_d(b, x[i]); }
  return st_sum_value_d(st_sum_merge_d(a, b));
}
double sum_dot_d(const double *x, const double *y, long n) {
  st_dd s = st_sum_start_d(0.0);
  for (long i = 0; i < n; i++) s = st_dot_add_d(s, x[i], y[i]);
  return st_sum_value_d(s);
}
