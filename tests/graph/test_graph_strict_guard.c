/* The CPU executor's strict mode: what nodes do beyond their declarations, and what host and device code touch of each other. Tests of
 * the mode's orders, and the conformance suite in it: test_graph_strict.c. */
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pinn_graph.h"

#define DEVICE_FORM(name) NULL
#include "fixture.h"

static void set_up_strict(void) {
    tested_mode = "strict:7";
    set_up();
}

/* ---- what a node does beyond its declaration ------------------------------------------------------------------------------- */

/* A form that adds `amount` (reading it first) at byte offsets from planes it may not have declared. */
typedef struct peek_arguments {
    const pinn_plane *from, *to; /* NULL = leave out */
    size_t from_word, to_word;
} peek_arguments;

static pinn_status peek_cpu(const pinn_run *run) {
    const peek_arguments *a = run->arguments;
    int32_t value = 5;
    if (a->from) value = ((const int32_t *)pinn_plane_address(a->from))[a->from_word];
    if (a->to) ((volatile int32_t *)pinn_plane_address(a->to))[a->to_word] = value;
    return PINN_OK;
}

static const pinn_operation peek_operation = {"peek", peek_cpu, NULL};

static void record_peek(peek_arguments arguments, pinn_planes reads, pinn_planes writes) {
    OK(pinn_graph_begin(graph));
    OK(pinn_graph_operation(graph, &peek_operation, &arguments, sizeof arguments, reads, writes));
    OK(pinn_graph_build(graph));
}

START_TEST(undeclared_write_is_found) {
    pinn_plane *x = new_plane("x", PINN_DEVICE, 8), *y = new_plane("y", PINN_DEVICE, 8);
    record_peek((peek_arguments){.to = y}, PINN_PLANES(x), PINN_PLANES(x));
    FAILS(pinn_graph_launch(graph, 1), PINN_REFUSED,
          "graph 'g', node 1 'peek' writes plane 'y', which it does not declare as written: add it to the node's writes");
    /* As after an illegal access on a GPU, nothing goes on. */
    FAILS(pinn_graph_launch(graph, 1), PINN_REFUSED, "node 1 'peek' writes plane 'y'");
    FAILS(pinn_context_synchronize(context), PINN_REFUSED, "node 1 'peek' writes plane 'y'");
    FAILS(pinn_plane_read(x, 0, &(int32_t){0}, 4), PINN_REFUSED, "node 1 'peek' writes plane 'y'");
    pinn_plane_destroy(x);
    pinn_plane_destroy(y);
}
END_TEST

START_TEST(write_of_a_plane_only_read_is_found) {
    pinn_plane *x = new_plane("x", PINN_DEVICE, 8), *y = new_plane("y", PINN_DEVICE, 8);
    record_peek((peek_arguments){.to = x, .to_word = 1}, PINN_PLANES(x), PINN_PLANES(y));
    FAILS(pinn_graph_launch(graph, 1), PINN_REFUSED, "writes plane 'x', which it does not declare as written");
    pinn_plane_destroy(x);
    pinn_plane_destroy(y);
}
END_TEST

START_TEST(undeclared_read_is_found) {
    pinn_plane *x = new_plane("x", PINN_DEVICE, 8), *y = new_plane("y", PINN_DEVICE, 8);
    record_peek((peek_arguments){.from = y, .to = x}, PINN_NO_PLANES, PINN_PLANES(x));
    FAILS(pinn_graph_launch(graph, 1), PINN_REFUSED,
          "graph 'g', node 1 'peek' reads plane 'y', which it does not declare as read: add it to the node's reads");
    pinn_plane_destroy(x);
    pinn_plane_destroy(y);
}
END_TEST

