/* RoPE. */
#include "common.h"

#define BODY "rope.inc"
#include "for_floats.inc"
#undef BODY
