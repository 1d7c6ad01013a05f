/* One suite for every executor: forks, branches, waits; schedules of lists with blocks; threads and releases beside builds.
 * See conformance.h.
 */
#ifndef BRANCHES_H
#define BRANCHES_H

#include "control.h"

/* ---- running --------------------------------------------------------------------------------------------------------------- */

START_TEST(branches_all_run_and_join) {
    enum { BRANCHES = 5 };
    pinn_plane *in = new_word("in", 1), *out[BRANCHES], *sum = new_word("sum", 0);
    OK(pinn_graph_begin(graph));
    OK(add(in, 1));
    OK(pinn_graph_fork(graph));
    for (int i = 0; i < BRANCHES; i++) {
        out[i] = new_word("out", 0);
        OK(pinn_graph_branch(graph, "part"));
        OK(twice(in, out[i])); /* all read what was written before the fork */
        OK(add(out[i], i));
    }
    OK(pinn_graph_join(graph));
    OK(fill(sum, 0));
    for (int i = 0; i < BRANCHES; i++) OK(accumulate(out[i], sum)); /* and are read after the join */
    for (int32_t n = 1; n <= 4; n++) {
        OK(pinn_graph_launch(graph, 1));
        ck_assert_int_eq(value_of(sum), BRANCHES * 2 * (n + 1) + BRANCHES * (BRANCHES - 1) / 2);
    }
    ck_assert_uint_eq(stats_of(graph).branches, BRANCHES);
    for (int i = 0; i < BRANCHES; i++) pinn_plane_destroy(out[i]);
    pinn_plane_destroy(in);
    pinn_plane_destroy(sum);
}
END_TEST

/* One branch, two forks in a row, a fork at the very start and at the very end. */
START_TEST(forks_may_follow_each_other) {
    pinn_plane *x = new_word("x", 0), *y = new_word("y", 0), *home = new_plane("home", PINN_PINNED, 4);
    OK(pinn_graph_begin(graph));
    for (int i = 0; i < 3; i++) {
        OK(pinn_graph_fork(graph));
        OK(pinn_graph_branch(graph, "x"));
        OK(accumulate(y, x)); /* each fork's branches see the last one's */
        OK(pinn_graph_join(graph));
        OK(pinn_graph_fork(graph));
        OK(pinn_graph_branch(graph, "y"));
        OK(add(y, 1));
        OK(pinn_graph_branch(graph, "home"));
        OK(pinn_graph_copy(graph, x, home));
        OK(pinn_graph_join(graph));
    }
    int32_t expected = 0, count = 0;
    for (int i = 0; i < 2 * 3; i++) expected += count++;
    OK(pinn_graph_launch(graph, 2));
    ck_assert_int_eq(value_of(y), 6);
    ck_assert_int_eq(value_of(x), expected);
    ck_assert_int_eq(value_of(home), expected);
    pinn_plane_destroy(x);
    pinn_plane_destroy(y);
    pinn_plane_destroy(home);
}
END_TEST

/* Frames leave through one branch while the other already computes. Every frame must be the serial run's. */
enum { FRAME = 1 << 14 }; /* int32 words: long enough for an overwritten frame to show */

typedef struct film {
    const int32_t *home; /* [FRAME] */
    int32_t frames, wrong;
} film;

static pinn_status check_frame(void *user) {
    film *own = user;
    const int32_t expected = 7 * own->frames++;
    for (int i = 0; i < FRAME; i++) own->wrong += own->home[i] != expected;
    return PINN_OK;
}

/* a' = a + 7 by way of b; the frame is a. */
static void record_film(pinn_plane *a, pinn_plane *b, pinn_plane *home, film *own, bool wait) {
    OK(pinn_graph_begin(graph));
    OK(pinn_graph_fork(graph));
    OK(pinn_graph_branch(graph, "frame"));
    OK(pinn_graph_copy(graph, a, home));
    OK(pinn_graph_host(graph, "check", check_frame, own, PINN_PLANES(home), PINN_NO_PLANES));
    OK(pinn_graph_branch(graph, "steps"));
    OK(pinn_graph_copy(graph, a, b)); /* reads `a`, as the frame does */
    OK(add(b, 7));
    if (wait) OK(pinn_graph_wait(graph, a));
    OK(pinn_graph_copy(graph, b, a));
    OK(pinn_graph_join(graph));
}

