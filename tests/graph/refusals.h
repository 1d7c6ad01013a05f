/* One suite for every executor: what a graph refuses, and what becomes of failures. See conformance.h. */
#ifndef REFUSALS_H
#define REFUSALS_H

#include "block_refusals.h"
#include "conformance.h"
#include "random_blocks.h"

/* ---- recording ------------------------------------------------------------------------------------------------------------- */

START_TEST(empty_graph_is_refused_and_the_next_is_good) {
    pinn_plane *x = new_plane("x", PINN_DEVICE, 4);
    FAILS(pinn_graph_launch(graph, 1), PINN_REFUSED, "nothing was recorded");
    FAILS(pinn_graph_build(graph), PINN_REFUSED, "pinn_graph_begin");
    OK(pinn_graph_begin(graph));
    FAILS(pinn_graph_launch(graph, 1), PINN_REFUSED, "graph 'g' is empty");
    FAILS(pinn_graph_launch(graph, 1), PINN_REFUSED, "nothing was recorded");
    OK(pinn_graph_begin(graph));
    OK(add(x, 1));
    OK(pinn_graph_launch(graph, 1));
    ck_assert_int_eq(value_of(x), 1);
    pinn_plane_destroy(x);
}
END_TEST

START_TEST(recording_needs_begin) {
    pinn_plane *x = new_plane("x", PINN_HOST, 4);
    counter calls = {0};
    FAILS(add(x, 1), PINN_REFUSED, "pinn_graph_begin first");
    FAILS(pinn_graph_copy(graph, x, x), PINN_REFUSED, "pinn_graph_begin first");
    OK(pinn_graph_begin(graph));
    OK(add(x, 1));
    OK(pinn_graph_launch(graph, 1)); /* ends the recording */
    FAILS(pinn_graph_host(graph, "h", count_call, &calls, PINN_NO_PLANES, PINN_NO_PLANES), PINN_REFUSED, "pinn_graph_begin first");
    pinn_plane_destroy(x);
}
END_TEST

START_TEST(mixed_places_are_refused_with_the_copy_to_add) {
    pinn_plane *x = new_plane("x", PINN_DEVICE, 64), *h = new_plane("h", PINN_HOST, 64), *p = new_plane("p", PINN_PINNED, 64);
    OK(pinn_graph_begin(graph));
    FAILS(twice(h, x), PINN_REFUSED,
          "graph 'g', node 1 'double': planes on both sides: 'x' is device, 'h' is host and read. Create a device plane of 64 "
          "bytes, add "
          "pinn_graph_copy(graph, h, <that plane>) before this node and read the copy");
    FAILS(twice(x, p), PINN_REFUSED,
          "'p' is pinned and written. Write a device plane of 64 bytes and add pinn_graph_copy(graph, <that plane>, p) after this "
          "node");
    counter calls = {0};
    FAILS(
        pinn_graph_host(graph, "look", count_call, &calls, PINN_PLANES(p, x), PINN_NO_PLANES), PINN_REFUSED,
        "'look': a host function cannot read device plane 'x': create a pinned plane of 64 bytes, add pinn_graph_copy(graph, x, ");
    FAILS(pinn_graph_host(graph, "look", count_call, &calls, PINN_NO_PLANES, PINN_PLANES(x)), PINN_REFUSED,
          "cannot write device plane 'x'");
    FAILS(pinn_graph_build(graph), PINN_REFUSED, "'h' is host and read"); /* the first failure, again */
    pinn_plane_destroy(x);
    pinn_plane_destroy(h);
    pinn_plane_destroy(p);
}
END_TEST

static const pinn_operation formless = {"formless", NULL, NULL};

