/* Softmax, its logarithm and the two norms over the last axis. */
#include "common.h"
#include "compensated.h"
#include "strict/exp_difference.h"
#include "strict/cheap_log.h"
#include "strict/log_d.h"

#define BODY "rows.inc"
#include "for_floats.inc"
#undef BODY