START_TEST(write_beside_a_declared_part_is_found) {
    pinn_plane *x = new_plane("x", PINN_DEVICE, 12), *middle;
    OK(pinn_plane_view(x, "middle", 4, 4, &middle));
    record_peek((peek_arguments){.to = x, .to_word = 2}, PINN_PLANES(middle), PINN_PLANES(middle));
    FAILS(pinn_graph_launch(graph, 1), PINN_REFUSED, "writes plane 'x', at byte 8, which it does not declare as written");
    pinn_plane_destroy(middle);
    pinn_plane_destroy(x);
}
END_TEST

START_TEST(write_of_a_read_part_beside_a_written_one_is_found) {
    pinn_plane *x = new_plane("x", PINN_DEVICE, 8), *first, *second;
    OK(pinn_plane_view(x, "first", 0, 4, &first));
    OK(pinn_plane_view(x, "second", 4, 4, &second));
    record_peek((peek_arguments){.to = x, .to_word = 0}, PINN_PLANES(first), PINN_PLANES(second));
    FAILS(pinn_graph_launch(graph, 1), PINN_REFUSED, "writes plane 'x', at byte 0, which it does not declare as written");
    pinn_plane_destroy(first);
    pinn_plane_destroy(second);
    pinn_plane_destroy(x);
}
END_TEST

START_TEST(read_beside_a_declared_part_is_poison) {
    pinn_plane *x = new_plane("x", PINN_DEVICE, 8), *y = new_plane("y", PINN_DEVICE, 4), *first;
    OK(pinn_plane_view(x, "first", 0, 4, &first));
    OK(pinn_plane_write(x, 0, (int32_t[]){3, 4}, 8));
    record_peek((peek_arguments){.from = x, .from_word = 1, .to = y}, PINN_PLANES(first), PINN_PLANES(y));
    OK(pinn_graph_launch(graph, 1));
    ck_assert_int_eq(value_of(y), -1);
    int32_t both[2];
    OK(pinn_plane_read(x, 0, both, 8)); /* the plane itself is unharmed */
    ck_assert_int_eq(both[0], 3);
    ck_assert_int_eq(both[1], 4);
    pinn_plane_destroy(first);
    pinn_plane_destroy(y);
    pinn_plane_destroy(x);
}
END_TEST

START_TEST(write_beyond_the_end_is_found) {
    pinn_plane *x = new_plane("x", PINN_DEVICE, 8);
    record_peek((peek_arguments){.to = x, .to_word = 3}, PINN_PLANES(x), PINN_PLANES(x));
    FAILS(pinn_graph_launch(graph, 1), PINN_REFUSED, "node 1 'peek' writes beyond the end of plane 'x' of 8 bytes, at byte 12");
    pinn_plane_destroy(x);
}
END_TEST

START_TEST(output_left_out_is_poison) {
    pinn_plane *x = new_plane("x", PINN_DEVICE, 12);
    OK(pinn_plane_write(x, 0, (int32_t[]){1, 2, 3}, 12));
    record_peek((peek_arguments){.to = x, .to_word = 1}, PINN_NO_PLANES, PINN_PLANES(x));
    OK(pinn_graph_launch(graph, 1));
    int32_t got[3];
    OK(pinn_plane_read(x, 0, got, 12));
    ck_assert_int_eq(got[0], -1);
    ck_assert_int_eq(got[1], 5);
    ck_assert_int_eq(got[2], -1);
    /* Declared as read too, what the node leaves out stays. */
    record_peek((peek_arguments){.to = x, .to_word = 0}, PINN_PLANES(x), PINN_PLANES(x));
    OK(pinn_graph_launch(graph, 1));
    OK(pinn_plane_read(x, 0, got, 12));
    ck_assert_int_eq(got[0], 5);
    ck_assert_int_eq(got[1], 5);
    pinn_plane_destroy(x);
}
END_TEST

