/* The CPU executor's strict mode: the whole conformance suite under many seeds, and what only this mode finds.
 *
 * The suite runs once for each of SEEDS seeds (an environment variable), each in a process of its own: what crashes or hangs under
 * one seed is told with that seed, and repeats with SEEDS=1 FIRST_SEED=<it>.
 */
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/memory.h"
#include "pinn_graph.h"

#define DEVICE_FORM(name) NULL
#include "refusals.h"

/* A test asks for more memory than there is: the sanitizers' allocators then have to fail as malloc does. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "allocator_may_return_null=1"; }

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

/* ---- the order of branches ------------------------------------------------------------------------------------------------- */

enum { SIDES = 3, STAMPS = 4, ORDER = SIDES * STAMPS };

static int order[ORDER], ordered; /* branch and number of the nodes as they ran: STAMPS*branch + nth */

typedef struct stamp_arguments {
    int branch, nth;
} stamp_arguments;

static pinn_status stamp_cpu(const pinn_run *run) {
    const stamp_arguments *a = run->arguments;
    if (ordered < ORDER) order[ordered++] = STAMPS * a->branch + a->nth;
    return PINN_OK;
}

static const pinn_operation stamp_operation = {"stamp", stamp_cpu, NULL};

static void stamp(int branch, int nth, pinn_planes planes) {
    stamp_arguments arguments = {branch, nth};
    OK(pinn_graph_operation(graph, &stamp_operation, &arguments, sizeof arguments, planes, planes));
}

static int place_of(int branch, int nth) {
    for (int i = 0; i < ORDER; i++)
        if (order[i] == STAMPS * branch + nth) return i;
    ck_abort_msg("node %d of branch %d did not run", nth, branch);
    return -1;
}

/* Three branches of four nodes; number 2 of the last waits for number 1 of the first. */
static void record_branches(pinn_plane *const x[SIDES], pinn_plane *shared) {
    OK(pinn_graph_begin(graph));
    OK(pinn_graph_fork(graph));
    for (int b = 0; b < SIDES; b++) {
        OK(pinn_graph_branch(graph, "branch"));
        for (int s = 0; s < STAMPS; s++) {
            if (b == 2 && s == 2) OK(pinn_graph_wait(graph, shared));
            if ((b == 2 && s == 2) || (b == 0 && s == 1))
                stamp(b, s, PINN_PLANES(x[b], shared));
            else
                stamp(b, s, PINN_PLANES(x[b]));
        }
    }
    OK(pinn_graph_join(graph));
    OK(pinn_graph_build(graph));
}

static void run_order(const char *mode) {
    tested_mode = mode;
    set_up();
    pinn_plane *x[SIDES], *shared = new_plane("shared", PINN_DEVICE, 4);
    for (int b = 0; b < SIDES; b++) x[b] = new_plane("x", PINN_DEVICE, 4);
    record_branches(x, shared);
    ordered = 0;
    OK(pinn_graph_launch(graph, 1));
    ck_assert_int_eq(ordered, ORDER);
    for (int b = 0; b < SIDES; b++) pinn_plane_destroy(x[b]);
    pinn_plane_destroy(shared);
    tear_down();
}

START_TEST(orders_vary_with_the_seed_and_are_legal) {
    enum { SEEDS = 100 };
    static int orders[SEEDS][ORDER];
    int different = 0, overtaken = 0, alone = 0;
    for (int seed = 0; seed < SEEDS; seed++) {
        char mode[32];
        snprintf(mode, sizeof mode, "strict:%d", seed);
        run_order(mode);
        for (int b = 0; b < SIDES; b++)
            for (int s = 1; s < STAMPS; s++) ck_assert_int_lt(place_of(b, s - 1), place_of(b, s));
        ck_assert_int_lt(place_of(0, 1), place_of(2, 2));
        overtaken += place_of(2, 1) < place_of(0, 0);   /* a later branch ran ahead of an earlier one */
        alone += place_of(1, STAMPS - 1) == STAMPS - 1; /* one branch ran to its end before any other began */
        memcpy(orders[seed], order, sizeof order);
        bool new = true;
        for (int other = 0; other < seed; other++) new = new &&memcmp(orders[other], order, sizeof order) != 0;
        different += new;
        run_order(mode); /* the seed decides it all */
        ck_assert_mem_eq(orders[seed], order, sizeof order);
    }
    ck_assert_int_gt(different, SEEDS / 2); /* there are over 10^4 legal orders; the bias makes some common */
    ck_assert_int_gt(overtaken, 0);
    ck_assert_int_gt(alone, 0);
}
END_TEST

