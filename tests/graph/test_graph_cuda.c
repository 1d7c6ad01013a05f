/* The graph layer on the two CUDA executors: the conformance suite on each, then what only CUDA has: captures, cuBLAS, streams. */
#include "pinn_graph.h"

#ifdef PINN_HAVE_CUDA
#include "graph/device.h"
#define DEVICE_FORM(name) name##_cuda
#else
#define DEVICE_FORM(name) NULL
#endif
#include "watchdog.h"

#include "refusals.h"

#ifdef PINN_HAVE_CUDA

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#define CUDA(call) ck_assert_int_eq((int)(call), (int)cudaSuccess)

static pinn_status record(const char *name, pinn_status (*form)(const pinn_run *), pinn_plane *x) {
    const pinn_operation operation = {name, NULL, form};
    add_arguments arguments = {.count = (int32_t)(pinn_plane_bytes(x) / 4), .amount = 1};
    return pinn_graph_operation(graph, &operation, &arguments, sizeof arguments, PINN_PLANES(x), PINN_PLANES(x));
}

/* ---- captures that cannot be ----------------------------------------------------------------------------------------------- */

#include "bad_operations.h"

START_TEST(bad_operation_is_named_and_the_old_executable_survives) {
    pinn_plane *x = new_plane("x", PINN_DEVICE, 4);
    int32_t replays = 1;
    OK(pinn_graph_begin(graph));
    OK(add(x, 1));
    OK(pinn_graph_launch(graph, 1));
    for (int i = 0; i < BAD_OPERATIONS; i++) {
        const bad_operation *bad = &bad_operations[i];
        if (!bad->at_top) continue;
        OK(pinn_graph_begin(graph));
        OK(add(x, 100));
        OK(record(bad->name, bad->form, x));
        OK(add(x, 100));
        check_bad(bad, bad->at_top, 2, x, ++replays);
    }
    ck_assert_uint_eq(stats_of(graph).builds, 1);
    pinn_plane_destroy(x);
}
END_TEST

/* Separate: CUDA may report it as the operation's own failure or as a broken capture. Either names the node, and nothing runs. */
START_TEST(default_stream_in_an_operation_is_refused) {
    pinn_plane *x = new_plane("x", PINN_DEVICE, 4);
    OK(pinn_graph_begin(graph));
    OK(record("legacy", default_stream_cuda, x));
    pinn_status status = pinn_graph_build(graph);
    ck_assert_msg(status == PINN_REFUSED || status == PINN_DEVICE_FAILED, "%s", pinn_status_name(status));
    ck_assert_msg(strstr(pinn_error_message(), "node 1 'legacy'"), "%s", pinn_error_message());
    CUDA(cudaDeviceSynchronize());
    ck_assert_int_eq(value_of(x), 0);
    pinn_plane_destroy(x);
}
END_TEST

START_TEST(fork_and_join_inside_an_operation_is_allowed) {
    pinn_plane *x = new_plane("x", PINN_DEVICE, 400);
    OK(pinn_graph_begin(graph));
    OK(add(x, 10));
    OK(record("forked", forked_cuda, x));
    OK(add(x, 10));
    OK(pinn_graph_launch(graph, 3));
    ck_assert_int_eq(value_of(x), 63);
    pinn_plane_destroy(x);
}
END_TEST

/* Free device memory has not shrunk but by a block that a driver pool may still take; a leak a build would be more. */
static void check_memory_is_flat(size_t before, const char *test) {
    size_t after, total;
    if (under_tool()) {
        printf("PINN_TEST_TOOL: %s builds, but leaves out that device memory does not grow: the tool's does\n", test);
        return;
    }
    CUDA(cudaMemGetInfo(&after, &total));
    ck_assert_uint_le(before, after + ((size_t)4 << 20));
}

START_TEST(device_memory_does_not_grow_with_builds) {
    const int32_t builds = shorter(300, 25);
    pinn_plane *x = new_plane("x", PINN_DEVICE, 4);
    size_t before = 0, total;
    for (int32_t i = 0; i < builds; i++) {
        OK(pinn_graph_begin(graph));
        OK(add(x, i));
        OK(pinn_graph_launch(graph, 1));
        if (i == builds / 3) CUDA(cudaMemGetInfo(&before, &total));
    }
    ck_assert_uint_eq(stats_of(graph).builds, (uint64_t)builds);
    check_memory_is_flat(before, "device_memory_does_not_grow_with_builds");
    pinn_plane_destroy(x);
}
END_TEST

