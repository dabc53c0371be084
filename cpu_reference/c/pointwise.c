/* Arithmetic, comparisons and selection on equally shaped, contiguous arrays. */
#include "common.h"

#define BODY "pointwise_float.inc"
#include "for_floats.inc"
#undef BODY

#define BODY "pointwise_integer.inc"
#include "for_integers.inc"
#undef BODY

#define BODY "where.inc"
#include "for_sizes.inc"
#undef BODY
