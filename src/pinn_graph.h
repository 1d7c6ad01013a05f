/* pinn_graph.h - record a step once, replay it: as a CUDA graph, node by node on a CUDA stream, or on the CPU.
 *
 * The idea. A *context* owns one stream. *Planes* are named pieces of memory with a place (device, pinned, host) and a fixed
 * address. Between pinn_graph_begin and pinn_graph_build a *graph* is a list of *nodes*: operations, copies and host functions,
 * each with the planes it reads and writes. Program order is dependency order; fork, branch, wait and join relax it; if, while and for
 * let words in device memory decide what runs. Recording runs nothing. The list is then run by the context's executor, the same nodes
 * in the same order:
 *
 *     PINN_EXECUTOR_GRAPH   instantiated once as a CUDA graph, one driver call a replay
 *     PINN_EXECUTOR_EAGER   every node launched on the stream: the oracle, and the mode for debuggers and sanitizers
 *     PINN_EXECUTOR_CPU     no GPU: the nodes' CPU forms, at once, in the calling thread
 *
 * Places are logical on the CPU too, so a machine without a GPU refuses what CUDA would refuse.
 *
 *     pinn_plane *x, *home;
 *     pinn_plane_create(context, "x", PINN_DEVICE, bytes, &x);
 *     pinn_plane_create(context, "home", PINN_PINNED, bytes, &home);
 *     pinn_graph_begin(graph);
 *     pinn_graph_operation(graph, &step, &sizes, sizeof sizes, PINN_PLANES(x), PINN_PLANES(x));
 *     pinn_graph_copy(graph, x, home);                       // device to host: the direction follows from the places
 *     pinn_graph_host(graph, "check energy", check, user, PINN_PLANES(home), PINN_NO_PLANES);
 *     pinn_graph_launch(graph, 1000);                        // builds, replays 1000 times, waits
 *
 * What a replay does depends only on what the planes hold: arguments of an operation are sizes and constants, frozen when it is
 * recorded. Anything that changes from replay to replay lives in a plane.
 *
 * Threads. A context and all that belongs to it are used by one thread at a time; several contexts may be used by several threads.
 * Host functions run on a thread of the CUDA runtime (or inside launch/enqueue on the CPU); they must not call this library with
 * the same context, nor from one CUDA context with another: such a call fails at once. An operation's form may read a context's and
 * a plane's properties (stream, address ...) and may destroy planes and graphs, which then go when the build or launch that runs it is
 * over; any other call from inside it with the same context fails at once, and so does a launch of any graph with an eager cut.
 *
 * Ownership. create/destroy pairs own; planes passed to a node are borrowed and must outlive the graph's use (a launch after a plane
 * was destroyed fails); names and argument bytes are copied. Functions return a status and write results through the last pointer
 * only on success; the text behind a failure is pinn_error_message().
 *
 * Not supported: unified (managed) memory.
 */
#ifndef PINN_GRAPH_H
#define PINN_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pinn_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- context ------------------------------------------------------------------------------------------------------------- */

typedef struct pinn_context pinn_context;

typedef enum pinn_executor { PINN_EXECUTOR_GRAPH, PINN_EXECUTOR_EAGER, PINN_EXECUTOR_CPU } pinn_executor;

/* Receives one line per build, re-build (with its reason) and failure of a host node. Called on the thread that uses the context. */
typedef void pinn_message_function(void *user, const char *line);

typedef struct pinn_context_options {
    pinn_executor executor;
    int device;                     /* CUDA ordinal; ignored by PINN_EXECUTOR_CPU */
    size_t blas_workspace;          /* bytes given to cuBLAS for good, once for each branch that runs beside others; 0 = 32 MiB (what
                                       NVIDIA recommends for Hopper) */
    pinn_message_function *message; /* NULL = silent */
    void *message_user;             /* borrowed */
    const char *cpu_mode;           /* CPU executor only: NULL or "inline", or "strict:SEED", for tests; see below. Read during the call */
} pinn_context_options;

