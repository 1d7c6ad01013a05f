/* The graph layer on the CPU executor, and its process-wide parts: releases that wait for captures, failing allocations. */
#include "graph/graph.h"

#define DEVICE_FORM(name) NULL
#include "refusals.h"

/* A test asks for more memory than there is: the sanitizers' allocators then have to fail as malloc does. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "allocator_may_return_null=1"; }

/* ---- releases wait for captures -------------------------------------------------------------------------------------------- */

typedef struct probe {
    pn_release release;
    atomic_int runs;
} probe;

static void run_probe(pn_release *self) { atomic_fetch_add(&((probe *)self)->runs, 1); }

START_TEST(releases_wait_for_every_capture) {
    probe probes[3] = {{.release.run = run_probe}, {.release.run = run_probe}, {.release.run = run_probe}};
    pn_release_push(&probes[0].release);
    ck_assert_int_eq(probes[0].runs, 1);
    pn_capture_open();
    pn_capture_open();
    pn_release_push(&probes[1].release);
    pn_release_push(&probes[2].release);
    pn_capture_close();
    ck_assert_int_eq(probes[1].runs + probes[2].runs, 0);
    pn_capture_close();
    ck_assert_int_eq(probes[1].runs, 1);
    ck_assert_int_eq(probes[2].runs, 1);
}
END_TEST

/* Each call would wait for this very thread. */
START_TEST(waiting_for_captures_with_one_open_is_refused) {
    pn_frame frame;
    FAILS((pn_capture_open(), pn_exclusive_open()), PINN_REFUSED, "this thread is capturing 'a graph'");
    pn_frame_push(&frame, NULL, "step", PN_FRAME_FORM);
    pn_capture_open(); /* another graph's, from inside the operation: never waits */
    FAILS(pn_exclusive_open(), PINN_REFUSED,
          "it has to wait until no capture is open, and this thread is capturing 'step': call it outside of the recorded operation");
    pn_capture_close();
    FAILS(pn_exclusive_open(), PINN_REFUSED, "'step'");
    pn_frame_pop(&frame);
    pn_capture_close();
    OK(pn_exclusive_open());
    pn_exclusive_close();
}
END_TEST

static atomic_int open_captures, releases_during_capture, releases_done, refusals;

typedef struct counted {
    pn_release release;
} counted;

static void run_counted(pn_release *self) {
    if (atomic_load(&open_captures) > 0) atomic_fetch_add(&releases_during_capture, 1);
    atomic_fetch_add(&releases_done, 1);
    free(self);
}

static void *push_and_capture(void *unused) {
    (void)unused;
    for (int i = 0; i < 2000; i++) {
        if (i % 3 == 0) {
            pn_capture_open();
            atomic_fetch_add(&open_captures, 1);
        }
        if (i % 51 == 1) { /* 51 = 3*17: never with a capture open on this thread */
            if (pn_exclusive_open() != PINN_OK) { /* refused for this thread's captures only, never for another's */
                atomic_fetch_add(&refusals, 1);
                continue;
            }
            if (atomic_load(&open_captures) > 0) atomic_fetch_add(&releases_during_capture, 1);
            pn_exclusive_close();
        }
        counted *item = calloc(1, sizeof *item);
        item->release.run = run_counted;
        pn_release_push(&item->release);
        if (i % 3 == 0) {
            atomic_fetch_sub(&open_captures, 1);
            pn_capture_close();
        }
    }
    return NULL;
}

START_TEST(releases_and_captures_on_threads_exclude_each_other) {
    pthread_t thread[4];
    for (int i = 0; i < 4; i++) ck_assert_int_eq(pthread_create(&thread[i], NULL, push_and_capture, NULL), 0);
    for (int i = 0; i < 4; i++) pthread_join(thread[i], NULL);
    ck_assert_int_eq(releases_during_capture, 0);
    ck_assert_int_eq(refusals, 0);
    ck_assert_int_eq(releases_done, 4 * 2000);
}
END_TEST

