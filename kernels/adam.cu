/* Adam on the GPU; see adam.h. One thread a parameter. */
#include "kernels/adam.h"

static __device__ __forceinline__ void update(const pn_words *words, const pn_hyper *hyper, float g, float *p, float *m, float *v) {
    pn_adam_update_float(words, hyper, g, p, m, v);
}
static __device__ __forceinline__ void update(const pn_words *words, const pn_hyper *hyper, double g, double *p, double *m,
                                              double *v) {
    pn_adam_update_double(words, hyper, g, p, m, v);
}

template <typename real>
static __global__ void adam_kernel(uint64_t n, const pn_words *__restrict__ words, const pn_hyper *__restrict__ hyper,
                                   const pn_loop *__restrict__ loop, const real *__restrict__ gradient, real *__restrict__ parameter,
                                   real *__restrict__ moments) {
    const uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && loop->update) update(words, hyper, gradient[i], &parameter[i], &moments[i], &moments[n + i]);
}

template <typename real>
static void launch(const pinn_run *run, uint64_t n) {
    const unsigned threads = 256, blocks = (unsigned)((n + threads - 1) / threads);
    adam_kernel<real><<<blocks, threads, 0, (cudaStream_t)run->stream>>>(n, (const pn_words *)run->read[1],
                                                                         (const pn_hyper *)run->read[2], (const pn_loop *)run->read[3],
                                                                         (const real *)run->read[0], (real *)run->write[0],
                                                                         (real *)run->write[1]);
}

extern "C" pinn_status pn_adam_cuda(const pinn_run *run) {
    const pn_adam_arguments *a = (const pn_adam_arguments *)run->arguments;
    if (a->real == PN_FLOAT32)
        launch<float>(run, a->parameters);
    else
        launch<double>(run, a->parameters);
    return pn_launch_check("adam");
}
