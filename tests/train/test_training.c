/* Whole trainings on the CPU. */
#include "training_suite.h"

#include <omp.h>

START_TEST(thread_count_does_not_change_a_bit) {
    const char *const wide[] = {"equation.0.points=3000"};
    omp_set_num_threads(1);
    pinn_training *one = create(wide, 1, NULL, false);
    must(pinn_training_steps(one, 30, NULL, NULL));
    omp_set_num_threads(2);
    pinn_training *two = create(wide, 1, NULL, false);
    must(pinn_training_steps(two, 30, NULL, NULL));
    omp_set_num_threads(3);
    pinn_training *three = create(wide, 1, NULL, false);
    must(pinn_training_steps(three, 30, NULL, NULL));
    assert_same_parameters(one, two);
    assert_same_parameters(one, three);
    pinn_training_destroy(one);
    pinn_training_destroy(two);
    pinn_training_destroy(three);
    omp_set_num_threads(2);
}
END_TEST

START_TEST(both_lowerings_train_alike) {
    const pinn_options base = {.config = CONFIG("heat.toml"), .device = "cpu", .set = (const char *const[]){"equation.0.points=130", "precision=float64"}, .set_count = 2, .no_directory = true};
    pinn_options other = base;
    other.lowering = "layered";
    pinn_training *tiled = NULL, *layered = NULL;
    must(pinn_training_create(&base, &tiled));
    must(pinn_training_create(&other, &layered));
    must(pinn_training_steps(tiled, 20, NULL, NULL));
    must(pinn_training_steps(layered, 20, NULL, NULL));
    size_t n;
    double *a = read_parameters(tiled, &n), *b = read_parameters(layered, &n), difference = 0, norm = 0;
    for (size_t i = 0; i < n; i++) {
        difference += (a[i] - b[i]) * (a[i] - b[i]);
        norm += a[i] * a[i];
    }
    /* Sums in another order: rounding, grown over 20 steps. */
    ck_assert_msg(sqrt(difference / norm) < 1e-11, "relative difference %g", sqrt(difference / norm));
    free(a);
    free(b);
    pinn_training_destroy(tiled);
    pinn_training_destroy(layered);
}
END_TEST

static void cpu_tests(TCase *group) {
    tcase_add_test(group, thread_count_does_not_change_a_bit);
    tcase_add_test(group, both_lowerings_train_alike);
}

int main(void) { return run_training_suite("cpu", cpu_tests); }
