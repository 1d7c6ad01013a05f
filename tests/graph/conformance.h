/* One suite for every executor: what a graph does. Run by test_graph.c (CPU) and test_graph_cuda.c (graph, eager).
 * refusals.h is the other half: what a graph refuses. control.h, branches.h and block_refusals.h are the same for if, while, for
 * and fork.
 *
 * All arithmetic is on integers, so every comparison is exact.
 */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include "fixture.h"

/* ---- running --------------------------------------------------------------------------------------------------------------- */

START_TEST(first_launch_runs_once) {
    pinn_plane *x = new_plane("x", PINN_DEVICE, 400);
    OK(pinn_graph_begin(graph));
    OK(add(x, 3));
    ck_assert_int_eq(value_of(x), 0); /* recording changes nothing */
    ck_assert(!pinn_graph_is_built(graph));
    OK(pinn_graph_launch(graph, 1));
    ck_assert_int_eq(value_of(x), 3);
    ck_assert(pinn_graph_is_built(graph));
    OK(pinn_graph_launch(graph, 1));
    ck_assert_int_eq(value_of(x), 6);
    OK(pinn_graph_launch(graph, 0));
    ck_assert_int_eq(value_of(x), 6);
    int32_t all[100];
    OK(pinn_plane_read(x, 0, all, sizeof all));
    for (int i = 0; i < 100; i++) ck_assert_int_eq(all[i], 6);
    pinn_plane_destroy(x);
}
END_TEST

START_TEST(build_alone_runs_nothing) {
    pinn_plane *x = new_plane("x", PINN_DEVICE, 4);
    OK(pinn_graph_begin(graph));
    OK(add(x, 1));
    OK(pinn_graph_build(graph));
    ck_assert_int_eq(value_of(x), 0);
    OK(pinn_graph_build(graph)); /* nothing recorded since: nothing to do */
    ck_assert_uint_eq(stats_of(graph).builds, 1);
    OK(pinn_graph_launch(graph, 5));
    ck_assert_int_eq(value_of(x), 5);
    pinn_plane_destroy(x);
}
END_TEST

START_TEST(replays_read_current_contents) {
    pinn_plane *x = new_plane("x", PINN_DEVICE, 4), *y = new_plane("y", PINN_DEVICE, 4);
    OK(pinn_graph_begin(graph));
    OK(twice(x, y));
    OK(pinn_graph_build(graph));
    for (int32_t i = 1; i <= 10; i++) {
        set_value(x, i * i);
        OK(pinn_graph_launch(graph, 1));
        ck_assert_int_eq(value_of(y), 2 * i * i);
    }
    ck_assert_uint_eq(stats_of(graph).builds, 1);
    pinn_plane_destroy(x);
    pinn_plane_destroy(y);
}
END_TEST

START_TEST(program_order_is_kept) {
    pinn_plane *x = new_plane("x", PINN_DEVICE, 4), *y = new_plane("y", PINN_DEVICE, 4);
    OK(pinn_graph_begin(graph));
    OK(add(x, 1));
    OK(twice(x, y));
    OK(pinn_graph_copy(graph, y, x));
    OK(add(x, 5));
    /* x -> 2(x+1) + 5 */
    int32_t expected = 0;
    for (int i = 0; i < 8; i++) expected = 2 * (expected + 1) + 5;
    OK(pinn_graph_launch(graph, 8));
    ck_assert_int_eq(value_of(x), expected);
    pinn_plane_destroy(x);
    pinn_plane_destroy(y);
}
END_TEST

START_TEST(k_launches_of_one_are_one_of_k) {
    pinn_plane *x = new_plane("x", PINN_DEVICE, 4), *y = new_plane("y", PINN_DEVICE, 4);
    OK(pinn_graph_begin(graph));
    OK(add(x, 7));
    for (int i = 0; i < 20; i++) OK(pinn_graph_launch(graph, 1));
    OK(pinn_graph_begin(graph));
    OK(add(y, 7));
    OK(pinn_graph_launch(graph, 20));
    ck_assert_int_eq(value_of(x), 140);
    ck_assert_int_eq(value_of(y), 140);
    pinn_plane_destroy(x);
    pinn_plane_destroy(y);
}
END_TEST

