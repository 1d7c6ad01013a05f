/* Control flow and branches, what only CUDA has: conditional bodies' rules, cuBLAS in bodies and branches, work that overlaps. Part
 * of test_graph_cuda.c.
 */
#ifndef DEVICE_BLOCKS_H
#define DEVICE_BLOCKS_H

static bool without_conditionals(void) { return getenv("PINN_NO_CONDITIONALS") != NULL; }

/* First in the body itself, then in a branch of it. */
START_TEST(bad_operation_in_a_body_is_named) {
    pinn_plane *x = new_word("x", 0), *flag = new_word("flag", 1);
    int32_t replays = 1;
    OK(pinn_graph_begin(graph));
    OK(record("host-call", host_call_cuda, x));
    OK(pinn_graph_launch(graph, 1));
    for (int i = 0; i < 2 * BAD_OPERATIONS; i++) {
        const bad_operation *bad = &bad_operations[i % BAD_OPERATIONS];
        const bool branch = i >= BAD_OPERATIONS;
        if (!bad->in_body) continue;
        OK(pinn_graph_begin(graph));
        OK(pinn_graph_while(graph, "loop", flag, 3, NULL));
        if (branch) OK(pinn_graph_fork(graph));
        if (branch) OK(pinn_graph_branch(graph, "b"));
        OK(add(x, 100));
        OK(record(bad->name, bad->form, x));
        OK(add(x, 100));
        if (branch) OK(pinn_graph_join(graph));
        OK(pinn_graph_end(graph));
        OK(add(x, 100));
        check_bad(bad, bad->in_body, branch ? 5 : 3, x, ++replays);
    }
    ck_assert_uint_eq(stats_of(graph).builds, 1);
    pinn_plane_destroy(x);
    pinn_plane_destroy(flag);
}
END_TEST

START_TEST(fork_and_join_inside_an_operation_in_a_body_is_allowed) {
    pinn_plane *x = new_plane("x", PINN_DEVICE, 400);
    OK(pinn_graph_begin(graph));
    OK(pinn_graph_for(graph, "loop", 3, NULL));
    OK(record("forked", forked_cuda, x));
    OK(pinn_graph_end(graph));
    OK(pinn_graph_launch(graph, 2));
    ck_assert_int_eq(value_of(x), 6);
    pinn_plane_destroy(x);
}
END_TEST

/* ---- cuBLAS ---------------------------------------------------------------------------------------------------------------- */

static const pinn_operation gemm_operation = {"gemm", NULL, gemm_cuda};

/* Three matrices that stay bounded under products, and two results. */
static void new_matrices(pinn_plane **plane) {
    static float values[N * N];
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < N * N; i++) values[i] = ((float)((i * (7919 + k)) % 1009) / 1009.0f - 0.5f) / 8;
        plane[k] = new_plane("matrix", PINN_DEVICE, sizeof values);
        OK(pinn_plane_write(plane[k], 0, values, sizeof values));
    }
    for (int k = 3; k < 5; k++) plane[k] = new_plane("result", PINN_DEVICE, sizeof values);
}

/* m = m * a, `times` times over, by way of `out`. */
static void record_products(pinn_plane *m, pinn_plane *a, pinn_plane *out, int times) {
    for (int i = 0; i < times; i++) {
        OK(pinn_graph_operation(graph, &gemm_operation, NULL, 0, PINN_PLANES(m, a), PINN_PLANES(out)));
        OK(pinn_graph_copy(graph, out, m));
    }
}

/* In a row; in loops; in branches; in loops in branches: the same bits. */
START_TEST(products_in_blocks_are_the_plain_ones) {
    enum { TIMES = 20 };
    static float expected[2][N * N], got[2][N * N];
    for (int way = 0; way < 4; way++) {
        const bool loop = way % 2, branch = way / 2;
        pinn_plane *plane[5];
        new_matrices(plane);
        OK(pinn_graph_begin(graph));
        if (branch) OK(pinn_graph_fork(graph));
        for (int k = 0; k < 2; k++) {
            if (branch) OK(pinn_graph_branch(graph, "products"));
            if (loop) OK(pinn_graph_for(graph, "loop", TIMES, NULL));
            record_products(plane[k], plane[2], plane[3 + k], loop ? 1 : TIMES);
            if (loop) OK(pinn_graph_end(graph));
        }
        if (branch) OK(pinn_graph_join(graph));
        OK(pinn_graph_launch(graph, 3));
        for (int k = 0; k < 2; k++) OK(pinn_plane_read(plane[k], 0, way ? got[k] : expected[k], sizeof got[k]));
        if (way) ck_assert_mem_eq(got, expected, sizeof got);
        for (int k = 0; k < 5; k++) pinn_plane_destroy(plane[k]);
    }
}
END_TEST

