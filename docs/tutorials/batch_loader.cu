/* The histogram on the GPU: each block counts in shared memory, then adds its counts. */
#include "batch_loader.h"

static __global__ void count_kernel(batch_sizes s, const float *__restrict__ x, uint32_t *count) {
    __shared__ uint32_t mine[BATCH_BINS];
    if (threadIdx.x < BATCH_BINS) mine[threadIdx.x] = 0;
    __syncthreads();
    const uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < s.particles; i += stride)
        atomicAdd(&mine[batch_bin(x[i])], 1u);
    __syncthreads();
    if (threadIdx.x < BATCH_BINS && mine[threadIdx.x]) atomicAdd(&count[threadIdx.x], mine[threadIdx.x]);
}

extern "C" pinn_status batch_count_cuda(const pinn_run *run) {
    const batch_sizes *s = (const batch_sizes *)run->arguments;
    const unsigned enough = tutorial_blocks(s->particles, 256), blocks = enough < 256 ? enough : 256;
    count_kernel<<<blocks, 256, 0, tutorial_stream(run)>>>(*s, (const float *)run->read[0], (uint32_t *)run->write[0]);
    return tutorial_launched();
}
