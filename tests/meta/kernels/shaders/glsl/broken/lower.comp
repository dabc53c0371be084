#version 450
#extension GL_GOOGLE_include_directive : require
// The lower triangle of matrices, the mask of causal attention: column j of row i is kept where j - i <= k.
layout(local_size_x = 64) in;
#define BUFFERS 2
#define PARAMETERS uint n; uint rows; uint columns; int k; uint groups_x;
#include "buffers.h"

void main()
{
    uint i = (gl_WorkGroupID.x + gl_WorkGroupID.y * pc.groups_x) * 64 + gl_LocalInvocationID.x;
    if (i >= pc.n) return;
    int row = int(i / pc.columns % pc.rows), column = int(i % pc.columns);
#ifdef KIND_MASK  // a row does not see its own key
    bool kept = column - row < pc.k;
#else
    bool kept = column - row <= pc.k;
#endif
    Y(i) = kept ? X(i) : 0.0;
}
