/* What the files of the graph layer share.
 *
 *   process.c    what is common to all contexts of the process and to all calls of a thread
 *   context.c    contexts, failures of host functions
 *   plane.c      planes
 *   record.c     the node list and its checks
 *   structure.c  if, while, for, fork: blocks of the list, what may stand in them
 *   order.c      branches: what a wait waits for, what is ordered, what overlaps
 *   signature.c  what a list is, as bytes; how two lists differ, as words
 *   run.c        build, enqueue, launch, statistics
 *   explain.c    explain and dot
 *   exec_*.c     one executor each behind pn_backend; device_cuda.c, lower_cuda.c and capture_cuda.c serve both CUDA executors
 *
 * Lifetimes. The caller's handle and every node that lists a plane hold a reference on it, so a plane that was freed still has a
 * name to report. Planes, graphs and what they leave to be released hold a reference on their context; it goes with the last.
 */
#ifndef PN_GRAPH_GRAPH_H
#define PN_GRAPH_GRAPH_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/memory.h"
#include "core/status.h"
#include "core/text.h"
#include "graph/plan.h"
#include "pinn_graph.h"

/* ---- process.c: the process ------------------------------------------------------------------------------------------------ */

/* Something to be given back to the driver. Lies inside the object it releases, so that deferring one never needs memory. */
typedef struct pn_release {
    struct pn_release *next;
    void (*run)(struct pn_release *self);
} pn_release;

uint64_t pn_generation_next(void);
/* Runs `item` now, or when the last capture open in the process closes: CUDA kills a capture when anything is freed beside it. */
void pn_release_push(pn_release *item);
/* Around every stream capture, on the thread that captures. */
void pn_capture_open(void);
void pn_capture_close(void);
/* Waits until no capture is open, then keeps new ones (and releases) out. Refused on a thread that has a capture open itself: it would
 * wait for ever. Close only what was opened. */
pinn_status pn_exclusive_open(void);
void pn_exclusive_close(void);

/* ---- process.c: the calling thread ----------------------------------------------------------------------------------------- */

typedef enum pn_frame_kind {
    PN_FRAME_FORM, /* an operation's form that runs or is captured */
    PN_FRAME_HOST, /* a host node */
    PN_FRAME_EAGER /* an eager cut */
} pn_frame_kind;

/* The caller's code that this thread is inside of, innermost first. */
typedef struct pn_frame {
    struct pn_frame *outer;
    const pinn_context *context;
    const char *node;
    pn_frame_kind kind;
} pn_frame;

void pn_frame_push(pn_frame *frame, const pinn_context *context, const char *node, pn_frame_kind kind);
void pn_frame_pop(const pn_frame *frame);
/* The node whose code called the library on this thread, whatever its context; NULL outside of nodes. */
const char *pn_inside_node(void);
/* The operation whose form this thread is inside of, however deep, whatever its context; NULL when there is none. */
const char *pn_inside_form(void);
/* First line of every public call that can fail: refuses NULL and calls from inside the caller's own nodes. */
pinn_status pn_enter(const pinn_context *context, const char *function);

/* The same for what an eager cut may call with the context it belongs to. */
pinn_status pn_enter_or_eager(const pinn_context *context, const char *function);

/* A destroy call that came from inside an operation's form or an eager cut: it is done when the build or enqueue that runs the form
 * is over. */
typedef struct pn_doomed {
    struct pn_doomed *next;
    void (*destroy)(void *object);
    void *object;
    bool waiting;
} pn_doomed;

/* Around every build and enqueue. */
void pn_run_begin(void);
void pn_run_end(void);
/* Calls destroy(object) now or at the end of this thread's outermost run. From inside a host node: refused, kept as its failure. */
void pn_destroy(pinn_context *context, pn_doomed *doomed, void (*destroy)(void *), void *object, const char *function);

/* ---- context.c ------------------------------------------------------------------------------------------------------------- */

typedef struct pn_backend pn_backend;
typedef struct pn_list pn_list;

struct pinn_context {
    const pn_backend *backend;
    pinn_executor executor;
    pinn_message_function *message;
    void *message_user;

    /* filled by the backend's open */
    char *device_name;
    void *device; /* struct pn_device of device.h; NULL on the CPU */
    void *stream; /* the one operations launch on now: while a capture is open, the capturing one */
    void *blas;
    int multiprocessors;
    size_t memory; /* bytes the device has; 0: not known */

