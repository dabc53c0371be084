/* Sums, means and extremes of rows: the caller has made the reduced axes the last ones. */
#include "common.h"

#define BODY "reduce_float.inc"
#include "for_floats.inc"
#undef BODY

#define BODY "reduce_integer.inc"
#define DTYPE_I64 1
#include "dtype.inc"
#include BODY
#define DTYPE_END 1
#include "dtype.inc"
#define DTYPE_I32 1
#include "dtype.inc"
#include BODY
#define DTYPE_END 1
#include "dtype.inc"
#undef BODY