START_TEST(plane_memory_outlives_an_open_capture) {
    set_up();
    pinn_plane *x = new_plane("x", PINN_DEVICE, 64);
    char *memory = pinn_plane_address(x);
    pn_capture_open();
    pinn_plane_destroy(x);
    memset(memory, 1, 64); /* still there, or AddressSanitizer stops here */
    tear_down();           /* even the context: it goes after its last plane */
    pn_capture_close();
}
END_TEST

static void *generate(void *out) {
    for (int i = 0; i < 1000; i++) ((uint64_t *)out)[i] = pn_generation_next();
    return NULL;
}

static int compare(const void *a, const void *b) {
    uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;
    return (first > second) - (first < second);
}

START_TEST(generations_never_repeat) {
    static uint64_t all[4 * 1000];
    pthread_t thread[4];
    for (int i = 0; i < 4; i++) ck_assert_int_eq(pthread_create(&thread[i], NULL, generate, all + 1000 * i), 0);
    for (int i = 0; i < 4; i++) pthread_join(thread[i], NULL);
    qsort(all, 4000, sizeof *all, compare);
    for (int i = 1; i < 4000; i++) ck_assert_uint_ne(all[i], all[i - 1]);
}
END_TEST

/* ---- every allocation may fail --------------------------------------------------------------------------------------------- */

static pinn_status use_everything(int32_t *result) {
    pinn_context *own = NULL;
    pinn_graph *g = NULL;
    pinn_plane *x = NULL, *view = NULL, *home = NULL;
    char *text = NULL;
    counter calls = {0};
    add_arguments arguments = {.count = 1, .amount = 1}, zero = {.count = 1};
    recorder shaped = {.amount = 0};
    pinn_context_options options = {.executor = PINN_EXECUTOR_CPU};
    pinn_status status;
    PN_TRY(pinn_context_create(&options, &own));
    PN_TRY(pinn_graph_create(own, "g", &g));
    PN_TRY(pinn_plane_create(own, "x", PINN_DEVICE, 8, &x));
    PN_TRY(pinn_plane_view(x, "view", 4, 4, &view));
    PN_TRY(pinn_plane_create(own, "home", PINN_PINNED, 4, &home));
    for (int amount = 1; amount < 3; amount++) {
        arguments.amount = amount;
        PN_TRY(pinn_graph_begin(g));
        for (int i = 0; i < 20; i++)
            PN_TRY(pinn_graph_operation(g, &add_operation, &arguments, sizeof arguments, PINN_PLANES(view), PINN_PLANES(view)));
        PN_TRY(pinn_graph_fork(g));
        PN_TRY(pinn_graph_branch(g, "home"));
        PN_TRY(pinn_graph_copy(g, view, home));
        PN_TRY(pinn_graph_host(g, "h", count_call, &calls, PINN_PLANES(home), PINN_NO_PLANES));
        PN_TRY(pinn_graph_branch(g, "twice"));
        PN_TRY(pinn_graph_wait(g, view));
        PN_TRY(pinn_graph_for(g, "twice", 2, NULL));
        PN_TRY(pinn_graph_opaque(g, &add_operation, &zero, PINN_PLANES(view), PINN_PLANES(view)));
        PN_TRY(pinn_graph_end(g));
        PN_TRY(pinn_graph_join(g));
        PN_TRY(pinn_graph_eager(g, "e", count_call, &calls, PINN_PLANES(view), PINN_NO_PLANES));
        PN_TRY(pinn_graph_launch(g, 1));
    }
    PN_TRY(pinn_graph_explain(g, &text));
    free(text);
    text = NULL;
    PN_TRY(pinn_graph_dot(g, &text));
    shaped.plane = view;
    PN_TRY(pinn_graph_capture(g, &(size_t){3}, 1, record_add, &shaped));
    PN_TRY(pinn_plane_read(home, 0, result, 4));
fail:
    free(text);
    pinn_plane_destroy(view);
    pinn_plane_destroy(x);
    pinn_plane_destroy(home);
    pinn_graph_destroy(g);
    pinn_context_destroy(own);
    return status;
}

