/* Whole trainings in the graph layer's strict mode: every node of a training must declare what it reads and writes, and write what
 * it says.
 *
 * The strict mode fails on undeclared accesses that it sees and poisons what it does not let a node see, so parameters that come
 * out bit for bit as without it show that no step of the training depends on anything undeclared.
 */
#include "training_tools.h"

typedef struct variant {
    const char *config, *lowering;
    const char *set[8];
    size_t count;
} variant;

/* Few points and steps: the strict mode copies what each node may not touch. Events and snapshots are among the steps. */
#define REDUCED                                                                                                   \
    "equation.0.points=130", "condition.0.points=20", "network.width=12", "train.0.steps=40", "output.events=10", \
        "output.checkpoint=20"
enum { REDUCTIONS = 6 };

static const variant variants[] = {
    {"heat.toml", "tiled", {REDUCED, "precision=float32"}, REDUCTIONS + 1},
    {"heat.toml", "tiled", {REDUCED, "precision=float64"}, REDUCTIONS + 1},
    {"heat.toml", "layered", {REDUCED, "precision=float32"}, REDUCTIONS + 1},
    {"heat.toml", "layered", {REDUCED, "precision=float64"}, REDUCTIONS + 1},
    /* Fourier features, a reference from a file. */
    {"allen_cahn.toml", "tiled", {REDUCED, "output.evaluate.every=10"}, REDUCTIONS + 1},
    {"helmholtz2d.toml", "tiled", {REDUCED}, REDUCTIONS},
    {"helmholtz2d.toml", "layered", {REDUCED}, REDUCTIONS},
    {"bench/ns3.toml", "tiled", {REDUCED}, REDUCTIONS},
};

static pinn_training *train(const variant *v, const char *mode, const char *directory) {
    if (mode)
        setenv("PINN_CPU_MODE", mode, 1);
    else
        unsetenv("PINN_CPU_MODE");
    const pinn_options options = {.config = v->config,
                                  .device = "cpu",
                                  .lowering = v->lowering,
                                  .set = v->set,
                                  .set_count = v->count,
                                  .directory = directory};
    pinn_training *training = NULL;
    must(pinn_training_create(&options, &training));
    must(pinn_training_run(training));
    return training;
}

/* Of the last event; each number the same, bit for bit, NaN included. */
static void assert_same_results(const pinn_training *a, const pinn_training *b) {
    pinn_result x, y;
    pinn_training_result(a, &x);
    pinn_training_result(b, &y);
    ck_assert_uint_eq(x.steps, y.steps);
    ck_assert_str_eq(x.stop_reason, y.stop_reason);
    ck_assert_mem_eq(&x.loss, &y.loss, sizeof x.loss);
    ck_assert_mem_eq(&x.best_loss, &y.best_loss, sizeof x.best_loss);
    ck_assert_uint_eq(x.best_step, y.best_step);
    ck_assert_uint_eq(x.terms, y.terms);
    ck_assert_mem_eq(x.losses, y.losses, x.terms * sizeof *x.losses);
    ck_assert_uint_eq(x.fields, y.fields);
    ck_assert_mem_eq(x.relative_l2, y.relative_l2, x.fields * sizeof *x.relative_l2);
}

START_TEST(strict_training_equals_inline_training) {
    char folder[] = "/tmp/pinn-test-XXXXXX", config[512], first[64], second[64];
    variant v = variants[_i];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(config, sizeof config, "%s/%s", CONFIG(""), v.config);
    v.config = config;
    snprintf(first, sizeof first, "%s/plain", folder);
    snprintf(second, sizeof second, "%s/strict", folder);
    pinn_training *plain = train(&v, NULL, first), *strict = train(&v, "strict:1", second);
    assert_same_parameters(plain, strict);
    assert_same_results(plain, strict);
    pinn_training_destroy(plain);
    pinn_training_destroy(strict);
    remove_tree(folder);
}
END_TEST

START_TEST(unknown_mode_is_refused) {
    setenv("PINN_CPU_MODE", "strictly", 1);
    const pinn_options options = {.config = CONFIG("heat.toml"), .device = "cpu", .no_directory = true};
    pinn_training *training = NULL;
    ck_assert_int_eq((int)pinn_training_create(&options, &training), (int)PINN_BAD_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(pinn_error_message(), "strictly"));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("training: strict");
    TCase *group = tcase_create("strict");
    tcase_set_timeout(group, 300);
    tcase_add_loop_test(group, strict_training_equals_inline_training, 0, sizeof variants / sizeof *variants);
    tcase_add_test(group, unknown_mode_is_refused);
    suite_add_tcase(suite, group);
    return suite_run(suite);
}