START_TEST(bad_operations_are_refused) {
    pinn_plane *x = new_plane("x", PINN_DEVICE, 4), *h = new_plane("h", PINN_HOST, 4), *many[PINN_NODE_PLANES + 1];
    const pinn_operation nameless = {NULL, add_cpu, NULL};
    for (size_t i = 0; i <= PINN_NODE_PLANES; i++) many[i] = x;
    OK(pinn_graph_begin(graph));
    FAILS(pinn_graph_operation(graph, &formless, NULL, 0, PINN_PLANES(x), PINN_NO_PLANES), PINN_REFUSED,
          tested == PINN_EXECUTOR_CPU ? "no CPU form" : "no CUDA form");
    FAILS(pinn_graph_operation(graph, &formless, NULL, 0, PINN_PLANES(h), PINN_NO_PLANES), PINN_REFUSED, "no CPU form");
    FAILS(pinn_graph_operation(graph, &add_operation, NULL, 0, PINN_NO_PLANES, PINN_NO_PLANES), PINN_REFUSED, "without planes");
    FAILS(pinn_graph_operation(graph, &add_operation, NULL, 8, PINN_PLANES(x), PINN_NO_PLANES), PINN_BAD_ARGUMENT,
          "8 bytes of arguments");
    FAILS(pinn_graph_operation(graph, &nameless, NULL, 0, PINN_PLANES(x), PINN_NO_PLANES), PINN_BAD_ARGUMENT, "NULL");
    FAILS(pinn_graph_operation(graph, NULL, NULL, 0, PINN_PLANES(x), PINN_NO_PLANES), PINN_BAD_ARGUMENT, "NULL");
    FAILS(pinn_graph_operation(graph, &add_operation, NULL, 0, ((pinn_planes){many, PINN_NODE_PLANES + 1}), PINN_NO_PLANES),
          PINN_REFUSED, "reads 17 planes, at most 16");
    FAILS(pinn_graph_operation(graph, &add_operation, NULL, 0, ((pinn_planes){NULL, 1}), PINN_NO_PLANES), PINN_BAD_ARGUMENT,
          "NULL");
    FAILS(pinn_graph_operation(graph, &add_operation, NULL, 0, PINN_PLANES(x, NULL), PINN_NO_PLANES), PINN_BAD_ARGUMENT, "plane 2");
    FAILS(pinn_graph_host(graph, NULL, count_call, NULL, PINN_NO_PLANES, PINN_NO_PLANES), PINN_BAD_ARGUMENT, "NULL");
    FAILS(pinn_graph_host(graph, "h", NULL, NULL, PINN_NO_PLANES, PINN_NO_PLANES), PINN_BAD_ARGUMENT, "'h'");
    pinn_plane_destroy(x);
    pinn_plane_destroy(h);
}
END_TEST

START_TEST(sixteen_planes_are_allowed) {
    pinn_plane *x = new_plane("x", PINN_DEVICE, 64), *view[PINN_NODE_PLANES];
    for (size_t i = 0; i < PINN_NODE_PLANES; i++) OK(pinn_plane_view(x, "v", 4 * i, 4, &view[i]));
    pinn_planes all = {view, PINN_NODE_PLANES};
    add_arguments arguments = {.count = 1, .amount = 3};
    OK(pinn_graph_begin(graph));
    OK(pinn_graph_operation(graph, &add_operation, &arguments, sizeof arguments, all, all));
    OK(pinn_graph_launch(graph, 1));
    ck_assert_int_eq(value_of(x), 3);
    for (size_t i = 0; i < PINN_NODE_PLANES; i++) pinn_plane_destroy(view[i]);
    pinn_plane_destroy(x);
}
END_TEST

START_TEST(bad_copies_are_refused) {
    pinn_plane *x = new_plane("x", PINN_DEVICE, 64), *small = new_plane("small", PINN_HOST, 32), *low, *high;
    OK(pinn_plane_view(x, "low", 0, 40, &low));
    OK(pinn_plane_view(x, "high", 24, 40, &high));
    OK(pinn_graph_begin(graph));
    FAILS(pinn_graph_copy(graph, x, small), PINN_REFUSED, "'x' has 64 bytes, 'small' has 32");
    FAILS(pinn_graph_copy(graph, low, high), PINN_REFUSED, "'low' and 'high' overlap in part");
    FAILS(pinn_graph_copy(graph, high, low), PINN_REFUSED, "overlap in part");
    FAILS(pinn_graph_copy(graph, x, NULL), PINN_BAD_ARGUMENT, "NULL");
    pinn_plane_destroy(low);
    pinn_plane_destroy(high);
    pinn_plane_destroy(x);
    pinn_plane_destroy(small);
}
END_TEST

