/* Phases with other points: what cannot fit is refused before the first step, and one that cannot begin costs no step. */
#include <sys/resource.h>

#include "small_training.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1 /* reserves more addresses than a limit could leave */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

/* "e" has so many points in the second phase; its residual needs the value alone. */
static const char *write_problem(unsigned coordinates, size_t points) {
    static char path[300];
    snprintf(path, sizeof path, "%s/phases.toml", scratch);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs("precision = \"float64\"\n[domain]\n", file);
    for (unsigned i = 0; i < coordinates; i++) fprintf(file, "x%u = [0, 1]\n", i);
    fputs("[fields]\nu = {}\n[[equation]]\nname = \"e\"\nresidual = \"u", file);
    for (unsigned i = 0; i < coordinates; i++) fprintf(file, " - x%u", i);
    fprintf(file,
            "\"\npoints = 50\n[network]\nwidth = 4\ndepth = 1\n[[train]]\nsteps = 20\n[[train]]\nsteps = 20\npoints = { e = %zu }\n"
            "[[train]]\nsteps = 20\n[output]\ncheckpoint = 0\n",
            points);
    fclose(file);
    return path;
}

static const char *directory(const char *name) {
    static char path[4][300];
    static unsigned next;
    char *out = path[next++ % 4];
    snprintf(out, sizeof path[0], "%s/%s", scratch, name);
    return out;
}

static void check_message(const char *const *part, size_t count) {
    for (size_t i = 0; i < count; i++) ck_assert_msg(strstr(pinn_error_message(), part[i]), "no \"%s\": %s", part[i], pinn_error_message());
}

/* Over 800 GB of points: more than there is, whatever the system would promise. */
START_TEST(what_cannot_fit_is_refused_at_once) {
    static const char *const before[] = {"stop.step=20"};
    static const char *const part[] = {"[[train]] 2 of 3 cannot fit, and no step was done: with its points the run needs 8", " GiB) of the ",
                                       "there are; pinn-train --plan tells"};
    if ((double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) > 8e11) return;
    const pinn_options whole = {.config = write_problem(100, 1000000000), .device = "cpu", .directory = directory("large")};
    pinn_options first = whole;
    pinn_training *training = NULL;
    ck_assert_int_eq(pinn_training_create(&whole, &training), PINN_NO_MEMORY);
    check_message(part, 3);
    ck_assert_int_ne(access(directory("large/events.h5"), F_OK), 0);
    first.set = before; /* a phase that is not reached need not fit */
    first.set_count = 1;
    must(pinn_training_create(&first, &training));
    run_and_destroy(training);
    const pinn_options resumed = {.config = whole.config, .device = "cpu", .directory = whole.directory, .resume = true};
    ck_assert_int_eq(pinn_training_create(&resumed, &training), PINN_NO_MEMORY);
    check_message(part, 3);
}
END_TEST

/* Less than the machine has, more than this process may have. */
START_TEST(what_cannot_be_had_is_refused_at_once) {
#ifndef SANITIZED
    static const char *const part[] = {"[[train]] 2 of 3 cannot fit, and no step was done: with its points the run needs 160",
                                       ", more than can be had; pinn-train --plan"};
    struct rlimit before;
    pinn_training *training = NULL;
    const pinn_options options = {.config = write_problem(2, 100000000), .device = "cpu", .no_directory = true};
    if ((double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) < 2e9) return;
    unsigned long pages = 0; /* in use, threads' stacks and all */
    FILE *file = fopen("/proc/self/statm", "r");
    ck_assert(file && fscanf(file, "%lu", &pages) == 1);
    fclose(file);
    ck_assert_int_eq(getrlimit(RLIMIT_AS, &before), 0);
    setrlimit(RLIMIT_AS, &(struct rlimit){pages * (rlim_t)sysconf(_SC_PAGESIZE) + 800000000, before.rlim_max});
    const pinn_status status = pinn_training_create(&options, &training);
    setrlimit(RLIMIT_AS, &before);
    ck_assert_int_eq(status, PINN_NO_MEMORY);
    check_message(part, 2);
#endif
}
END_TEST

/* The note that a phase begins is the last thing before it is set up. */
static void fail_next(void *user, const char *line) {
    (void)user;
    if (strstr(line, "[[train]] 2 of 3 begins")) pn_memory_fail_after(0);
}

static pinn_status resume(const char *config, const char *where, const char *set) {
    const pinn_options options = {.config = config, .device = "cpu", .directory = where, .resume = true, .set = &set, .set_count = set != NULL};
    pinn_training *training = NULL;
    const pinn_status status = pinn_training_create(&options, &training);
    if (status == PINN_OK) run_and_destroy(training);
    return status;
}