START_TEST(counters_count) {
    pinn_plane *x = new_plane("x", PINN_DEVICE, 4), *home = new_plane("home", PINN_PINNED, 4);
    counter calls = {0};
    OK(pinn_graph_begin(graph));
    OK(add(x, 1));
    OK(pinn_graph_copy(graph, x, home));
    OK(add(home, 1));
    OK(pinn_graph_host(graph, "look", count_call, &calls, PINN_PLANES(home), PINN_NO_PLANES));
    pinn_graph_stats stats = stats_of(graph);
    ck_assert_uint_eq(stats.gpu_nodes, 1);
    ck_assert_uint_eq(stats.copies, 1);
    ck_assert_uint_eq(stats.host_nodes, 2);
    ck_assert_uint_eq(stats.builds + stats.enqueued + stats.completed, 0);
    OK(pinn_graph_enqueue(graph, 3));
    ck_assert_uint_eq(stats_of(graph).enqueued, 3);
    OK(pinn_context_synchronize(context));
    ck_assert_uint_eq(stats_of(graph).completed, 3);
    OK(pinn_graph_launch(graph, 4));
    stats = stats_of(graph);
    ck_assert_uint_eq(stats.enqueued, 7);
    ck_assert_uint_eq(stats.completed, 7);
    ck_assert_int_eq(calls.calls, 7);
    ck_assert_int_eq(value_of(home), 8);
    pinn_graph_invalidate(graph);
    ck_assert_uint_eq(stats_of(graph).enqueued, 7); /* counters survive */
    ck_assert_uint_eq(stats_of(graph).builds, 1);
    pinn_plane_destroy(x);
    pinn_plane_destroy(home);
}
END_TEST

/* ---- rebuilding ------------------------------------------------------------------------------------------------------------ */

START_TEST(same_list_costs_nothing_changed_list_one_build) {
    pinn_plane *x = new_plane("x", PINN_DEVICE, 4), *y = new_plane("y", PINN_DEVICE, 4), *home = new_plane("home", PINN_HOST, 4);
    counter calls = {0}, other = {0};
    struct {
        pinn_plane *plane;
        int32_t amount;
        counter *user;
        int nodes;
        const char *reason;
    } cases[] = {
        {x, 1, &calls, 2, "first build"},        {x, 1, &calls, 2, NULL},
        {x, 2, &calls, 2, "arguments changed"},  {x, 2, &calls, 2, NULL},
        {y, 2, &calls, 2, "another allocation"}, {y, 2, &other, 2, "user pointer changed"},
        {y, 2, &other, 3, "3 nodes, was 2"},     {y, 2, &other, 3, NULL},
        {y, 2, &other, 2, "2 nodes, was 3"},
    };
    uint64_t builds = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        messages = 0;
        OK(pinn_graph_begin(graph));
        OK(add(cases[i].plane, cases[i].amount));
        OK(pinn_graph_host(graph, "h", count_call, cases[i].user, PINN_PLANES(home), PINN_NO_PLANES));
        if (cases[i].nodes == 3) OK(add(x, 1));
        OK(pinn_graph_launch(graph, 1));
        if (cases[i].reason) builds++;
        ck_assert_uint_eq(stats_of(graph).builds, builds);
        ck_assert_int_eq(messages, cases[i].reason != NULL);
        if (cases[i].reason) ck_assert_msg(strstr(last_message, cases[i].reason), "case %zu: '%s'", i, last_message);
    }
    pinn_graph_invalidate(graph);
    ck_assert(!pinn_graph_is_built(graph));
    OK(pinn_graph_begin(graph));
    OK(add(x, 1));
    OK(pinn_graph_build(graph));
    ck_assert(strstr(last_message, "invalidated"));
    pinn_plane_destroy(x);
    pinn_plane_destroy(y);
    pinn_plane_destroy(home);
}
END_TEST

