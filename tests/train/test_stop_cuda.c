/* Where trainings stop, on a GPU: the common suite, and graph against eager. */
#include "stop_suite.h"

START_TEST(graph_and_eager_stop_at_the_same_step) {
    static const char *const executor[] = {"graph", "eager"};
    static const char *const set[] = {"stop.relative_l2=5e-3", "output.evaluate.every=100"};
    pinn_training *training[2];
    pinn_result r[2];
    for (int i = 0; i < 2; i++) {
        const pinn_options options = {.config = CONFIG("heat.toml"),
                                      .device = "cuda",
                                      .executor = executor[i],
                                      .set = set,
                                      .set_count = 2,
                                      .no_directory = true};
        must(pinn_training_create(&options, &training[i]));
        must(pinn_training_run(training[i]));
        pinn_training_result(training[i], &r[i]);
        ck_assert_str_eq(r[i].stop_reason, "relative_l2");
        ck_assert_uint_eq(r[i].steps % 100, 0);
        ck_assert_uint_eq(r[i].graph_builds, 1);
    }
    printf("heat is under 5e-3 at step %llu\n", (unsigned long long)r[0].steps);
    ck_assert_uint_eq(r[0].steps, r[1].steps);
    ck_assert(r[0].best_loss == r[1].best_loss && r[0].best_step == r[1].best_step);
    assert_same_parameters(training[0], training[1]);
    for (int i = 0; i < 2; i++) pinn_training_destroy(training[i]);
}
END_TEST

static void gpu_tests(TCase *group) { tcase_add_test(group, graph_and_eager_stop_at_the_same_step); }

int main(void) {
    if (pinn_device_count() == 0) return suite_skip("no GPU");
    return run_stop_suite("cuda", gpu_tests);
}