/* The CPU executor inline runs each node at once. "strict:SEED" (a number below 2^64) plays a GPU, so that mistakes between host and device
 * show without one: nothing runs before a wait; branches run in an order drawn from the seed, which program order and waits allow; host
 * functions run on another thread; device planes can be reached by operations that declare them only (elsewhere the access ends the
 * program); host planes that enqueued work writes hold poison (every byte 0xFF: a NaN, or -1) until a wait. While a node runs, a plane that
 * it writes and does not read holds poison until written: what writes a part only must declare the plane as read too. A node that touches
 * a plane against its declaration ends the work: PINN_REFUSED, naming the node, the plane and what to declare, from then on at every call.
 * While work runs no other thread may touch the context's planes. Installs a handler of SIGSEGV that hands on what is not its own. */

/* Number of CUDA devices this build and machine can use; 0 without CUDA. Never fails. */
int pinn_device_count(void);

/* Errors: UNSUPPORTED (no CUDA in this build, no such device, compute capability under 8.0), DEVICE_FAILED, NO_MEMORY. */
pinn_status pinn_context_create(const pinn_context_options *options, pinn_context **out);
/* Waits for all work, then frees the stream and handles. Planes and graphs should have been destroyed before: if some live, a message
 * says so and the context is freed with the last of them. NULL is fine. */
void pinn_context_destroy(pinn_context *context);

/* Waits for everything enqueued; returns the first failure of a host node that was not returned yet (PINN_HOST_FAILED). */
pinn_status pinn_context_synchronize(pinn_context *context);

pinn_executor pinn_context_executor(const pinn_context *context);
const char *pinn_executor_name(pinn_executor executor);            /* "graph", "eager", "cpu" */
const char *pinn_context_device_name(const pinn_context *context); /* "NVIDIA H200", or the CPU's model. Borrowed. */
void *pinn_context_stream(const pinn_context *context);            /* cudaStream_t (while a CUDA form is captured, the capture's); NULL on the CPU */
void *pinn_context_blas(const pinn_context *context);              /* cublasHandle_t; NULL on the CPU */
int pinn_context_multiprocessors(const pinn_context *context);     /* 0 on the CPU */
/* Makes later work wait for what is on `stream` (a cudaStream_t; NULL = the legacy default stream) now. No-op on the CPU. */
pinn_status pinn_context_join(pinn_context *context, void *stream);

/* ---- planes -------------------------------------------------------------------------------------------------------------- */

typedef struct pinn_plane pinn_plane;

typedef enum pinn_place {
    PINN_DEVICE, /* GPU memory; on the CPU executor ordinary memory that only operations may touch */
    PINN_PINNED, /* page-locked host memory: copies overlap with kernels */
    PINN_HOST    /* ordinary (pageable) host memory: never page-locked by the library; its copies are slow, see pinn_graph_copy */
} pinn_place;

const char *pinn_place_name(pinn_place place); /* "device", "pinned", "host" */

/* `bytes` > 0 of zeroed memory, 256-byte aligned. `name` is copied. */
pinn_status pinn_plane_create(pinn_context *context, const char *name, pinn_place place, size_t bytes, pinn_plane **out);
/* The caller's memory: borrowed, must stay where it is until the plane is destroyed. On a GPU it must lie where `place` says. */
pinn_status pinn_plane_wrap(pinn_context *context, const char *name, pinn_place place, void *address, size_t bytes, pinn_plane **out);
/* Bytes [offset, offset+bytes) of `plane`, without regard to alignment; shares its place, storage and generation. A view may outlive its
 * plane, but then it is stale; destroying a view leaves graphs valid. */
pinn_status pinn_plane_view(pinn_plane *plane, const char *name, size_t offset, size_t bytes, pinn_plane **out);
/* Waits for enqueued work, gives the memory back (later, while any thread captures); graphs that use it become stale. NULL is fine. */
void pinn_plane_destroy(pinn_plane *plane);

