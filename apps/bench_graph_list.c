/* The operations and the recorded lists of `pinn-bench graph`. */
#include "bench_graph.h"

/* ---- operations ---------------------------------------------------------------------------------------------------------- */

static pinn_status small_cpu(const pinn_run *run) {
    const bench_sizes *s = run->arguments;
    float *x = run->write[0];
    for (uint32_t i = 0; i < s->count; i++) x[i] = 0.5f * x[i] + 1;
    return PINN_OK;
}

static pinn_status last_cpu(const pinn_run *run) {
    bench_words *words = run->write[1];
    words->left -= words->left > 0;
    words->going = words->left > 0;
    return small_cpu(run);
}

static pinn_status set_cpu(const pinn_run *run) {
    const bench_sizes *s = run->arguments;
    *(bench_words *)run->write[0] = (bench_words){1, s->trips};
    return PINN_OK;
}

#ifdef PINN_HAVE_CUDA
#define CUDA_FORM(form) form
#else
#define CUDA_FORM(form) NULL
#endif

static const pinn_operation small = {"small", small_cpu, CUDA_FORM(bench_small_cuda)},
                            last = {"last", last_cpu, CUDA_FORM(bench_last_cuda)},
                            set = {"set", set_cpu, CUDA_FORM(bench_set_cuda)};

static pinn_status look(void *user) {
    ((graph_bench *)user)->looks++;
    return PINN_OK;
}

/* ---- lists --------------------------------------------------------------------------------------------------------------- */

static void put_small(graph_bench *b, uint32_t nodes) {
    for (uint32_t k = 0; k < nodes; k++)
        pinn_graph_operation(b->graph, &small, &b->sizes, sizeof b->sizes, PINN_PLANES(b->x), PINN_PLANES(b->x));
}

void bench_record_nodes(graph_bench *b, uint32_t nodes) {
    pinn_graph_begin(b->graph);
    put_small(b, nodes);
}

void bench_record_while(graph_bench *b, uint32_t unused) {
    (void)unused;
    pinn_graph_begin(b->graph);
    pinn_graph_operation(b->graph, &set, &b->sizes, sizeof b->sizes, PINN_NO_PLANES, PINN_PLANES(b->words));
    pinn_graph_while(b->graph, "while", b->words, BENCH_TRIPS, NULL);
    put_small(b, BENCH_BODY * BENCH_KERNELS - 1);
    pinn_graph_operation(b->graph, &last, &b->sizes, sizeof b->sizes, PINN_PLANES(b->x, b->words), PINN_PLANES(b->x, b->words));
    pinn_graph_end(b->graph);
}

void bench_record_for(graph_bench *b, uint32_t unused) {
    (void)unused;
    pinn_graph_begin(b->graph);
    pinn_graph_for(b->graph, "for", BENCH_TRIPS, NULL);
    put_small(b, BENCH_BODY * BENCH_KERNELS);
    pinn_graph_end(b->graph);
}

void bench_record_copy(graph_bench *b, uint32_t looks) {
    bench_record_nodes(b, BENCH_KERNELS);
    pinn_graph_copy(b->graph, b->words, b->home);
    for (uint32_t k = 0; k < looks; k++) pinn_graph_host(b->graph, "look", look, b, PINN_PLANES(b->home), PINN_NO_PLANES);
}
