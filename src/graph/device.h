/* What the two CUDA executors share: the device side of a context, captures, error checks. */
#ifndef PN_GRAPH_DEVICE_H
#define PN_GRAPH_DEVICE_H

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include "graph/graph.h"

/* What may run at the same time has different lanes (structure.c). Lane 0 is the context's own stream. */
typedef struct pn_lane {
    cudaStream_t stream; /* non-blocking: everything runs on it */
    void *workspace;     /* cuBLAS's, the same for good: it is frozen into captured graphs */
    /* [level] Blocking, and never launched on: only captured from. The legacy default stream synchronizes with blocking streams, so
     * an operation that launches there during a capture gets an error, where a non-blocking stream would let it run unrecorded. A
     * body of an if, while or for is captured while what is around it still is, so every level of bodies needs streams of its own.
     */
    cudaStream_t capture[PINN_GRAPH_DEPTH + 1];
} pn_lane;

typedef struct pn_device {
    int ordinal;
    cudaStream_t stream; /* of lane 0 */
    pn_lane *lane;       /* [lanes] grown by builds, never shrunk */
    size_t lanes;
    size_t workspace_bytes; /* of each lane */
    cudaEvent_t event;      /* for join */
    cublasHandle_t blas;
    uint32_t *word;    /* page-locked: a flag read back */
    bool conditionals; /* the driver has conditional nodes */
    bool told;         /* that it has none */
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
/* Waits for everything on the device, whoever put it there. Refused on a thread with a capture open. */
pinn_status pn_device_synchronize_all(pinn_context *context);

/* ---- lanes_cuda.c ---------------------------------------------------------------------------------------------------------- */

/* Lanes 0 to count-1 have a stream and a workspace, and streams to capture from at levels 0 to `level`. Allocates. */
pinn_status pn_lanes_create(pinn_context *context, size_t count, size_t level);
void pn_lanes_destroy(pn_device *device);
/* Operations and the BLAS handle use `stream` and the lane's workspace from now on. */
pinn_status pn_lane_use(pinn_context *context, cudaStream_t stream, size_t lane);
/* Waits for the lanes but 0: after a replay broke off, work may be there that no join waits for. */
void pn_lanes_drain(pn_device *device);

/* A walk along a list that puts its nodes on streams, which are captured or launched on. */
typedef struct pn_walk {
    const pinn_graph *graph;
    const pn_list *list;
    bool capturing;
    size_t lane, level; /* where it is; level: bodies around it that are captured into graphs of their own */
    cudaStream_t stream;
    pinn_status (*node)(struct pn_walk *walk, pn_graph_node *node);    /* any kind that pn_graph_node_is_structure denies */
    pinn_status (*conditional)(struct pn_walk *walk, size_t position); /* a whole if, while or for */
} pn_walk;

/* Entries first to end-1, whole blocks. Leaves the walk where it was, unless it fails. */
pinn_status pn_walk_range(pn_walk *walk, size_t first, size_t end);
/* Moves the walk. */
pinn_status pn_walk_to(pn_walk *walk, cudaStream_t stream, size_t lane, size_t level);
/* Puts "graph, node" before the message of a failure. */
pinn_status pn_name_failure(const pn_graph_node *node, pinn_status status);

/* ---- backend functions ----------------------------------------------------------------------------------------------------- */

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

/* ---- capture_cuda.c, condition_cuda.c, executable_cuda.c
 * -------------------------------------------------------------------------------------- */

/* A part of the list between eager cuts. */
typedef struct pn_segment {
    cudaGraph_t graph;
    cudaGraphExec_t exec; /* NULL when not instantiated */
    size_t nodes;         /* of `graph` */
    pn_graph_node *eager; /* the cut that ends it; NULL for the last */
} pn_segment;

/* Captured graphs and, in the graph executor, their executables, with what the list's nodes need. Released when no capture is open
 * in the process. */
typedef struct pn_executable {
    pn_release release;
    pinn_context *context;
    pn_block *staging;  /* page-locked, for the list's pageable copies; NULL when it has none */
    pn_block *words;    /* device, a word for each if, while and for; NULL when there are none */
    cudaEvent_t *event; /* [events] of forks, branches and waits */
    size_t events;
    pn_segment *segment; /* [segments] */
    size_t segments;
    bool by_nodes; /* the driver cannot run it as a graph: it is run node by node */
} pn_executable;

/* Captures the list, with the memory and events that its nodes need; names the node that cannot be captured, that records nothing,
 * or that forks without joining. Whatever happens, no capture is left open. */
pinn_status pn_capture(const pinn_graph *graph, const pn_list *list, pn_executable **out);

/* executable_cuda.c: one without graphs; the memory, events and streams that the list's nodes need, which allocates: not for a
 * thread with a capture open; back to nothing, when no capture is open (NULL is fine). */
pinn_status pn_executable_create(pinn_context *context, size_t segments, pn_executable **out);
pinn_status pn_executable_prepare(pn_executable *executable, const pinn_graph *graph, const pn_list *list);
void pn_executable_discard(void *executable);

/* One capture of a part of a list. */
typedef struct pn_capture_job {
    pn_walk walk; /* first: the walk's functions get the job by it */
    enum cudaStreamCaptureMode mode;
    /* Conditional nodes made so far and the graphs of their bodies. The bodies belong to the graph around them. */
    cudaGraphNode_t *conditional; /* [capacity] */
    cudaGraph_t *body;            /* [capacity] */
    size_t conditionals, capacity;
    bool named;  /* the failure names its node */
    bool hidden; /* the failure is some node's, but showed only after the last of them */
} pn_capture_job;

/* Conditional nodes for the if, while or for at `position`, with their bodies. */
pinn_status pn_capture_conditional(pn_walk *walk, size_t position);
/* Its bodies, one after the other, as if they were none: to find what cannot be captured. */
pinn_status pn_capture_bodies(pn_walk *walk, size_t position);

/* ---- lower_cuda.c, exec_eager_cuda.c --------------------------------------------------------------------------------------- */

/* Page-locked memory that the pageable copies of the list go through from now on; NULL when there are none. Allocates: not for a
 * thread with a capture open. */
pinn_status pn_staging_create(const pinn_graph *graph, const pn_list *list, pn_block **out);
/* Puts a GPU node, host node or copy on `stream`, which may be capturing. */
pinn_status pn_graph_node_put(pn_graph_node *node, cudaStream_t stream);
/* Runs an eager cut's function, with everything before and of it waited for. */
pinn_status pn_eager_cut_run(pn_graph_node *node);
/* Replays the built list node by node. */
pinn_status pn_run_by_nodes(const pinn_graph *graph, uint64_t times, uint64_t *done);

extern const pn_backend pn_backend_graph, pn_backend_eager;

#endif
