/* The compensated sums of both accumulator types. */
#ifndef FUELVK_CPU_COMPENSATED_H
#define FUELVK_CPU_COMPENSATED_H

#include "common.h"

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

#endif
