/* The float32 gradient of every config on the CPU, tiled and layered, against the float64 one. Prints the errors.
 *
 * Tolerance. Half a unit in the last place of float32 is 6e-8. A gradient's entry is a sum over some thousand rows whose signs vary, after
 * products over 20 to 256 columns in each of up to 7 layers, there and back: rounding alone leaves 0.7e-7 to 2.5e-7 of the whole gradient with
 * AVX-512. 1e-6 is four times that, for other instruction sets; one wrong entry of a hundred shows at 1e-4. */
#include "gradient_accuracy.h"

/* Enough for several tiles of the CPU's, few enough to be quick under sanitizers. */
static const size_t most_points = 601;

static void check(const char *path) {
    gradient_options o = {.device = "cpu", .lowering = "tiled", .precision = "float32", .most = most_points};
    gradient_sample tiled = gradient_take(gradient_create(path, &o), NULL);
    o.lowering = "layered";
    gradient_sample layered = gradient_take(gradient_create(path, &o), &tiled);
    gradient_sample exact = gradient_exact(path, most_points, &tiled);
    gradient_check(path, "float32", &tiled, &exact, 1e-6);
    gradient_check(path, "float32", &layered, &exact, 1e-6);
    gradient_sample_free(&exact);
    gradient_sample_free(&layered);
    gradient_sample_free(&tiled);
}

START_TEST(every_config) { gradient_check_every(check); }
END_TEST

/* The comparison itself: a gradient in which one of a hundred entries is off by a thousandth of its size is seen. */
START_TEST(a_small_mistake_is_seen) {
    const gradient_options o = {.device = "cpu", .lowering = "tiled", .precision = "float32", .most = 101};
    gradient_sample s = gradient_take(gradient_create(CONFIG("heat.toml"), &o), NULL), exact = gradient_exact(CONFIG("heat.toml"), 101, &s);
    ck_assert_double_lt(gradient_difference(&s, &exact), 1e-6);
    for (size_t i = 0; i < s.parameters; i += 100) s.gradient[i] *= 1.001;
    ck_assert_double_gt(gradient_difference(&s, &exact), 1e-6);
    gradient_sample_free(&exact);
    gradient_sample_free(&s);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("gradient accuracy on the CPU");
    TCase *group = tcase_create("configs");
    tcase_set_timeout(group, 500);
    tcase_add_test(group, every_config);
    tcase_add_test(group, a_small_mistake_is_seen);
    suite_add_tcase(suite, group);
    return suite_run_nofork(suite);
}