START_TEST(products_in_a_loop_leave_device_memory_flat) {
    const uint32_t builds = (uint32_t)shorter(1000, 25);
    size_t before = 0, total;
    pinn_plane *plane[5], *flag = new_word("flag", 1);
    new_matrices(plane);
    for (uint32_t i = 0; i < builds; i++) {
        OK(pinn_graph_begin(graph));
        OK(pinn_graph_while(graph, "loop", flag, i % 2 + 1, NULL)); /* another list each time */
        record_products(plane[0], plane[1], plane[3], 1);
        OK(pinn_graph_end(graph));
        OK(pinn_graph_launch(graph, 1));
        if (i == builds / 10) CUDA(cudaMemGetInfo(&before, &total));
    }
    ck_assert_uint_eq(stats_of(graph).builds, builds);
    check_memory_is_flat(before, "products_in_a_loop_leave_device_memory_flat");
    for (int k = 0; k < 5; k++) pinn_plane_destroy(plane[k]);
    pinn_plane_destroy(flag);
}
END_TEST

/* ---- what runs beside what ------------------------------------------------------------------------------------------------- */

/* Each waits until the other has begun, and gives up after a while. What they meet by is no plane of theirs: the build would order
 * them. */
static pinn_status record_meet(int32_t *words, int which, pinn_plane *x) {
    static const pinn_operation operation = {"meet", NULL, meet_cuda};
    const meet_arguments arguments = {.mine = &words[which], .other = &words[1 - which]};
    return pinn_graph_operation(graph, &operation, &arguments, sizeof arguments, PINN_NO_PLANES, PINN_PLANES(x));
}

START_TEST(branches_run_beside_each_other) {
    pinn_plane *x = new_word("x", 0), *y = new_word("y", 0), *meeting = new_plane("meeting", PINN_DEVICE, 2 * sizeof(int32_t));
    int32_t *words = pinn_plane_address(meeting);
    OK(pinn_graph_begin(graph));
    OK(pinn_graph_fork(graph));
    OK(pinn_graph_branch(graph, "x"));
    OK(record_meet(words, 0, x));
    OK(pinn_graph_branch(graph, "y"));
    OK(record_meet(words, 1, y));
    OK(pinn_graph_join(graph));
    OK(pinn_graph_build(graph));
    for (int32_t i = 1; i <= 3; i++) {
        OK(pinn_graph_launch(graph, 1));
        ck_assert_int_eq(value_of(x), i);
        ck_assert_int_eq(value_of(y), i);
    }
    pinn_plane_destroy(x);
    pinn_plane_destroy(y);
    pinn_plane_destroy(meeting);
}
END_TEST

/* As enqueue_does_not_wait, in every trip. */
START_TEST(enqueue_of_a_loop_does_not_wait) {
    if (tested != PINN_EXECUTOR_GRAPH || without_conditionals()) return; /* the others read the flag back */
    pinn_plane *flag = new_word("flag", 1), *x = new_word("x", 0), *gate = new_plane("gate", PINN_PINNED, 4);
    OK(pinn_graph_begin(graph));
    OK(pinn_graph_while(graph, "loop", flag, 2, NULL));
    OK(record_await(gate, x));
    OK(pinn_graph_end(graph));
    OK(pinn_graph_build(graph));
    OK(pinn_context_synchronize(context));
    OK(pinn_graph_enqueue(graph, 1));
    ck_assert_uint_eq(stats_of(graph).completed, 0);
    open_gate(gate);
    OK(pinn_context_synchronize(context));
    ck_assert_int_eq(value_of(x), 2);
    pinn_plane_destroy(flag);
    pinn_plane_destroy(x);
    pinn_plane_destroy(gate);
}
END_TEST

