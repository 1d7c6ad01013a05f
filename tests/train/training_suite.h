/* Whole trainings, on the device that the including test names: what a step does depends on the step word alone, graphs are built once, resume is exact. */
#ifndef TRAINING_SUITE_H
#define TRAINING_SUITE_H

#include "small_training.h"

START_TEST(one_launch_of_many_steps_equals_many_launches_of_one) {
    pinn_training *many = create(NULL, 0, NULL, false), *single = create(NULL, 0, NULL, false);
    must(pinn_training_steps(many, 40, NULL, NULL));
    for (int i = 0; i < 40; i++) must(pinn_training_steps(single, 1, NULL, NULL));
    assert_same_parameters(many, single);
    pinn_training_destroy(many);
    pinn_training_destroy(single);
}
END_TEST

/* ---- resume -------------------------------------------------------------------------------------------------------------- */

static void stop_and_go_on(const char *stop, const char *precision) {
    char straight[256], parts[256], a[300], b[300];
    snprintf(straight, sizeof straight, "%s/straight-%s-%s", scratch, stop + 10, precision + 10);
    snprintf(parts, sizeof parts, "%s/parts-%s-%s", scratch, stop + 10, precision + 10);
    run_and_destroy(create((const char *const[]){precision}, 1, straight, false));
    run_and_destroy(create((const char *const[]){precision, stop}, 2, parts, false));
    pinn_training *second = create((const char *const[]){precision}, 1, parts, true);
    must(pinn_training_run(second));
    pinn_result r;
    pinn_training_result(second, &r);
    ck_assert_uint_eq(r.steps, 100);
    ck_assert_str_eq(r.stop_reason, "steps");
    pinn_training_destroy(second);
    snprintf(a, sizeof a, "%s/checkpoint.h5", straight);
    snprintf(b, sizeof b, "%s/checkpoint.h5", parts);
    assert_same_datasets(a, b);
    snprintf(a, sizeof a, "%s/solution.h5", straight);
    snprintf(b, sizeof b, "%s/solution.h5", parts);
    assert_same_datasets(a, b);
}

START_TEST(stopped_and_resumed_equals_straight) {
    stop_and_go_on("stop.step=50", "precision=float32");
    stop_and_go_on("stop.step=50", "precision=float64");
    stop_and_go_on("stop.step=37", "precision=float32"); /* off every event and checkpoint */
    char path[300];
    snprintf(path, sizeof path, "%s/parts-50-float32/events.h5", scratch);
    size_t rows;
    free(read_column(path, "/events/step", &rows));
    ck_assert_uint_eq(rows, 10);
    free(read_column(path, "/events/loss/total", &rows));
    ck_assert_uint_eq(rows, 10);
}
END_TEST

START_TEST(resume_in_a_phase_after_other_points) {
    static const char text[] = "[domain]\nx = [0, 1]\n[fields]\nu = {}\n[[equation]]\nname = \"e\"\nresidual = \"u_xx + u - 1\"\npoints = 64\n"
                               "[network]\nwidth = 8\ndepth = 2\n[[train]]\nsteps = 30\n[[train]]\nsteps = 30\npoints = { e = 100 }\n[[train]]\nsteps = 30\n";
    char path[256], a[300], b[300], straight[256];
    snprintf(path, sizeof path, "%s/three.toml", scratch);
    snprintf(straight, sizeof straight, "%s/three", scratch);
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
    pinn_training *training = NULL;
    const pinn_options whole = {.config = path, .device = device, .directory = straight};
    must(pinn_training_create(&whole, &training));
    run_and_destroy(training);
    static const char *const stop[] = {"stop.step=29", "stop.step=30", "stop.step=31", "stop.step=59", "stop.step=60", "stop.step=61", "stop.step=75"};
    for (size_t i = 0; i < sizeof stop / sizeof stop[0]; i++) {
        char parts[256];
        snprintf(parts, sizeof parts, "%s/three-%s", scratch, stop[i] + 10);
        const pinn_options first = {.config = path, .device = device, .directory = parts, .set = &stop[i], .set_count = 1};
        const pinn_options second = {.config = path, .device = device, .directory = parts, .resume = true};
        must(pinn_training_create(&first, &training));
        run_and_destroy(training);
        must(pinn_training_create(&second, &training));
        run_and_destroy(training);
        snprintf(a, sizeof a, "%s/checkpoint.h5", straight);
        snprintf(b, sizeof b, "%s/checkpoint.h5", parts);
        assert_same_datasets(a, b);
    }
}
END_TEST