START_TEST(freed_plane_is_stale_even_at_the_same_address) {
    pinn_plane *x = new_plane("weights", PINN_DEVICE, 4096);
    uint64_t generation = pinn_plane_generation(x);
    OK(pinn_graph_begin(graph));
    OK(add(x, 1));
    OK(pinn_graph_launch(graph, 1));
    pinn_plane_destroy(x);
    x = new_plane("weights", PINN_DEVICE, 4096);
    ck_assert_uint_ne(pinn_plane_generation(x), generation);
    for (int i = 0; i < 2; i++) {
        FAILS(pinn_graph_launch(graph, 1), PINN_STALE, "'weights'");
        FAILS(pinn_graph_enqueue(graph, 1), PINN_STALE, "node 1 'add'");
        FAILS(pinn_graph_build(graph), PINN_STALE, "record the graph again");
    }
    ck_assert_int_eq(value_of(x), 0);
    OK(pinn_graph_begin(graph));
    OK(add(x, 1));
    OK(pinn_graph_launch(graph, 1));
    ck_assert(strstr(last_message, "plane 'weights' is another allocation"));
    ck_assert_int_eq(value_of(x), 1);
    pinn_plane *other = new_plane("other", PINN_DEVICE, 4);
    pinn_plane_destroy(other); /* not the graph's: it stays launchable */
    OK(pinn_graph_launch(graph, 1));
    pinn_plane_destroy(x);
}
END_TEST

START_TEST(plane_freed_between_recording_and_build_is_stale) {
    pinn_plane *x = new_plane("x", PINN_DEVICE, 8), *half, *gone = new_plane("gone", PINN_DEVICE, 4);
    OK(pinn_plane_view(x, "half", 4, 4, &half));
    OK(pinn_graph_begin(graph));
    OK(add(gone, 1));
    pinn_plane_destroy(gone);
    FAILS(pinn_graph_build(graph), PINN_STALE, "'gone'");
    OK(pinn_graph_begin(graph));
    OK(add(half, 1));
    OK(pinn_graph_launch(graph, 1));
    pinn_plane_destroy(x);
    FAILS(pinn_graph_launch(graph, 1), PINN_STALE, "'half'");
    FAILS(pinn_plane_write(half, 0, "abcd", 4), PINN_STALE, "'half'");
    OK(pinn_graph_begin(graph));
    FAILS(add(half, 1), PINN_STALE, "'half'");
    pinn_plane_destroy(half);
}
END_TEST

START_TEST(destroyed_view_leaves_graph_valid) {
    pinn_plane *x = new_plane("x", PINN_DEVICE, 8), *half;
    OK(pinn_plane_view(x, "half", 4, 4, &half));
    ck_assert_uint_eq(pinn_plane_generation(half), pinn_plane_generation(x));
    OK(pinn_graph_begin(graph));
    OK(add(half, 1));
    OK(pinn_graph_build(graph));
    pinn_plane_destroy(half);
    OK(pinn_graph_launch(graph, 2));
    int32_t both[2];
    OK(pinn_plane_read(x, 0, both, sizeof both));
    ck_assert_int_eq(both[0], 0);
    ck_assert_int_eq(both[1], 2);
    pinn_plane_destroy(x);
}
END_TEST

START_TEST(failed_build_keeps_the_old_executable) {
    pinn_plane *x = new_plane("x", PINN_DEVICE, 4), *host = new_plane("host", PINN_HOST, 4);
    OK(pinn_graph_begin(graph));
    OK(add(x, 1));
    OK(pinn_graph_launch(graph, 1));
    OK(pinn_graph_begin(graph));
    OK(add(x, 100));
    FAILS(twice(x, host), PINN_REFUSED, "both sides");
    FAILS(pinn_graph_launch(graph, 1), PINN_REFUSED, "node 2 'double': planes on both sides"); /* though its status was dropped */
    OK(pinn_graph_launch(graph, 1));
    ck_assert_int_eq(value_of(x), 2);
    OK(pinn_graph_begin(graph));
    FAILS(pinn_graph_build(graph), PINN_REFUSED, "empty");
    OK(pinn_graph_launch(graph, 1));
    ck_assert_int_eq(value_of(x), 3);
    ck_assert_uint_eq(stats_of(graph).builds, 1);
    pinn_plane_destroy(x);
    pinn_plane_destroy(host);
}
END_TEST

/* ---- copies and planes ----------------------------------------------------------------------------------------------------- */