START_TEST(every_allocation_may_fail) {
    int32_t result = 0;
    long n = 0;
    for (;; n++) {
        pn_memory_fail_after(n);
        pinn_status status = use_everything(&result);
        pn_memory_fail_after(-1);
        if (status == PINN_OK) break;
        ck_assert_msg(status == PINN_NO_MEMORY, "allocation %ld: %s: %s", n, pinn_status_name(status), pinn_error_message());
        ck_assert_uint_gt(strlen(pinn_error_message()), 0);
    }
    ck_assert_int_gt(n, 50); /* the loop did reach the library's allocations */
    ck_assert_int_eq(result, 20 * 1 + 20 * 2);
}
END_TEST

/* ---- a failing operation on the CPU ---------------------------------------------------------------------------------------- */

START_TEST(failing_operation_ends_the_launch) {
    static const pinn_operation bad = {"bad", fail_form, NULL};
    set_up();
    pinn_plane *x = new_plane("x", PINN_DEVICE, 4);
    OK(pinn_graph_begin(graph));
    OK(add(x, 1));
    OK(pinn_graph_operation(graph, &bad, NULL, 0, PINN_PLANES(x), PINN_PLANES(x)));
    OK(add(x, 1));
    FAILS(pinn_graph_launch(graph, 3), PINN_NUMERIC, "graph 'g', node 2 'bad' failed with PINN_NUMERIC");
    ck_assert_int_eq(value_of(x), 1);
    ck_assert_uint_eq(stats_of(graph).enqueued, 0);
    pinn_plane_destroy(x);
    tear_down();
}
END_TEST

/* A message function runs in the middle of a build: what it destroys is postponed. */
static void destroy_in_message(void *user, const char *line) {
    (void)line;
    pinn_graph **victim = user;
    pinn_graph_destroy(*victim);
    *victim = NULL;
}

START_TEST(message_function_may_destroy_the_graph) {
    pinn_context *own;
    pinn_graph *victim;
    pinn_plane *x;
    counter calls = {0};
    pinn_context_options options = {.executor = PINN_EXECUTOR_CPU, .message = destroy_in_message, .message_user = &victim};
    OK(pinn_context_create(&options, &own));
    OK(pinn_graph_create(own, "victim", &victim));
    OK(pinn_plane_create(own, "x", PINN_HOST, 4, &x));
    OK(pinn_graph_begin(victim));
    OK(pinn_graph_host(victim, "h", count_call, &calls, PINN_PLANES(x), PINN_NO_PLANES));
    OK(pinn_graph_launch(victim, 3));
    ck_assert_int_eq(calls.calls, 3);
    ck_assert_ptr_null(victim);
    pinn_plane_destroy(x);
    pinn_context_destroy(own);
}
END_TEST

/* On the CPU a host function may use another context, whose objects go at once. */
static pinn_status use_another_context(void *user) {
    pinn_context *other = user;
    pinn_plane *x;
    if (pinn_plane_create(other, "x", PINN_DEVICE, 4, &x) != PINN_OK) return PINN_INTERNAL;
    size_t planes = other->planes;
    pinn_plane_destroy(x);
    return other->planes + 1 == planes ? PINN_OK : PINN_INTERNAL;
}

START_TEST(host_function_may_use_another_cpu_context) {
    set_up();
    pinn_context *other = new_context();
    OK(pinn_graph_begin(graph));
    OK(pinn_graph_host(graph, "h", use_another_context, other, PINN_NO_PLANES, PINN_NO_PLANES));
    OK(pinn_graph_launch(graph, 3));
    pinn_context_destroy(other);
    tear_down();
}
END_TEST

