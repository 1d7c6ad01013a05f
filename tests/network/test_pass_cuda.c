/* The layered pass on a GPU against the tiled pass on the CPU, and the graph executor against the eager one. Needs a GPU: without one
 * the program says so and exits 77. */
#include "pass_problems.h"

typedef struct outcome {
    double loss, *gradient; /* [parameters] */
    size_t parameters;
} outcome;

static outcome run(const pass_case *problem, pinn_executor executor, pn_real real, int repeats) {
    outcome o;
    case_run r;
    case_open_on(&r, problem, executor, real, PN_LOWERING_AUTO, false);
    ck_assert_str_eq(pn_pass_lowering_name(r.pass), executor == PINN_EXECUTOR_CPU ? "tiled" : "layered");
    o.parameters = r.network->parameters;
    o.gradient = pn_allocate(o.parameters, sizeof *o.gradient);
    double *theta = case_parameters(r.network);
    for (int k = 0; k < repeats; k++) o.loss = case_evaluate(&r, theta, o.gradient);
    pn_free(theta);
    case_close(&r);
    return o;
}

static double distance(const outcome *a, const outcome *b) {
    double difference = 0, square = 0;
    for (size_t i = 0; i < a->parameters; i++) {
        difference += (a->gradient[i] - b->gradient[i]) * (a->gradient[i] - b->gradient[i]);
        square += a->gradient[i] * a->gradient[i];
    }
    return sqrt(difference / square);
}

/* Same programs, other order of sums and other roundings of elementary functions: float64 to 1e-12; float32 to 1e-5, as on the CPU. */
START_TEST(gpu_agrees_with_cpu) {
    const pass_case *problem = &problems[_i % PROBLEMS];
    const pn_real real = _i / PROBLEMS ? PN_FLOAT32 : PN_FLOAT64;
    const double tolerance = real == PN_FLOAT64 ? 1e-12 : 1e-5;
    outcome cpu = run(problem, PINN_EXECUTOR_CPU, real, 1), gpu = run(problem, PINN_EXECUTOR_GRAPH, real, 2);
    ck_assert_msg(fabs(gpu.loss - cpu.loss) <= tolerance * cpu.loss, "%s: loss %.17g on the GPU, %.17g on the CPU", problem->name, gpu.loss,
                  cpu.loss);
    ck_assert_msg(distance(&cpu, &gpu) <= tolerance, "%s: gradients differ by %g", problem->name, distance(&cpu, &gpu));
    pn_free(cpu.gradient);
    pn_free(gpu.gradient);
}
END_TEST

START_TEST(graph_equals_eager) {
    outcome graph = run(&problems[_i], PINN_EXECUTOR_GRAPH, PN_FLOAT32, 3), eager = run(&problems[_i], PINN_EXECUTOR_EAGER, PN_FLOAT32, 1);
    ck_assert(graph.loss == eager.loss);
    ck_assert_mem_eq(graph.gradient, eager.gradient, graph.parameters * sizeof *graph.gradient);
    pn_free(graph.gradient);
    pn_free(eager.gradient);
}
END_TEST

START_TEST(evaluation_matches) {
    const pass_case *problem = &problems[_i];
    case_run r;
    case_open_on(&r, problem, PINN_EXECUTOR_GRAPH, PN_FLOAT64, PN_LOWERING_AUTO, true);
    double *theta = case_parameters(r.network);
    case_write(r.parameter_plane, PN_FLOAT64, theta, r.network->parameters);
    MUST(pinn_graph_launch(r.graph, 1));
    const size_t bytes = pinn_plane_bytes(pn_pass_fields(r.pass));
    double *fields = pn_allocate(bytes, 1), *field = fields;
    MUST(pinn_plane_read(pn_pass_fields(r.pass), 0, fields, bytes));
    for (size_t s = 0; s < r.sets; s++) {
        const size_t points = r.set[s].points;
        for (size_t p = 0; p < points; p++) {
            double x[10], u[3];
            for (size_t i = 0; i < problem->coordinates; i++) x[i] = r.points[r.set[s].point_offset + i * points + p];
            case_network(problem, r.network, theta, x, u);
            for (size_t f = 0; f < problem->fields; f++) ck_assert_double_eq_tol(field[f * points + p], u[f], 1e-12);
        }
        field += points * problem->fields;
    }
    pn_free(fields);
    pn_free(theta);
    case_close(&r);
}
END_TEST

int main(void) {
    if (pinn_device_count() == 0) {
        puts("skipped: no GPU");
        return 77;
    }
    Suite *suite = suite_create("network pass on a GPU");
    TCase *tests = tcase_create("cuda");
    tcase_set_timeout(tests, 300); /* the first run compiles the kernels */
    tcase_add_loop_test(tests, gpu_agrees_with_cpu, 0, 2 * PROBLEMS);
    tcase_add_loop_test(tests, graph_equals_eager, 0, PROBLEMS);
    tcase_add_loop_test(tests, evaluation_matches, 0, PROBLEMS);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
