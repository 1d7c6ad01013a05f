/* What the two CUDA executors share: the device side of a context, captures, error checks. */
#ifndef PN_GRAPH_DEVICE_H
#define PN_GRAPH_DEVICE_H

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include "graph/graph.h"

typedef struct pn_device {
    int ordinal;
    cudaStream_t stream; /* non-blocking: everything runs on it */
    /* Blocking, and never launched on: only captured from. The legacy default stream synchronizes with blocking streams, so an
     * operation that launches there during a capture gets an error, where a non-blocking stream would let it run unrecorded. */
    cudaStream_t capture;
    cudaEvent_t event; /* for join */
    cublasHandle_t blas;
    void *workspace; /* cuBLAS's, the same for good: it is frozen into captured graphs */
    size_t workspace_bytes;
} pn_device;

/* PINN_OK, or PINN_DEVICE_FAILED (NO_MEMORY for exhausted memory) with the call's name and CUDA's words. */
pinn_status pn_cuda_check(cudaError_t error, const char *call);
pinn_status pn_blas_check(cublasStatus_t error, const char *call);
#define PN_CUDA(call) PN_TRY(pn_cuda_check((call), #call))
#define PN_BLAS(call) PN_TRY(pn_blas_check((call), #call))

/* After a failed build or enqueue: when the device itself no longer works, says so instead of blaming the node that met it. */
pinn_status pn_device_explain(const pinn_graph *graph, pinn_status status);

/* Takes the error that a node's code caused and did not look at, as a failed launch; PINN_OK when there is none. */
pinn_status pn_cuda_take_left(const pn_graph_node *node);

/* Makes this thread use the context's device. */
pinn_status pn_device_select(const pinn_context *context);
/* Operations and the BLAS handle use `stream` from now on. */
pinn_status pn_device_use_stream(pinn_context *context, cudaStream_t stream);

/* The backend functions that both executors use as they are. */
pinn_status pn_device_open(pinn_context *context, const pinn_context_options *options);
void pn_device_close(pinn_context *context);
pinn_status pn_device_allocate(pinn_context *context, pinn_place place, size_t bytes, void **out);
void pn_device_release(pinn_context *context, pinn_place place, void *address);
pinn_status pn_device_check(pinn_context *context, const char *name, pinn_place place, const void *address);
pinn_status pn_device_write(pinn_context *context, pinn_place place, void *to, const void *from, size_t bytes);
pinn_status pn_device_read(pinn_context *context, pinn_place place, void *to, const void *from, size_t bytes);
pinn_status pn_device_synchronize(pinn_context *context);
pinn_status pn_device_join(pinn_context *context, void *stream);

/* A captured graph and, in the graph executor, its executable. Released when no capture is open in the process. */
typedef struct pn_executable {
    pn_release release;
    pinn_context *context;
    pn_block *staging; /* page-locked, for the list's pageable copies; NULL when it has none */
    cudaGraph_t graph;
    cudaGraphExec_t exec; /* NULL when not instantiated */
    size_t nodes;         /* of `graph` */
} pn_executable;

/* Captures the list, with staging memory for its pageable copies; names the node that cannot be captured, that records nothing, or
 * that forks without joining. Whatever happens, no capture is left open. */
pinn_status pn_capture(const pinn_graph *graph, const pn_list *list, pn_executable **out);
void pn_executable_discard(void *executable); /* NULL is fine */

/* Page-locked memory that the pageable copies of the list go through from now on; NULL when there are none. Allocates: not for a
 * thread with a capture open. */
pinn_status pn_staging_create(const pinn_graph *graph, const pn_list *list, pn_block **out);
/* Puts the node on `stream`, which may be capturing. */
pinn_status pn_graph_node_put(pn_graph_node *node, cudaStream_t stream);

extern const pn_backend pn_backend_graph, pn_backend_eager;

#endif