START_TEST(wrapped_memory_is_watched) {
    int32_t mine[3] = {1, 2, 3};
    pinn_plane *whole, *part, *x = new_plane("x", PINN_DEVICE, 4);
    OK(pinn_plane_wrap(context, "whole", PINN_HOST, mine, sizeof mine, &whole));
    OK(pinn_plane_wrap(context, "part", PINN_HOST, &mine[1], 4, &part));
    record_peek((peek_arguments){.from = part, .to = part}, PINN_PLANES(part), PINN_PLANES(part));
    OK(pinn_graph_launch(graph, 1));
    ck_assert_int_eq(mine[0] + 10 * mine[1] + 100 * mine[2], 321);
    record_peek((peek_arguments){.to = whole, .to_word = 2}, PINN_PLANES(x), PINN_PLANES(x)); /* nothing of it is declared */
    FAILS(pinn_graph_launch(graph, 1), PINN_REFUSED, "node 1 'peek' writes plane 'whole', at byte 8");
    pinn_plane_destroy(part);
    pinn_plane_destroy(whole);
    pinn_plane_destroy(x);
}
END_TEST

START_TEST(places_are_apart) {
    int32_t mine = 0;
    pinn_plane *x = new_plane("x", PINN_DEVICE, 4), *home = new_plane("home", PINN_PINNED, 4), *made = NULL;
    FAILS(pinn_plane_wrap(context, "w", PINN_DEVICE, &mine, 4, &made), PINN_BAD_ARGUMENT,
          "is not device memory: it is host memory");
    FAILS(pinn_plane_wrap(context, "w", PINN_DEVICE, pinn_plane_address(home), 4, &made), PINN_BAD_ARGUMENT,
          "is not device memory");
    FAILS(pinn_plane_wrap(context, "w", PINN_HOST, pinn_plane_address(x), 4, &made), PINN_BAD_ARGUMENT,
          "is not host memory: it is device memory");
    record_peek((peek_arguments){.from = home, .to = x}, PINN_PLANES(x), PINN_PLANES(x));
    FAILS(pinn_graph_launch(graph, 1), PINN_REFUSED, "node 1 'peek' reads plane 'home', which is pinned memory, on the device");
    pinn_plane_destroy(x);
    pinn_plane_destroy(home);
}
END_TEST

/* ---- host and device ------------------------------------------------------------------------------------------------------- */

static int32_t seen; /* keeps the compiler from dropping the access */

static pinn_status look_at(void *address) {
    seen = *(volatile int32_t *)address;
    return PINN_OK;
}

static pinn_status store_at(void *address) {
    *(volatile int32_t *)address = 1;
    return PINN_OK;
}

START_TEST(host_function_that_touches_the_device_is_found) {
    pinn_plane *x = new_plane("x", PINN_DEVICE, 4);
    OK(pinn_graph_begin(graph));
    OK(pinn_graph_host(graph, "look", look_at, pinn_plane_address(x), PINN_NO_PLANES, PINN_NO_PLANES));
    OK(pinn_graph_enqueue(graph, 1));
    FAILS(pinn_context_synchronize(context), PINN_REFUSED, "node 1 'look' reads plane 'x', which is device memory, on the host");
    pinn_plane_destroy(x);
}
END_TEST

START_TEST(host_function_that_writes_the_device_is_found) {
    pinn_plane *x = new_plane("x", PINN_DEVICE, 4);
    OK(pinn_graph_begin(graph));
    OK(pinn_graph_host(graph, "store", store_at, pinn_plane_address(x), PINN_NO_PLANES, PINN_NO_PLANES));
    FAILS(pinn_graph_launch(graph, 1), PINN_REFUSED, "node 1 'store' writes plane 'x', which is device memory, on the host");
    pinn_plane_destroy(x);
}
END_TEST

START_TEST(host_function_with_too_few_planes_is_found) {
    pinn_plane *home = new_plane("home", PINN_PINNED, 4);
    OK(pinn_graph_begin(graph));
    OK(pinn_graph_host(graph, "store", store_at, pinn_plane_address(home), PINN_PLANES(home), PINN_NO_PLANES));
    FAILS(pinn_graph_launch(graph, 1), PINN_REFUSED, "writes plane 'home', which it does not declare as written");
    pinn_plane_destroy(home);
}
END_TEST

