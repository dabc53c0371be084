/* Pooling, resizing and batch norm over the last two axes of images. */
#include "common.h"

#define BODY "networks.inc"
#include "for_floats.inc"
#undef BODY
