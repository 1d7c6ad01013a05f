/* Whole trainings on a GPU: the common suite; graph against eager; GPU against CPU. */
#include "training_suite.h"

static pinn_training *create_on(const char *where, const char *executor, const char *precision) {
    const char *const set[] = {precision, "equation.0.points=1000"};
    const pinn_options options = {.config = CONFIG("burgers.toml"), .device = where, .executor = executor, .set = set, .set_count = 2, .no_directory = true};
    pinn_training *training = NULL;
    must(pinn_training_create(&options, &training));
    return training;
}

static double loss_of(pinn_training *training) {
    pn_words words;
    must(pinn_plane_read(training->words, 0, &words, sizeof words));
    return words.loss;
}

START_TEST(graph_equals_eager_over_a_thousand_steps) {
    static const char *const precision[] = {"precision=float32", "precision=float64", "precision=tf32"};
    for (int i = 0; i < 3; i++) {
        pinn_training *graph = create_on("cuda", "graph", precision[i]), *eager = create_on("cuda", "eager", precision[i]);
        must(pinn_training_steps(graph, 1000, NULL, NULL));
        must(pinn_training_steps(eager, 1000, NULL, NULL));
        ck_assert_uint_eq(graph->step, 1000);
        assert_same_parameters(graph, eager);
        pinn_training_destroy(graph);
        pinn_training_destroy(eager);
    }
}
END_TEST

/* The same seed gives the same points and start on both; sums differ in their order only. */
static void compare_losses(const char *precision, double tolerance) {
    pinn_training *gpu = create_on("cuda", NULL, precision), *cpu = create_on("cpu", NULL, precision);
    must(pinn_training_steps(gpu, 100, NULL, NULL));
    must(pinn_training_steps(cpu, 100, NULL, NULL));
    double a = loss_of(gpu), b = loss_of(cpu);
    printf("%s: loss after 100 steps %.17g on the GPU, %.17g on the CPU, relative difference %.2g\n", precision, a, b, fabs(a - b) / b);
    ck_assert_msg(fabs(a - b) <= tolerance * b, "%s: %.17g and %.17g", precision, a, b);
    pinn_training_destroy(gpu);
    pinn_training_destroy(cpu);
}

START_TEST(gpu_and_cpu_agree_after_a_hundred_steps) {
    compare_losses("precision=float32", 1e-5);
    compare_losses("precision=float64", 1e-12);
}
END_TEST

static void gpu_tests(TCase *group) {
    tcase_add_test(group, graph_equals_eager_over_a_thousand_steps);
    tcase_add_test(group, gpu_and_cpu_agree_after_a_hundred_steps);
}

int main(void) {
    if (pinn_device_count() == 0) return suite_skip("no GPU");
    return run_training_suite("cuda", gpu_tests);
}
