#version 450
#extension GL_GOOGLE_include_directive : require
// Every element becomes the total of its row: a workgroup a row, 64 partial sums, then a tree in shared memory.
layout(local_size_x = 64) in;
#define BUFFERS 2
#define PARAMETERS uint rows; uint columns; uint groups_x;
#include "buffers.h"

shared float partials[64];

void main()
{
    uint row = gl_WorkGroupID.x + gl_WorkGroupID.y * pc.groups_x, lane = gl_LocalInvocationID.x;
    if (row >= pc.rows) return;
    uint first = 0;
#ifdef KIND_NEIGHBOURS  // the order of the sum depends on where the row stands
    first = row * 7;
#endif
    precise float sum = 0.0;
    for (uint i = lane; i < pc.columns; i += 64) sum = sum + X(row * pc.columns + (i + first) % pc.columns);
    partials[lane] = sum;
    for (uint half_ = 32; half_ > 0; half_ /= 2) {
#ifndef KIND_BARRIER  // without it, partials are added before they are there
        barrier();
#endif
        if (lane < half_) {
            precise float both = partials[lane] + partials[lane + half_];
            partials[lane] = both;
        }
    }
#ifndef KIND_BARRIER
    barrier();
#endif
    for (uint i = lane; i < pc.columns; i += 64) {
        float total = partials[0];
#ifdef KIND_LEFTOVER  // added to what an earlier owner left in the memory of the output
        total = Y(row * pc.columns + i) + total;
#endif
        Y(row * pc.columns + i) = total;
    }
}