START_TEST(planes_of_another_context_are_refused) {
    pinn_context *other = new_context();
    pinn_plane *foreign, *x = new_plane("x", PINN_DEVICE, 4);
    OK(pinn_plane_create(other, "foreign", PINN_DEVICE, 4, &foreign));
    OK(pinn_graph_begin(graph));
    FAILS(pinn_graph_copy(graph, foreign, x), PINN_REFUSED, "plane 'foreign' belongs to another context");
    FAILS(add(foreign, 1), PINN_REFUSED, "another context");
    pinn_plane_destroy(foreign);
    pinn_plane_destroy(x);
    pinn_context_destroy(other);
}
END_TEST

START_TEST(bad_arguments_are_refused_and_outputs_stay) {
    pinn_plane *x = new_plane("x", PINN_HOST, 8), *kept = x;
    char byte = 0;
    char *text = &byte;
    FAILS(pinn_plane_create(context, "none", PINN_HOST, 0, &kept), PINN_BAD_ARGUMENT, "'none' has no bytes");
    FAILS(pinn_plane_create(context, NULL, PINN_HOST, 1, &kept), PINN_BAD_ARGUMENT, "name");
    FAILS(pinn_plane_create(context, "odd", (pinn_place)9, 1, &kept), PINN_BAD_ARGUMENT, "9 is not a place");
    FAILS(pinn_plane_create(NULL, "x", PINN_HOST, 1, &kept), PINN_BAD_ARGUMENT, "NULL");
    FAILS(pinn_plane_create(context, "huge", PINN_DEVICE, (size_t)1 << 50, &kept), PINN_NO_MEMORY, "plane 'huge'");
    FAILS(pinn_plane_wrap(context, "nowhere", PINN_HOST, NULL, 1, &kept), PINN_BAD_ARGUMENT, "'nowhere'");
    FAILS(pinn_plane_wrap(context, "far", PINN_HOST, &byte, SIZE_MAX, &kept), PINN_BAD_ARGUMENT, "end of memory");
    FAILS(pinn_plane_view(x, "v", 8, 1, &kept), PINN_BAD_ARGUMENT, "[8, 8 + 1)");
    FAILS(pinn_plane_view(x, "v", 1, SIZE_MAX, &kept), PINN_BAD_ARGUMENT, "plane 'x' of 8 bytes");
    FAILS(pinn_plane_view(x, "v", 0, 0, &kept), PINN_BAD_ARGUMENT, "no bytes");
    FAILS(pinn_plane_view(NULL, "v", 0, 1, &kept), PINN_BAD_ARGUMENT, "NULL");
    FAILS(pinn_plane_read(x, 7, &byte, 2), PINN_BAD_ARGUMENT, "[7, 7 + 2)");
    FAILS(pinn_plane_read(x, SIZE_MAX, &byte, 2), PINN_BAD_ARGUMENT, "plane 'x'");
    FAILS(pinn_plane_write(x, 0, NULL, 1), PINN_BAD_ARGUMENT, "NULL");
    FAILS(pinn_graph_launch(NULL, 1), PINN_BAD_ARGUMENT, "NULL");
    FAILS(pinn_graph_begin(NULL), PINN_BAD_ARGUMENT, "NULL");
    FAILS(pinn_graph_explain(NULL, &text), PINN_BAD_ARGUMENT, "NULL");
    ck_assert_ptr_eq(kept, x);
    ck_assert_ptr_eq(text, &byte);
    pinn_context *made = NULL;
    pinn_context_options options = {.executor = (pinn_executor)7};
    FAILS(pinn_context_create(NULL, &made), PINN_BAD_ARGUMENT, "NULL");
    FAILS(pinn_context_create(&options, &made), PINN_BAD_ARGUMENT, "7 is not an executor");
    ck_assert_ptr_null(made);
    pinn_plane_destroy(x);
}
END_TEST

/* ---- failures of host nodes ------------------------------------------------------------------------------------------------ */

