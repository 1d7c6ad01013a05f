/* The passes on a GPU against the tiled pass on the CPU, and the graph executor against the eager one. Needs a GPU: without one
 * the program says so and exits 77. */
#include "pass_outcome.h"
#include "pass_wide.h"

/* The tiled pass needs two hidden layers, or features and one. */
static pn_lowering lowering_of(const pass_case *problem, bool tiled) {
    return tiled && problem->depth + (problem->fourier > 0) > 1 ? PN_LOWERING_TILED : PN_LOWERING_LAYERED;
}

/* Compiles the kernels of all tests side by side; afterwards they are in the cache. Fails where a test that needs them would. */
START_TEST(kernels_compile) {
    static case_run open[5 * PROBLEMS + WIDE_RUNS + 2 * TILE_RUNS];
    static pass_case wide[WIDE_RUNS], tiles[TILE_RUNS];
    size_t count = 0;
    for (size_t k = 0; k < WIDE_RUNS; k++) { /* those that take longest first */
        wide[k] = wide_case(&wide_runs[k]);
        case_create_on(&open[count++], &wide[k], PINN_EXECUTOR_GRAPH, PN_FLOAT32, PN_LOWERING_STREAMED, false);
    }
    for (size_t k = 0; k < 4 * PROBLEMS; k++)
        case_create_on(&open[count++], &problems[k % PROBLEMS], PINN_EXECUTOR_GRAPH, k / PROBLEMS % 2 ? PN_FLOAT32 : PN_FLOAT64,
                       lowering_of(&problems[k % PROBLEMS], k < 2 * PROBLEMS), false);
    for (size_t k = 0; k < PROBLEMS; k++)
        case_create_on(&open[count++], &problems[k], PINN_EXECUTOR_GRAPH, PN_FLOAT64, PN_LOWERING_AUTO, true);
    for (size_t k = 0; k < 2 * TILE_RUNS; k++) {
        tiles[k % TILE_RUNS] = tile_case(&tile_runs[k % TILE_RUNS]);
        case_create_on(&open[count++], &tiles[k % TILE_RUNS], PINN_EXECUTOR_GRAPH, k < TILE_RUNS ? PN_FLOAT64 : PN_FLOAT32, PN_LOWERING_TILED, false);
    }
    for (size_t k = 0; k < count; k++) MUST(pn_pass_finish(open[k].pass));
    for (size_t k = 0; k < count; k++) case_close(&open[k]);
}
END_TEST

static case_outcome run(const pass_case *problem, pinn_executor executor, pn_real real, pn_lowering lowering, int repeats) {
    case_outcome o = case_outcome_of(problem, executor, real, lowering, repeats);
    ck_assert_str_eq(o.lowering, lowering == PN_LOWERING_LAYERED ? "layered" : lowering == PN_LOWERING_STREAMED ? "streamed" : "tiled");
    return o;
}

/* Same programs, other order of sums and other roundings of elementary functions: float64 to 1e-12; float32 to 1e-5, as on the CPU. */
START_TEST(gpu_agrees_with_cpu) {
    const pass_case *problem = &problems[_i % PROBLEMS];
    const pn_real real = _i / PROBLEMS % 2 ? PN_FLOAT32 : PN_FLOAT64;
    case_outcome cpu = run(problem, PINN_EXECUTOR_CPU, real, PN_LOWERING_TILED, 1);
    case_outcome gpu = run(problem, PINN_EXECUTOR_GRAPH, real, lowering_of(problem, _i < 2 * PROBLEMS), 2);
    case_check_agreement(problem, &cpu, &gpu, real == PN_FLOAT64 ? 1e-12 : 1e-5);
}
END_TEST

START_TEST(given_tiles_agree_with_cpu) {
    const pass_case problem = tile_case(&tile_runs[_i % TILE_RUNS]);
    const pn_real real = _i < TILE_RUNS ? PN_FLOAT64 : PN_FLOAT32;
    case_outcome cpu = run(&problem, PINN_EXECUTOR_CPU, real, PN_LOWERING_TILED, 1);
    case_outcome gpu = run(&problem, PINN_EXECUTOR_GRAPH, real, PN_LOWERING_TILED, 2);
    case_check_agreement(&problem, &cpu, &gpu, real == PN_FLOAT64 ? 1e-12 : 1e-5);
}
END_TEST

