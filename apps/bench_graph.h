/* pinn-bench graph: what the graph layer itself costs. See docs/bench.md. */
#ifndef BENCH_GRAPH_H
#define BENCH_GRAPH_H

#include "pinn_graph.h"

enum { BENCH_KERNELS = 11, BENCH_BODY = 4, BENCH_TRIPS = 500 }; /* kernels a step; steps a trip; trips of a loop */

#ifdef __cplusplus
extern "C" {
#endif

/* The subcommand, its own name as argument 0. Returns the program's exit status. */
int bench_graph(int count, char **argument);

typedef struct bench_sizes {
    uint32_t count; /* of x, float */
    uint32_t trips; /* of the loop */
} bench_sizes;

/* The device's words of the loop. */
typedef struct bench_words {
    uint32_t going, left;
} bench_words;

pinn_status bench_small_cuda(
    const pinn_run *run); /* the small kernel: x[i] = x[i]/2 + 1; in place, so each depends on the one before */
pinn_status bench_last_cuda(const pinn_run *run); /* the same as a body's last kernel: also counts bench_words down */
pinn_status bench_set_cuda(const pinn_run *run);  /* bench_words = {1, trips} */

/* ---- lists ---- */

typedef struct graph_bench {
    pinn_context *context;
    const char *executor;
    pinn_graph *graph;
    pinn_plane *x, *words, *home; /* device [count] float; device bench_words; pinned bench_words */
    bench_sizes sizes;
    int repeats;
    double seconds; /* a repetition */
    uint64_t looks; /* of the host node */
} graph_bench;

/* Records b->graph anew. A recording call that fails makes the build fail with its message, so only the build is looked at. */
typedef void bench_record(graph_bench *b, uint32_t number);
bench_record bench_record_nodes; /* `number` small kernels */
bench_record bench_record_copy;  /* a step, a copy home and `number` host nodes */
bench_record bench_record_while; /* BENCH_TRIPS trips of BENCH_BODY steps; `number` is not used */
bench_record bench_record_for;

/* `steps` times `kernels` launches of the small kernel on a stream (cudaStream_t), without any list; waits for them. */
pinn_status bench_stream(void *stream, void *x, uint32_t count, uint64_t steps, uint32_t kernels);
/* The newest CUDA that the driver can run: 13000 = 13.0; 0 without a driver. */
int bench_driver_version(void);

#ifdef __cplusplus
}
#endif
#endif
