/* Adam's recorded step on the GPU: graph and eager agree to the bit, and with the CPU as far as libm allows. */
#include <float.h>

#include "run.h"

static double largest_difference(pn_real real, const void *a, const void *b, size_t count) {
    double largest = 0;
    for (size_t i = 0; i < count; i++) largest = fmax(largest, fabs(pn_real_get(real, a, i) - pn_real_get(real, b, i)));
    return largest;
}

enum { STEPS = 20 };

static void compare(pn_real real, const run_settings *settings, run_result *out) {
    const size_t bytes = RUN_PARAMETERS * pn_real_bytes(real);
    run_result cpu, graph, eager;
    run_optimizer_with(PINN_EXECUTOR_CPU, real, settings, STEPS, &cpu);
    run_optimizer_with(PINN_EXECUTOR_GRAPH, real, settings, STEPS, &graph);
    run_optimizer_with(PINN_EXECUTOR_EAGER, real, settings, STEPS, &eager);
    ck_assert_mem_eq(graph.gradient, eager.gradient, bytes);
    ck_assert_mem_eq(graph.parameter, eager.parameter, bytes);
    ck_assert_mem_eq(graph.moments, eager.moments, 2 * bytes);
    ck_assert_mem_eq(&graph.words, &eager.words, sizeof graph.words);
    ck_assert_mem_eq(graph.ring, eager.ring, sizeof graph.ring);
    ck_assert_mem_eq(&graph.loop, &eager.loop, sizeof graph.loop);

    /* Sums have one order everywhere, and neither they nor the moments see libm. Which NaN comes out of one differs. */
    if (!isnan(settings->bad_gradient)) ck_assert_mem_eq(graph.gradient, cpu.gradient, bytes);
    ck_assert_mem_eq(graph.moments, cpu.moments, 2 * bytes);
    ck_assert(graph.words.loss == cpu.words.loss && graph.words.gradient_norm == cpu.words.gradient_norm);
    ck_assert(graph.words.step == cpu.words.step && graph.words.stop == cpu.words.stop && graph.words.rows == cpu.words.rows);
    ck_assert_mem_eq(&graph.loop, &cpu.loop, sizeof graph.loop);
    /* The rate does: it may be a few units in its last place off, and each of 20 updates of at most 2e-3 with it; an update rounds
     * into a parameter of size 1. */
    const double tolerance = STEPS * (real == PN_FLOAT32 ? FLT_EPSILON : DBL_EPSILON);
    ck_assert(largest_difference(real, graph.parameter, cpu.parameter, RUN_PARAMETERS) <= tolerance);
    for (int i = 0; i < RUN_RING * RUN_ROW; i++)
        ck_assert(graph.ring[i] == cpu.ring[i] || fabs(graph.ring[i] - cpu.ring[i]) <= 1e-14 * fabs(cpu.ring[i]) ||
                  (isnan(graph.ring[i]) && isnan(cpu.ring[i])));
    *out = graph;
    run_free(&cpu);
    run_free(&eager);
}

START_TEST(executors_agree) {
    const run_settings settings = run_default(STEPS);
    run_result graph;
    compare(_i ? PN_FLOAT64 : PN_FLOAT32, &settings, &graph);
    ck_assert(graph.words.step == STEPS && graph.words.clip < 1);
    run_free(&graph);
}
END_TEST

START_TEST(ends) {
    const run_end end = run_ending(_i);
    run_result graph;
    compare(_i % 2 ? PN_FLOAT64 : PN_FLOAT32, &end.settings, &graph);
    ck_assert(graph.words.step == end.step && graph.words.stop == end.stop && graph.words.rows == end.rows);
    run_free(&graph);
}
END_TEST

int main(void) {
    if (pinn_device_count() == 0) return suite_skip("no GPU");
    Suite *suite = suite_create("adam step on the GPU");
    TCase *tests = tcase_create("adam step");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, executors_agree, 0, 2);
    tcase_add_loop_test(tests, ends, 0, RUN_ENDS);
    suite_add_tcase(suite, tests);
    return suite_run_nofork(suite);
}
