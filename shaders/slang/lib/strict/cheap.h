/* The cheap f32 functions beside those of strict.h: at most 1 ULP for every input, on + - * and 32-bit integers. An
 * umbrella of its own, so that a kernel that needs none of them does not depend on their sources. */
#ifndef ST_CHEAP_H
#define ST_CHEAP_H
#include "strict.h"
#include "cheap_exp.h"
#include "cheap_log.h"
#include "cheap_sigmoid.h"
#include "cheap_sincos.h"
#endif