START_TEST(double_buffered_frames_are_the_serial_ones) {
    const int frames = shorter(10000, 50);
    pinn_plane *a = new_plane("a", PINN_DEVICE, 4 * FRAME), *b = new_plane("b", PINN_DEVICE, 4 * FRAME),
               *home = new_plane("home", PINN_PINNED, 4 * FRAME);
    film own = {.home = pinn_plane_address(home)};
    record_film(a, b, home, &own, false);
    FAILS(pinn_graph_build(graph), PINN_REFUSED,
          "graph 'g', node 8 'copy': in branch 'steps' it writes 'a', which overlaps 'a' that node 3 'copy' in branch 'frame' "
          "reads, and "
          "nothing orders the two: add pinn_graph_wait(graph, a) to branch 'steps' before node 8");
    record_film(a, b, home, &own, true);
    OK(pinn_graph_launch(graph, (uint64_t)frames));
    ck_assert_int_eq(own.frames, frames);
    ck_assert_int_eq(own.wrong, 0);
    ck_assert_int_eq(value_of(a), 7 * frames);
    pinn_plane_destroy(a);
    pinn_plane_destroy(b);
    pinn_plane_destroy(home);
}
END_TEST

/* Branch c waits for b, which waits for a: that orders c after a's node, too. */
START_TEST(waits_carry_on) {
    pinn_plane *x = new_plane("x", PINN_DEVICE, 40000), *y = new_plane("y", PINN_DEVICE, 40000),
               *z = new_plane("z", PINN_DEVICE, 40000);
    OK(pinn_graph_begin(graph));
    OK(pinn_graph_fork(graph));
    OK(pinn_graph_branch(graph, "a"));
    OK(add(x, 1));
    OK(pinn_graph_branch(graph, "b"));
    OK(add(z, 1));
    OK(pinn_graph_wait(graph, x));
    OK(twice(x, y));
    OK(pinn_graph_branch(graph, "c"));
    OK(pinn_graph_wait(graph, y));
    OK(accumulate(y, x));
    OK(pinn_graph_wait(graph, z)); /* reached already */
    OK(add(z, 10));
    OK(pinn_graph_join(graph));
    int32_t expected = 0, got[10000];
    for (int i = 0; i < 6; i++) expected = 3 * (expected + 1);
    OK(pinn_graph_launch(graph, 6));
    OK(pinn_plane_read(x, 0, got, sizeof got));
    for (int i = 0; i < 10000; i++) ck_assert_int_eq(got[i], expected);
    ck_assert_int_eq(value_of(z), 66);
    pinn_plane_destroy(x);
    pinn_plane_destroy(y);
    pinn_plane_destroy(z);
}
END_TEST

