/* CUDA forms of the operations in conformance.h, and forms that break the rules of capture, one each. */
#ifndef GRAPH_CUDA_OPS_H
#define GRAPH_CUDA_OPS_H

#include "pinn_graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct add_arguments {
    int32_t count, amount;
} add_arguments;

typedef struct fill_arguments {
    int32_t count; /* bytes */
    uint8_t value;
} fill_arguments;

typedef struct await_arguments {
    const int32_t *gate; /* page-locked */
} await_arguments;

typedef struct meet_arguments {
    int32_t *mine; /* on the device; counts the calls */
    const int32_t *other;
} meet_arguments;

pinn_status add_cuda(const pinn_run *run);        /* write[0][i] += amount, int32 */
pinn_status double_cuda(const pinn_run *run);     /* write[0][i] = 2*read[0][i], int32; the arguments' amount is not used */
pinn_status accumulate_cuda(const pinn_run *run); /* write[0][i] += read[0][i], int32 */
pinn_status fill_cuda(const pinn_run *run);       /* write[0][i] = value, bytes */

pinn_status nothing_cuda(const pinn_run *run);        /* returns without a launch */
pinn_status allocate_cuda(const pinn_run *run);       /* cudaMalloc, then a launch */
pinn_status allocate_async_cuda(const pinn_run *run); /* cudaMallocAsync and cudaFreeAsync around a launch */
pinn_status wait_cuda(const pinn_run *run);           /* cudaStreamSynchronize */
pinn_status default_stream_cuda(const pinn_run *run); /* a launch on the legacy default stream beside one on run->stream */
pinn_status unjoined_cuda(const pinn_run *run);       /* forks to another stream, does not join */
pinn_status forked_cuda(const pinn_run *run);         /* forks to another stream and joins: allowed */
pinn_status bad_launch_cuda(const pinn_run *run);     /* a launch with too many threads, not looked at */
pinn_status fail_cuda(const pinn_run *run);           /* launches, then returns PINN_NUMERIC */
pinn_status pageable_cuda(const pinn_run *run);       /* a launch, then a copy from pageable memory */
pinn_status host_call_cuda(const pinn_run *run);      /* a launch, then a host function on the stream */
pinn_status stray_cuda(const pinn_run *run);          /* a kernel that writes where no memory is: the device is lost */
pinn_status trap_cuda(const pinn_run *run);           /* a kernel that traps: the same */
pinn_status slow_cuda(const pinn_run *run);           /* about 50 ms, then write[0][0] = 1 (int32) */

/* These wait for what happens meanwhile, and give up after 5 s. */
pinn_status await_cuda(const pinn_run *run); /* until *gate is not 0: write[0][0] += 1 (int32), or -= 1000 having given up */
pinn_status meet_cuda(const pinn_run *run);  /* ++*mine, until *other is as much: write[0][0] = *mine (int32), or -1 having given up */

#ifdef __cplusplus
}
#endif
#endif
