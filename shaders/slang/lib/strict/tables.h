/* The constant table of log, log2, log1p, sin and cos. A shader that reads it from a buffer defines ST_TABLE(i), the
 * word at index i, before the include; otherwise it is an array, which C wants and which some drivers copy into scratch
 * memory at every use (about three times the time). The words are ST_TABLE_WORDS. */
#ifndef ST_TABLES_H
#define ST_TABLES_H
#include "base.h"
#include "tables_constants.h"
#ifndef ST_TABLE
static const uint st_table_words[ST_TABLE_COUNT] = {ST_TABLE_WORDS};
#define ST_TABLE(i) st_table_words[i]
#endif
#endif
