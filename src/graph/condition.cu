/* See condition.h. One thread each: two writers of one condition in a launch would leave it undefined. */
#include "graph/condition.h"

static __global__ void if_kernel(cudaGraphConditionalHandle handle, const uint32_t *flag, uint32_t *saved) {
    const uint32_t value = *flag;
    *saved = value;
    cudaGraphSetConditional(handle, value != 0);
}

static __global__ void else_kernel(cudaGraphConditionalHandle handle, const uint32_t *saved) {
    cudaGraphSetConditional(handle, *saved == 0);
}

static __device__ void set_loop(const pn_loop &loop, uint32_t done) {
    *loop.done = done;
    if (loop.trips) *loop.trips = done;
    cudaGraphSetConditional(loop.handle, done < loop.cap && (!loop.flag || *loop.flag != 0));
}

static __global__ void head_kernel(pn_loop loop) { set_loop(loop, 0); }

static __global__ void tail_kernel(pn_loop loop) { set_loop(loop, *loop.done + 1); }

static __global__ void put_kernel(uint32_t *word, uint32_t value) { *word = value; }

extern "C" cudaError_t pn_condition_if(cudaStream_t stream, cudaGraphConditionalHandle handle, const uint32_t *flag,
                                       uint32_t *saved) {
    if_kernel<<<1, 1, 0, stream>>>(handle, flag, saved);
    return cudaGetLastError();
}

extern "C" cudaError_t pn_condition_else(cudaStream_t stream, cudaGraphConditionalHandle handle, const uint32_t *saved) {
    else_kernel<<<1, 1, 0, stream>>>(handle, saved);
    return cudaGetLastError();
}

extern "C" cudaError_t pn_condition_loop_head(cudaStream_t stream, const pn_loop *loop) {
    head_kernel<<<1, 1, 0, stream>>>(*loop);
    return cudaGetLastError();
}

extern "C" cudaError_t pn_condition_loop_tail(cudaStream_t stream, const pn_loop *loop) {
    tail_kernel<<<1, 1, 0, stream>>>(*loop);
    return cudaGetLastError();
}

extern "C" cudaError_t pn_condition_put(cudaStream_t stream, uint32_t *word, uint32_t value) {
    put_kernel<<<1, 1, 0, stream>>>(word, value);
    return cudaGetLastError();
}