/* Forks in branches, bodies in branches, branches in bodies. */
START_TEST(blocks_nest_in_branches) {
    pinn_plane *flag = new_word("flag", 1), *a = new_word("a", 0), *b = new_word("b", 0), *c = new_word("c", 0),
               *d = new_word("d", 0), *sum = new_word("sum", 0);
    OK(pinn_graph_begin(graph));
    OK(pinn_graph_fork(graph));
    OK(pinn_graph_branch(graph, "outer a"));
    OK(pinn_graph_fork(graph));
    OK(pinn_graph_branch(graph, "inner a"));
    OK(add(a, 1));
    OK(pinn_graph_branch(graph, "inner b"));
    OK(pinn_graph_for(graph, "three", 3, NULL));
    OK(add(b, 1));
    OK(pinn_graph_end(graph));
    OK(pinn_graph_join(graph));
    OK(accumulate(a, b));
    OK(pinn_graph_branch(graph, "outer b"));
    OK(pinn_graph_for(graph, "two", 2, NULL));
    OK(pinn_graph_fork(graph));
    OK(pinn_graph_branch(graph, "body c"));
    OK(add(c, 1));
    OK(pinn_graph_branch(graph, "body d"));
    OK(pinn_graph_if(graph, "yes", flag));
    OK(add(d, 100));
    OK(pinn_graph_else(graph));
    OK(add(d, 1));
    OK(pinn_graph_end(graph));
    OK(pinn_graph_wait(graph, c));
    OK(accumulate(c, d));
    OK(pinn_graph_join(graph));
    OK(add(c, 10));
    OK(pinn_graph_end(graph));
    OK(pinn_graph_wait(graph, b)); /* the outer branch's last item */
    OK(accumulate(b, sum));
    OK(accumulate(d, sum));
    OK(pinn_graph_join(graph));
    int32_t values[5] = {0}; /* a, b, c, d, sum */
    for (int i = 0; i < 4; i++) {
        values[0] += 1;
        values[1] += 3 + values[0];
        for (int k = 0; k < 2; k++) {
            values[2] += 1;
            values[3] += 100 + values[2];
            values[2] += 10;
        }
        values[4] += values[1] + values[3];
    }
    OK(pinn_graph_launch(graph, 4));
    ck_assert_int_eq(value_of(a), values[0]);
    ck_assert_int_eq(value_of(b), values[1]);
    ck_assert_int_eq(value_of(c), values[2]);
    ck_assert_int_eq(value_of(d), values[3]);
    ck_assert_int_eq(value_of(sum), values[4]);
    pinn_plane *all[] = {flag, a, b, c, d, sum};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) pinn_plane_destroy(all[i]);
}
END_TEST

START_TEST(k_launches_of_blocks_are_one_of_k) {
    int32_t got[2][2];
    for (int i = 0; i < 2; i++) {
        pinn_plane *n = new_word("n", 0), *flag = new_word("flag", 0), *x = new_word("x", 0), *y = new_word("y", 0);
        OK(pinn_graph_begin(graph));
        OK(add(n, 1));
        OK(pinn_graph_copy(graph, n, flag)); /* replay k makes k trips */
        OK(pinn_graph_while(graph, "n trips", flag, 8, NULL));
        OK(pinn_graph_fork(graph));
        OK(pinn_graph_branch(graph, "x"));
        OK(accumulate(n, x));
        OK(pinn_graph_branch(graph, "flag"));
        OK(add(flag, -1));
        OK(pinn_graph_join(graph));
        OK(pinn_graph_end(graph));
        OK(accumulate(x, y));
        for (int k = 0; i == 0 && k < 20; k++) OK(pinn_graph_launch(graph, 1));
        if (i == 1) OK(pinn_graph_launch(graph, 20));
        got[i][0] = value_of(x);
        got[i][1] = value_of(y);
        pinn_plane *all[] = {n, flag, x, y};
        for (size_t k = 0; k < 4; k++) pinn_plane_destroy(all[k]);
    }
    int32_t x = 0, y = 0;
    for (int32_t n = 1; n <= 20; n++) {
        x += (n < 8 ? n : 8) * n;
        y += x;
    }
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(got[i][0], x);
        ck_assert_int_eq(got[i][1], y);
    }
}
END_TEST

/* ---- looking --------------------------------------------------------------------------------------------------------------- */