START_TEST(resume_under_another_config_names_the_keys) {
    char directory[256];
    snprintf(directory, sizeof directory, "%s/changed", scratch);
    run_and_destroy(create(NULL, 0, directory, false));
    const char *set[SMALL + 1];
    memcpy(set, small, sizeof small);
    set[SMALL] = "constants.alpha=0.5";
    const pinn_options options = {.config = CONFIG("heat.toml"), .device = device, .set = set, .set_count = SMALL + 1, .directory = directory, .resume = true};
    pinn_training *training = NULL;
    ck_assert_int_eq(pinn_training_create(&options, &training), PINN_CONFIG);
    ck_assert_ptr_null(training);
    ck_assert_ptr_nonnull(strstr(pinn_error_message(), "constants.alpha"));
    ck_assert_ptr_null(strstr(pinn_error_message(), "train."));
}
END_TEST

/* ---- phases ----------------------------------------------------------------------------------------------------------------- */

/* What is known of a phase before the first step is what it takes when it has begun. */
START_TEST(phases_are_as_they_were_measured) {
    static const char *const more[] = {"train=[{steps=20}, {steps=20, points={heat=700}}, {steps=20, points={ends=5000}}]"};
    pinn_training *training = create(more, 1, NULL, false);
    const size_t first = pn_phase_bytes(training, 0), bytes = pn_phase_bytes(training, 2);
    ck_assert_uint_eq(training->machinery.bytes, training->phase_size[0].planes);
    ck_assert_uint_lt(first, pn_phase_bytes(training, 1));
    ck_assert_uint_lt(pn_phase_bytes(training, 1), bytes);
    must(pinn_training_run(training));
    ck_assert_uint_eq(training->phase, 2);
    ck_assert_uint_eq(training->machinery.bytes, training->phase_size[2].planes);
    ck_assert_uint_eq(pn_phase_bytes(training, 2), bytes);
    ck_assert_uint_eq(pn_phase_bytes(training, 0), first);
    pinn_training_destroy(training);
}
END_TEST

/* ---- graphs --------------------------------------------------------------------------------------------------------------- */

static uint64_t builds_of(const char *const *more, size_t count, const char *name) {
    char directory[256];
    snprintf(directory, sizeof directory, "%s/%s", scratch, name);
    pinn_training *training = create(more, count, directory, false);
    must(pinn_training_run(training));
    pinn_result r;
    pinn_training_result(training, &r);
    uint64_t builds = r.graph_builds;
    pinn_training_destroy(training);
    return builds;
}

START_TEST(the_step_is_built_once) {
    ck_assert_uint_eq(builds_of((const char *const[]){"train.0.learning_rate={initial=1e-3, decay=\"cosine\", final=1e-5, warmup=10}"}, 1, "one"), 1);
}
END_TEST

static const char two_phases[] = "[domain]\nx = [0, 1]\n[fields]\nu = {}\n[[equation]]\nname = \"e\"\nresidual = \"u_xx + u\"\npoints = 50\n"
                                 "[network]\nwidth = 8\ndepth = 2\n[[train]]\nsteps = 20\n[[train]]\nsteps = 20\nlearning_rate = 1e-4\n%s";

