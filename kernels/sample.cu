/* Training points on the GPU; see sample.h. One thread a point: neighbours write neighbouring elements of every column. */
#include "kernels/sample.h"

#include "graph/overlap.h"

/* No pointer is __restrict__: `step` is written while this kernel already waits, and what is const and restricted may be read by loads
 * that see memory as it was when the kernel began. */
static __global__ void sample_kernel(pn_sample_arguments a, const uint64_t *seed, const uint64_t *step, const pn_sample_face *faces,
                                     const double *box, void *points) {
    uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    pn_await_last();
    if (i < a.points) pn_sample_point(&a, i, *seed, *step, faces, box, points);
}

extern "C" pinn_status pn_sample_cuda(const pinn_run *run) {
    const pn_sample_arguments *a = (const pn_sample_arguments *)run->arguments;
    const unsigned threads = 128, blocks = (unsigned)((a->points + threads - 1) / threads);
    pn_sample_arguments arguments = *a;
    void *argument[] = {&arguments, (void *)&run->read[0], (void *)&run->read[1], (void *)&run->read[2], (void *)&run->read[3], (void *)&run->write[0]};
    return pn_launch_overlapping((const void *)sample_kernel, blocks, threads, 0, run->stream, argument);
}
