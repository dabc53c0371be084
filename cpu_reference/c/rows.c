/* Softmax and the two norms over the last axis. */
#include "common.h"
#include "strict/exp_difference.h"

#define ACC float
#define ACC_KEY f32
#include "compensated.inc"
#undef ACC
#undef ACC_KEY
#define ACC double
#define ACC_KEY f64
#include "compensated.inc"
#undef ACC
#undef ACC_KEY

#define BODY "rows.inc"
#include "for_floats.inc"
#undef BODY
