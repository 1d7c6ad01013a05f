/* Context, graph, planes and operations for the tests of the graph layer. The program that includes it defines DEVICE_FORM(name) as
 * the CUDA form name_cuda or as NULL. What not every program uses is inline.
 */
#ifndef FIXTURE_H
#define FIXTURE_H

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph_cuda_ops.h"
#include "pinn_graph.h"
#include "suite.h"

#define OK(call)                                                                                                   \
    do {                                                                                                           \
        pinn_status returned = (call);                                                                             \
        ck_assert_msg(returned == PINN_OK, "%s: %s: %s", #call, pinn_status_name(returned), pinn_error_message()); \
    } while (0)

/* The call fails with `status`, and its message contains `part`. */
#define FAILS(call, status, part)                                                                                        \
    do {                                                                                                                 \
        pinn_status returned = (call);                                                                                   \
        ck_assert_msg(returned == (status), "%s: %s instead of %s: %s", #call, pinn_status_name(returned),               \
                      pinn_status_name(status), pinn_error_message());                                                   \
        ck_assert_msg(strstr(pinn_error_message(), (part)), "%s: no '%s' in '%s'", #call, (part), pinn_error_message()); \
    } while (0)

/* ---- fixture --------------------------------------------------------------------------------------------------------------- */

static pinn_executor tested;    /* set by main before the suite runs */
static const char *tested_mode; /* the CPU executor's; NULL = inline */
static pinn_context *context;
static pinn_graph *graph;
static char last_message[1024];
static int messages;

static void keep_message(void *user, const char *line) {
    (void)user;
    messages++;
    snprintf(last_message, sizeof last_message, "%s", line);
}

/* PINN_TEST_TOOL=1: the tests run under a tool (compute-sanitizer) that slows each launch and takes device memory itself. */
static inline bool under_tool(void) {
    const char *tool = getenv("PINN_TEST_TOOL");
    return tool && *tool && strcmp(tool, "0") != 0;
}

static pinn_context *new_context(void) {
    pinn_context *made;
    pinn_context_options options = {.executor = tested, .cpu_mode = tested_mode, .message = keep_message};
    OK(pinn_context_create(&options, &made));
    return made;
}

static void set_up(void) {
    messages = 0;
    last_message[0] = 0;
    context = new_context();
    OK(pinn_graph_create(context, "g", &graph));
}

static void tear_down(void) {
    pinn_graph_destroy(graph);
    pinn_context_destroy(context);
}

static pinn_plane *new_plane(const char *name, pinn_place place, size_t bytes) {
    pinn_plane *plane;
    OK(pinn_plane_create(context, name, place, bytes, &plane));
    return plane;
}

static int32_t value_of(const pinn_plane *plane) {
    int32_t value;
    OK(pinn_plane_read(plane, 0, &value, sizeof value));
    return value;
}

static void set_value(pinn_plane *plane, int32_t value) { OK(pinn_plane_write(plane, 0, &value, sizeof value)); }

/* ---- operations ------------------------------------------------------------------------------------------------------------ */

static pinn_status add_cpu(const pinn_run *run) {
    const add_arguments *a = run->arguments;
    int32_t *x = run->write[0];
    for (int32_t i = 0; i < a->count; i++) x[i] += a->amount;
    return PINN_OK;
}

static pinn_status double_cpu(const pinn_run *run) {
    const add_arguments *a = run->arguments;
    const int32_t *x = run->read[0];
    int32_t *y = run->write[0];
    for (int32_t i = 0; i < a->count; i++) y[i] = 2 * x[i];
    return PINN_OK;
}

static pinn_status accumulate_cpu(const pinn_run *run) {
    const add_arguments *a = run->arguments;
    const int32_t *x = run->read[0];
    int32_t *y = run->write[0];
    for (int32_t i = 0; i < a->count; i++) y[i] += x[i];
    return PINN_OK;
}

static pinn_status fill_cpu(const pinn_run *run) {
    const fill_arguments *a = run->arguments;
    memset(run->write[0], a->value, (size_t)a->count);
    return PINN_OK;
}

static const pinn_operation add_operation = {"add", add_cpu, DEVICE_FORM(add)};
static const pinn_operation double_operation = {"double", double_cpu, DEVICE_FORM(double)};
static const pinn_operation accumulate_operation = {"accumulate", accumulate_cpu, DEVICE_FORM(accumulate)};
static const pinn_operation fill_operation = {"fill", fill_cpu, DEVICE_FORM(fill)};

static pinn_status add(pinn_plane *x, int32_t amount) {
    add_arguments arguments = {.count = (int32_t)(pinn_plane_bytes(x) / sizeof(int32_t)), .amount = amount};
    return pinn_graph_operation(graph, &add_operation, &arguments, sizeof arguments, PINN_PLANES(x), PINN_PLANES(x));
}

static inline pinn_status twice(pinn_plane *x, pinn_plane *y) {
    add_arguments arguments = {.count = (int32_t)(pinn_plane_bytes(x) / sizeof(int32_t))};
    return pinn_graph_operation(graph, &double_operation, &arguments, sizeof arguments, PINN_PLANES(x), PINN_PLANES(y));
}

/* y += x; y is read, too. */
static inline pinn_status accumulate(pinn_plane *x, pinn_plane *y) {
    add_arguments arguments = {.count = (int32_t)(pinn_plane_bytes(x) / sizeof(int32_t))};
    return pinn_graph_operation(graph, &accumulate_operation, &arguments, sizeof arguments, PINN_PLANES(x, y), PINN_PLANES(y));
}

static inline pinn_status fill(pinn_plane *x, uint8_t value) {
    fill_arguments arguments;
    memset(&arguments, 0, sizeof arguments); /* padding is part of the signature */
    arguments.count = (int32_t)pinn_plane_bytes(x);
    arguments.value = value;
    return pinn_graph_operation(graph, &fill_operation, &arguments, sizeof arguments, PINN_NO_PLANES, PINN_PLANES(x));
}

/* What explain says below its first line. */
static inline const char *explained_places(void) {
    if (tested != PINN_EXECUTOR_CPU) return "";
    return "  here device nodes run on this CPU and device planes are ordinary memory; places are kept as on a GPU\n";
}

static inline pinn_graph_stats stats_of(const pinn_graph *of) {
    pinn_graph_stats stats;
    pinn_graph_get_stats(of, &stats);
    return stats;
}

/* A host function that counts its calls and fails at one of them. */
typedef struct counter {
    int calls, fail_at; /* fail_at 0 = never */
} counter;

static inline pinn_status count_call(void *user) {
    counter *count = user;
    return ++count->calls == count->fail_at ? PINN_IO : PINN_OK;
}

#endif