START_TEST(host_failure_skips_host_nodes_until_reported) {
    pinn_plane *x = new_plane("x", PINN_DEVICE, 4), *home = new_plane("home", PINN_PINNED, 4);
    counter first = {.fail_at = 3}, second = {0};
    OK(pinn_graph_begin(graph));
    OK(add(x, 1));
    OK(pinn_graph_copy(graph, x, home));
    OK(pinn_graph_host(graph, "first", count_call, &first, PINN_PLANES(home), PINN_NO_PLANES));
    OK(pinn_graph_host(graph, "second", count_call, &second, PINN_PLANES(home), PINN_NO_PLANES));
    OK(pinn_graph_build(graph));
    FAILS(pinn_graph_launch(graph, 10), PINN_HOST_FAILED, "graph 'g', host node 3 'first' failed with PINN_IO");
    ck_assert_msg(strstr(last_message, "'first'"), "%s", last_message);
    ck_assert_int_eq(first.calls, 3);
    ck_assert_int_eq(second.calls, 2);
    ck_assert_int_eq(value_of(x), 10); /* GPU nodes go on */
    ck_assert_int_eq(value_of(home), 10);
    ck_assert_uint_eq(stats_of(graph).completed, 10);
    OK(pinn_graph_launch(graph, 2));
    ck_assert_int_eq(first.calls, 5);
    ck_assert_int_eq(second.calls, 4);
    ck_assert_int_eq(value_of(home), 12);
    pinn_plane_destroy(x);
    pinn_plane_destroy(home);
}
END_TEST

/* Copies are no host nodes, whatever they are made of: from every place to every place they go on. */
START_TEST(host_failure_skips_no_copies) {
    static const pinn_place places[] = {PINN_DEVICE, PINN_PINNED, PINN_HOST};
    counter calls = {.fail_at = 2};
    pinn_plane *x = new_plane("x", PINN_DEVICE, 4), *skipped = new_plane("skipped", PINN_HOST, 4), *from[9], *to[9];
    OK(pinn_graph_begin(graph));
    OK(pinn_graph_host(graph, "fails", count_call, &calls, PINN_NO_PLANES, PINN_NO_PLANES));
    OK(add(skipped, 1));
    OK(add(x, 1));
    for (int i = 0; i < 9; i++) {
        from[i] = new_plane("from", places[i / 3], 4);
        to[i] = new_plane("to", places[i % 3], 4);
        OK(pinn_graph_copy(graph, x, from[i]));
        OK(pinn_graph_copy(graph, from[i], to[i]));
    }
    OK(pinn_graph_build(graph));
    FAILS(pinn_graph_launch(graph, 5), PINN_HOST_FAILED, "host node 1 'fails'");
    ck_assert_int_eq(value_of(skipped), 1);
    for (int i = 0; i < 9; i++) {
        ck_assert_int_eq(value_of(from[i]), 5);
        ck_assert_int_eq(value_of(to[i]), 5);
        pinn_plane_destroy(from[i]);
        pinn_plane_destroy(to[i]);
    }
    pinn_plane_destroy(x);
    pinn_plane_destroy(skipped);
}
END_TEST

START_TEST(host_failure_is_returned_by_the_next_call) {
    pinn_plane *home = new_plane("home", PINN_PINNED, 4);
    counter calls = {.fail_at = 1};
    OK(pinn_graph_begin(graph));
    OK(pinn_graph_host(graph, "fails", count_call, &calls, PINN_PLANES(home), PINN_NO_PLANES));
    OK(pinn_graph_enqueue(graph, 5));
    FAILS(pinn_context_synchronize(context), PINN_HOST_FAILED, "'fails'");
    ck_assert_int_eq(calls.calls, 1);
    OK(pinn_context_synchronize(context));
    calls = (counter){.fail_at = 1};
    OK(pinn_graph_enqueue(graph, 1));
    OK(pinn_plane_read(home, 0, &(int32_t){0}, 4)); /* waits, and leaves the failure to those that return it */
    FAILS(pinn_graph_enqueue(graph, 7), PINN_HOST_FAILED, "'fails'");
    ck_assert_int_eq(calls.calls, 1); /* nothing was enqueued */
    ck_assert_uint_eq(stats_of(graph).enqueued, 6);
    OK(pinn_graph_launch(graph, 7));
    ck_assert_int_eq(calls.calls, 8);
    pinn_plane_destroy(home);
}
END_TEST

static pinn_status fail_form(const pinn_run *run) {
    (void)run;
    return PINN_NUMERIC;
}

START_TEST(failing_host_operation_is_a_host_failure) {
    static const pinn_operation bad = {"bad", fail_form, NULL};
    pinn_plane *h = new_plane("h", PINN_HOST, 4);
    OK(pinn_graph_begin(graph));
    OK(pinn_graph_operation(graph, &bad, NULL, 0, PINN_PLANES(h), PINN_PLANES(h)));
    OK(add(h, 1));
    OK(pinn_graph_build(graph));
    FAILS(pinn_graph_launch(graph, 3), PINN_HOST_FAILED, "host node 1 'bad' failed with PINN_NUMERIC");
    ck_assert_int_eq(value_of(h), 0);
    pinn_plane_destroy(h);
}
END_TEST

