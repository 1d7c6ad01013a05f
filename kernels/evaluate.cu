/* Relative L2 errors on the GPU; see evaluate.h. One block of 1024 threads a field: it runs once an event, not once a step. */
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
                    const pn_words *__restrict__ words, double *__restrict__ ring) {
    __shared__ double group[2][PN_SUM_LANES];
    const uint64_t rows = words->rows, f = blockIdx.x;
    if (rows == 0) return;
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
    if (threadIdx.x == 0) ring[pn_evaluate_element(&a, rows, f)] = sqrt(error) / sqrt(size);
}

extern "C" pinn_status pn_evaluate_cuda(const pinn_run *run) {
    const pn_evaluate_arguments *a = (const pn_evaluate_arguments *)run->arguments;
    const double *reference = (const double *)run->read[1];
    const pn_words *words = (const pn_words *)run->read[2];
    double *ring = (double *)run->write[0];
    cudaStream_t stream = (cudaStream_t)run->stream;
    const unsigned blocks = (unsigned)a->fields;
    if (a->real == PN_FLOAT32)
        evaluate_kernel<float><<<blocks, PN_SUM_WIDE, 0, stream>>>(*a, (const float *)run->read[0], reference, words, ring);
    else
        evaluate_kernel<double><<<blocks, PN_SUM_WIDE, 0, stream>>>(*a, (const double *)run->read[0], reference, words, ring);
    return pn_launch_check("evaluate");
}
