/* Runs one operation of kernels/ for a test: its CPU form by hand, or recorded in a graph on any executor. */
#ifndef TEST_KERNELS_OPERATION_H
#define TEST_KERNELS_OPERATION_H

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "pinn_graph.h"
#include "suite.h"

#define ck_ok(call)                                                                                       \
    do {                                                                                                  \
        pinn_status ck_status = (call);                                                                   \
        ck_assert_msg(ck_status == PINN_OK, "%s: %s", pinn_status_name(ck_status), pinn_error_message()); \
    } while (0)

#define ADDRESSES(...) ((void *const[]){__VA_ARGS__})

static inline void operation_cpu(const pinn_operation *operation, const void *arguments, void *const *read, void *const *write) {
    const pinn_run run = {.arguments = arguments, .read = read, .write = write};
    ck_ok(operation->cpu(&run));
}

static inline pinn_context *operation_context(pinn_executor executor) {
    const pinn_context_options options = {.executor = executor};
    pinn_context *context;
    ck_ok(pinn_context_create(&options, &context));
    return context;
}

enum { BUFFERS = 12 };

/* An operation on its buffers: `reads` of them are read in order, then buffers are written as `write` numbers them. */
typedef struct operation_case {
    const pinn_operation *operation;
    const void *arguments;
    size_t argument_bytes;
    const void *buffer[BUFFERS]; /* initial bytes; NULL = zero */
    size_t bytes[BUFFERS];
    size_t buffers, reads;
    size_t write[BUFFERS], writes;
} operation_case;

/* Records the operation alone in a graph, replays it, gives back every buffer's bytes (malloc). */
static inline void operation_run(const operation_case *c, pinn_executor executor, uint64_t times, void *out[BUFFERS]) {
    pinn_context *context = operation_context(executor);
    pinn_plane *plane[BUFFERS], *written[BUFFERS];
    pinn_graph *graph;
    for (size_t i = 0; i < c->buffers; i++) {
        ck_ok(pinn_plane_create(context, "buffer", PINN_DEVICE, c->bytes[i], &plane[i]));
        if (c->buffer[i]) ck_ok(pinn_plane_write(plane[i], 0, c->buffer[i], c->bytes[i]));
    }
    for (size_t i = 0; i < c->writes; i++) written[i] = plane[c->write[i]];
    ck_ok(pinn_graph_create(context, "operation", &graph));
    ck_ok(pinn_graph_begin(graph));
    ck_ok(pinn_graph_operation(graph, c->operation, c->arguments, c->argument_bytes, (pinn_planes){plane, c->reads},
                               (pinn_planes){written, c->writes}));
    ck_ok(pinn_graph_launch(graph, times));
    for (size_t i = 0; i < c->buffers; i++) {
        out[i] = malloc(c->bytes[i]);
        ck_ok(pinn_plane_read(plane[i], 0, out[i], c->bytes[i]));
    }
    pinn_graph_destroy(graph);
    for (size_t i = 0; i < c->buffers; i++) pinn_plane_destroy(plane[i]);
    pinn_context_destroy(context);
}

static inline void operation_free(const operation_case *c, void *out[BUFFERS]) {
    for (size_t i = 0; i < c->buffers; i++) free(out[i]);
}

/* Deterministic test numbers in [-1, 1), from splitmix64 (G. Steele et al. 2014). */
static inline double test_number(uint64_t *state) {
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (double)(int64_t)(z ^ z >> 31) * 0x1p-63;
}

#endif
