/* Placing bytes: rolled axes, borders, slices written into an array. Units are rows of `axis` items of inner bytes. */
#include "common.h"

/* y[o, (i + shift) mod axis, :] = x[o, i, :], 0 <= shift < axis. */
static int roll(const void *x, void *y, int64_t outer, int64_t axis, int64_t inner_bytes, int64_t shift, int64_t begin,
                int64_t end)
{
    const int64_t row = axis * inner_bytes, head = shift * inner_bytes;
    (void)outer;
    if (shift < 0 || shift >= axis) return FV_OUT_OF_RANGE;
    for (int64_t o = begin; o < end; o++) {
        const char *from = (const char *)x + o * row;
        char *to = (char *)y + o * row;
        memcpy(to + head, from, (size_t)(row - head));
        memcpy(to, from + (row - head), (size_t)head);
    }
    return 0;
}

/* y[o] of before + axis + after items: x[o] between borders. mode 0: the item_bytes of value again and again; 1: x mirrored
 * at its ends; 2: its first and last item. */
static int pad(const void *x, void *y, const void *value, int64_t outer, int64_t axis, int64_t inner_bytes,
               int64_t before, int64_t after, int32_t mode, int64_t item_bytes, int64_t begin, int64_t end)
{
    (void)outer;
    if (before < 0 || after < 0 || (mode == 1 && (before >= axis || after >= axis)) || (mode == 2 && axis < 1))
        return FV_OUT_OF_RANGE;
    for (int64_t o = begin; o < end; o++) {
        const char *from = (const char *)x + o * axis * inner_bytes;
        char *to = (char *)y + o * (before + axis + after) * inner_bytes;
        for (int64_t i = -before; i < axis + after; i++, to += inner_bytes) {
            int64_t k = i;
            if (i < 0 || i >= axis) {
                if (mode == 0) {
                    for (int64_t b = 0; b < inner_bytes; b += item_bytes) memcpy(to + b, value, (size_t)item_bytes);
                    continue;
                }
                if (mode == 1) k = i < 0 ? -i : 2 * (axis - 1) - i;
                else k = i < 0 ? 0 : axis - 1;
            }
            memcpy(to, from + k * inner_bytes, (size_t)inner_bytes);
        }
    }
    return 0;
}

/* y = x but for y[o, (start + i) mod axis, :] = update[o, i, :], 0 <= i < count <= axis. */
static int write_slice(const void *x, const void *update, void *y, int64_t outer, int64_t axis, int64_t inner_bytes,
                       int64_t count, int64_t start, int64_t begin, int64_t end)
{
    const int64_t row = axis * inner_bytes;
    (void)outer;
    if (start < 0 || count < 0 || count > axis) return FV_OUT_OF_RANGE;
    for (int64_t o = begin; o < end; o++) {
        char *to = (char *)y + o * row;
        memcpy(to, (const char *)x + o * row, (size_t)row);
        for (int64_t i = 0; i < count; i++)
            memcpy(to + (start % axis + i) % axis * inner_bytes,
                   (const char *)update + (o * count + i) * inner_bytes, (size_t)inner_bytes);
    }
    return 0;
}