/* ---- cuBLAS ---------------------------------------------------------------------------------------------------------------- */

enum { N = 96 }; /* matrix order */

static pinn_status gemm_cuda(const pinn_run *run) {
    const float one = 1, zero = 0;
    return cublasSgemm(pinn_context_blas(run->context), CUBLAS_OP_N, CUBLAS_OP_N, N, N, N, &one, run->read[0], N, run->read[1], N,
                       &zero, run->write[0], N) == CUBLAS_STATUS_SUCCESS
               ? PINN_OK
               : PINN_DEVICE_FAILED;
}

static void multiply(pinn_executor executor, float *result) {
    static const pinn_operation gemm = {"gemm", NULL, gemm_cuda};
    static float values[N * N];
    pinn_context_options options = {.executor = executor};
    pinn_context *own;
    pinn_graph *g;
    pinn_plane *a, *b, *c;
    for (int i = 0; i < N * N; i++) values[i] = (float)((i * 7919) % 1009) / 1009.0f - 0.5f;
    OK(pinn_context_create(&options, &own));
    OK(pinn_graph_create(own, "gemm", &g));
    OK(pinn_plane_create(own, "a", PINN_DEVICE, sizeof values, &a));
    OK(pinn_plane_create(own, "b", PINN_DEVICE, sizeof values, &b));
    OK(pinn_plane_create(own, "c", PINN_DEVICE, sizeof values, &c));
    OK(pinn_plane_write(a, 0, values, sizeof values));
    OK(pinn_graph_begin(g));
    OK(pinn_graph_copy(g, a, b));
    OK(pinn_graph_operation(g, &gemm, NULL, 0, PINN_PLANES(a, b), PINN_PLANES(c)));
    OK(pinn_graph_operation(g, &gemm, NULL, 0, PINN_PLANES(c, b), PINN_PLANES(a)));
    OK(pinn_graph_launch(g, 4));
    OK(pinn_plane_read(a, 0, result, sizeof values));
    pinn_plane_destroy(a);
    pinn_plane_destroy(b);
    pinn_plane_destroy(c);
    pinn_graph_destroy(g);
    pinn_context_destroy(own);
}

START_TEST(graph_and_eager_products_agree_bit_for_bit) {
    static float graphed[N * N], eager[N * N];
    multiply(PINN_EXECUTOR_GRAPH, graphed);
    multiply(PINN_EXECUTOR_EAGER, eager);
    ck_assert_mem_eq(graphed, eager, sizeof eager);
    int nonzero = 0;
    for (int i = 0; i < N * N; i++) nonzero += eager[i] != 0.0f;
    ck_assert_int_gt(nonzero, N * N / 2);
}
END_TEST

/* ---- streams --------------------------------------------------------------------------------------------------------------- */

/* x += 1 when the gate opens, which must not be at once: the operation gives up after a while, and then x goes below 0. */
static pinn_status record_await(pinn_plane *gate, pinn_plane *x) {
    static const pinn_operation operation = {"await", NULL, await_cuda};
    const await_arguments arguments = {.gate = pinn_plane_address(gate)};
    return pinn_graph_operation(graph, &operation, &arguments, sizeof arguments, PINN_PLANES(x), PINN_PLANES(x));
}

static void open_gate(pinn_plane *gate) { __atomic_store_n((int32_t *)pinn_plane_address(gate), 1, __ATOMIC_SEQ_CST); }