START_TEST(copies_go_every_way) {
    static const pinn_place places[] = {PINN_DEVICE, PINN_PINNED, PINN_HOST};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) {
            pinn_plane *from = new_plane("from", places[i], 4), *to = new_plane("to", places[k], 4);
            OK(pinn_graph_begin(graph));
            OK(pinn_graph_copy(graph, from, to));
            OK(pinn_graph_build(graph));
            for (int32_t n = 1; n < 4; n++) { /* each replay reads what the source holds now */
                set_value(from, 10 * n + i + k);
                OK(pinn_graph_launch(graph, 1));
                ck_assert_int_eq(value_of(to), 10 * n + i + k);
            }
            pinn_plane_destroy(from);
            pinn_plane_destroy(to);
        }
}
END_TEST

START_TEST(host_nodes_and_copies_keep_order) {
    static const pinn_place places[] = {PINN_PINNED, PINN_HOST};
    for (int i = 0; i < 4; i++) {
        pinn_plane *host = new_plane("host", places[i % 2], 4), *x = new_plane("x", PINN_DEVICE, 4),
                   *back = new_plane("back", places[i / 2], 4);
        OK(pinn_graph_begin(graph));
        OK(add(host, 1));
        OK(pinn_graph_copy(graph, host, x));
        OK(add(x, 10));
        OK(pinn_graph_copy(graph, x, back));
        OK(twice(back, host));
        int32_t expected = 0;
        for (int k = 0; k < 6; k++) expected = 2 * (expected + 1 + 10);
        OK(pinn_graph_launch(graph, 6));
        ck_assert_int_eq(value_of(host), expected);
        pinn_plane_destroy(host);
        pinn_plane_destroy(x);
        pinn_plane_destroy(back);
    }
}
END_TEST

/* Copies of different sizes in one list, each changed by a host node just before: none gets another's bytes or an old state. */
START_TEST(pageable_copies_of_many_sizes_do_not_mix) {
    enum { COPIES = 6, REPLAYS = 9 };
    pinn_plane *in[COPIES], *x[COPIES], *out[COPIES];
    OK(pinn_graph_begin(graph));
    for (int i = 0; i < COPIES; i++) {
        const size_t bytes = (size_t)4 << (3 * ((5 * i) % COPIES)); /* 4 bytes to 128 KiB, small ones after large ones */
        in[i] = new_plane("in", PINN_HOST, bytes);
        x[i] = new_plane("x", PINN_DEVICE, bytes);
        out[i] = new_plane("out", PINN_HOST, bytes);
        OK(add(in[i], i + 1));
        OK(pinn_graph_copy(graph, in[i], x[i]));
    }
    for (int i = 0; i < COPIES; i++) {
        OK(add(x[i], 100));
        OK(pinn_graph_copy(graph, x[i], out[i]));
        OK(add(out[i], 1000));
    }
    OK(pinn_graph_enqueue(graph, REPLAYS - 1));
    OK(pinn_graph_launch(graph, 1));
    for (int i = 0; i < COPIES; i++) {
        const int32_t *got = pinn_plane_address(out[i]);
        for (size_t k = 0; k < pinn_plane_bytes(out[i]) / 4; k++) ck_assert_int_eq(got[k], REPLAYS * (i + 1) + 1100);
        pinn_plane_destroy(in[i]);
        pinn_plane_destroy(x[i]);
        pinn_plane_destroy(out[i]);
    }
}
END_TEST

START_TEST(copy_onto_itself_is_nothing) {
    pinn_plane *x = new_plane("x", PINN_DEVICE, 8), *same;
    OK(pinn_plane_view(x, "same", 0, 8, &same));
    set_value(x, 42);
    OK(pinn_graph_begin(graph));
    OK(pinn_graph_copy(graph, x, x));
    OK(pinn_graph_copy(graph, x, same));
    OK(pinn_graph_launch(graph, 3)); /* alone, too, it is a graph */
    ck_assert_int_eq(value_of(x), 42);
    ck_assert_uint_eq(stats_of(graph).completed, 3);
    ck_assert_uint_eq(stats_of(graph).copies, 2);
    pinn_plane_destroy(same);
    pinn_plane_destroy(x);
}
END_TEST