/* How a child that calls `function` on `address` ends. */
static int child_status(pinn_host_function *function, void *address) {
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0});
        if (!freopen("/dev/null", "w", stderr)) _exit(3); /* a sanitizer tells about the fault */
        function(address);
        _exit(0);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return status;
}

START_TEST(caller_that_touches_the_device_crashes) {
    pinn_plane *x = new_plane("x", PINN_DEVICE, 4), *home = new_plane("home", PINN_PINNED, 4);
    ck_assert_int_ne(child_status(look_at, pinn_plane_address(x)), 0);
    ck_assert_int_ne(child_status(store_at, pinn_plane_address(x)), 0);
    set_value(x, 3); /* opens the plane, and closes it again */
    OK(pinn_graph_begin(graph));
    OK(add(x, 4));
    OK(pinn_graph_launch(graph, 2));
    ck_assert_int_eq(value_of(x), 11);
    ck_assert_int_ne(child_status(look_at, pinn_plane_address(x)), 0);
    ck_assert_int_eq(child_status(look_at, pinn_plane_address(home)), 0);
    pinn_plane_destroy(x);
    pinn_plane_destroy(home);
}
END_TEST

static pinn_status keep_thread(void *user) {
    *(pthread_t *)user = pthread_self();
    return PINN_OK;
}

START_TEST(host_functions_run_on_another_thread_at_a_wait) {
    pthread_t self = pthread_self(), thread = self;
    OK(pinn_graph_begin(graph));
    OK(pinn_graph_host(graph, "thread", keep_thread, &thread, PINN_NO_PLANES, PINN_NO_PLANES));
    OK(pinn_graph_enqueue(graph, 1));
    ck_assert(pthread_equal(thread, self)); /* has not run */
    OK(pinn_context_synchronize(context));
    ck_assert(!pthread_equal(thread, self));
}
END_TEST

START_TEST(host_plane_is_poison_until_a_wait) {
    pinn_plane *x = new_plane("x", PINN_DEVICE, 4), *home = new_plane("home", PINN_PINNED, 4), *in = new_plane("in", PINN_HOST, 4);
    const int32_t *word = pinn_plane_address(home);
    set_value(home, 8);
    set_value(in, 9);
    OK(pinn_graph_begin(graph));
    OK(add(x, 1));
    OK(add(home, 100)); /* accumulates: what was there before comes back for it */
    OK(add(in, 0));
    OK(pinn_graph_enqueue(graph, 2));
    ck_assert_int_eq(*word, -1);
    OK(pinn_graph_enqueue(graph, 1));
    ck_assert_int_eq(*word, -1);
    OK(pinn_context_synchronize(context));
    ck_assert_int_eq(*word, 308);
    ck_assert_int_eq(value_of(x), 3);
    OK(pinn_graph_enqueue(graph, 1));
    *(int32_t *)pinn_plane_address(home) = 0;
    FAILS(pinn_context_synchronize(context), PINN_REFUSED,
          "plane 'home' was written at byte 0 by the caller after graph 'g' was enqueued");
    pinn_plane_destroy(x);
    pinn_plane_destroy(home);
    pinn_plane_destroy(in);
}
END_TEST

START_TEST(overlapping_host_planes_come_back) {
    pinn_plane *home = new_plane("home", PINN_PINNED, 12), *first, *last;
    OK(pinn_plane_view(home, "first", 0, 8, &first));
    OK(pinn_plane_view(home, "last", 4, 8, &last));
    OK(pinn_plane_write(home, 0, (int32_t[]){1, 2, 3}, 12));
    OK(pinn_graph_begin(graph));
    OK(add(first, 10));
    OK(add(last, 100));
    OK(pinn_graph_launch(graph, 1));
    int32_t got[3];
    OK(pinn_plane_read(home, 0, got, 12));
    ck_assert_int_eq(got[0], 11);
    ck_assert_int_eq(got[1], 112);
    ck_assert_int_eq(got[2], 103);
    pinn_plane_destroy(first);
    pinn_plane_destroy(last);
    pinn_plane_destroy(home);
}
END_TEST

