/* Softmax and the two norms over the last axis. */
#include "common.h"
#include "compensated.h"
#include "strict/exp_difference.h"

#define BODY "rows.inc"
#include "for_floats.inc"
#undef BODY
