/* The times of a step's nodes: which nodes there are, that each took time, and that the training goes on as if nothing had been. */
#include "train/profile.h"
#include "training_tools.h"

static pinn_training *create(const char *lowering) {
    static const char *const set[] = {"equation.0.points=100", "network.width=8"};
    const pinn_options options = {.config = CONFIG("heat.toml"), .device = "cpu", .lowering = lowering, .set = set, .set_count = 2, .no_directory = true};
    pinn_training *training = NULL;
    must(pinn_training_create(&options, &training));
    return training;
}

START_TEST(the_nodes_are_the_steps) {
    static const struct { const char *name; pn_step_part part; } expected[] = {
        {"sample", PN_PART_SAMPLE}, {"network pass, tiled", PN_PART_PASS}, {"reduce", PN_PART_OPTIMIZER}, {"adam", PN_PART_OPTIMIZER}};
    pinn_training *training = create("tiled");
    pn_node_time *node;
    size_t count;
    must(pn_training_profile(training, 1e-3, 2, &node, &count));
    ck_assert_uint_eq(count, sizeof expected / sizeof expected[0]);
    for (size_t i = 0; i < count; i++) {
        ck_assert_str_eq(node[i].name, expected[i].name);
        ck_assert_int_eq((int)node[i].part, (int)expected[i].part);
        ck_assert_msg(node[i].seconds > 0 && node[i].seconds < 1, "%s: %g s", node[i].name, node[i].seconds);
    }
    pn_free(node);
    pinn_training_destroy(training);
}
END_TEST

START_TEST(a_layered_pass_is_many_nodes) {
    pinn_training *training = create("layered");
    pn_node_time *node;
    size_t count, passes = 0;
    must(pn_training_profile(training, 1e-4, 1, &node, &count));
    for (size_t i = 0; i < count; i++) passes += node[i].part == PN_PART_PASS;
    ck_assert_uint_eq(passes, 16); /* three hidden layers: 3 forward, 3 products, residuals, 3 weight and 3 input gradients, 3 backward */
    ck_assert_uint_eq(count, passes + 3);
    ck_assert_str_eq(node[count - 1].name, "adam");
    pn_free(node);
    pinn_training_destroy(training);
}
END_TEST

/* Fifty steps, the profile, fifty steps are a hundred steps. */
START_TEST(the_training_goes_on_unchanged) {
    pinn_training *looked_at = create("tiled"), *plain = create("tiled");
    pn_node_time *node;
    size_t count;
    must(pinn_training_steps(looked_at, 50, NULL, NULL));
    must(pn_training_profile(looked_at, 1e-3, 1, &node, &count));
    must(pinn_training_steps(looked_at, 50, NULL, NULL));
    must(pinn_training_steps(plain, 100, NULL, NULL));
    ck_assert_uint_eq(looked_at->step, 100);
    assert_same_parameters(looked_at, plain);
    pn_free(node);
    pinn_training_destroy(looked_at);
    pinn_training_destroy(plain);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("times of nodes");
    TCase *group = tcase_create("cpu");
    tcase_set_timeout(group, 100);
    tcase_add_test(group, the_nodes_are_the_steps);
    tcase_add_test(group, a_layered_pass_is_many_nodes);
    tcase_add_test(group, the_training_goes_on_unchanged);
    suite_add_tcase(suite, group);
    return suite_run_nofork(suite);
}