/* A flag, a trip counter and a loop's body in a branch beside another, and a fork inside a branch. */
START_TEST(blocks_run_inside_branches) {
    char mode[32];
    snprintf(mode, sizeof mode, "strict:%d", _i);
    tested_mode = mode;
    set_up();
    pinn_plane *x = new_plane("x", PINN_DEVICE, 4), *y = new_plane("y", PINN_DEVICE, 4), *z = new_plane("z", PINN_DEVICE, 4);
    pinn_plane *flag = new_plane("flag", PINN_DEVICE, 8), *trips = new_plane("trips", PINN_DEVICE, 4);
    OK(pinn_graph_begin(graph));
    OK(pinn_graph_fork(graph));
    OK(pinn_graph_branch(graph, "loop"));
    OK(pinn_graph_while(graph, "until zero", flag, 10, trips));
    OK(add(flag, -1));
    OK(pinn_graph_if(graph, "odd end", trips));
    OK(add(x, 1));
    OK(pinn_graph_else(graph));
    OK(add(x, 100));
    OK(pinn_graph_end(graph));
    OK(pinn_graph_end(graph));
    OK(pinn_graph_branch(graph, "fork"));
    OK(pinn_graph_fork(graph));
    OK(pinn_graph_branch(graph, "y"));
    OK(add(y, 1));
    OK(pinn_graph_branch(graph, "z"));
    OK(pinn_graph_for(graph, "four times", 4, NULL));
    OK(add(z, 2));
    OK(pinn_graph_end(graph));
    OK(pinn_graph_join(graph));
    OK(pinn_graph_wait(graph, x));
    OK(add(x, 1000));
    OK(pinn_graph_join(graph));
    OK(twice(x, y));
    set_value(flag, 3);
    OK(pinn_graph_launch(graph, 1));
    ck_assert_int_eq(value_of(x), 1102);
    ck_assert_int_eq(value_of(y), 2204);
    ck_assert_int_eq(value_of(z), 8);
    ck_assert_int_eq(value_of(trips), 3);
    set_value(flag, 50);
    OK(pinn_graph_launch(graph, 1));
    ck_assert_int_eq(value_of(trips), 10);
    ck_assert_int_eq(value_of(flag), 40);
    pinn_plane *all[] = {x, y, z, flag, trips};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) pinn_plane_destroy(all[i]);
    tear_down();
}
END_TEST

/* ---- every allocation may fail --------------------------------------------------------------------------------------------- */

