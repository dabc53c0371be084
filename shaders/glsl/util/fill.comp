// Writes one 32-bit word over a whole buffer.
#version 450
#extension GL_EXT_control_flow_attributes : enable

layout(local_size_x = 64) in;

#ifdef MODE_BDA
#extension GL_EXT_buffer_reference : require
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Words { uint word[]; };
layout(push_constant) uniform Push { Words y; uint n; uint groups_x; uint value; } pc;
#define STORE(i, v) pc.y.word[i] = v
#else
layout(push_constant) uniform Push { uvec2 y; uint n; uint groups_x; uint value; } pc;
layout(set = 0, binding = 0, std430) buffer Words { uint word[]; } y;
#define STORE(i, v) y.word[i] = v
#endif

const uint WORDS_PER_INVOCATION = 8; // a workgroup costs more than the stores of one word per invocation

void main()
{
    uint group = gl_WorkGroupID.x + gl_WorkGroupID.y * pc.groups_x;
    uint first = group * (64 * WORDS_PER_INVOCATION) + gl_LocalInvocationID.x;
    [[unroll]] for (uint k = 0; k < WORDS_PER_INVOCATION; ++k) {
        uint i = first + k * 64;
        if (i < pc.n) STORE(i, pc.value);
    }
}