START_TEST(one_byte_views_touch_one_byte) {
    pinn_plane *x = new_plane("x", PINN_DEVICE, 8), *byte[8];
    OK(pinn_graph_begin(graph));
    for (size_t i = 0; i < 8; i++) OK(pinn_plane_view(x, "byte", i, 1, &byte[i]));
    for (size_t i = 1; i < 8; i += 2) OK(fill(byte[i], (uint8_t)(10 + i)));
    OK(pinn_graph_copy(graph, byte[1], byte[0])); /* neighbours do not overlap */
    OK(pinn_graph_launch(graph, 1));
    uint8_t got[8], expected[8] = {11, 11, 0, 13, 0, 15, 0, 17};
    OK(pinn_plane_read(x, 0, got, 8));
    ck_assert_mem_eq(got, expected, 8);
    for (size_t i = 0; i < 8; i++) pinn_plane_destroy(byte[i]);
    pinn_plane_destroy(x);
}
END_TEST

START_TEST(planes_are_zeroed_and_aligned) {
    static const pinn_place places[] = {PINN_DEVICE, PINN_PINNED, PINN_HOST};
    for (int i = 0; i < 3; i++) {
        char got[100], zero[100] = {0}, part[10];
        pinn_plane *x = new_plane("x", places[i], 100);
        ck_assert_uint_eq((uintptr_t)pinn_plane_address(x) % 256, 0);
        ck_assert_uint_eq(pinn_plane_bytes(x), 100);
        ck_assert_int_eq((int)pinn_plane_place(x), (int)places[i]);
        ck_assert_str_eq(pinn_plane_name(x), "x");
        OK(pinn_plane_read(x, 0, got, 100));
        ck_assert_mem_eq(got, zero, 100);
        OK(pinn_plane_write(x, 90, "0123456789", 10));
        OK(pinn_plane_read(x, 90, part, 10));
        ck_assert_mem_eq(part, "0123456789", 10);
        OK(pinn_plane_write(x, 100, NULL, 0));
        pinn_plane_destroy(x);
    }
}
END_TEST

START_TEST(wrapped_memory_is_used_in_place) {
    int32_t mine = 5;
    pinn_plane *wrapped, *x = new_plane("x", PINN_DEVICE, 4), *inside;
    OK(pinn_plane_wrap(context, "mine", PINN_HOST, &mine, sizeof mine, &wrapped));
    OK(pinn_plane_wrap(context, "inside", PINN_DEVICE, pinn_plane_address(x), 4, &inside));
    OK(pinn_graph_begin(graph));
    OK(add(wrapped, 1));
    OK(pinn_graph_copy(graph, wrapped, inside));
    OK(pinn_graph_launch(graph, 2));
    ck_assert_int_eq(mine, 7);
    ck_assert_int_eq(value_of(x), 7);
    pinn_plane_destroy(wrapped);
    FAILS(pinn_graph_launch(graph, 1), PINN_STALE, "'mine'");
    OK(pinn_plane_wrap(context, "mine", PINN_HOST, &mine, sizeof mine, &wrapped)); /* the same address for certain */
    OK(pinn_graph_begin(graph));
    OK(add(wrapped, 1));
    OK(pinn_graph_copy(graph, wrapped, inside));
    OK(pinn_graph_launch(graph, 1));
    ck_assert_uint_eq(stats_of(graph).builds, 2);
    ck_assert(strstr(last_message, "plane 'mine' is another allocation"));
    ck_assert_int_eq(mine, 8);
    pinn_plane_destroy(wrapped);
    pinn_plane_destroy(inside);
    pinn_plane_destroy(x);
}
END_TEST

/* ---- looking --------------------------------------------------------------------------------------------------------------- */