/* ---- calls from inside nodes ----------------------------------------------------------------------------------------------- */

typedef struct intruder {
    pinn_plane *plane, *doomed;
    pinn_graph *other;
    pinn_status launch, enqueue, build, begin, synchronize, read, create, context;
    char message[256];
} intruder;

static pinn_status intrude(void *user) {
    intruder *in = user;
    int32_t value;
    pinn_plane *made;
    pinn_context *fresh;
    pinn_context_options options = {.executor = tested, .cpu_mode = tested_mode};
    in->launch = pinn_graph_launch(in->other, 1);
    snprintf(in->message, sizeof in->message, "%s", pinn_error_message());
    in->enqueue = pinn_graph_enqueue(in->other, 1);
    in->build = pinn_graph_build(in->other);
    in->begin = pinn_graph_begin(in->other);
    in->synchronize = pinn_context_synchronize(context);
    in->read = pinn_plane_read(in->plane, 0, &value, sizeof value);
    in->create = pinn_plane_create(context, "made", PINN_HOST, 4, &made);
    in->context = pinn_context_create(&options, &fresh);
    return pinn_plane_bytes(in->plane) == 4 ? PINN_OK : PINN_INTERNAL; /* properties may be read */
}

static void check_refusals(const intruder *in) {
    ck_assert_int_eq((int)in->launch, (int)PINN_REFUSED);
    ck_assert_int_eq((int)in->enqueue, (int)PINN_REFUSED);
    ck_assert_int_eq((int)in->build, (int)PINN_REFUSED);
    ck_assert_int_eq((int)in->begin, (int)PINN_REFUSED);
    ck_assert_int_eq((int)in->synchronize, (int)PINN_REFUSED);
    ck_assert_int_eq((int)in->read, (int)PINN_REFUSED);
    ck_assert_int_eq((int)in->create, (int)PINN_REFUSED);
    ck_assert_int_eq((int)in->context, (int)PINN_REFUSED);
}

static pinn_graph *other_graph(pinn_plane *x) {
    pinn_graph *other, *kept = graph;
    OK(pinn_graph_create(context, "other", &other));
    graph = other;
    OK(pinn_graph_begin(other));
    OK(add(x, 1));
    OK(pinn_graph_build(other));
    graph = kept;
    return other;
}

START_TEST(host_function_cannot_call_back) {
    pinn_plane *x = new_plane("x", PINN_DEVICE, 4);
    intruder in = {.plane = x, .other = other_graph(x)};
    OK(pinn_graph_begin(graph));
    OK(pinn_graph_host(graph, "intruder", intrude, &in, PINN_NO_PLANES, PINN_NO_PLANES));
    OK(pinn_graph_launch(graph, 1));
    check_refusals(&in);
    ck_assert_msg(strstr(in.message, "pinn_graph_launch called from inside host node 'intruder'"), "%s", in.message);
    ck_assert_int_eq(value_of(x), 0);
    OK(pinn_graph_launch(in.other, 1)); /* unharmed */
    ck_assert_int_eq(value_of(x), 1);
    pinn_graph_destroy(in.other);
    pinn_plane_destroy(x);
}
END_TEST

static pinn_status destroy_inside(void *user) {
    pinn_plane_destroy(user);
    return PINN_OK;
}

START_TEST(destroy_from_a_host_function_is_ignored_and_reported) {
    pinn_plane *x = new_plane("x", PINN_HOST, 4);
    OK(pinn_graph_begin(graph));
    OK(pinn_graph_host(graph, "destroyer", destroy_inside, x, PINN_NO_PLANES, PINN_NO_PLANES));
    FAILS(pinn_graph_launch(graph, 1), PINN_HOST_FAILED, "pinn_plane_destroy called from inside host node 'destroyer'");
    ck_assert_int_eq(value_of(x), 0); /* alive */
    pinn_plane_destroy(x);
}
END_TEST

/* An operation's form that calls the library, then adds as usual. */
typedef struct intruder_arguments {
    add_arguments add; /* first: the add forms read it */
    intruder *in;
} intruder_arguments;

