/* The frames' step on the GPU: a thread a pixel. */
#include "frames.h"

static __global__ void step_kernel(frames_sizes s, const float *__restrict__ u, float *__restrict__ next) {
    const uint64_t j = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
    if (j < s.width) next[i * s.width + j] = frames_next(&s, u, i, j);
}

extern "C" pinn_status frames_step_cuda(const pinn_run *run) {
    const frames_sizes *s = (const frames_sizes *)run->arguments;
    const dim3 blocks(tutorial_blocks(s->width, 256), (unsigned)s->height);
    step_kernel<<<blocks, 256, 0, tutorial_stream(run)>>>(*s, (const float *)run->read[0], (float *)run->write[0]);
    return tutorial_launched();
}