static void record_golden(pinn_plane *const *plane) {
    static add_arguments mine = {.count = 1, .amount = 1};
    static doubling own;
    pinn_plane *more = plane[0], *x = plane[1], *y = plane[2], *home = plane[3], *trips = plane[4];
    own.plane = x;
    OK(pinn_graph_begin(graph));
    OK(pinn_graph_while(graph, "loop", more, 10, trips));
    OK(add(x, 1));
    OK(pinn_graph_if(graph, "odd", x));
    OK(pinn_graph_opaque(graph, &add_operation, &mine, PINN_PLANES(y), PINN_PLANES(y)));
    OK(pinn_graph_else(graph));
    OK(pinn_graph_for(graph, "thrice", 3, NULL));
    OK(add(y, 2));
    OK(pinn_graph_end(graph));
    OK(pinn_graph_end(graph));
    OK(pinn_graph_end(graph));
    OK(pinn_graph_eager(graph, "look", double_word, &own, PINN_PLANES(x), PINN_PLANES(x)));
    OK(pinn_graph_fork(graph));
    OK(pinn_graph_branch(graph, "frame"));
    OK(pinn_graph_copy(graph, x, home));
    OK(pinn_graph_branch(graph, "steps"));
    OK(add(y, 1));
    OK(pinn_graph_wait(graph, x));
    OK(add(x, 1));
    OK(pinn_graph_join(graph));
}

START_TEST(blocks_explain_and_draw_themselves) {
    static const char explained[] =
        "graph \"g\" on %s: 19 nodes (5 device, 0 host, 1 copy, 1 eager, 4 conditional, 2 branch), build 1: first build\n%s"
        "  1 while  \"loop\" as long as \"more\" (device, 4 bytes) is set, at most 10 trips, counted in \"trips\" (device, 4 "
        "bytes)\n"
        "  2   device \"add\" reads \"x\" (device, 4 bytes) writes \"x\" (device, 4 bytes)\n"
        "  3   if     \"odd\" when \"x\" (device, 4 bytes) is set\n"
        "  4     device \"add\" (opaque) reads \"y\" (device, 4 bytes) writes \"y\" (device, 4 bytes)\n"
        "  5   else   \"odd\"\n"
        "  6     for    \"thrice\" 3 trips\n"
        "  7       device \"add\" reads \"y\" (device, 4 bytes) writes \"y\" (device, 4 bytes)\n"
        "  8     end    \"thrice\"\n"
        "  9   end    \"odd\"\n"
        "  10 end    \"loop\"\n"
        "  11 eager  \"look\" reads \"x\" (device, 4 bytes) writes \"x\" (device, 4 bytes)\n"
        "  12 fork\n"
        "  13 branch \"frame\"\n"
        "  14   copy   \"x\" (device, 4 bytes) -> \"home\" (pinned, 4 bytes)\n"
        "  15 branch \"steps\"\n"
        "  16   device \"add\" reads \"y\" (device, 4 bytes) writes \"y\" (device, 4 bytes)\n"
        "  17   wait   for \"x\" (device, 4 bytes): after node 14\n"
        "  18   device \"add\" reads \"x\" (device, 4 bytes) writes \"x\" (device, 4 bytes)\n"
        "  19 join\n";
    static const char *const drawn[] = {
        "  n1 [shape=diamond label=\"1 loop\\nat most 10 trips\\nflag \\\"more\\\" (device, 4 bytes)\\nwrites \\\"trips\\\"",
        "  n10 [shape=point];\n  subgraph cluster_1 {\n  label=\"while loop\";\n  n2 [",
        "  subgraph cluster_5 {\n  label=\"else odd\";\n  n6 [shape=diamond label=\"6 thrice\\nfor 3 trips\"];\n",
        "  n8 [shape=point];\n",
        "  n10 -> n11;\n",
        "  subgraph cluster_13 {\n  label=\"branch frame\";\n  n14 [shape=cds",
        "  n17 [shape=plaintext label=\"17 wait\\nfor \\\"x\\\" (device, 4 bytes)\"];\n",
        "  n9 -> n1 [style=dotted];\n", /* the next trip */
        "  n3 -> n4;\n",
        "  n4 -> n9;\n",
        "  n3 -> n6;\n",
        "  n7 -> n6 [style=dotted];\n",
        "  n8 -> n9;\n",
        "  n12 -> n14;\n",
        "  n12 -> n16;\n",
        "  n14 -> n17 [style=dashed];\n", /* the wait */
        "  n14 -> n19;\n",
        "  n18 -> n19;\n",
    };
    static const char *const names[] = {"more", "x", "y", "home", "trips"};
    char expected[4096], *got;
    pinn_plane *plane[5];
    for (int i = 0; i < 5; i++) plane[i] = new_plane(names[i], i == 3 ? PINN_PINNED : PINN_DEVICE, 4);
    record_golden(plane);
    OK(pinn_graph_build(graph));
    OK(pinn_graph_explain(graph, &got));
    snprintf(expected, sizeof expected, explained, pinn_executor_name(tested), explained_places());
    ck_assert_str_eq(got, expected);
    free(got);
    OK(pinn_graph_dot(graph, &got));
    for (size_t i = 0; i < sizeof drawn / sizeof *drawn; i++) ck_assert_msg(strstr(got, drawn[i]), "no '%s' in\n%s", drawn[i], got);
    free(got);
    for (int i = 0; i < 5; i++) pinn_plane_destroy(plane[i]);
}
END_TEST

