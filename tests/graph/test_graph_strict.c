/* The CPU executor's strict mode: the whole conformance suite under many seeds, and the orders it runs branches in. What its guards
 * find: test_graph_strict_guard.c.
 *
 * The suite runs once for each of SEEDS seeds (an environment variable), each in a process of its own: what crashes or hangs under
 * one seed is told with that seed, and repeats with SEEDS=1 FIRST_SEED=<it>.
 */
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

static int run_own_tests(void) {
    tested = PINN_EXECUTOR_CPU;
    Suite *suite = suite_create("graph: strict, orders");
    TCase *orders = tcase_create("orders");
    tcase_set_timeout(orders, 60);
    tcase_add_test(orders, orders_vary_with_the_seed_and_are_legal);
    tcase_add_test(orders, every_allocation_may_fail);
    tcase_add_loop_test(orders, blocks_run_inside_branches, 0, 50);
    suite_add_tcase(suite, orders);
    return suite_run(suite);
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
    exit(run_conformance(PINN_EXECUTOR_CPU, mode, true));
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