static uint64_t builds_of_phases(const char *extra) {
    char path[256], text[1024];
    snprintf(path, sizeof path, "%s/phases.toml", scratch);
    snprintf(text, sizeof text, two_phases, extra);
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
    const pinn_options options = {.config = path, .device = device, .no_directory = true};
    pinn_training *training = NULL;
    must(pinn_training_create(&options, &training));
    must(pinn_training_run(training));
    pinn_result r;
    pinn_training_result(training, &r);
    ck_assert_uint_eq(r.steps, 40);
    uint64_t builds = r.graph_builds;
    pinn_training_destroy(training);
    return builds;
}

START_TEST(only_other_points_build_again) {
    ck_assert_uint_eq(builds_of_phases(""), 1);
    ck_assert_uint_eq(builds_of_phases("points = { e = 50 }\n"), 1);
    ck_assert_uint_eq(builds_of_phases("points = { e = 70 }\n"), 2);
}
END_TEST

/* ---- stopping ------------------------------------------------------------------------------------------------------------- */

START_TEST(an_interrupt_leaves_a_checkpoint) {
    char directory[256], path[300];
    snprintf(directory, sizeof directory, "%s/interrupted", scratch);
    pinn_training *training = create((const char *const[]){"train.0.steps=1000000"}, 1, directory, false);
    pinn_training_interrupt(training);
    ck_assert_int_eq(pinn_training_run(training), PINN_INTERRUPTED);
    pinn_result r;
    pinn_training_result(training, &r);
    ck_assert_str_eq(r.stop_reason, "signal");
    pinn_training_destroy(training);
    snprintf(path, sizeof path, "%s/checkpoint.h5", directory);
    ck_assert_int_eq(access(path, R_OK), 0);
}
END_TEST

START_TEST(stop_rules_end_a_run) {
    static const struct { const char *rule, *reason; } rule[] = {{"stop.loss=1e9", "loss"}, {"stop.gradient_norm=1e9", "gradient_norm"},
                                                                 {"stop.relative_l2=1e9", "relative_l2"}, {"stop.seconds=1e-9", "seconds"},
                                                                 {"stop.step=3", "step"}};
    for (size_t i = 0; i < sizeof rule / sizeof rule[0]; i++) {
        pinn_training *training = create(&rule[i].rule, 1, NULL, false);
        must(pinn_training_run(training));
        pinn_result r;
        pinn_training_result(training, &r);
        ck_assert_str_eq(r.stop_reason, rule[i].reason);
        ck_assert_uint_lt(r.steps, 100);
        pinn_training_destroy(training);
    }
}
END_TEST

START_TEST(heat_learns) {
    /* Not a claim of accuracy: the error of an untrained network is about 1, a trained one is far below. */
    pinn_training *training = create((const char *const[]){"train.0.steps=1500", "output.events=500", "train.0.learning_rate=5e-3"}, 3, NULL, false);
    must(pinn_training_run(training));
    pinn_result r;
    pinn_training_result(training, &r);
    ck_assert_msg(r.relative_l2[0] < 0.1, "relative L2 %g", r.relative_l2[0]);
    pinn_training_destroy(training);
}
END_TEST

/* The tests above as a test case; `more` adds tests of one device. Exit status of the program. */
static int run_training_suite(const char *name, void (*more)(TCase *)) {
    device = name;
    Suite *suite = suite_create("training");
    TCase *group = tcase_create(name);
    tcase_set_timeout(group, 300);
    tcase_add_test(group, one_launch_of_many_steps_equals_many_launches_of_one);
    tcase_add_test(group, stopped_and_resumed_equals_straight);
    tcase_add_test(group, resume_in_a_phase_after_other_points);
    tcase_add_test(group, resume_under_another_config_names_the_keys);
    tcase_add_test(group, the_step_is_built_once);
    tcase_add_test(group, only_other_points_build_again);
    tcase_add_test(group, phases_are_as_they_were_measured);
    tcase_add_test(group, an_interrupt_leaves_a_checkpoint);
    tcase_add_test(group, stop_rules_end_a_run);
    tcase_add_test(group, heat_learns);
    more(group);
    suite_add_tcase(suite, group);
    return run_in_scratch(suite);
}

#endif
