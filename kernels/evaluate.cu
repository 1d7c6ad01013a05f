/* Relative L2 errors on the GPU; see evaluate.h. One block of 1024 threads a field, then one thread for the stop rule: it runs
 * once an evaluation, not once a step. */
#include "kernels/evaluate.h"

/* Every thread of the block takes part; the sum is returned to the first warp. `group` is free again after the next barrier. */
static __device__ double block_sum(double sum, double *group) {
    const unsigned warp = threadIdx.x / PN_SUM_LANES, lane = threadIdx.x % PN_SUM_LANES;
    sum = pn_sum_fold(sum);
    if (lane == 0) group[warp] = sum;
    __syncthreads();
    return warp == 0 ? pn_sum_fold(group[lane]) : 0;
}

template <typename real>
static __global__ void __launch_bounds__(PN_SUM_WIDE, 1)
    evaluate_kernel(pn_evaluate_arguments a, const real *__restrict__ fields, const double *__restrict__ references,
                    const pn_hyper *__restrict__ hyper, const pn_words *__restrict__ words, double *ring) {
    __shared__ double group[2][PN_SUM_LANES];
    const uint64_t f = blockIdx.x;
    double *const errors = pn_evaluate_errors(&a, hyper, words, ring);
    if (!errors) return; /* for all threads alike: no block writes what this looks at */
    const real *field = fields + f * a.points;
    const double *reference = references + f * a.points;
    double error = 0, size = 0;
#pragma unroll 4
    for (uint64_t i = threadIdx.x; i < a.points; i += PN_SUM_WIDE) {
        const double difference = (double)field[i] - reference[i];
        error += difference * difference;
        size += reference[i] * reference[i];
    }
    error = block_sum(error, group[0]);
    size = block_sum(size, group[1]);
    if (threadIdx.x == 0) errors[f] = sqrt(error) / sqrt(size);
}

static __global__ void rule_kernel(pn_evaluate_arguments a, const pn_hyper *__restrict__ hyper, pn_words *words, double *ring) {
    const double *errors = pn_evaluate_errors(&a, hyper, words, ring);
    if (errors) pn_evaluate_rule(&a, hyper, errors, words);
}

extern "C" pinn_status pn_evaluate_cuda(const pinn_run *run) {
    const pn_evaluate_arguments *a = (const pn_evaluate_arguments *)run->arguments;
    const double *reference = (const double *)run->read[1];
    const pn_hyper *hyper = (const pn_hyper *)run->read[2];
    double *ring = (double *)run->write[0];
    pn_words *words = (pn_words *)run->write[1];
    cudaStream_t stream = (cudaStream_t)run->stream;
    const unsigned blocks = (unsigned)a->fields;
    if (a->real == PN_FLOAT32)
        evaluate_kernel<float><<<blocks, PN_SUM_WIDE, 0, stream>>>(*a, (const float *)run->read[0], reference, hyper, words, ring);
    else
        evaluate_kernel<double><<<blocks, PN_SUM_WIDE, 0, stream>>>(*a, (const double *)run->read[0], reference, hyper, words, ring);
    pinn_status status = pn_launch_check("evaluate");
    if (status != PINN_OK) return status;
    rule_kernel<<<1, 1, 0, stream>>>(*a, hyper, words, ring);
    return pn_launch_check("evaluate's stop rule");
}