START_TEST(explain_and_dot_are_stable) {
    static const char explained[] =
        "graph \"g\" on %s: 5 nodes (1 device, 1 host, 3 copy), build 1: first build\n%s"
        "  1 device \"add\" reads \"x\" (device, 16 bytes) writes \"x\" (device, 16 bytes)\n"
        "  2 copy   \"x\" (device, 16 bytes) -> \"home\" (pinned, 16 bytes)\n"
        "  3 host   \"say \\\"hi\\\"\" reads \"home\" (pinned, 16 bytes), \"page\" (host, 16 bytes)\n"
        "  4 copy   \"page\" (host, 16 bytes) -> \"x\" (device, 16 bytes): pageable, staged through page-locked memory\n"
        "  5 copy   \"x\" (device, 16 bytes) -> \"x\" (device, 16 bytes): the same storage, nothing to do\n";
    static const char drawn[] =
        "digraph \"g\" {\n"
        "  label=\"%s\";\n"
        "  n1 [shape=box label=\"1 add\\nreads \\\"x\\\" (device, 16 bytes)\\nwrites \\\"x\\\" (device, 16 bytes)\"];\n"
        "  n2 [shape=cds label=\"2 copy\\nreads \\\"x\\\" (device, 16 bytes)\\nwrites \\\"home\\\" (pinned, 16 bytes)\"];\n"
        "  n1 -> n2;\n"
        "  n3 [shape=ellipse label=\"3 say \\\"hi\\\"\\nreads \\\"home\\\" (pinned, 16 bytes), \\\"page\\\" (host, 16 bytes)\"];\n"
        "  n2 -> n3;\n"
        "  n4 [shape=cds label=\"4 copy\\nreads \\\"page\\\" (host, 16 bytes)\\nwrites \\\"x\\\" (device, 16 bytes)\"];\n"
        "  n3 -> n4;\n"
        "  n5 [shape=cds label=\"5 copy\\nreads \\\"x\\\" (device, 16 bytes)\\nwrites \\\"x\\\" (device, 16 bytes)\"];\n"
        "  n4 -> n5;\n"
        "}\n";
    char expected[2048], *got;
    counter calls = {0};
    pinn_plane *x = new_plane("x", PINN_DEVICE, 16), *home = new_plane("home", PINN_PINNED, 16),
               *page = new_plane("page", PINN_HOST, 16);
    OK(pinn_graph_explain(graph, &got));
    ck_assert(strstr(got, "nothing recorded"));
    free(got);
    OK(pinn_graph_begin(graph));
    OK(add(x, 1));
    OK(pinn_graph_copy(graph, x, home));
    OK(pinn_graph_host(graph, "say \"hi\"", count_call, &calls, PINN_PLANES(home, page), PINN_NO_PLANES));
    OK(pinn_graph_copy(graph, page, x));
    OK(pinn_graph_copy(graph, x, x));
    OK(pinn_graph_explain(graph, &got));
    ck_assert(strstr(got, "not built yet"));
    free(got);
    OK(pinn_graph_launch(graph, 1));
    OK(pinn_graph_explain(graph, &got));
    snprintf(expected, sizeof expected, explained, pinn_executor_name(tested), explained_places());
    ck_assert_str_eq(got, expected);
    free(got);
    OK(pinn_graph_dot(graph, &got));
    snprintf(expected, sizeof expected, drawn, pinn_executor_name(tested));
    ck_assert_str_eq(got, expected);
    free(got);
    pinn_plane_destroy(x);
    pinn_plane_destroy(home);
    pinn_plane_destroy(page);
}
END_TEST

START_TEST(context_tells_about_itself) {
    ck_assert_int_eq((int)pinn_context_executor(context), (int)tested);
    ck_assert_uint_gt(strlen(pinn_context_device_name(context)), 0);
    bool cpu = tested == PINN_EXECUTOR_CPU;
    ck_assert((pinn_context_stream(context) == NULL) == cpu);
    ck_assert((pinn_context_blas(context) == NULL) == cpu);
    ck_assert((pinn_context_multiprocessors(context) == 0) == cpu);
    OK(pinn_context_join(context, NULL));
    OK(pinn_context_synchronize(context));
}
END_TEST

/* ---- lifetimes and threads ------------------------------------------------------------------------------------------------- */