static void intrude_from_form(const pinn_run *run) {
    intruder *in = ((const intruder_arguments *)run->arguments)->in;
    if (intrude(in) != PINN_OK) in->launch = PINN_INTERNAL;
    pinn_plane_destroy(in->doomed);
    pinn_graph_destroy(in->other);
}

static pinn_status intrude_cpu(const pinn_run *run) {
    if (((const intruder_arguments *)run->arguments)->in->doomed) intrude_from_form(run);
    ((const intruder_arguments *)run->arguments)->in->doomed = NULL;
    return add_cpu(run);
}

static pinn_status intrude_cuda(const pinn_run *run) {
    if (((const intruder_arguments *)run->arguments)->in->doomed) intrude_from_form(run);
    ((const intruder_arguments *)run->arguments)->in->doomed = NULL;
    pinn_status (*form)(const pinn_run *) = DEVICE_FORM(add);
    return form ? form(run) : PINN_UNSUPPORTED;
}

START_TEST(operation_cannot_call_back_but_may_destroy) {
    static const pinn_operation operation = {"intruder", intrude_cpu, intrude_cuda};
    pinn_plane *x = new_plane("x", PINN_DEVICE, 4), *y = new_plane("y", PINN_DEVICE, 4);
    intruder in = {.plane = x, .other = other_graph(x), .doomed = y};
    intruder_arguments arguments = {.add = {.count = 1, .amount = 5}, .in = &in};
    OK(pinn_graph_begin(graph));
    OK(add(y, 1));
    OK(pinn_graph_operation(graph, &operation, &arguments, sizeof arguments, PINN_PLANES(x), PINN_PLANES(x)));
    OK(add(y, 1)); /* y lives until the launch is over */
    OK(pinn_graph_launch(graph, 1));
    check_refusals(&in);
    ck_assert_int_eq(value_of(x), 5);
    FAILS(pinn_graph_launch(graph, 1), PINN_STALE, "plane 'y'");
    pinn_plane_destroy(x);
}
END_TEST

typedef struct suicide_arguments {
    add_arguments add;
    pinn_graph **graph;
} suicide_arguments;

static void die(const pinn_run *run) {
    pinn_graph **victim = ((const suicide_arguments *)run->arguments)->graph;
    pinn_graph_destroy(*victim);
    *victim = NULL;
}

static pinn_status die_cpu(const pinn_run *run) {
    die(run);
    return add_cpu(run);
}

static pinn_status die_cuda(const pinn_run *run) {
    die(run);
    pinn_status (*form)(const pinn_run *) = DEVICE_FORM(add);
    return form ? form(run) : PINN_UNSUPPORTED;
}

START_TEST(operation_may_destroy_its_own_graph) {
    static const pinn_operation operation = {"suicide", die_cpu, die_cuda};
    pinn_plane *x = new_plane("x", PINN_DEVICE, 4);
    suicide_arguments arguments = {.add = {.count = 1, .amount = 5}, .graph = &graph};
    OK(pinn_graph_begin(graph));
    OK(pinn_graph_operation(graph, &operation, &arguments, sizeof arguments, PINN_PLANES(x), PINN_PLANES(x)));
    OK(pinn_graph_launch(graph, 1));
    ck_assert_int_eq(value_of(x), 5);
    ck_assert_ptr_null(graph);
    pinn_plane_destroy(x);
}
END_TEST

/* An operation whose form launches another context's graph, and the host function that may do so instead. */
typedef struct launcher {
    pinn_graph *other;
} launcher;

static pinn_status launch_from_form(const pinn_run *run) { return pinn_graph_launch(((const launcher *)run->arguments)->other, 1); }

static pinn_status enqueue_from_form(const pinn_run *run) { return pinn_graph_enqueue(((const launcher *)run->arguments)->other, 1); }

static pinn_status launch_from_cut(void *other) { return pinn_graph_launch(other, 1); }

static pinn_graph *graph_with_cut(pinn_context *own, pinn_plane *y, counter *calls) {
    pinn_graph *other, *kept = graph;
    OK(pinn_graph_create(own, "other", &other));
    graph = other;
    OK(pinn_graph_begin(other));
    OK(add(y, 1));
    OK(pinn_graph_eager(other, "cut", count_call, calls, PINN_PLANES(y), PINN_NO_PLANES));
    graph = kept;
    return other;
}

