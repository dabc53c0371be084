/* Softmax and the two norms over the last axis. */
#include "common.h"

#define BODY "rows.inc"
#include "for_floats.inc"
#undef BODY
