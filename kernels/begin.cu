/* The beginning of a chunk on the GPU; see begin.h. One thread, once a launch. */
#include "kernels/begin.h"

static __global__ void begin_kernel(pn_begin_arguments a, const pn_words *__restrict__ words, const pn_hyper *__restrict__ hyper,
                                    pn_loop *loop) {
    pn_begin_chunk(&a, words, hyper, loop);
}

extern "C" pinn_status pn_begin_cuda(const pinn_run *run) {
    begin_kernel<<<1, 1, 0, (cudaStream_t)run->stream>>>(*(const pn_begin_arguments *)run->arguments,
                                                         (const pn_words *)run->read[0], (const pn_hyper *)run->read[1],
                                                         (pn_loop *)run->write[0]);
    return pn_launch_check("begin");
}