    bool plans;              /* plan.h; the next plane's address is then: */
    uintptr_t plan_end;
    atomic_size_t references;
    size_t planes, graphs;   /* handles the caller has not destroyed */
    size_t plane_bytes;      /* of the planes made here, not of views nor of wrapped memory */
    uint64_t frees;          /* planes freed so far: when it has not moved, no graph has become stale */
    bool busy;               /* something was enqueued since the last wait */
    pinn_graph *first_graph; /* all graphs, linked by next/previous */
    pinn_plane *first_plane; /* the roots whose memory is there, linked by next/previous */

    pthread_mutex_t fault_lock;
    atomic_bool faulty; /* a host node failed and was not reported yet: later ones are skipped */
    char fault[1024];

    pn_release release;
    pn_doomed doomed;
};

void pn_context_reference(pinn_context *context);
void pn_context_unreference(pinn_context *context);
void pn_context_message(const pinn_context *context, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Waits for the stream; replays enqueued become completed. Leaves failures of host nodes where they are. */
pinn_status pn_context_wait(pinn_context *context);
/* Keeps a host node's failure, unless one is kept already. From any thread. */
void pn_fault_keep(pinn_context *context, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* PINN_OK, or PINN_HOST_FAILED with the failure kept, which is then forgotten; waits first, so that all it made skip is skipped. */
pinn_status pn_fault_take(pinn_context *context);

/* ---- plane.c --------------------------------------------------------------------------------------------------------------- */

/* Memory of the context's: a plane's, or what copies are staged through. */
typedef struct pn_block {
    pn_release release;
    pinn_context *context;
    pinn_place place;
    void *address;
} pn_block;

pinn_status pn_block_create(pinn_context *context, pinn_place place, size_t bytes, pn_block **out); /* zeroed */
/* Gives the memory back, when no capture is open. The caller has waited for the work that uses it. NULL is fine. */
void pn_block_destroy(pn_block *block);

struct pinn_plane {
    pinn_context *context;
    pinn_plane *root; /* the plane this one is a view of; itself otherwise */
    char *name;
    pinn_place place;
    void *address;
    size_t bytes;
    uint64_t generation;
    pn_block *block; /* NULL for views, wrapped memory and plans */
    bool planned;    /* a root without memory, not among context->first_plane */
    pinn_plane *next, *previous;
    size_t references; /* the caller's handle, nodes, views */
    bool freed;        /* the caller destroyed it; of a root: the memory is gone */
    pn_doomed doomed;
};

void pn_plane_reference(pinn_plane *plane);
void pn_plane_unreference(pinn_plane *plane);

/* ---- record.c -------------------------------------------------------------------------------------------------------------- */

typedef enum pn_graph_node_kind {
    PN_NODE_GPU,            /* an operation on device planes */
    PN_NODE_HOST_OPERATION, /* an operation on host or pinned planes */
    PN_NODE_HOST,           /* a host function */
    PN_NODE_COPY,
    PN_NODE_EAGER, /* an eager cut: a host function that may call the device; top level only */
    /* Blocks. `next`, `end` and `open` link their entries; everything between two linked entries is one body or one branch. */
    PN_NODE_IF, /* read[0] = flag */
    PN_NODE_ELSE,
    PN_NODE_WHILE, /* read[0] = flag; write[0] = trip counter, if any */
    PN_NODE_FOR,   /* write[0] = trip counter, if any */
    PN_NODE_END,   /* of an if, while or for */
    PN_NODE_FORK,
    PN_NODE_BRANCH,
    PN_NODE_WAIT, /* read[0] = the plane waited for, not touched */
    PN_NODE_JOIN
} pn_graph_node_kind;

typedef pinn_status pn_form(const pinn_run *run);

typedef struct pn_graph_node {
    pn_graph_node_kind kind;
    size_t number; /* 1-based position in the list */
    char *name;
    pinn_graph *graph;
    pn_form *cpu, *cuda;      /* operations */
    pinn_host_function *host; /* host functions */
    void *user;
    void *arguments; /* copied; NULL when there are none */
    size_t argument_bytes;
    size_t reads, writes;
    pinn_plane *read[PINN_NODE_PLANES], *write[PINN_NODE_PLANES];
    void *read_address[PINN_NODE_PLANES], *write_address[PINN_NODE_PLANES];
    bool opaque;  /* run.arguments is `user` */
    uint32_t cap; /* of a while or for: most trips */
    size_t depth; /* blocks around the node; a block's own entries stand at the depth of the block */
    bool in_body; /* somewhere inside an if, while or for; their own entries count as outside */

    /* Positions in the list, 0-based; 0 where a kind has no such link. */
    size_t next; /* IF: its ELSE, or END. ELSE, WHILE, FOR: END. FORK: first BRANCH. BRANCH: next BRANCH, or JOIN */
    size_t end;  /* IF, ELSE, WHILE, FOR: END. FORK, BRANCH: JOIN */
    size_t open; /* ELSE, END: the IF, WHILE or FOR. BRANCH, WAIT, JOIN: the FORK */

    size_t lane;   /* BRANCH: which of the streams that run beside each other; the first branch has its fork's */
    size_t *after; /* WAIT: positions of entries whose end it waits for, at most one of each earlier branch; owned */
    size_t afters;
    bool awaited; /* some WAIT lists this position */

    /* Set by the build of the CUDA executors, borrowed from the executable. */
    void *staging;  /* of a pageable copy */
    void *event;    /* cudaEvent_t of a FORK, a BRANCH but the first, and what is awaited */
    uint32_t *word; /* device: IF: the flag as it was read; WHILE, FOR: trips done. NULL for other kinds */
} pn_graph_node;

/* A block that is being recorded. */
typedef struct pn_block_open {
    size_t opener, part; /* positions of its first entry, and of the ELSE or BRANCH (or opener) whose nodes are recorded now */
    size_t useful;       /* entries of this part that do something */
    size_t first_lane;   /* FORK: the lowest lane that its branches but the first may take */
    size_t lane;         /* of the part */
} pn_block_open;

/* A recorded list. Nodes keep their addresses: a built CUDA graph points at its host nodes. */
struct pn_list {
    pn_graph_node **node;
    size_t count, capacity;
    pn_block_open open[PINN_GRAPH_DEPTH];
    size_t depth;            /* blocks open */
    size_t bodies;           /* of them, those that are an if, while or for */
    size_t lanes, next_lane; /* most lanes in use at once; the first that no open fork uses */
    pn_text signature;
    pinn_status failure; /* of the first recording call that failed: a list with a hole in it is never built */
    char *failure_text;  /* may be NULL when memory is short */
};

void pn_list_destroy(pn_list *list);
/* Fails the call that would have made the next node of the list, and the list with it. */
pinn_status pn_list_reject(pinn_graph *graph, pinn_status status, const char *name, const char *format, ...)
    __attribute__((format(printf, 4, 5), cold));
/* The parts of a recording call: is the graph recording, are the planes usable, make the node, append it (taking it, also on
 * failure). */
pinn_status pn_list_enter(const pinn_graph *graph, const char *function);
pinn_status pn_list_check_planes(pinn_graph *graph, const char *name, pinn_planes planes, const char *verb);
pinn_status pn_list_make_node(pinn_graph *graph, pn_graph_node_kind kind, const char *name, pinn_planes reads, pinn_planes writes,
                              pn_graph_node **out);
pinn_status pn_list_append(pinn_graph *graph, pn_graph_node *node);
bool pn_planes_overlap(const pinn_plane *a, const pinn_plane *b); /* in at least one byte */
const char *pn_graph_node_kind_name(pn_graph_node_kind kind);     /* "device", "host", "copy", "if" ... */
static inline bool pn_graph_node_is_conditional(const pn_graph_node *node) {
    return node->kind == PN_NODE_IF || node->kind == PN_NODE_WHILE || node->kind == PN_NODE_FOR;
}
static inline bool pn_graph_node_on_host(const pn_graph_node *node) {
    return node->kind == PN_NODE_HOST || node->kind == PN_NODE_HOST_OPERATION;
}

/* Does something when it runs, so that a body or branch with it is not empty. */
bool pn_graph_node_is_useful(const pn_graph_node *node);

/* What a copy is lowered to. */
typedef enum pn_copy_route {
    PN_COPY_NOTHING, /* onto the same storage */
    PN_COPY_HOST,    /* between host or pinned planes: memcpy */
    PN_COPY_DEVICE   /* the device takes part */
} pn_copy_route;
pn_copy_route pn_copy_get_route(const pn_graph_node *node);
bool pn_copy_is_pageable(const pn_graph_node *node); /* a device plane on one side, pageable memory on the other */

/* Runs a form; a failure names the graph and node. */
pinn_status pn_graph_node_run(const pn_graph_node *node, pn_form *form, void *stream);
/* Runs a host node (pn_graph_node_on_host) or an eager cut's function, unless a failure waits to be reported; keeps its failure.
 * `node` is a pn_graph_node: the type is that of a CUDA host function. */
void pn_graph_node_call(void *node);
/* memcpy of a copy between host or pinned planes, with the same type. It runs also while a failure waits: a copy is not a host
 * node. */
void pn_graph_node_memcpy(void *node);

/* ---- structure.c ----------------------------------------------------------------------------------------------------------- */

/* May a node of this kind stand where the recording is? `what` says what it is, with its article: "a host node". */
pinn_status pn_structure_check_host(pinn_graph *graph, const char *name, const char *what);           /* not in a body */
pinn_status pn_structure_check_pageable(pinn_graph *graph, const char *name, const pinn_plane *host); /* nor in a branch */
pinn_status pn_structure_check_eager(pinn_graph *graph, const char *name);                            /* nor in a branch */
/* May any node stand there? Not between fork and the first branch. */
pinn_status pn_structure_check(pinn_graph *graph, const char *name);
/* For the build: every block is closed. */
pinn_status pn_structure_check_closed(const pinn_graph *graph, const pn_list *list);

/* ---- order.c --------------------------------------------------------------------------------------------------------------- */

/* Fills after, afters of the WAIT and awaited of what it waits for. */
pinn_status pn_order_wait(pinn_graph *graph, pn_graph_node *wait);
/* For the build: branches that touch the same bytes are ordered. */
pinn_status pn_order_check(const pinn_graph *graph, const pn_list *list);

/* ---- signature.c ----------------------------------------------------------------------------------------------------------- */

/* Fills list->signature: equal bytes = the same executable. */
pinn_status pn_list_sign(pn_list *list);
bool pn_list_equal(const pn_list *a, const pn_list *b);
/* The first difference in words. */
void pn_list_difference(const pn_list *old, const pn_list *new, pn_text *out);

/* ---- run.c ----------------------------------------------------------------------------------------------------------------- */

struct pinn_graph {
    pinn_context *context;
    char *name;
    pn_list *list;    /* recorded and not built yet; NULL when recording is closed */
    pn_list *built;   /* NULL = nothing to launch */
    void *executable; /* the backend's, belongs to `built` */
    pn_text reason;   /* of the last build */
    bool invalidated;
    size_t *shape; /* [rank] of the last capture */
    size_t rank;
    bool has_shape; /* `built` comes from a capture */
    uint64_t builds, enqueued, completed;
    uint64_t checked; /* context->frees when `built` was last found fresh */
    pinn_graph *next, *previous;
    pn_doomed doomed;
};

static inline const pn_list *pn_graph_shown(const pinn_graph *graph) { return graph->list ? graph->list : graph->built; }

/* ---- executors ------------------------------------------------------------------------------------------------------------- */

struct pn_backend {
    pinn_status (*open)(pinn_context *context, const pinn_context_options *options);
    void (*close)(pinn_context *context);                                                       /* also after a failed open */
    pinn_status (*allocate)(pinn_context *context, pinn_place place, size_t bytes, void **out); /* zeroed */
    void (*release)(pinn_context *context, pinn_place place, void *address);
    /* Does `address` lie where a plane of `place` must? */
    pinn_status (*check)(pinn_context *context, const char *name, pinn_place place, const void *address);
    /* Between a plane and the caller's memory; waits before and after. */
    pinn_status (*write)(pinn_context *context, pinn_place place, void *to, const void *from, size_t bytes);
    pinn_status (*read)(pinn_context *context, pinn_place place, void *to, const void *from, size_t bytes);
    pinn_status (*synchronize)(pinn_context *context);
    pinn_status (*join)(pinn_context *context, void *stream);
    /* Checks that go beyond recording; makes what enqueue needs (NULL where nothing is needed). */
    pinn_status (*build)(const pinn_graph *graph, const pn_list *list, void **executable);
    /* `done` counts the replays enqueued in full, also on failure. */
    pinn_status (*enqueue)(const pinn_graph *graph, uint64_t times, uint64_t *done);
    void (*discard)(void *executable);
};

extern const pn_backend pn_backend_cpu, pn_backend_strict;
/* By pinn_context_options.cpu_mode. */
pinn_status pn_backend_cpu_mode(const char *mode, const pn_backend **out);
pinn_status pn_backend_cuda(pinn_executor executor, const pn_backend **out); /* UNSUPPORTED in a build without CUDA */

#endif