const char *pinn_plane_name(const pinn_plane *plane);
pinn_place pinn_plane_place(const pinn_plane *plane);
size_t pinn_plane_bytes(const pinn_plane *plane);
void *pinn_plane_address(const pinn_plane *plane);
uint64_t pinn_plane_generation(const pinn_plane *plane); /* differs between any two allocations of a process, even at one address */

/* Copies between a plane and the caller's memory: waits for all enqueued work, copies, returns when done. Not recorded. */
pinn_status pinn_plane_write(pinn_plane *plane, size_t offset, const void *from, size_t bytes);
pinn_status pinn_plane_read(const pinn_plane *plane, size_t offset, void *to, size_t bytes);

/* ---- recording ----------------------------------------------------------------------------------------------------------- */

typedef struct pinn_graph pinn_graph;

/* A plane list argument: PINN_PLANES(a, b) or PINN_NO_PLANES. At most PINN_NODE_PLANES each. */
typedef struct pinn_planes {
    pinn_plane *const *plane;
    size_t count;
} pinn_planes;
#define PINN_NODE_PLANES 16
#define PINN_PLANES(...) \
    ((pinn_planes){(pinn_plane *const[]){__VA_ARGS__}, sizeof((pinn_plane *const[]){__VA_ARGS__}) / sizeof(pinn_plane *)})
#define PINN_NO_PLANES ((pinn_planes){NULL, 0})

/* What an operation's form receives when it runs or is captured. */
typedef struct pinn_run {
    pinn_context *context;
    void *stream;          /* cudaStream_t to launch on; NULL in a CPU form */
    const void *arguments; /* the bytes given to pinn_graph_operation, copied; of pinn_graph_opaque `user` itself */
    void *const *read;     /* addresses of the planes read, in the order declared; valid during the call only, as this struct */
    void *const *write;    /* addresses of the planes written */
} pinn_run;

/* A CUDA form only puts work on run->stream (or forks from it and joins again): it allocates nothing, waits for nothing, leaves the default
 * stream alone. It is called when a graph is built, more than once, and must do the same each time; on the eager executor at each replay
 * too. A CPU form on device planes runs at each replay on the CPU executor. A form that returns a failure ends the build, or the launch, with
 * that status and the node's name. A CPU form on host or pinned planes is a host node: its failures are handled as a host function's. */
typedef struct pinn_operation {
    const char *name;                      /* shown in explain, dot, NVTX and errors */
    pinn_status (*cpu)(const pinn_run *);  /* NULL = has no CPU form */
    pinn_status (*cuda)(const pinn_run *); /* NULL = has no CUDA form */
} pinn_operation;

/* A host function, or an eager cut's: PINN_OK, or a failure that the next launch, enqueue or synchronize returns as PINN_HOST_FAILED with
 * the node's name.
 * Until then all host nodes of the context are skipped, while GPU nodes and copies go on. */
typedef pinn_status pinn_host_function(void *user);

pinn_status pinn_graph_create(pinn_context *context, const char *name, pinn_graph **out);
void pinn_graph_destroy(pinn_graph *graph);

/* Starts a new list (dropping one not built yet). Recording ends with build, launch or enqueue. A recording call that fails makes the build
 * fail with the same message. After a failed build the list is gone, and what was built before is launchable again. */
pinn_status pinn_graph_begin(pinn_graph *graph);
/* Device planes make a GPU node, host or pinned planes a host node that runs the CPU form. A plane may be read and written. `operation` is
 * copied but for its functions' code. */
pinn_status pinn_graph_operation(pinn_graph *graph, const pinn_operation *operation, const void *arguments, size_t argument_bytes,
                                 pinn_planes reads, pinn_planes writes);
/* Both planes of the same size, without partial overlap. Onto the same storage: recorded, lowered to nothing.
 * A copy between device and PINN_HOST memory is pageable: on a GPU it goes through a page-locked buffer that belongs to what was built, and
 * begins (to the device) or ends (from it) in a host function of the library's, which is why it is slow: in a step that is replayed often
 * use PINN_PINNED. It keeps its place in the order, and like every copy it goes on after a host function has failed. */
