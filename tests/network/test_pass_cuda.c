/* Both passes on a GPU against the tiled pass on the CPU, and the graph executor against the eager one. Needs a GPU: without one
 * the program says so and exits 77. */
#include "pass_outcome.h"

/* The tiled pass needs two hidden layers, or features and one. */
static pn_lowering lowering_of(const pass_case *problem, bool tiled) {
    return tiled && problem->depth + (problem->fourier > 0) > 1 ? PN_LOWERING_TILED : PN_LOWERING_LAYERED;
}

static case_outcome run(const pass_case *problem, pinn_executor executor, pn_real real, pn_lowering lowering, int repeats) {
    case_outcome o = case_outcome_of(problem, executor, real, lowering, repeats);
    ck_assert_str_eq(o.lowering, lowering == PN_LOWERING_LAYERED ? "layered" : "tiled");
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

START_TEST(graph_equals_eager) {
    const pass_case *problem = &problems[_i % PROBLEMS];
    const pn_lowering lowering = lowering_of(problem, _i < PROBLEMS);
    case_outcome graph = run(problem, PINN_EXECUTOR_GRAPH, PN_FLOAT32, lowering, 3), eager = run(problem, PINN_EXECUTOR_EAGER, PN_FLOAT32, lowering, 1);
    case_check_equal(&graph, &eager);
}
END_TEST

START_TEST(evaluation_matches) { case_check_evaluation(&problems[_i], PINN_EXECUTOR_GRAPH, PN_LOWERING_AUTO, 1e-12); }
END_TEST

int main(void) {
    if (pinn_device_count() == 0) {
        puts("skipped: no GPU");
        return 77;
    }
    Suite *suite = suite_create("network pass on a GPU");
    TCase *tests = tcase_create("cuda");
    tcase_set_timeout(tests, 300); /* the first run compiles the kernels */
    tcase_add_loop_test(tests, gpu_agrees_with_cpu, 0, 4 * PROBLEMS);
    tcase_add_loop_test(tests, graph_equals_eager, 0, 2 * PROBLEMS);
    tcase_add_loop_test(tests, evaluation_matches, 0, PROBLEMS);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
