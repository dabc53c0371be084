/* The strict library: functions that give the same bits in C and in Slang on every device, on + - * and 32-bit
 * integers only. Define ST_F64 before the include for the f64 half. */
#ifndef ST_STRICT_H
#define ST_STRICT_H
#include "base.h"
#include "convert.h"
#include "divide.h"
#include "root.h"
#include "exp.h"
#include "exp_cr.h"
#include "tanh.h"
#include "erf.h"
#ifdef ST_F64
#include "base_d.h"
#include "divide_d.h"
#include "root_d.h"
#include "exp_d.h"
#include "tanh_d.h"
#include "erf_d.h"
#endif
#endif
