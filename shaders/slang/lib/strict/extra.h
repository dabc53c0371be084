/* The correctly rounded f32 functions beside exp: bits in, bits out. An umbrella of its own, so that a kernel that
 * needs none of them does not depend on their sources. */
#ifndef ST_EXTRA_H
#define ST_EXTRA_H
#include "strict.h"
#include "log_cr.h"
#include "sincos_cr.h"
#include "exp_more.h"
#include "log_more.h"
#include "sigmoid.h"
#include "exp_try.h"
#include "rsqrt_cr.h"
#include "tanh_cr.h"
#include "gelu_cr.h"
#include "erf_cr.h"
#endif