/* An enqueue that waited would come back to a kernel that has given up. */
START_TEST(enqueue_does_not_wait) {
    pinn_plane *x = new_plane("x", PINN_DEVICE, 4), *home = new_plane("home", PINN_PINNED, 4), *gate = new_plane("gate", PINN_PINNED, 4);
    OK(pinn_graph_begin(graph));
    OK(record_await(gate, x));
    OK(pinn_graph_copy(graph, x, home));
    OK(pinn_graph_build(graph));
    OK(pinn_context_synchronize(context));
    OK(pinn_graph_enqueue(graph, 1));
    ck_assert_uint_eq(stats_of(graph).completed, 0);
    open_gate(gate);
    OK(pinn_context_synchronize(context));
    ck_assert_uint_eq(stats_of(graph).completed, 1);
    ck_assert_int_eq(*(const int32_t *)pinn_plane_address(home), 1);
    pinn_plane_destroy(x);
    pinn_plane_destroy(home);
    pinn_plane_destroy(gate);
}
END_TEST

START_TEST(join_waits_for_foreign_streams) {
    cudaStream_t stream;
    pinn_plane *x = new_plane("x", PINN_DEVICE, 4), *y = new_plane("y", PINN_DEVICE, 4);
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(pinn_graph_begin(graph));
    OK(twice(x, y));
    OK(pinn_graph_build(graph));
    OK(pinn_context_synchronize(context));
    void *other[] = {stream, NULL};
    for (int i = 0; i < 2; i++) {
        set_value(x, 0);
        void *write = pinn_plane_address(x);
        pinn_run slow = {.context = context, .stream = other[i], .write = &write};
        OK(slow_cuda(&slow)); /* x = 1 after 50 ms */
        OK(pinn_context_join(context, other[i]));
        OK(pinn_graph_launch(graph, 1));
        ck_assert_int_eq(value_of(y), 2);
    }
    CUDA(cudaStreamDestroy(stream));
    pinn_plane_destroy(x);
    pinn_plane_destroy(y);
}
END_TEST

START_TEST(wrapping_the_wrong_memory_is_refused) {
    int32_t mine = 0;
    void *managed = NULL;
    pinn_plane *x = new_plane("x", PINN_DEVICE, 4), *made = NULL;
    FAILS(pinn_plane_wrap(context, "w", PINN_DEVICE, &mine, 4, &made), PINN_BAD_ARGUMENT, "is not device memory");
    FAILS(pinn_plane_wrap(context, "w", PINN_PINNED, &mine, 4, &made), PINN_BAD_ARGUMENT, "is not pinned memory");
    FAILS(pinn_plane_wrap(context, "w", PINN_HOST, pinn_plane_address(x), 4, &made), PINN_BAD_ARGUMENT, "is not host memory");
    CUDA(cudaMallocManaged(&managed, 4, cudaMemAttachGlobal));
    FAILS(pinn_plane_wrap(context, "w", PINN_DEVICE, managed, 4, &made), PINN_UNSUPPORTED,
          "managed (unified) memory, which is not supported");
    CUDA(cudaFree(managed));
    ck_assert_ptr_null(made);
    pinn_plane_destroy(x);
}
END_TEST

/* The old plane and graph go while replays that use them are still running. */
START_TEST(destroy_waits_for_replays) {
    pinn_plane *x = new_plane("x", PINN_DEVICE, 4), *home = new_plane("home", PINN_HOST, 4);
    counter calls = {0};
    OK(pinn_graph_begin(graph));
    OK(record("slow", slow_cuda, x));
    OK(pinn_graph_host(graph, "h", count_call, &calls, PINN_PLANES(home), PINN_NO_PLANES));
    OK(pinn_graph_build(graph));
    OK(pinn_graph_enqueue(graph, 2));
    pinn_graph_destroy(graph);
    ck_assert_int_eq(calls.calls, 2);
    pinn_plane_destroy(x);
    pinn_plane_destroy(home);
    OK(pinn_context_synchronize(context));
    graph = NULL;
}
END_TEST

#include "device_blocks.h"

/* ---- a lost device --------------------------------------------------------------------------------------------------------- */

/* A device is lost to the whole process. So each of these tests runs in a process of its own, forked before CUDA is first used. */
static const struct {
    pinn_executor executor;
    const char *name;
    pinn_status (*form)(const pinn_run *);
} losses[] = {
    {PINN_EXECUTOR_GRAPH, "stray", stray_cuda},
    {PINN_EXECUTOR_EAGER, "stray", stray_cuda},
    {PINN_EXECUTOR_GRAPH, "trap", trap_cuda},
    {PINN_EXECUTOR_EAGER, "trap", trap_cuda},
};
enum { LOSSES = sizeof losses / sizeof *losses };

