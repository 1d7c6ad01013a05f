/* What a run says when it is resumed or comes to another phase, and what it then leaves alone. That it goes on exactly: training_suite.h. */
#include <sys/stat.h>

#include "io/file.h"
#include "training_tools.h"

static char scratch[] = "/tmp/pinn-test-XXXXXX";

/* Two phases with other points: on a CPU their sums are split into other numbers of groups. */
static const char phases[] = "[domain]\nx = [0, 1]\n[fields]\nu = {}\n[[equation]]\nname = \"e\"\nresidual = \"u_x - 1\"\npoints = 8\n"
                             "[reference]\nu = \"x\"\n[network]\nwidth = 4\ndepth = 1\n[output]\nevents = 10\nevaluate = { points = [11] }\n"
                             "[[train]]\nsteps = 20\n[[train]]\nsteps = 20\npoints = { e = 4000 }\n";

static char notes[4096];

static void note(void *user, const char *line) {
    (void)user;
    const size_t length = strlen(notes);
    snprintf(notes + length, sizeof notes - length, "%s\n", line);
}

static const char *in_scratch(const char *name) {
    static char path[16][256];
    static unsigned next;
    char *out = path[next++ % 16];
    snprintf(out, sizeof path[0], "%s/%s", scratch, name);
    return out;
}

static void make_scratch(void) {
    ck_assert_ptr_nonnull(mkdtemp(strcpy(scratch, "/tmp/pinn-test-XXXXXX")));
    must(pn_file_write(in_scratch("phases.toml"), phases, strlen(phases)));
}

static void remove_scratch(void) { remove_tree(scratch); }

/* A training of the problem in the directory `run`; `set` may be NULL. */
static pinn_training *create(const char *set, bool resume) {
    const pinn_options options = {.config = in_scratch("phases.toml"),
                                  .device = "cpu",
                                  .set = &set,
                                  .set_count = set != NULL,
                                  .directory = in_scratch("run"),
                                  .resume = resume,
                                  .message = note};
    pinn_training *training = NULL;
    notes[0] = 0;
    must(pinn_training_create(&options, &training));
    return training;
}

static void train(const char *set, bool resume) {
    pinn_training *training = create(set, resume);
    must(pinn_training_run(training));
    pinn_training_destroy(training);
}

/* The checkpoint's machine with `machine` in its place, unless that is NULL; owned. */
static char *stored_machine(const char *machine) {
    const char *path = in_scratch("run/checkpoint.h5");
    pinn_training *shape = NULL;
    const pinn_options options = {.config = in_scratch("phases.toml"), .device = "cpu", .no_directory = true};
    char *config = NULL, *found = NULL;
    must(pinn_training_create(&options, &shape));
    const size_t bytes = pn_real_bytes(shape->config->real), count = shape->network->parameters;
    pn_checkpoint c = {.real = shape->config->real,
                       .network = shape->network,
                       .parameters = pn_allocate(count, bytes),
                       .moments = pn_allocate(2 * count, bytes)};
    must(pn_checkpoint_read(path, &c, &config, &found));
    c.config = config;
    c.machine = machine;
    if (machine) must(pn_checkpoint_write(path, &c));
    pn_free(c.parameters);
    pn_free(c.moments);
    pn_free(config);
    pinn_training_destroy(shape);
    return found;
}

START_TEST(a_phase_with_other_points_is_no_other_machine) {
    train("stop.step=15", false);
    char *first = stored_machine(NULL);
    train("stop.step=30", true); /* through the first phase into the second */
    ck_assert_msg(!strstr(notes, "another machine"), "%s", notes);
    char *second = stored_machine(NULL);
    ck_assert_str_ne(first, second);
    train("stop.step=35", true); /* begins in the second */
    ck_assert_msg(!strstr(notes, "another machine"), "%s", notes);
    pn_free(stored_machine("an abacus"));
    pinn_training *training = create(NULL, true);
    ck_assert_msg(strstr(notes, "resuming on another machine (") && strstr(notes, second) && strstr(notes, ") than before (an abacus): "), "%s", notes);
    pinn_training_destroy(training);
    pn_free(stored_machine(first)); /* another phase's */
    training = create(NULL, true);
    ck_assert_msg(strstr(notes, "another machine"), "%s", notes);
    pinn_training_destroy(training);
    pn_free(first);
    pn_free(second);
}
END_TEST

/* Other points ask for another graph: no news. One that nobody asked for is. */
START_TEST(only_an_unexpected_build_is_told) {
    pinn_training *training = create(NULL, false);
    must(pinn_training_run(training));
    ck_assert_msg(strstr(notes, "[[train]] 2 of 2 begins at step 20") && !strstr(notes, "built"), "%s", notes);
    must(pinn_graph_begin(training->chunk_graph));
    must(pn_chunk_record(training, training->chunk_graph, training->unroll + 1));
    must(pinn_graph_build(training->chunk_graph));
    ck_assert_msg(strstr(notes, "graph 'chunk' built ("), "%s", notes);
    pinn_training_destroy(training);
}
END_TEST

/* A phase's steps may cost anything: the rate is that of the present one alone. */
START_TEST(the_rate_is_of_the_phase) {
    pinn_training *training = create(NULL, false);
    must(pinn_training_run(training));
    ck_assert_double_gt(training->rate.steps, 0);
    ck_assert_double_le(training->rate.steps, 20);
    ck_assert_double_le(training->rate.seconds, training->seconds);
    pinn_training_destroy(training);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("resume");
    TCase *test = tcase_create("cpu");
    tcase_add_checked_fixture(test, make_scratch, remove_scratch);
    tcase_set_timeout(test, 60);
    tcase_add_test(test, a_phase_with_other_points_is_no_other_machine);
    tcase_add_test(test, only_an_unexpected_build_is_told);
    tcase_add_test(test, the_rate_is_of_the_phase);
    suite_add_tcase(suite, test);
    return suite_run_nofork(suite); /* the pass uses OpenMP */
}
