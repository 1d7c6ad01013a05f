/* The heat stepper's operations on the GPU: a thread a point, and one block for the sum. */
#include "heat_stepper.h"

static __global__ void step_kernel(heat_sizes s, const double *__restrict__ u, double *__restrict__ next) {
    const uint64_t j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
    if (j < s.side) next[i * s.side + j] = heat_next(&s, u, i, j);
}

static __global__ void energy_kernel(heat_sizes s, const double *__restrict__ u, double *energy) {
    const double sum = tutorial_dot(u, u, s.side * s.side);
    if (threadIdx.x == 0) *energy = sum;
}

extern "C" pinn_status heat_step_cuda(const pinn_run *run) {
    const heat_sizes *s = (const heat_sizes *)run->arguments;
    const dim3 blocks(tutorial_blocks(s->side, 64), (unsigned)s->side);
    step_kernel<<<blocks, 64, 0, tutorial_stream(run)>>>(*s, (const double *)run->read[0], (double *)run->write[0]);
    return tutorial_launched();
}

extern "C" pinn_status heat_energy_cuda(const pinn_run *run) {
    const heat_sizes *s = (const heat_sizes *)run->arguments;
    energy_kernel<<<1, TUTORIAL_LANES, 0, tutorial_stream(run)>>>(*s, (const double *)run->read[0], (double *)run->write[0]);
    return tutorial_launched();
}