#define LOST "lost to this process"

/* A list with every kind of node. */
static void record_everything(pinn_plane *x, pinn_plane *home, pinn_plane *page, counter *calls) {
    OK(pinn_graph_begin(graph));
    OK(add(x, 1));
    OK(pinn_graph_copy(graph, x, home));
    OK(pinn_graph_copy(graph, x, page));
    OK(add(page, 1));
    OK(pinn_graph_copy(graph, page, x));
    OK(pinn_graph_host(graph, "h", count_call, calls, PINN_PLANES(home), PINN_NO_PLANES));
}

static pinn_graph *record_loss(int which, pinn_plane *x, pinn_plane *page, counter *calls) {
    pinn_graph *bad, *kept = graph;
    OK(pinn_graph_create(context, "bad", &bad));
    graph = bad;
    OK(pinn_graph_begin(bad));
    OK(add(x, 1));
    OK(record(losses[which].name, losses[which].form, x));
    OK(add(x, 1));
    OK(pinn_graph_copy(bad, x, page));
    OK(pinn_graph_host(bad, "after", count_call, calls, PINN_PLANES(page), PINN_NO_PLANES));
    OK(pinn_graph_build(bad));
    graph = kept;
    return bad;
}

START_TEST(lost_device_is_told_and_everything_can_be_destroyed) {
    tested = losses[_i].executor;
    set_up();
    counter calls = {0}, after = {0};
    pinn_plane *x = new_plane("x", PINN_DEVICE, 4), *home = new_plane("home", PINN_PINNED, 4),
               *page = new_plane("page", PINN_HOST, 4), *view, *kept = NULL;
    OK(pinn_plane_view(x, "view", 0, 2, &view));
    record_everything(x, home, page, &calls);
    OK(pinn_graph_launch(graph, 3));
    ck_assert_int_eq(value_of(x), 6);
    pinn_graph *bad = record_loss(_i, x, page, &after);
    FAILS(pinn_graph_launch(bad, 2), PINN_DEVICE_FAILED, LOST);
    ck_assert_msg(strstr(pinn_error_message(), "graph 'bad'"), "%s", pinn_error_message());
    ck_assert_int_eq(after.calls, 0);
    ck_assert_uint_eq(stats_of(bad).completed, 0);
    FAILS(pinn_graph_launch(bad, 1), PINN_DEVICE_FAILED, LOST);
    FAILS(pinn_graph_launch(graph, 1), PINN_DEVICE_FAILED, LOST);
    FAILS(pinn_context_synchronize(context), PINN_DEVICE_FAILED, LOST);
    FAILS(pinn_plane_read(x, 0, &(int32_t){0}, 4), PINN_DEVICE_FAILED, LOST);
    FAILS(pinn_plane_create(context, "new", PINN_DEVICE, 4, &kept), PINN_DEVICE_FAILED, LOST);
    record_everything(x, home, page, &after); /* another list: a build, on a device that is gone */
    FAILS(pinn_graph_launch(graph, 1), PINN_DEVICE_FAILED, LOST);
    ck_assert_msg(strstr(pinn_error_message(), "graph 'g'"), "%s", pinn_error_message());
    ck_assert_int_eq(calls.calls, 3);
    ck_assert_int_eq(after.calls, 0);
    ck_assert_ptr_null(kept);
    pinn_graph_destroy(bad);
    pinn_plane_destroy(x);
    pinn_plane_destroy(home);
    pinn_context *fresh = NULL;
    pinn_context_options options = {.executor = tested};
    ck_assert(pinn_context_create(&options, &fresh) != PINN_OK);
    ck_assert_ptr_null(fresh);
    tear_down(); /* before the last planes: the context goes with them */
    pinn_plane_destroy(page);
    pinn_plane_destroy(view);
}
END_TEST

/* Builds and launches go on while the kernel that breaks the device is on its way: whichever call meets the loss tells it, and
 * blames no node of its own. */
