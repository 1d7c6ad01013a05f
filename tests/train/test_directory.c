/* A training and its run directory: claimed before anything else is looked at, its sources safe, nothing resumed that does not fit,
 * no state kept that is not finite. */
#include <math.h>
#include <sys/stat.h>

#include "io/file.h"
#include "scratch.h"

static const char *const small[] = {"equation.0.points=40", "condition.0.points=8", "condition.1.points=8", "network.width=8",
                                    "output.events=10",     "train.0.steps=20",     "stop.relative_l2=1e-9"};
enum { SMALL = sizeof small / sizeof *small };

static pinn_status create(const char *config, const char *directory, bool blow_up, bool resume, bool force, pinn_training **out) {
    const char *all[SMALL + 2] = {0};
    memcpy(all, small, sizeof small);
    all[SMALL] = "train.0.learning_rate=3.3e38";
    all[SMALL + 1] = "stop.step=1";
    const pinn_options options = {.config = config,
                                  .device = "cpu",
                                  .set = all,
                                  .set_count = SMALL + 2 * blow_up,
                                  .directory = directory,
                                  .no_directory = !directory,
                                  .resume = resume,
                                  .force = force};
    return pinn_training_create(&options, out);
}

static void train(const char *directory) {
    pinn_training *training = NULL;
    must(create(CONFIG("heat.toml"), directory, false, false, false, &training));
    must(pinn_training_run(training));
    pinn_training_destroy(training);
}

static void write_file(const char *path, const char *text) { must(pn_file_write(path, text, strlen(text))); }

static void expect(pinn_status status, pinn_status expected, const char *first, const char *second) {
    const char *message = pinn_error_message();
    ck_assert_msg(status == expected, "%s, expected %s: %s", pinn_status_name(status), pinn_status_name(expected), message);
    ck_assert_msg(strstr(message, first) && strstr(message, second), "%s", message);
}

/* The checkpoint is damaged, but whose it is comes first. */
START_TEST(the_lock_comes_before_the_checkpoint) {
    const char *directory = in_scratch("run");
    pn_run *other = NULL;
    pinn_training *training = NULL;
    train(directory);
    write_file(in_scratch("run/checkpoint.h5"), "damaged");
    must(pn_run_claim(directory, PN_RUN_FORCE, NULL, 0, &other));
    expect(create(CONFIG("heat.toml"), directory, false, true, false, &training), PINN_IO, "another run", directory);
    must(pn_run_close(other));
    expect(create(CONFIG("heat.toml"), directory, false, true, false, &training), PINN_IO, "damaged", "checkpoint.h5");
    /* And what comes after the claim finds it given back. */
    must(create(CONFIG("heat.toml"), directory, false, false, true, &training));
    pinn_training_destroy(training);
}
END_TEST

/* A whole checkpoint whose numbers don't fit the config. */
START_TEST(checkpoints_must_fit_the_phases) {
    static const struct {
        uint64_t step, phase, phase_step, optimizer_step;
        pinn_status status;
    } cases[] = {{20, 0, 20, 20, PINN_OK},
                 {12, 0, 12, 12, PINN_OK},
                 {21, 0, 21, 21, PINN_CONFIG},
                 {20, 0, 3, 20, PINN_CONFIG},
                 {3, 0, 20, 3, PINN_CONFIG},
                 {20, 1, 0, 20, PINN_CONFIG},
                 {20, UINT64_MAX, 0, 20, PINN_CONFIG},
                 {12, 0, 12, 13, PINN_CONFIG},
                 {0, 0, UINT64_MAX, 0, PINN_CONFIG}};
    const char *directory = in_scratch("run"), *path = in_scratch("run/checkpoint.h5");
    pinn_training *training = NULL, *shape = NULL;
    train(directory);
    must(create(CONFIG("heat.toml"), NULL, false, false, false, &shape));
    const size_t bytes = pn_real_bytes(shape->config->real), count = shape->network->parameters;
    pn_checkpoint c = {.real = shape->config->real,
                       .network = shape->network,
                       .parameters = pn_allocate(count, bytes),
                       .moments = pn_allocate(2 * count, bytes)};
    char *config = NULL, *machine = NULL;
    must(pn_checkpoint_read(path, &c, &config, &machine));
    c.config = config;
    c.machine = machine;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        c.words.step = cases[i].step;
        c.phase = cases[i].phase;
        c.words.phase_step = cases[i].phase_step;
        c.words.optimizer_step = cases[i].optimizer_step;
        c.words.rows = UINT64_MAX; /* never comes back: rows are counted anew */
        must(pn_checkpoint_write(path, &c));
        pinn_status status = create(CONFIG("heat.toml"), directory, false, true, false, &training);
        if (cases[i].status != PINN_OK) {
            expect(status, PINN_CONFIG, path, "[[train]]");
            continue;
        }
        must(status);
        must(pinn_training_run(training));
        pinn_training_destroy(training);
    }
    pn_free(c.parameters);
    pn_free(c.moments);
    pn_free(config);
    pn_free(machine);
    pinn_training_destroy(shape);
}
END_TEST

