/* Kernels that set the conditions of a CUDA graph's conditional nodes, and words that say so. A normal CUDA file holds them,
 * because run-time compiled code cannot call cudaGraphSetConditional.
 *
 * A condition has a value only after a kernel has set it in the same launch, and a nested loop does not get it back between trips
 * of the loop around it. So every conditional node has a head of its own before it, and a loop a tail at the end of its body.
 */
#ifndef PN_GRAPH_CONDITION_H
#define PN_GRAPH_CONDITION_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a loop's head and tail work on. All pointers are to device memory. */
typedef struct pn_loop {
    cudaGraphConditionalHandle handle;
    const uint32_t *flag; /* NULL: a for */
    uint32_t *done;       /* trips, the loop's own count */
    uint32_t *trips;      /* the caller's; NULL = none */
    uint32_t cap;
} pn_loop;

/* *saved = *flag; condition = (*flag != 0) */
cudaError_t pn_condition_if(cudaStream_t stream, cudaGraphConditionalHandle handle, const uint32_t *flag, uint32_t *saved);
/* condition = (*saved == 0) */
cudaError_t pn_condition_else(cudaStream_t stream, cudaGraphConditionalHandle handle, const uint32_t *saved);
/* done = trips = 0; condition = cap > 0 and the flag is set */
cudaError_t pn_condition_loop_head(cudaStream_t stream, const pn_loop *loop);
/* done = trips = done + 1; condition = done < cap and the flag is set */
cudaError_t pn_condition_loop_tail(cudaStream_t stream, const pn_loop *loop);
/* *word = value: for loops that the host drives */
cudaError_t pn_condition_put(cudaStream_t stream, uint32_t *word, uint32_t value);

#ifdef __cplusplus
}
#endif
#endif
