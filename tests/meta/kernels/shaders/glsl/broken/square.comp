#version 450
#extension GL_GOOGLE_include_directive : require
// y = x * x, element by element; and the same with an index, a tail and an end that are wrong.
layout(local_size_x = 64) in;
#define BUFFERS 2
#define PARAMETERS uint n; uint groups_x;
#include "buffers.h"

void main()
{
    uint i = (gl_WorkGroupID.x + gl_WorkGroupID.y * pc.groups_x) * 64 + gl_LocalInvocationID.x;
    uint from = i, count = pc.n;
#ifdef KIND_INDEX  // the last element is read from the first
    if (i + 1 == pc.n) from = 0;
#endif
#ifdef KIND_TAIL  // what is left after whole groups is never written
    count = pc.n / 64 * 64;
#endif
#ifdef KIND_END  // one element past the end is written
    if (i == pc.n) Y(i) = 0.0;
#endif
    if (i < count) {
        precise float v = X(from) * X(from);
        Y(i) = v;
    }
}