/* ---- beside others --------------------------------------------------------------------------------------------------------- */

enum { CROWD = 100 };

typedef struct crowd {
    pinn_graph *graph[CROWD];
    pinn_plane *plane[CROWD];
} crowd;

typedef struct crowd_arguments {
    add_arguments add; /* first: the add forms read it */
    crowd *victims;
} crowd_arguments;

static void destroy_crowd(const pinn_run *run) {
    crowd *victims = ((const crowd_arguments *)run->arguments)->victims;
    for (int i = 0; i < CROWD; i++) {
        pinn_graph_destroy(victims->graph[i]);
        pinn_plane_destroy(victims->plane[i]);
        victims->graph[i] = NULL;
        victims->plane[i] = NULL;
    }
}

static pinn_status destroy_crowd_cpu(const pinn_run *run) {
    destroy_crowd(run);
    return add_cpu(run);
}

static pinn_status destroy_crowd_cuda(const pinn_run *run) {
    destroy_crowd(run);
    pinn_status (*form)(const pinn_run *) = DEVICE_FORM(add);
    return form ? form(run) : PINN_UNSUPPORTED;
}

/* The form runs in the middle of a build on a GPU, of a launch on the CPU. */
START_TEST(a_hundred_graphs_go_in_anothers_build) {
    static const pinn_operation operation = {"destroyer", destroy_crowd_cpu, destroy_crowd_cuda};
    crowd victims;
    pinn_graph *own = graph;
    pinn_plane *x = new_word("x", 0);
    crowd_arguments arguments = {.add = {.count = 1, .amount = 5}, .victims = &victims};
    for (int i = 0; i < CROWD; i++) {
        victims.plane[i] = new_plane("victim", PINN_DEVICE, 64);
        OK(pinn_graph_create(context, "victim", &victims.graph[i]));
        graph = victims.graph[i];
        OK(pinn_graph_begin(graph));
        OK(pinn_graph_for(graph, "loop", 2, NULL));
        OK(add(victims.plane[i], 1));
        OK(pinn_graph_end(graph));
        OK(pinn_graph_launch(graph, 1));
    }
    graph = own;
    OK(pinn_graph_begin(graph));
    OK(add(x, 1));
    OK(pinn_graph_operation(graph, &operation, &arguments, sizeof arguments, PINN_PLANES(x), PINN_PLANES(x)));
    OK(add(x, 1));
    OK(pinn_graph_launch(graph, 3));
    ck_assert_int_eq(value_of(x), 21);
    for (int i = 0; i < CROWD; i++) ck_assert_ptr_null(victims.graph[i]);
    pinn_plane_destroy(x);
}
END_TEST