START_TEST(loss_in_the_middle_of_a_build_is_told) {
    enum { MOST = 100000 };
    tested = losses[_i].executor;
    set_up();
    counter calls = {0}, after = {0};
    pinn_plane *x = new_plane("x", PINN_DEVICE, 4), *home = new_plane("home", PINN_PINNED, 4),
               *page = new_plane("page", PINN_HOST, 4);
    pinn_graph *bad = record_loss(_i, x, page, &after);
    pinn_status status = pinn_graph_enqueue(bad, 1);
    for (int i = 0; status == PINN_OK && i < MOST; i++) {
        record_everything(x, home, page, &calls);
        OK(add(x, i)); /* a new build each time */
        status = pinn_graph_enqueue(graph, 1);
    }
    ck_assert_int_eq((int)status, (int)PINN_DEVICE_FAILED);
    ck_assert_msg(strstr(pinn_error_message(), LOST), "%s", pinn_error_message());
    ck_assert_msg(!strstr(pinn_error_message(), "node "), "%s", pinn_error_message());
    ck_assert_int_eq(after.calls, 0);
    pinn_plane_destroy(x);
    pinn_plane_destroy(home);
    pinn_plane_destroy(page);
    pinn_graph_destroy(bad);
    tear_down();
}
END_TEST

/* Excluded with CK_EXCLUDE_TAGS=lost where errors on the device are looked for (compute-sanitizer). */
static int run_lost_suite(void) {
    TCase *tests = tcase_create("lost");
    tcase_set_tags(tests, "lost");
    tcase_set_timeout(tests, 120); /* each starts CUDA anew */
    tcase_add_loop_test(tests, lost_device_is_told_and_everything_can_be_destroyed, 0, LOSSES);
    tcase_add_loop_test(tests, loss_in_the_middle_of_a_build_is_told, 0, LOSSES);
    Suite *suite = suite_create("graph: a lost device");
    suite_add_tcase(suite, tests);
    return suite_run_as(suite, CK_FORK);
}

/* Asked in a child: a process that has used CUDA cannot fork others that use it. */
static bool has_device(void) {
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) _exit(pinn_device_count() > 0);
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

static int run_device_suite(pinn_executor executor, const char *name) {
    TCase *tests = tcase_create("device");
    tested = executor;
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, bad_operation_is_named_and_the_old_executable_survives);
    tcase_add_test(tests, default_stream_in_an_operation_is_refused);
    tcase_add_test(tests, fork_and_join_inside_an_operation_is_allowed);
    tcase_add_test(tests, device_memory_does_not_grow_with_builds);
    tcase_add_test(tests, graph_and_eager_products_agree_bit_for_bit);
    tcase_add_test(tests, enqueue_does_not_wait);
    tcase_add_test(tests, join_waits_for_foreign_streams);
    tcase_add_test(tests, wrapping_the_wrong_memory_is_refused);
    tcase_add_test(tests, destroy_waits_for_replays);
    Suite *suite = suite_create(name);
    suite_add_tcase(suite, tests);
    suite_add_tcase(suite, device_block_case());
    return suite_run_nofork(suite);
}

#else

static bool has_device(void) { return false; }

static int run_lost_suite(void) { return 0; }

static int run_device_suite(pinn_executor executor, const char *name) {
    (void)executor, (void)name;
    return 0;
}

#endif

int main(void) {
    if (!has_device()) return suite_skip("no GPU");
    int failed = run_lost_suite(); /* first: it forks */
    failed += run_conformance(PINN_EXECUTOR_GRAPH, "graph: cuda graph", true);
    failed += run_conformance(PINN_EXECUTOR_EAGER, "graph: cuda eager", true);
    failed += run_device_suite(PINN_EXECUTOR_GRAPH, "graph: cuda graph, device");
    failed += run_device_suite(PINN_EXECUTOR_EAGER, "graph: cuda eager, device");
    setenv("PINN_NO_CONDITIONALS", "1", 1); /* a driver older than 12.4, played */
    failed += run_conformance(PINN_EXECUTOR_GRAPH, "graph: cuda graph without conditional nodes", true);
    failed += run_device_suite(PINN_EXECUTOR_GRAPH, "graph: cuda graph without conditional nodes, device");
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
