/* Sums into places that indices name: scatter_add with an index for each element, index_add with one for each slice. */
#include "common.h"

#define BODY "accumulate.inc"
#include "for_floats.inc"
#undef BODY