static pinn_status use_everything(int32_t *result) {
    pinn_context *own = NULL;
    pinn_graph *g = NULL;
    pinn_plane *x = NULL, *y = NULL, *home = NULL;
    int32_t mine = 0;
    pinn_plane *wrapped = NULL;
    const add_arguments arguments = {.count = 1, .amount = 1};
    const pinn_context_options options = {.executor = PINN_EXECUTOR_CPU, .cpu_mode = "strict:3"};
    pinn_status status;
    PN_TRY(pinn_context_create(&options, &own));
    PN_TRY(pinn_graph_create(own, "g", &g));
    PN_TRY(pinn_plane_create(own, "x", PINN_DEVICE, 4, &x));
    PN_TRY(pinn_plane_create(own, "y", PINN_DEVICE, 4, &y));
    PN_TRY(pinn_plane_create(own, "home", PINN_PINNED, 4, &home));
    PN_TRY(pinn_plane_wrap(own, "mine", PINN_HOST, &mine, sizeof mine, &wrapped));
    PN_TRY(pinn_graph_begin(g));
    PN_TRY(pinn_graph_fork(g));
    PN_TRY(pinn_graph_branch(g, "x"));
    PN_TRY(pinn_graph_operation(g, &add_operation, &arguments, sizeof arguments, PINN_PLANES(x), PINN_PLANES(x)));
    PN_TRY(pinn_graph_copy(g, x, home));
    PN_TRY(pinn_graph_branch(g, "y"));
    PN_TRY(pinn_graph_operation(g, &add_operation, &arguments, sizeof arguments, PINN_PLANES(y), PINN_PLANES(y)));
    PN_TRY(pinn_graph_join(g));
    PN_TRY(pinn_graph_operation(g, &add_operation, &arguments, sizeof arguments, PINN_PLANES(home), PINN_PLANES(home)));
    PN_TRY(pinn_graph_copy(g, home, wrapped));
    for (int i = 0; i < 20; i++) PN_TRY(pinn_graph_enqueue(g, 1));
    PN_TRY(pinn_context_synchronize(own));
    *result = mine;
fail:
    pinn_plane_destroy(x);
    pinn_plane_destroy(y);
    pinn_plane_destroy(home);
    pinn_plane_destroy(wrapped);
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
    }
    ck_assert_int_gt(n, 40); /* the loop did reach the mode's own allocations */
    ck_assert_int_eq(result, 21);
}
END_TEST

static TCase *strict_case(void) {
    TCase *tests = tcase_create("strict");
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

static int run_own_tests(void) {
    tested = PINN_EXECUTOR_CPU;
    Suite *suite = suite_create("graph: strict");
    TCase *orders = tcase_create("orders");
    tcase_set_timeout(orders, 60);
    tcase_add_test(orders, orders_vary_with_the_seed_and_are_legal);
    tcase_add_test(orders, every_allocation_may_fail);
    tcase_add_loop_test(orders, blocks_run_inside_branches, 0, 50);
    suite_add_tcase(suite, strict_case());
    suite_add_tcase(suite, orders);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed;
}

/* ---- the conformance suite under many seeds -------------------------------------------------------------------------------- */

static long number_from(const char *variable, long otherwise) {
    const char *text = getenv(variable);
    return text ? strtol(text, NULL, 10) : otherwise;
}

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { DEFAULT_SEEDS = 20 }; /* many times slower; they look at the code, not at orders */
#else
enum { DEFAULT_SEEDS = 200 };
#endif

/* Runs the suite in a process of its own. */
static pid_t start_with(long seed) {
    fflush(NULL);
    pid_t child = fork();
    if (child != 0) return child;
    char mode[32];
    snprintf(mode, sizeof mode, "strict:%ld", seed);
    tested_mode = mode;
    alarm(120); /* without a fork for each test Check cannot stop one that hangs */
    exit(run_conformance(PINN_EXECUTOR_CPU, mode, true) ? EXIT_FAILURE : EXIT_SUCCESS);
}

static bool has_passed(pid_t child, long seed) {
    int status = -1;
    if (child > 0 && waitpid(child, &status, 0) == child && status == 0) return true;
    printf("seed %ld: failed (wait status 0x%x)\n", seed, (unsigned)status);
    return false;
}

int main(void) {
    enum { AT_ONCE = 2 };
    const long first = number_from("FIRST_SEED", 0), end = first + number_from("SEEDS", DEFAULT_SEEDS);
    int failed = run_own_tests();
    for (long seed = first; seed < end; seed += AT_ONCE) {
        pid_t child[AT_ONCE];
        const long count = end - seed < AT_ONCE ? end - seed : AT_ONCE;
        for (long i = 0; i < count; i++) child[i] = start_with(seed + i);
        for (long i = 0; i < count; i++) failed += !has_passed(child[i], seed + i);
    }
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
