// Up to three buffers of 32-bit floats, by device address or by descriptors. X(i) and Z(i) are read, Y(i) is written.
// A shader defines BUFFERS (2: X, Y; 3: X, Z, Y) and PARAMETERS, the members of the push constants after the buffers.
#ifdef MODE_BDA
#extension GL_EXT_buffer_reference : require
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Floats { float at[]; };
#define ADDRESS Floats
#else
#define ADDRESS uvec2
layout(set = 0, binding = 0, std430) readonly buffer First { float at[]; } b0;
layout(set = 0, binding = 1, std430) buffer Second { float at[]; } b1;
#if BUFFERS == 3
layout(set = 0, binding = 2, std430) buffer Third { float at[]; } b2;
#endif
#endif

#if BUFFERS == 3
layout(push_constant) uniform Push { ADDRESS x; ADDRESS z; ADDRESS y; PARAMETERS } pc;
#else
layout(push_constant) uniform Push { ADDRESS x; ADDRESS y; PARAMETERS } pc;
#endif

#ifdef MODE_BDA
#define X(i) pc.x.at[i]
#define Z(i) pc.z.at[i]
#define Y(i) pc.y.at[i]
#else
#define X(i) b0.at[i]
#define Z(i) b1.at[i]
#if BUFFERS == 3
#define Y(i) b2.at[i]
#else
#define Y(i) b1.at[i]
#endif
#endif
