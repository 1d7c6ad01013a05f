/* What a run says when it is resumed or comes to another phase, and what it then leaves alone. That it goes on exactly: training_suite.h. */
#include <math.h>
#include <sys/stat.h>

#include "io/file.h"
#include "notes.h"
#include "scratch.h"

/* Two phases with other points: on a CPU their sums are split into other numbers of groups. */
static const char phases[] = "[domain]\nx = [0, 1]\n[fields]\nu = {}\n[[equation]]\nname = \"e\"\nresidual = \"u_x - 1\"\npoints = 8\n"
                             "[reference]\nu = \"x\"\n[network]\nwidth = 4\ndepth = 1\n[output]\nevents = 10\nevaluate = { points = [11] }\n"
                             "[[train]]\nsteps = 20\n[[train]]\nsteps = 20\npoints = { e = 4000 }\n";

static void begin(void) {
    make_scratch();
    must(pn_file_write(in_scratch("phases.toml"), phases, strlen(phases)));
}

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
    ck_assert_msg(strstr(notes, "resuming on another machine (") && strstr(notes, second), "%s", notes);
    ck_assert_msg(strstr(notes, ") than before (an abacus): "), "%s", notes);
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

/* A phase's steps may cost anything: the rate is that of the present one alone, and its chunks grow anew from one step. */
START_TEST(the_rate_is_of_the_phase) {
    pinn_result r;
    pinn_training *training = create(NULL, false);
    must(pinn_training_run(training));
    ck_assert_double_gt(training->rate.steps, 0);
    ck_assert_double_le(training->rate.steps, 20);
    ck_assert_double_le(training->rate.seconds, training->seconds);
    pinn_training_result(training, &r);
    ck_assert_uint_ge(r.graph_launches, 10); /* of 1, 2, 4, 8 and 5 steps at most, twice */
    pinn_training_destroy(training);
}
END_TEST

enum { FILES = 4 };
static const char *const files[FILES] = {"run/events.h5", "run/checkpoint.h5", "run/config.toml", "run/solution.h5"};

static void read_files(pn_text *text) {
    for (int i = 0; i < FILES; i++) {
        pn_text_free(&text[i]);
        must(pn_text_read_file(&text[i], in_scratch(files[i]), 1 << 24));
    }
}

/* Which files are no longer what `before` holds, bit i for file i. */
static unsigned changed(const pn_text *before) {
    pn_text now[FILES] = {{0}};
    unsigned mask = 0;
    read_files(now);
    for (int i = 0; i < FILES; i++) {
        if (now[i].length != before[i].length || memcmp(now[i].data, before[i].data, now[i].length) != 0) mask |= 1u << i;
        pn_text_free(&now[i]);
    }
    return mask;
}

/* Resumes a run that has nothing left to do; its result is that of the run. */
static void resume_nothing(const char *set, const pinn_result *run, double loss) {
    pinn_training *training = create(set, true);
    pinn_result r;
    must(pinn_training_run(training));
    pinn_training_result(training, &r);
    ck_assert_msg(strstr(notes, "nothing left to do: the run stands at step 40"), "%s", notes);
    ck_assert_uint_eq(r.steps, 40);
    ck_assert(r.seconds == run->seconds && r.loss == run->loss && r.losses[0] == loss && isfinite(r.relative_l2[0]));
    pinn_training_destroy(training);
}

START_TEST(nothing_left_to_do_changes_nothing) {
    pn_text before[FILES] = {{0}};
    pinn_training *training = create(NULL, false);
    pinn_result run;
    must(pinn_training_run(training));
    pinn_training_result(training, &run);
    const double loss = run.losses[0];
    pinn_training_destroy(training);
    read_files(before);
    resume_nothing(NULL, &run, loss);
    resume_nothing("stop.seconds=1e-9", &run, loss);
    resume_nothing("output.events=7", &run, loss);
    ck_assert_uint_eq(changed(before), 0);
    /* A run that was killed before its solution was written: none, or one of an earlier step. */
    ck_assert_int_eq(unlink(in_scratch("run/solution.h5")), 0);
    resume_nothing(NULL, &run, loss);
    ck_assert_uint_eq(changed(before) & ~8u, 0);
    /* Another evaluation set shows something else; the time of training stays even then. */
    resume_nothing("output.evaluate.points=[21]", &run, loss);
    ck_assert_uint_eq(changed(before) & 8u, 8u);
    for (int i = 0; i < FILES; i++) pn_text_free(&before[i]);
}
END_TEST

/* Before its first new row a resumed run knows the last one it had. */
START_TEST(the_last_event_is_known) {
    pinn_result r;
    pinn_training *training = create("stop.step=13", false);
    must(pinn_training_run(training));
    pinn_training_result(training, &r);
    const double loss = r.loss, first = r.losses[0];
    pinn_training_destroy(training);
    training = create(NULL, true);
    pinn_training_interrupt(training);
    ck_assert_int_eq(pinn_training_run(training), PINN_INTERRUPTED);
    pinn_training_result(training, &r);
    ck_assert(r.steps == 13 && r.loss == loss && r.losses[0] == first);
    pinn_training_destroy(training);
    ck_assert_int_eq(unlink(in_scratch("run/events.h5")), 0);
    training = create(NULL, true);
    pinn_training_result(training, &r);
    ck_assert(isnan(r.loss) && isnan(r.losses[0]));
    pinn_training_destroy(training);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("resume");
    TCase *test = tcase_create("cpu");
    tcase_add_checked_fixture(test, begin, remove_scratch);
    tcase_set_timeout(test, 60);
    tcase_add_test(test, a_phase_with_other_points_is_no_other_machine);
    tcase_add_test(test, only_an_unexpected_build_is_told);
    tcase_add_test(test, the_rate_is_of_the_phase);
    tcase_add_test(test, nothing_left_to_do_changes_nothing);
    tcase_add_test(test, the_last_event_is_known);
    suite_add_tcase(suite, test);
    return suite_run_nofork(suite); /* the pass uses OpenMP */
}