START_TEST(graph_equals_eager) {
    const pass_case *problem = &problems[_i % PROBLEMS];
    const pn_lowering lowering = lowering_of(problem, _i < PROBLEMS);
    case_outcome graph = run(problem, PINN_EXECUTOR_GRAPH, PN_FLOAT32, lowering, 3), eager = run(problem, PINN_EXECUTOR_EAGER, PN_FLOAT32, lowering, 1);
    case_check_equal(&graph, &eager);
}
END_TEST

/* Float32 as above. Tf32: factors of products keep 11 bits, 2e-4 a product, more where a gradient is the difference of large parts; a
 * wrong scale or a missing part is an error of the order of one. */
START_TEST(streamed_agrees_with_cpu) {
    const pass_case problem = wide_case(&wide_runs[_i]);
    case_outcome cpu = run(&problem, PINN_EXECUTOR_CPU, PN_FLOAT32, PN_LOWERING_TILED, 1);
    case_outcome gpu = run(&problem, PINN_EXECUTOR_GRAPH, PN_FLOAT32, PN_LOWERING_STREAMED, 2);
    case_check_agreement(&problem, &cpu, &gpu, problem.tf32 ? 2e-3 : 1e-5);
}
END_TEST

START_TEST(streamed_graph_equals_eager) {
    const pass_case problem = wide_case(&wide_runs[_i]);
    case_outcome graph = run(&problem, PINN_EXECUTOR_GRAPH, PN_FLOAT32, PN_LOWERING_STREAMED, 3);
    case_outcome eager = run(&problem, PINN_EXECUTOR_EAGER, PN_FLOAT32, PN_LOWERING_STREAMED, 1);
    case_check_equal(&graph, &eager);
}
END_TEST

/* NaN and infinity among the parameters come out. */
START_TEST(streamed_shows_what_is_not_finite) {
    case_run r;
    case_open_on(&r, &wide_problems[0], PINN_EXECUTOR_EAGER, PN_FLOAT32, PN_LOWERING_STREAMED, false);
    double *theta = case_parameters(r.network), *gradient = pn_allocate(r.network->parameters, sizeof *gradient);
    ck_assert_ptr_nonnull(gradient);
    ck_assert(isfinite(case_evaluate(&r, theta, gradient)));
    const size_t weight = r.network->layer[3].parameter[0].offset + 1000;
    const double before = theta[weight], bad[] = {NAN, INFINITY};
    for (int k = 0; k < 2; k++) {
        theta[weight] = bad[k];
        ck_assert(!isfinite(case_evaluate(&r, theta, gradient)));
        ck_assert(!isfinite(case_norm(gradient, r.network->parameters)));
    }
    theta[weight] = before;
    ck_assert(isfinite(case_evaluate(&r, theta, gradient)) && isfinite(case_norm(gradient, r.network->parameters)));
    pn_free(gradient);
    pn_free(theta);
    case_close(&r);
}
END_TEST

START_TEST(evaluation_matches) { case_check_evaluation(&problems[_i], PINN_EXECUTOR_GRAPH, PN_LOWERING_AUTO, 1e-12); }
END_TEST

int main(void) {
    if (pinn_device_count() == 0) return suite_skip("no GPU");
    Suite *suite = suite_create("network pass on a GPU");
    TCase *tests = tcase_create("cuda");
    tcase_set_timeout(tests, 300); /* the first run compiles the kernels */
    tcase_add_test(tests, kernels_compile);
    tcase_add_loop_test(tests, gpu_agrees_with_cpu, 0, 4 * PROBLEMS);
    tcase_add_loop_test(tests, given_tiles_agree_with_cpu, 0, 2 * TILE_RUNS);
    tcase_add_loop_test(tests, graph_equals_eager, 0, 2 * PROBLEMS);
    tcase_add_loop_test(tests, streamed_agrees_with_cpu, 0, WIDE_RUNS);
    tcase_add_loop_test(tests, streamed_graph_equals_eager, 0, WIDE_RUNS);
    tcase_add_test(tests, streamed_shows_what_is_not_finite);
    tcase_add_loop_test(tests, evaluation_matches, 0, PROBLEMS);
    suite_add_tcase(suite, tests);
    return suite_run_nofork(suite);
}
