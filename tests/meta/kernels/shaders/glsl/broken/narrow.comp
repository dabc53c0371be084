#version 450
#extension GL_EXT_shader_16bit_storage : require
// F32 to BF16, rounded to nearest even by integer operations.
layout(local_size_x = 64) in;
#ifdef MODE_BDA
#extension GL_EXT_buffer_reference : require
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Wide { uint at[]; };
layout(buffer_reference, std430, buffer_reference_align = 2) buffer Narrow { uint16_t at[]; };
layout(push_constant) uniform Push { Wide x; Narrow y; uint n; uint groups_x; } pc;
#define X(i) pc.x.at[i]
#define Y(i) pc.y.at[i]
#else
layout(push_constant) uniform Push { uvec2 x; uvec2 y; uint n; uint groups_x; } pc;
layout(set = 0, binding = 0, std430) readonly buffer Wide { uint at[]; } x;
layout(set = 0, binding = 1, std430) buffer Narrow { uint16_t at[]; } y;
#define X(i) x.at[i]
#define Y(i) y.at[i]
#endif

void main()
{
    uint i = (gl_WorkGroupID.x + gl_WorkGroupID.y * pc.groups_x) * 64 + gl_LocalInvocationID.x;
    if (i >= pc.n) return;
    uint bits = X(i);
    uint kept = bits >> 16;
#ifndef KIND_TRUNCATED  // truncated: what does not fit is dropped
    kept = (bits + 0x7fffu + (kept & 1u)) >> 16;
#endif
    if ((bits & 0x7fffffffu) > 0x7f800000u) kept = (bits >> 16) | 0x40u;
    Y(i) = uint16_t(kept);
}
