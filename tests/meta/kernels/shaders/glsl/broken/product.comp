#version 450
#extension GL_GOOGLE_include_directive : require
// A matrix product, an invocation an output: blocks of 64 k, blocks in order, as the canonical algorithm has it.
layout(local_size_x = 64) in;
#define BUFFERS 3
#define PARAMETERS uint m; uint k; uint n; uint groups_x;
#include "buffers.h"

float kept(float v)
{
#ifdef KIND_HALF  // the sum is kept in F16
    return unpackHalf2x16(packHalf2x16(vec2(v, 0.0))).x;
#else
    return v;
#endif
}

void main()
{
    uint i = (gl_WorkGroupID.x + gl_WorkGroupID.y * pc.groups_x) * 64 + gl_LocalInvocationID.x;
    if (i >= pc.m * pc.n) return;
    uint row = i / pc.n, column = i % pc.n;
    precise float total = 0.0;
    for (uint block = 0; block < pc.k; block += 64) {
        precise float sum = 0.0;
        for (uint k = block; k < min(block + 64, pc.k); k++) {
            precise float product = X(row * pc.k + k) * Z(k * pc.n + column);
            sum = kept(sum + product);
        }
        total = kept(total + sum);
    }
    Y(i) = total;
}