static void fail_in_phase(const char *config, const char *where) {
    static const char *const part[] = {"[[train]] 2 of 3 cannot begin: ", "out of memory", "; pinn-train --plan tells what takes how much",
                                       "; the checkpoint of step 20 is safe: --resume goes on from it, and that phase may have other points then"};
    pinn_training *training = NULL;
    char *text = NULL;
    const pinn_options options = {.config = config, .device = "cpu", .directory = where, .message = fail_next};
    must(pinn_training_create(&options, &training));
    const pinn_status status = pinn_training_run(training);
    pn_memory_fail_after(-1);
    ck_assert_int_eq(status, PINN_NO_MEMORY);
    check_message(part, 4);
    must(pinn_training_json(training, status, &text)); /* of what there still is */
    ck_assert_ptr_nonnull(strstr(text, "\"steps\": 20, "));
    free(text);
    ck_assert_int_eq(pinn_training_plan(training, &text), PINN_BAD_ARGUMENT);
    pinn_training_destroy(training);
}

START_TEST(a_phase_that_cannot_begin_costs_no_step) {
    const char *config = write_problem(2, 80);
    pinn_training *training = NULL;
    const pinn_options whole = {.config = config, .device = "cpu", .directory = directory("straight")};
    must(pinn_training_create(&whole, &training));
    run_and_destroy(training);
    fail_in_phase(config, directory("parts"));
    must(resume(config, directory("parts"), NULL));
    assert_same_datasets(directory("straight/checkpoint.h5"), directory("parts/checkpoint.h5"));
}
END_TEST

START_TEST(points_of_later_phases_may_change) {
    const char *config = write_problem(2, 80);
    fail_in_phase(config, directory("other"));
    ck_assert_int_eq(resume(config, directory("other"), "train.0.points={e=60}"), PINN_CONFIG);
    check_message((const char *const[]){"train.0.points.e: (absent) -> 60", "points of later phases may change"}, 2);
    must(resume(config, directory("other"), "train.1.points={e=90}"));
    ck_assert_int_eq(resume(config, directory("other"), NULL), PINN_CONFIG); /* it is over now */
    check_message((const char *const[]){"train.1.points.e: 90 -> 80"}, 1);
}
END_TEST

static char *plan(const char *config, const char *set) {
    const pinn_options options = {.config = config, .device = "cpu", .no_directory = true, .plan_only = true, .set = &set, .set_count = set != NULL};
    pinn_training *training = NULL;
    char *text = NULL;
    must(pinn_training_create(&options, &training));
    must(pinn_training_plan(training, &text));
    pinn_training_destroy(training);
    return text;
}

/* All after the list of phases is of the largest one, and its number is the same in both places. */
START_TEST(plans_tell_the_phases) {
    char *text = plan(write_problem(2, 800000000), NULL), expected[100];
    const char *second = strstr(text, "\n  [[train]] 2             20 steps, in all ");
    unsigned long long bytes = 0;
    ck_assert_msg(strstr(text, "steps     60 in 3 phases\n"), "%s", text);
    ck_assert_msg(strstr(text, " operations a step\n    e 50\n"), "%s", text);
    ck_assert_msg(strstr(text, " operations a step\n    e 800000000\n  [[train]] 3             20 steps, points as before\n"), "%s", text);
    ck_assert_msg(strstr(text, "What follows is of [[train]] 2, which needs the most memory."), "%s", text);
    ck_assert_msg(strstr(text, "\n  e                800000000 points"), "%s", text);
    ck_assert_msg(second && sscanf(strstr(second, "in all "), "in all %llu bytes", &bytes) == 1 && bytes > 12800000000, "%s", text);
    snprintf(expected, sizeof expected, "in all                                 %llu bytes (", bytes);
    ck_assert_msg(strstr(text, expected) && strstr(strstr(text, expected), " GiB) in [[train]] 2 of the "), "%s", text);
    free(text);
    text = plan(write_problem(2, 50), "stop.step=30");
    ck_assert_msg(strstr(text, "[[train]] 2             20 steps, points as before\n"), "%s", text);
    ck_assert_msg(strstr(text, "[[train]] 3             20 steps, not reached: stop.step comes before\n"), "%s", text);
    ck_assert_msg(strstr(text, "What follows holds for each of them."), "%s", text);
    free(text);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("phases");
    TCase *test = tcase_create("phases");
    tcase_set_timeout(test, 120);
    tcase_add_test(test, what_cannot_fit_is_refused_at_once);
    tcase_add_test(test, what_cannot_be_had_is_refused_at_once);
    tcase_add_test(test, a_phase_that_cannot_begin_costs_no_step);
    tcase_add_test(test, points_of_later_phases_may_change);
    tcase_add_test(test, plans_tell_the_phases);
    suite_add_tcase(suite, test);
    device = "cpu";
    return run_in_scratch(suite);
}
