/* The strict mode of the CPU executor: it plays a GPU, so that mistakes between host and device show on a machine without one.
 *
 *   exec_strict.c    the backend: what is enqueued waits for synchronize; the order of branches; the thread of host nodes
 *   strict_memory.c  regions: memory that only opens while a node runs that declares it
 *   strict_guard.c   around each node: what it may not read is closed or poison, what it may not write is looked at afterwards
 *
 * Memory that a context creates lies in pages of its own, which are closed (mprotect) unless a running node declares them. A node
 * that touches a closed page is let through by a handler of SIGSEGV, which remembers the page: its plane is then named in an error.
 * The same touch outside of nodes goes to the handler there was before, which as a rule ends the program at the very line.
 *
 * What cannot be seen: an undeclared read of a part of a plane of which another part is declared, or of wrapped memory; it reads
 * poison (every byte 0xFF: as a real a NaN, as an integer -1) where a part is declared. A write of poison onto poison. While
 * enqueued work runs, no other thread of the caller's may touch memory of the context's planes.
 */
#ifndef PN_GRAPH_STRICT_H
#define PN_GRAPH_STRICT_H

#include "graph/graph.h"

enum { PN_POISON = 0xFF };

typedef struct pn_strict pn_strict;

/* ---- strict_memory.c ------------------------------------------------------------------------------------------------------- */

typedef enum pn_access { PN_ACCESS_NONE, PN_ACCESS_READ, PN_ACCESS_WRITE } pn_access; /* WRITE includes READ */

/* Pages of one allocation, and a closed one behind them. */
typedef struct pn_region {
    struct pn_region *next; /* of all regions of the process */
    pn_strict *owner;
    pn_access rest; /* outside of nodes: NONE for device memory, WRITE for host memory */
    unsigned char *address;
    size_t used, bytes;         /* asked for; whole pages: what lies between is poison */
    pn_access access;           /* now */
    bool was_read, was_written; /* by a node that this region was not opened to */
} pn_region;

pinn_status pn_regions_initialise(void);                                                    /* installs the handler, once */
pinn_status pn_region_create(pn_strict *owner, pinn_place place, size_t bytes, void **out); /* zeroed */
void pn_region_destroy(void *address);
pn_region *pn_region_find(const void *address); /* NULL when it lies in none */
void pn_region_set(pn_region *region, pn_access access);
/* The access a node took without leave since the last call; a region with any is closed again. */
pn_access pn_region_take_trespass(pn_region *region);

/* ---- strict_guard.c -------------------------------------------------------------------------------------------------------- */

/* Memory of one or more planes that no other span overlaps: a region, or memory of the caller's. */
typedef struct pn_span {
    unsigned char *address;
    size_t bytes;
    pn_region *region;    /* NULL for the caller's memory */
    unsigned char *saved; /* [bytes], what the running node must leave alone; NULL until needed */
    unsigned declared;    /* what the running node declares of it */
    bool only_read;       /* and that is all of a region, read: protection is enough, nothing is poisoned */
} pn_span;

struct pn_strict {
    pinn_context *context;
    uint64_t random;     /* state of the generator of orders */
    atomic_bool in_node; /* a node's code may be running: its trespasses are let through */
    pn_span *span;       /* [spans], while enqueued work runs */
    size_t spans, span_capacity;
    bool broken; /* a node broke its declaration: as after an illegal access on a GPU nothing runs any more */
    char why[1024];
    struct pn_job *job; /* [jobs], enqueued and not run */
    size_t jobs, job_capacity;
    struct pn_veil *veil; /* [veils], host memory that shows poison until the next wait */
    size_t veils, veil_capacity;
};

/* Around the running of enqueued work: all memory of the context closes, then opens again as far as it rests open. */
pinn_status pn_guard_begin(pn_strict *strict);
void pn_guard_end(pn_strict *strict);
/* Around one node. `open` fails when memory is short; `close` with what the node did beyond its declaration, and from then on. */
pinn_status pn_guard_open(pn_strict *strict, const pn_graph_node *node);
pinn_status pn_guard_close(pn_strict *strict, const pn_graph_node *node);
/* Breaks the context, unless it is broken: PINN_REFUSED with the words, kept for all later calls. */
pinn_status pn_strict_break(pn_strict *strict, const char *format, ...) __attribute__((format(printf, 2, 3), cold));
pinn_status pn_strict_check(const pn_strict *strict); /* PINN_OK, or the failure that broke the context */

#endif