START_TEST(context_outlives_its_destroy_while_used) {
    pinn_context *other = new_context();
    pinn_graph *left;
    pinn_plane *x, *view;
    OK(pinn_graph_create(other, "left", &left));
    OK(pinn_plane_create(other, "x", PINN_DEVICE, 64, &x));
    OK(pinn_plane_view(x, "view", 0, 1, &view));
    pinn_context_destroy(other);
    ck_assert_msg(strstr(last_message, "2 plane(s) and 1 graph(s)"), "%s", last_message);
    pinn_plane_destroy(x);
    pinn_graph_destroy(left);
    pinn_plane_destroy(view);
    pinn_context_destroy(NULL);
    pinn_graph_destroy(NULL);
    pinn_plane_destroy(NULL);
}
END_TEST

typedef struct worker {
    int32_t result;
    bool failed;
} worker;

/* No ck_assert off the main thread. */
static bool work(worker *out) {
    pinn_context *own = NULL;
    pinn_context_options options = {.executor = tested, .cpu_mode = tested_mode};
    bool good = pinn_context_create(&options, &own) == PINN_OK;
    for (int i = 0; good && i < 100; i++) {
        pinn_graph *g = NULL;
        pinn_plane *x = NULL, *page = NULL;
        add_arguments arguments = {.count = 1, .amount = 1};
        good = pinn_graph_create(own, "g", &g) == PINN_OK && pinn_plane_create(own, "x", PINN_DEVICE, 4, &x) == PINN_OK &&
               pinn_plane_create(own, "page", PINN_HOST, 4, &page) == PINN_OK && pinn_graph_begin(g) == PINN_OK &&
               pinn_graph_operation(g, &add_operation, &arguments, sizeof arguments, PINN_PLANES(x), PINN_PLANES(x)) == PINN_OK &&
               pinn_graph_copy(g, x, page) == PINN_OK && /* its staging memory comes and goes beside the others' captures */
               pinn_graph_launch(g, 10) == PINN_OK && pinn_plane_read(page, 0, &out->result, 4) == PINN_OK && out->result == 10;
        pinn_plane_destroy(page);
        pinn_plane_destroy(x);
        pinn_graph_destroy(g);
    }
    pinn_context_destroy(own);
    return good;
}

static void *run_worker(void *argument) {
    worker *out = argument;
    out->failed = !work(out);
    if (out->failed) fprintf(stderr, "worker: %s\n", pinn_error_message());
    return NULL;
}

START_TEST(contexts_on_threads_do_not_disturb_each_other) {
    enum { THREADS = 4 };
    worker workers[THREADS] = {0};
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++) ck_assert_int_eq(pthread_create(&thread[i], NULL, run_worker, &workers[i]), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < THREADS; i++) ck_assert(!workers[i].failed);
}
END_TEST

static TCase *behaviour_case(void) {
    TCase *tests = tcase_create("behaviour");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, first_launch_runs_once);
    tcase_add_test(tests, build_alone_runs_nothing);
    tcase_add_test(tests, replays_read_current_contents);
    tcase_add_test(tests, program_order_is_kept);
    tcase_add_test(tests, k_launches_of_one_are_one_of_k);
    tcase_add_test(tests, counters_count);
    tcase_add_test(tests, same_list_costs_nothing_changed_list_one_build);
    tcase_add_test(tests, freed_plane_is_stale_even_at_the_same_address);
    tcase_add_test(tests, plane_freed_between_recording_and_build_is_stale);
    tcase_add_test(tests, destroyed_view_leaves_graph_valid);
    tcase_add_test(tests, failed_build_keeps_the_old_executable);
    tcase_add_test(tests, copies_go_every_way);
    tcase_add_test(tests, host_nodes_and_copies_keep_order);
    tcase_add_test(tests, pageable_copies_of_many_sizes_do_not_mix);
    tcase_add_test(tests, copy_onto_itself_is_nothing);
    tcase_add_test(tests, one_byte_views_touch_one_byte);
    tcase_add_test(tests, planes_are_zeroed_and_aligned);
    tcase_add_test(tests, wrapped_memory_is_used_in_place);
    tcase_add_test(tests, explain_and_dot_are_stable);
    tcase_add_test(tests, context_tells_about_itself);
    tcase_add_test(tests, context_outlives_its_destroy_while_used);
    tcase_add_test(tests, contexts_on_threads_do_not_disturb_each_other);
    return tests;
}

#endif
