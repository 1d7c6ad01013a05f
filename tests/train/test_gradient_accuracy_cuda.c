/* The gradient of every config on a GPU, in every precision, tiled and streamed where they fit and layered, against the float64 one of the CPU at the same
 * float32 points and parameters. Prints the errors, in float32 beside those of scalar multiply-adds ("fma"). Needs a GPU: without one
 * the program says so and exits 77. CK_RUN_CASE=float32|tf32|float64 runs one of them.
 *
 * Tolerances, of the whole gradient's 2-norm. float32: rounding alone leaves 1e-7 to 3e-7 (test_gradient_accuracy.c); a product's three fp16
 * parts leave out 2^-22 of it, and tensor cores cut off instead of rounding, always towards zero: 5e-6. tf32: half a unit of 11 bits is 2.4e-4
 * of each factor, two factors, up to 7 layers there and back, signs that vary: 2e-3. float64: 1.1e-16 and as many sums: 1e-12. */
#include "gradient_accuracy.h"

/* The whole size of every config but one point: a GPU has several tiles a block then. */
static const size_t most_points = 20000;

static gradient_options on_gpu(const char *lowering, const char *precision) {
    return (gradient_options){.device = "cuda", .lowering = lowering, .precision = precision, .most = most_points};
}

/* Whether the lowering takes the config. */
static bool take(const char *path, const char *lowering, const char *precision, const gradient_sample *same, gradient_sample *out) {
    const gradient_options o = on_gpu(lowering, precision);
    pinn_training *training = NULL;
    const pinn_status status = gradient_try_create(path, &o, &training);
    if (status == PINN_UNSUPPORTED) {
        printf("%-22s %-8s %-8s %s\n", gradient_stem(path), precision, lowering, pinn_error_message());
        return false;
    }
    must(status);
    *out = gradient_take(training, same);
    return true;
}

/* `fma` is timed by nobody: it tells what float32 itself costs. */
static void check(const char *path, const char *precision, bool fma, double tolerance) {
    const gradient_options first = on_gpu("layered", "float32");
    static const char *const lowering[] = {"layered", "tiled", "streamed", "fma"};
    gradient_sample drawn = gradient_take(gradient_create(path, &first), NULL), exact = gradient_exact(path, most_points, &drawn), one;
    for (int i = 0; i < (fma ? 4 : 3); i++) {
        if (!take(path, lowering[i], precision, &drawn, &one)) continue;
        gradient_check(path, i == 3 ? "fma" : precision, &one, &exact, tolerance);
        gradient_sample_free(&one);
    }
    gradient_sample_free(&exact);
    gradient_sample_free(&drawn);
}

static void check_float32(const char *path) { check(path, "float32", true, 5e-6); }
static void check_tf32(const char *path) { check(path, "tf32", false, 2e-3); }
static void check_float64(const char *path) { check(path, "float64", false, 1e-12); }

START_TEST(float32) { gradient_check_every(check_float32); }
END_TEST
START_TEST(tf32) { gradient_check_every(check_tf32); }
END_TEST
START_TEST(float64) { gradient_check_every(check_float64); }
END_TEST

static void add(Suite *suite, const char *name, const TTest *test) {
    TCase *group = tcase_create(name);
    tcase_set_timeout(group, 550); /* the first run compiles the kernels */
    tcase_add_test(group, test);
    suite_add_tcase(suite, group);
}

int main(void) {
    if (pinn_device_count() == 0) return suite_skip("no GPU");
    Suite *suite = suite_create("gradient accuracy on a GPU");
    add(suite, "float32", float32);
    add(suite, "tf32", tf32);
    add(suite, "float64", float64);
    return suite_run_nofork(suite);
}