typedef struct two_looks {
    pinn_plane *x;
    const int32_t *home;
    int32_t device, host;
} two_looks;

static pinn_status look_at_both(void *user) {
    two_looks *c = user;
    c->host = *c->home;
    return pinn_plane_read(c->x, 0, &c->device, 4);
}

/* What stands before a cut has run when enqueue returns, what stands behind it has not. */
START_TEST(eager_cut_waits_for_what_is_before_it) {
    pinn_plane *x = new_plane("x", PINN_DEVICE, 4), *home = new_plane("home", PINN_PINNED, 4);
    two_looks c = {.x = x, .home = pinn_plane_address(home)};
    OK(pinn_graph_begin(graph));
    OK(add(x, 1));
    OK(pinn_graph_copy(graph, x, home));
    OK(pinn_graph_eager(graph, "cut", look_at_both, &c, PINN_PLANES(x, home), PINN_NO_PLANES));
    OK(add(x, 10));
    OK(pinn_graph_copy(graph, x, home));
    OK(pinn_graph_enqueue(graph, 2));
    ck_assert_int_eq(c.device, 12);
    ck_assert_int_eq(c.host, 12);
    ck_assert_int_eq(*c.home, -1);
    OK(pinn_context_synchronize(context));
    ck_assert_int_eq(*c.home, 22);
    pinn_plane_destroy(x);
    pinn_plane_destroy(home);
}
END_TEST

START_TEST(modes_are_checked) {
    static const char *const bad[] = {"",          "strict",    "strict:",  "strict:-1",
                                      "strict:1x", "strict: 1", "Strict:1", "strict:18446744073709551616"};
    static const char *const good[] = {"inline", "strict:0", "strict:18446744073709551615"};
    pinn_context *made = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        FAILS(pinn_context_create(&(pinn_context_options){.executor = PINN_EXECUTOR_CPU, .cpu_mode = bad[i]}, &made),
              PINN_BAD_ARGUMENT, "cpu_mode");
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        OK(pinn_context_create(&(pinn_context_options){.executor = PINN_EXECUTOR_CPU, .cpu_mode = good[i]}, &made));
        pinn_context_destroy(made);
    }
}
END_TEST

static TCase *guard_case(void) {
    TCase *tests = tcase_create("guards");
    tcase_add_checked_fixture(tests, set_up_strict, tear_down);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, undeclared_write_is_found);
    tcase_add_test(tests, write_of_a_plane_only_read_is_found);
    tcase_add_test(tests, undeclared_read_is_found);
    tcase_add_test(tests, write_beside_a_declared_part_is_found);
    tcase_add_test(tests, write_of_a_read_part_beside_a_written_one_is_found);
    tcase_add_test(tests, read_beside_a_declared_part_is_poison);
    tcase_add_test(tests, write_beyond_the_end_is_found);
    tcase_add_test(tests, output_left_out_is_poison);
    tcase_add_test(tests, wrapped_memory_is_watched);
    tcase_add_test(tests, places_are_apart);
    tcase_add_test(tests, host_function_that_touches_the_device_is_found);
    tcase_add_test(tests, host_function_that_writes_the_device_is_found);
    tcase_add_test(tests, host_function_with_too_few_planes_is_found);
    tcase_add_test(tests, caller_that_touches_the_device_crashes);
    tcase_add_test(tests, host_functions_run_on_another_thread_at_a_wait);
    tcase_add_test(tests, host_plane_is_poison_until_a_wait);
    tcase_add_test(tests, overlapping_host_planes_come_back);
    tcase_add_test(tests, eager_cut_waits_for_what_is_before_it);
    tcase_add_test(tests, modes_are_checked);
    return tests;
}

int main(void) {
    tested = PINN_EXECUTOR_CPU;
    Suite *suite = suite_create("graph: strict, guards");
    suite_add_tcase(suite, guard_case());
    return suite_run(suite);
}