pinn_status pinn_graph_copy(pinn_graph *graph, pinn_plane *from, pinn_plane *to);
/* `name` is copied, `user` borrowed. Host or pinned planes only. */
pinn_status pinn_graph_host(pinn_graph *graph, const char *name, pinn_host_function *function, void *user, pinn_planes reads,
                            pinn_planes writes);

/* The caller's own function with declared planes and no argument bytes: an operation made on the spot, in whose forms run->arguments is
 * `user` itself (borrowed). All else is as for pinn_graph_operation. */
pinn_status pinn_graph_opaque(pinn_graph *graph, const pinn_operation *operation, void *user, pinn_planes reads, pinn_planes writes);
/* A host function that may call the device: pinn_plane_read and pinn_plane_write of the same context, and CUDA itself. The graph is cut
 * there: everything before it is waited for, on the whole device, and so is what the function leaves on the device. It runs on the thread
 * that launches or enqueues, so enqueue waits there. Planes of any place. Top level only: not inside if, while, for or a branch. Its
 * failures are handled as a host function's. */
pinn_status pinn_graph_eager(pinn_graph *graph, const char *name, pinn_host_function *function, void *user, pinn_planes reads,
                             pinn_planes writes);

/* ---- recording: control flow --------------------------------------------------------------------------------------------- */

/* Bodies hold GPU nodes and copies between device and pinned planes; host nodes, pageable copies and eager cuts are refused there, as
 * CUDA has no place for them. A body holds at least one node. Blocks (if, while, for, fork) nest at most PINN_GRAPH_DEPTH deep; begin to end,
 * a block lies in one body or branch. Flags and trip counters are device planes, at least 4 bytes, 4-byte aligned, of which the first
 * 32-bit word is used. A name is shown in explain and errors. */
#define PINN_GRAPH_DEPTH 8

/* What follows, up to pinn_graph_else or pinn_graph_end, runs when the flag word is not 0 at the moment the if's turn comes. */
pinn_status pinn_graph_if(pinn_graph *graph, const char *name, pinn_plane *flag);
/* Inside an if: ends its body and begins the other, which runs when the flag was 0 at the if, whatever the first body wrote to it. */
pinn_status pinn_graph_else(pinn_graph *graph);
/* What follows, up to pinn_graph_end, runs as long as the flag word is not 0, at most `cap` (>= 1) times. The flag is read on entry and
 * after each trip; a body that never clears it runs `cap` times. `trips` (may be NULL) holds the number of trips done: 0 from the loop's entry
 * on, so 0 in the first trip, and after the loop their total. The loop keeps its own count, so writing there changes nothing. */
pinn_status pinn_graph_while(pinn_graph *graph, const char *name, pinn_plane *flag, uint32_t cap, pinn_plane *trips);
/* The same without a flag: `count` trips, also none. */
pinn_status pinn_graph_for(pinn_graph *graph, const char *name, uint32_t count, pinn_plane *trips);
/* Closes the innermost if, else, while or for. */
pinn_status pinn_graph_end(pinn_graph *graph);

/* ---- recording: branches ------------------------------------------------------------------------------------------------- */

/* Between fork and join, branches run beside each other; inside one, program order holds. On the CPU inline they run one after the
 * other, in program order. The build refuses two branches that touch the same bytes, one of them writing, unless waits order them.
 * Pageable copies are refused inside branches.
 *
 *     pinn_graph_fork(graph);
 *     pinn_graph_branch(graph, "frame");
 *     pinn_graph_copy(graph, a, home);        // leaves on the copy engine ...
 *     pinn_graph_branch(graph, "steps");
 *     record_step(graph, a, b);               // ... while this runs, which only reads `a`
 *     pinn_graph_wait(graph, a);
 *     record_step(graph, b, a);               // overwrites `a`: after the copy
 *     pinn_graph_join(graph);
 */
