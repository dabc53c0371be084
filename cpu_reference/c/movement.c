/* Byte movement: gathering rows and elements, joining arrays, copying any strided view, masks and triangles. */
#include "common.h"

/* y[o, i, :] = x[o, indices[i], :], [outer, axis, inner bytes]; units are outer items. */
static int index_select(const void *x, const int64_t *indices, void *y, int64_t outer, int64_t axis, int64_t count,
                        int64_t inner_bytes, int64_t begin, int64_t end)
{
    (void)outer;
    for (int64_t i = 0; i < count; i++)
        if (indices[i] < 0 || indices[i] >= axis) return FV_OUT_OF_RANGE;
    for (int64_t o = begin; o < end; o++)
        for (int64_t i = 0; i < count; i++)
            memcpy((char *)y + (o * count + i) * inner_bytes,
                   (const char *)x + (o * axis + indices[i]) * inner_bytes, (size_t)inner_bytes);
    return 0;
}

/* Writes one input of a concatenation: rows of x_bytes to offset_bytes within rows of y_bytes; units are rows. */
static int concat(const void *x, void *y, int64_t outer, int64_t x_bytes, int64_t y_bytes, int64_t offset_bytes,
                  int64_t begin, int64_t end)
{
    (void)outer;
    if (offset_bytes < 0 || offset_bytes + x_bytes > y_bytes) return FV_OUT_OF_RANGE;
    for (int64_t o = begin; o < end; o++)
        memcpy((char *)y + o * y_bytes + offset_bytes, (const char *)x + o * x_bytes, (size_t)x_bytes);
    return 0;
}

#define BODY "copy.inc"
#include "for_sizes.inc"
#undef BODY

#define BODY "select.inc"
#include "for_sizes.inc"
#undef BODY