/* Planes of a petabyte: recorded, checked and explained, not run. */
START_TEST(plans_take_no_memory) {
    const size_t bytes = (size_t)1 << 50;
    pinn_context *plan = new_context();
    pinn_graph *planned = NULL;
    pinn_plane *from = NULL, *to = NULL, *view = NULL;
    char *text = NULL, byte = 1;
    pn_context_plan(plan, true);
    ck_assert(pn_context_plans(plan));
    OK(pinn_plane_create(plan, "from", PINN_DEVICE, bytes, &from));
    OK(pinn_plane_create(plan, "to", PINN_PINNED, bytes, &to));
    OK(pinn_plane_view(to, "end", bytes - 1, 1, &view));
    FAILS(pinn_plane_create(plan, "large", PINN_DEVICE, SIZE_MAX - 8, &(pinn_plane *){NULL}), PINN_NO_MEMORY, "plane 'large'");
    ck_assert_uint_eq(pn_context_bytes(plan), 2 * bytes);
    ck_assert((uintptr_t)pinn_plane_address(from) % 256 == 0 && pinn_plane_address(from) != NULL);
    ck_assert((uintptr_t)pinn_plane_address(to) >= (uintptr_t)pinn_plane_address(from) + bytes);
    OK(pinn_plane_write(view, 0, &byte, 1));
    FAILS(pinn_plane_read(view, 0, &byte, 1), PINN_REFUSED, "only plans");
    OK(pinn_graph_create(plan, "g", &planned));
    OK(pinn_graph_begin(planned));
    OK(pinn_graph_copy(planned, from, to));
    OK(pinn_graph_build(planned));
    OK(pinn_graph_explain(planned, &text));
    ck_assert_ptr_nonnull(strstr(text, "1125899906842624 bytes"));
    FAILS(pinn_graph_launch(planned, 1), PINN_REFUSED, "only plans");
    OK(pinn_context_synchronize(plan));
    free(text);
    pinn_graph_destroy(planned);
    pinn_plane_destroy(view);
    pinn_plane_destroy(to);
    ck_assert_uint_eq(pn_context_bytes(plan), bytes);
    pn_context_plan(plan, false); /* what is made now is there */
    OK(pinn_plane_create(plan, "to", PINN_DEVICE, 1, &to));
    OK(pinn_plane_write(to, 0, &byte, 1));
    byte = 0;
    OK(pinn_plane_read(to, 0, &byte, 1));
    ck_assert_int_eq(byte, 1);
    pinn_plane_destroy(to);
    ck_assert_uint_eq(pn_context_bytes(plan), bytes);
    pinn_plane_destroy(from);
    ck_assert_uint_eq(pn_context_bytes(plan), 0);
    pinn_context_destroy(plan);
}
END_TEST

START_TEST(cuda_without_a_device_is_unsupported) {
    pinn_context *made = NULL;
    pinn_context_options options = {.executor = PINN_EXECUTOR_GRAPH, .device = 1000};
    ck_assert_int_eq((int)pinn_context_create(&options, &made), (int)PINN_UNSUPPORTED);
    ck_assert_ptr_null(made);
    ck_assert_int_ge(pinn_device_count(), 0);
}
END_TEST

int main(void) {
    int failed = run_conformance(PINN_EXECUTOR_CPU, "graph: cpu", false);
    TCase *tests = tcase_create("process");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, releases_wait_for_every_capture);
    tcase_add_test(tests, waiting_for_captures_with_one_open_is_refused);
    tcase_add_test(tests, releases_and_captures_on_threads_exclude_each_other);
    tcase_add_test(tests, plane_memory_outlives_an_open_capture);
    tcase_add_test(tests, generations_never_repeat);
    tcase_add_test(tests, every_allocation_may_fail);
    tcase_add_test(tests, failing_operation_ends_the_launch);
    tcase_add_test(tests, message_function_may_destroy_the_graph);
    tcase_add_test(tests, host_function_may_use_another_cpu_context);
    tcase_add_test(tests, plans_take_no_memory);
    tcase_add_test(tests, cuda_without_a_device_is_unsupported);
    Suite *suite = suite_create("graph: process");
    suite_add_tcase(suite, tests);
    failed += suite_run(suite);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
