/* Matrix products. */
#include "common.h"

/* Rows and columns of the output that share one packed panel of 64 x COLUMNS of b. */
#define TILE_ROWS 64
#define TILE_COLUMNS 128
#define TILE_K 64

#define BODY "product.inc"
#include "for_floats.inc"
#undef BODY