/* No ck_assert off the main thread. Every graph has a loop, a fork and an if. */
static pinn_status use_blocks(pinn_context *own, pinn_graph *g, pinn_plane *x, pinn_plane *y) {
    const add_arguments one = {.count = 1, .amount = 1};
    const pinn_planes at_x = PINN_PLANES(x), at_y = PINN_PLANES(y);
    pinn_status status;
    (void)own;
#define TRY(call)                             \
    do {                                      \
        status = (call);                      \
        if (status != PINN_OK) return status; \
    } while (0)
    TRY(pinn_graph_begin(g));
    TRY(pinn_graph_for(g, "loop", 3, NULL));
    TRY(pinn_graph_operation(g, &add_operation, &one, sizeof one, at_x, at_x));
    TRY(pinn_graph_end(g));
    TRY(pinn_graph_fork(g));
    TRY(pinn_graph_branch(g, "a"));
    TRY(pinn_graph_if(g, "yes", x));
    TRY(pinn_graph_operation(g, &add_operation, &one, sizeof one, at_x, at_x));
    TRY(pinn_graph_end(g));
    TRY(pinn_graph_branch(g, "b"));
    TRY(pinn_graph_operation(g, &add_operation, &one, sizeof one, at_y, at_y));
    TRY(pinn_graph_join(g));
    TRY(pinn_graph_operation(g, &accumulate_operation, &one, sizeof one, ((pinn_planes){(pinn_plane *const[]){x, y}, 2}), at_y));
    return pinn_graph_launch(g, 2);
#undef TRY
}

static bool work_with_blocks(int graphs) {
    pinn_context *own = NULL;
    pinn_context_options options = {.executor = tested, .cpu_mode = tested_mode};
    bool good = pinn_context_create(&options, &own) == PINN_OK;
    for (int i = 0; good && i < graphs; i++) {
        pinn_graph *g = NULL;
        pinn_plane *x = NULL, *y = NULL;
        int32_t got = 0;
        good = pinn_graph_create(own, "g", &g) == PINN_OK && pinn_plane_create(own, "x", PINN_DEVICE, 4, &x) == PINN_OK &&
               pinn_plane_create(own, "y", PINN_DEVICE, 4, &y) == PINN_OK && use_blocks(own, g, x, y) == PINN_OK &&
               pinn_plane_read(y, 0, &got, 4) == PINN_OK && got == 1 + 4 + 1 + 8;
        pinn_plane_destroy(x);
        pinn_plane_destroy(y);
        pinn_graph_destroy(g);
    }
    pinn_context_destroy(own);
    return good;
}

typedef struct block_worker {
    int graphs;
    bool failed;
} block_worker;

static void *run_block_worker(void *argument) {
    block_worker *own = argument;
    own->failed = !work_with_blocks(own->graphs);
    if (own->failed) fprintf(stderr, "worker: %s\n", pinn_error_message());
    return NULL;
}

START_TEST(two_contexts_on_two_threads_build_and_launch) {
    block_worker worker[2];
    pthread_t thread[2];
    for (int i = 0; i < 2; i++) {
        worker[i] = (block_worker){.graphs = shorter(1000, 20)};
        ck_assert_int_eq(pthread_create(&thread[i], NULL, run_block_worker, &worker[i]), 0);
    }
    for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < 2; i++) ck_assert(!worker[i].failed);
}
END_TEST

static TCase *branch_case(void) {
    TCase *tests = tcase_create("branches");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, branches_all_run_and_join);
    tcase_add_test(tests, forks_may_follow_each_other);
    tcase_add_test(tests, double_buffered_frames_are_the_serial_ones);
    tcase_add_test(tests, waits_carry_on);
    tcase_add_test(tests, blocks_nest_in_branches);
    tcase_add_test(tests, k_launches_of_blocks_are_one_of_k);
    tcase_add_test(tests, blocks_explain_and_draw_themselves);
    tcase_add_test(tests, a_hundred_graphs_go_in_anothers_build);
    tcase_add_test(tests, two_contexts_on_two_threads_build_and_launch);
    return tests;
}

#endif