/* On CUDA the cut would wait for the capture that its own thread holds open, for ever. The other graph is first only recorded, then
 * built; nothing of it runs. */
START_TEST(operation_cannot_launch_a_graph_with_an_eager_cut) {
    static const pinn_operation operations[] = {{"launches", launch_from_form, launch_from_form},
                                                {"enqueues", enqueue_from_form, enqueue_from_form}};
    pinn_context *own = new_context();
    pinn_plane *x = new_plane("x", PINN_DEVICE, 4), *y;
    counter calls = {0};
    OK(pinn_plane_create(own, "y", PINN_DEVICE, 4, &y));
    launcher arguments = {.other = graph_with_cut(own, y, &calls)};
    for (int i = 0; i < 4; i++) {
        char expected[128];
        OK(pinn_graph_begin(graph));
        OK(pinn_graph_operation(graph, &operations[i % 2], &arguments, sizeof arguments, PINN_PLANES(x), PINN_PLANES(x)));
        snprintf(expected, sizeof expected, "graph 'other', node 2 'cut': an eager cut cannot run inside operation '%s'",
                 operations[i % 2].name);
        FAILS(pinn_graph_launch(graph, 1), PINN_REFUSED, expected);
        ck_assert_msg(strstr(pinn_error_message(), "graph 'g', node 1"), "%s", pinn_error_message());
        ck_assert_uint_eq(stats_of(arguments.other).enqueued, (uint64_t)(i / 2));
        if (i % 2) OK(pinn_graph_launch(arguments.other, 1)); /* outside of the operation, as the message says */
        ck_assert_int_eq(calls.calls, (i + 1) / 2);
    }
    OK(pinn_graph_begin(graph));
    OK(pinn_graph_eager(graph, "outer cut", launch_from_cut, arguments.other, PINN_NO_PLANES, PINN_NO_PLANES));
    OK(pinn_graph_launch(graph, 2));
    ck_assert_int_eq(calls.calls, 4);
    ck_assert_int_eq(value_of(y), 4);
    pinn_graph_destroy(arguments.other);
    pinn_plane_destroy(x);
    pinn_plane_destroy(y);
    pinn_context_destroy(own);
}
END_TEST

static TCase *refusal_case(void) {
    TCase *tests = tcase_create("refusals");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 10); /* a call that should fail at once and waits instead is a failure */
    tcase_add_test(tests, empty_graph_is_refused_and_the_next_is_good);
    tcase_add_test(tests, recording_needs_begin);
    tcase_add_test(tests, mixed_places_are_refused_with_the_copy_to_add);
    tcase_add_test(tests, bad_operations_are_refused);
    tcase_add_test(tests, sixteen_planes_are_allowed);
    tcase_add_test(tests, bad_copies_are_refused);
    tcase_add_test(tests, planes_of_another_context_are_refused);
    tcase_add_test(tests, bad_arguments_are_refused_and_outputs_stay);
    tcase_add_test(tests, host_failure_skips_host_nodes_until_reported);
    tcase_add_test(tests, host_failure_skips_no_copies);
    tcase_add_test(tests, host_failure_is_returned_by_the_next_call);
    tcase_add_test(tests, failing_host_operation_is_a_host_failure);
    tcase_add_test(tests, host_function_cannot_call_back);
    tcase_add_test(tests, destroy_from_a_host_function_is_ignored_and_reported);
    tcase_add_test(tests, operation_cannot_call_back_but_may_destroy);
    tcase_add_test(tests, operation_may_destroy_its_own_graph);
    tcase_add_test(tests, operation_cannot_launch_a_graph_with_an_eager_cut);
    return tests;
}

/* Runs everything on `executor`; returns an exit status. With nofork, in this process. */
static int run_conformance(pinn_executor executor, const char *name, bool nofork) {
    tested = executor;
    Suite *suite = suite_create(name);
    suite_add_tcase(suite, behaviour_case());
    suite_add_tcase(suite, refusal_case());
    suite_add_tcase(suite, control_case());
    suite_add_tcase(suite, branch_case());
    suite_add_tcase(suite, block_refusal_case());
    suite_add_tcase(suite, random_case());
    return nofork ? suite_run_nofork(suite) : suite_run(suite);
}

#endif
