/* Functions under the names by which the kernels of ops call them. Macros only: their headers come with the caller. */
#ifndef ST_NAMES_H
#define ST_NAMES_H
#define st_recip_d(x) st_rcp_d(x)
#endif
