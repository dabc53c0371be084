/* Attention: forward, its gradients, and forward over a paged cache. */
#include "common.h"

/* Keys in a block and blocks in a piece are part of the meaning of the bits (ops.md section 9); the query rows that
 * share a packed block are not. */
#define KEYS 64
#define PIECE_BLOCKS 16
#define QUERY_ROWS 64

/* Keys [low, high) that the query at position `at` keeps; every mask here is an interval. Windows below 0 are off. */
static inline void fv_kept_keys(int64_t at, int64_t k_len, int causal, int64_t window_left, int64_t window_right,
                                int64_t *low, int64_t *high)
{
    *low = window_left >= 0 ? fv_max(at - window_left, 0) : 0;
    *high = causal ? fv_min(k_len, at + 1) : k_len;
    if (window_right >= 0) *high = fv_min(*high, at + window_right + 1);
    if (*high < *low) *high = *low;
}

#define BODY "attention.inc"
#include "for_floats.inc"
#undef BODY
#define BODY "attention_backward.inc"
#include "for_floats.inc"
#undef BODY
#define BODY "attention_paged.inc"
#include "for_floats.inc"
#undef BODY