/* ---- eager cuts, drivers --------------------------------------------------------------------------------------------------- */

/* Copies by itself, then leaves work behind on the default stream. */
static pinn_status use_device(void *user) {
    doubling *own = user;
    void *x = pinn_plane_address(own->plane);
    pinn_run slow = {.stream = NULL, .write = &x}; /* *x = 1 after 50 ms */
    if (cudaMemcpy(&own->seen[own->calls++], x, 4, cudaMemcpyDeviceToHost) != cudaSuccess) return PINN_DEVICE_FAILED;
    return slow_cuda(&slow);
}

START_TEST(eager_cut_may_use_cuda) {
    pinn_plane *x = new_word("x", 0), *y = new_word("y", 0);
    doubling own = {.plane = x};
    OK(pinn_graph_begin(graph));
    OK(record("slow", slow_cuda, x));
    OK(add(x, 41));
    OK(pinn_graph_eager(graph, "device", use_device, &own, PINN_PLANES(x), PINN_PLANES(x)));
    OK(twice(x, y));
    OK(pinn_graph_launch(graph, 2));
    ck_assert_int_eq(own.seen[0], 42); /* what was before it is done */
    ck_assert_int_eq(own.seen[1], 42);
    ck_assert_int_eq(value_of(y), 2); /* and what it left is waited for */
    pinn_plane_destroy(x);
    pinn_plane_destroy(y);
}
END_TEST

/* A library call that waits for all captures, on the thread that holds one. */
static pinn_status wait_for_device_cuda(const pinn_run *run) { return pn_device_synchronize_all(run->context); }

START_TEST(waiting_for_the_device_inside_an_operation_is_refused) {
    pinn_plane *x = new_word("x", 0);
    OK(pinn_graph_begin(graph));
    OK(record("waits", wait_for_device_cuda, x));
    FAILS(pinn_graph_build(graph), PINN_REFUSED,
          "graph 'g', node 1 'waits' failed with PINN_REFUSED: it has to wait until no capture is open, and this thread is capturing "
          "'waits'");
    OK(pinn_graph_begin(graph));
    OK(add(x, 1));
    OK(pinn_graph_launch(graph, 1));
    ck_assert_int_eq(value_of(x), 1);
    pinn_plane_destroy(x);
}
END_TEST

static int told;

static void count_told(void *user, const char *line) {
    (void)user;
    told += strstr(line, "has no conditional nodes") != NULL;
}

START_TEST(missing_conditionals_are_told_once) {
    pinn_context *own;
    pinn_graph *kept = graph;
    pinn_context_options options = {.executor = tested, .message = count_told};
    told = 0;
    OK(pinn_context_create(&options, &own));
    OK(pinn_graph_create(own, "own", &graph));
    pinn_plane *x;
    OK(pinn_plane_create(own, "x", PINN_DEVICE, 4, &x));
    for (uint32_t i = 1; i <= 3; i++) {
        OK(pinn_graph_begin(graph));
        OK(pinn_graph_for(graph, "loop", i, NULL));
        OK(add(x, 1));
        OK(pinn_graph_end(graph));
        OK(pinn_graph_launch(graph, 1));
    }
    ck_assert_int_eq(value_of(x), 6);
    ck_assert_int_eq(told, tested == PINN_EXECUTOR_GRAPH && without_conditionals());
    pinn_plane_destroy(x);
    pinn_graph_destroy(graph);
    pinn_context_destroy(own);
    graph = kept;
}
END_TEST

static TCase *device_block_case(void) {
    TCase *tests = tcase_create("blocks");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, bad_operation_in_a_body_is_named);
    tcase_add_test(tests, fork_and_join_inside_an_operation_in_a_body_is_allowed);
    tcase_add_test(tests, products_in_blocks_are_the_plain_ones);
    tcase_add_test(tests, products_in_a_loop_leave_device_memory_flat);
    tcase_add_test(tests, branches_run_beside_each_other);
    tcase_add_test(tests, enqueue_of_a_loop_does_not_wait);
    tcase_add_test(tests, eager_cut_may_use_cuda);
    tcase_add_test(tests, waiting_for_the_device_inside_an_operation_is_refused);
    tcase_add_test(tests, missing_conditionals_are_told_once);
    return tests;
}

#endif