/* The one update takes the parameters out of the range of float32; the loss before it was fine. */
START_TEST(a_last_state_that_is_not_finite_is_no_success) {
    const char *directory = in_scratch("run");
    pinn_training *training = NULL;
    pinn_result result;
    must(create(CONFIG("heat.toml"), directory, true, false, false, &training));
    expect(pinn_training_run(training), PINN_NUMERIC, "after step 1 is not finite", "no checkpoint");
    pinn_training_result(training, &result);
    ck_assert_str_eq(result.stop_reason, "nan");
    pinn_training_destroy(training);
    ck_assert_int_ne(access(in_scratch("run/checkpoint.h5"), F_OK), 0);
    ck_assert_int_ne(access(in_scratch("run/solution.h5"), F_OK), 0);
    ck_assert_int_eq(access(in_scratch("run/events.h5"), F_OK), 0);
}
END_TEST

static void copy_config(const char *to) {
    pn_text text = {0};
    must(pn_text_read_file(&text, CONFIG("heat.toml"), 1 << 20));
    must(pn_file_write(to, text.data, text.length));
    pn_text_free(&text);
}

/* The problem file or its reference lies in the run directory under a name of the run's. */
START_TEST(sources_are_not_overwritten) {
    const char *directory = in_scratch("project"), *config = in_scratch("project/config.toml");
    const char *solution = in_scratch("project/solution.h5"), *with_file = in_scratch("project/problem.toml");
    pinn_training *training = NULL;
    ck_assert_int_eq(mkdir(directory, 0777), 0);
    copy_config(config);
    expect(create(config, directory, false, false, false, &training), PINN_CONFIG, config, "--out");
    expect(create(config, directory, false, false, true, &training), PINN_CONFIG, config, "--out");
    expect(create(CONFIG("heat.toml"), directory, false, false, true, &training), PINN_CONFIG, config, "--out");
    ck_assert_int_eq(access(config, F_OK), 0);
    ck_assert_int_eq(unlink(config), 0);
    train(in_scratch("run"));
    ck_assert_int_eq(rename(in_scratch("run/solution.h5"), solution), 0);
    write_file(
        with_file,
        "[domain]\nx = [0, 1]\nt = [0, 1]\n[fields]\nu = {}\n[[equation]]\nname = \"e\"\nresidual = \"u_t - u_xx\"\npoints = 40\n"
        "[reference]\nfile = \"solution.h5\"\n[network]\nwidth = 8\ndepth = 2\n[[train]]\nsteps = 5\n");
    const pinn_options options = {.config = with_file, .device = "cpu", .directory = directory, .force = true};
    expect(pinn_training_create(&options, &training), PINN_CONFIG, solution, "--out");
    ck_assert_int_eq(access(solution, F_OK), 0);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("directory");
    TCase *test = tcase_create("directory");
    tcase_add_checked_fixture(test, make_scratch, remove_scratch);
    tcase_set_timeout(test, 120);
    tcase_add_test(test, the_lock_comes_before_the_checkpoint);
    tcase_add_test(test, checkpoints_must_fit_the_phases);
    tcase_add_test(test, a_last_state_that_is_not_finite_is_no_success);
    tcase_add_test(test, sources_are_not_overwritten);
    suite_add_tcase(suite, test);
    return suite_run(suite);
}