pinn_status pinn_graph_fork(pinn_graph *graph);
/* Begins the fork's next branch. `name` is copied. */
pinn_status pinn_graph_branch(pinn_graph *graph, const char *name);
/* Directly inside a branch (not in an if, while or for of it): what this branch records after this call waits for every node of the fork's
 * earlier branches that touches any byte of `plane`. Refused when there is none. */
pinn_status pinn_graph_wait(pinn_graph *graph, pinn_plane *plane);
/* Ends the last branch; what follows waits for all of them. */
pinn_status pinn_graph_join(pinn_graph *graph);

/* ---- running ------------------------------------------------------------------------------------------------------------- */

/* Checks the list and makes it launchable; on a GPU, pageable copies get a page-locked buffer of the size of the largest. A list with the
 * same signature (nodes, sizes, arguments, addresses, generations) as the built one costs nothing; any difference instantiates anew and
 * counts in stats.builds. A failed build keeps the old one. */
pinn_status pinn_graph_build(pinn_graph *graph);
bool pinn_graph_is_built(const pinn_graph *graph); /* the next launch needs no build */
/* Waits for enqueued work and drops what was built; counters survive. */
void pinn_graph_invalidate(pinn_graph *graph);

/* Records the nodes of a capture; anything but PINN_OK ends it. It must not destroy `graph`. */
typedef pinn_status pinn_record_function(void *user, pinn_graph *graph);
/* Capture by shape. Nothing happens when the graph is built, none of its planes was freed and `shape` ([rank]; NULL for rank 0) is the
 * one it was captured with. Else: begin, `record`, build; a failure keeps the old executable with its shape. Two captures of one shape with the
 * same nodes on the same planes count as one build. */
pinn_status pinn_graph_capture(pinn_graph *graph, const size_t *shape, size_t rank, pinn_record_function *record, void *user);
/* The rank of the last capture, and its shape in *shape (borrowed until the next build or invalidate); 0 and NULL when the graph was built
 * otherwise, invalidated, or captured with rank 0. */
size_t pinn_graph_input_shape(const pinn_graph *graph, const size_t **shape);
bool pinn_graph_is_captured(const pinn_graph *graph);      /* as pinn_graph_is_built */
bool pinn_graph_is_capturing(const pinn_graph *graph);     /* between begin and build */
uint64_t pinn_graph_launch_count(const pinn_graph *graph); /* replays enqueued; survives invalidate */

/* Replays `times` times and waits. Builds first if the recorded list is not built. Errors: those of build; STALE naming the plane that was
 * freed; HOST_FAILED, also for a failure left from before, in which case nothing is replayed. */
pinn_status pinn_graph_launch(pinn_graph *graph, uint64_t times);
/* The same without waiting. On the CPU executor inline the work is done when it returns, yet failures of host nodes are returned by the
 * next call, as on a GPU. */
pinn_status pinn_graph_enqueue(pinn_graph *graph, uint64_t times);

/* ---- looking ------------------------------------------------------------------------------------------------------------- */

typedef struct pinn_graph_stats {
    uint64_t builds;    /* instantiations since creation */
    uint64_t enqueued;  /* replays asked for */
    uint64_t completed; /* replays known to be done (as of the last wait) */
    size_t gpu_nodes, host_nodes, copies;        /* of the recorded list */
    size_t eager_cuts, conditionals, branches;   /* the same; conditionals: if, else, while, for */
} pinn_graph_stats;

void pinn_graph_get_stats(const pinn_graph *graph, pinn_graph_stats *out);
/* The schedule in words, one node a line, bodies and branches indented: number, kind ("device" for a GPU node, whose device is this CPU on
 * the CPU executor, as a line then says), name, planes with places and sizes, why it was last rebuilt. Owned by the caller, freed with free(). Works on every executor and before a build. */
pinn_status pinn_graph_explain(const pinn_graph *graph, char **out);
/* The same as a Graphviz digraph: bodies and branches are boxes, waits dashed arrows. */
pinn_status pinn_graph_dot(const pinn_graph *graph, char **out);

#ifdef __cplusplus
}
#endif
#endif
