/* The f64 functions beside exp, tanh and erf: an umbrella of its own, so that a kernel that needs none of them does not
 * depend on their sources. Define ST_F64 before the include. */
#ifndef ST_EXTRA_D_H
#define ST_EXTRA_D_H
#include "strict.h"
#include "exp_more_d.h"
#include "log_d.h"
#include "sincos_d.h"
#include "sigmoid_d.h"
#endif
