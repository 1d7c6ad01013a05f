/* The progress line: plain lines into a file, a rewritten line on a terminal (a pseudo-terminal here), nothing when quiet. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/progress.h"
#include "suite.h"
#include "terminal.h"

static const char *const fields[] = {"u", "v"};
static const double errors[] = {1.234e-3, NAN}, two_errors[] = {1.234e-3, 5.678e-3}, no_errors[] = {NAN, NAN}, second_error[] = {NAN, 5.678e-3};
static const pn_progress_state state = {.step = 1000,
                                        .steps = 25000,
                                        .loss = 0.00321,
                                        .learning_rate = 2e-3,
                                        .steps_per_second = 120,
                                        .field = fields,
                                        .relative_l2 = errors,
                                        .fields = 2,
                                        .evaluated = 1000};

START_TEST(plain_lines) {
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    pn_progress *progress = pn_progress_create(stream, false);
    pn_progress_update(progress, &state, false); /* too early for a line */
    fflush(stream);
    ck_assert_uint_eq(size, 0);
    pn_progress_update(progress, &state, true);
    pn_progress_pause(progress);
    fputs("checkpoint at step 1000\n", stream);
    pn_progress_resume(progress);
    pn_progress_destroy(progress);
    fclose(stream);
    ck_assert_str_eq(text,
                     "step 1000/25000  loss 3.210e-03  120 steps/s  3m 20s left  relative L2 u 1.23e-03  learning rate 2.00e-03\n"
                     "checkpoint at step 1000\n");
    free(text);
}
END_TEST

/* The plain line of a state. The caller frees it. */
static char *line_of(const pn_progress_state *shown) {
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    pn_progress *progress = pn_progress_create(stream, false);
    pn_progress_update(progress, shown, true);
    pn_progress_destroy(progress);
    fclose(stream);
    return text;
}

START_TEST(times_left) {
    static const struct {
        double rate;
        const char *left;
    } cases[] = {
        {24000, "  24000 steps/s  1s left  rel"}, {2, "  2.0 steps/s  3h 20m left  rel"}, {0, "3.210e-03  rel"}, {NAN, "3.210e-03  rel"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pn_progress_state other = state;
        other.steps_per_second = cases[i].rate;
        char *text = line_of(&other);
        ck_assert_msg(strstr(text, cases[i].left) != NULL, "%s", text);
        free(text);
    }
}
END_TEST

START_TEST(quiet_or_without_memory) {
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    pn_progress *progress = pn_progress_create(stream, true);
    pn_progress_update(progress, &state, true);
    pn_progress_pause(progress);
    pn_progress_resume(progress);
    pn_progress_destroy(progress);
    pn_progress_update(NULL, &state, true);
    pn_progress_pause(NULL);
    pn_progress_resume(NULL);
    pn_progress_destroy(NULL);
    fclose(stream);
    ck_assert_uint_eq(size, 0);
    free(text);
}
END_TEST

START_TEST(live_line) {
    terminal t;
    char text[256];
    if (!open_terminal(&t, 21)) return;
    pn_progress *progress = pn_progress_create(t.stream, false);
    pn_progress_pause(progress); /* no line yet */
    pn_progress_resume(progress);
    pn_progress_update(progress, &state, true);
    pn_progress_pause(progress);
    fputs("hello\n", t.stream);
    pn_progress_resume(progress);
    pn_progress_destroy(progress);
    read_terminal(&t, text, sizeof text);
    /* The loss would go beyond 20 columns. */
    ck_assert_str_eq(text, "\r\033[Kstep 1000/25000\r\033[Khello\r\n\r\033[Kstep 1000/25000\r\n");
    close_terminal(&t);
}
END_TEST

/* A terminal of the usual width shows speed, time left and a field's error, also of a long run. */
START_TEST(usual_width) {
    static const struct {
        int columns;
        uint64_t step, steps;
        double rate;
        const char *line;
        const double *errors;
        uint64_t evaluated;
    } cases[] = {{80, 1000, 25000, 120, "\r\033[Kstep 1000/25000  loss 3.21e-03  120/s  3m 20s left  L2 u 1.23e-03\r\n"},
                 {80, 12000, 100000, 12000, "\r\033[Kstep 12000/100000  loss 3.21e-03  12000/s  7s left  L2 u 1.23e-03\r\n"},
                 {80, 12000, 100000, 20, "\r\033[Kstep 12000/100000  loss 3.21e-03  20/s  1h 13m left  L2 u 1.23e-03\r\n"},
                 {80, 12000, 100000, 12000, "\r\033[Kstep 12000/100000  loss 3.21e-03  12000/s  7s left  L2 (step 11500) u 1.23e-03\r\n", errors, 11500},
                 {80, 12000, 100000, 20, "\r\033[Kstep 12000/100000  loss 3.21e-03  20/s  1h 13m left  L2 (step 11500) u 1.23e-03\r\n", errors, 11500},
                 {10, 1000, 25000, 120, "\r\033[Kstep 1000\r\n"},
                 {80, 1000, 25000, 120, "\r\033[Kstep 1000/25000  loss 3.21e-03  120/s  3m 20s left  L2 u 1.23e-03  v 5.68e-03\r\n", two_errors},
                 {76, 1000, 25000, 120, "\r\033[Kstep 1000/25000  loss 3.21e-03  120/s  3m 20s left  L2 u 1.23e-03\r\n", two_errors}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        terminal t;
        char text[256];
        if (!open_terminal(&t, cases[i].columns)) return;
        pn_progress *progress = pn_progress_create(t.stream, false);
        pn_progress_state other = state;
        other.step = cases[i].step;
        other.steps = cases[i].steps;
        other.steps_per_second = cases[i].rate;
        other.evaluated = cases[i].evaluated ? cases[i].evaluated : cases[i].step;
        if (cases[i].errors) other.relative_l2 = cases[i].errors;
        pn_progress_update(progress, &other, true);
        pn_progress_destroy(progress);
        read_terminal(&t, text, sizeof text);
        ck_assert_str_eq(text, cases[i].line);
        close_terminal(&t);
    }
}
END_TEST

/* What is not known is left out, and what is older than the step says how old. */
START_TEST(only_what_was_measured) {
    static const struct {
        uint64_t step, evaluated;
        double measured;
        const double *errors;
        const char *line;
    } cases[] = {{0, 0, NAN, no_errors, "step 0/25000\n"},
                 {7, 0, 2e-3, no_errors, "step 7/25000  loss 2.000e-03  learning rate 2.00e-03\n"},
                 {700, 500, 2e-3, two_errors, "step 700/25000  loss 2.000e-03  relative L2 (step 500) u 1.23e-03  v 5.68e-03  learning rate 2.00e-03\n"},
                 {700, 500, 2e-3, second_error, "step 700/25000  loss 2.000e-03  relative L2 (step 500) v 5.68e-03  learning rate 2.00e-03\n"},
                 {500, 500, NAN, two_errors, "step 500/25000  relative L2 u 1.23e-03  v 5.68e-03\n"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pn_progress_state other = state;
        other.step = cases[i].step;
        other.evaluated = cases[i].evaluated;
        other.loss = other.learning_rate = cases[i].measured;
        other.steps_per_second = 0;
        other.relative_l2 = cases[i].errors;
        char *text = line_of(&other);
        ck_assert_str_eq(text, cases[i].line);
        free(text);
    }
}
END_TEST

/* Steps that become a hundred times slower: a minute later the rate is theirs. */
START_TEST(rates_are_recent) {
    pn_progress_rate rate = {0};
    ck_assert(pn_progress_rate_get(&rate) == 0);
    pn_progress_rate_add(&rate, 1, 0.001);
    ck_assert_double_eq_tol(pn_progress_rate_get(&rate), 1000, 1e-9);
    for (int i = 0; i < 2000; i++) pn_progress_rate_add(&rate, 500, 0.5);
    ck_assert_double_eq_tol(pn_progress_rate_get(&rate), 1000, 1e-6);
    pn_progress_rate_add(&rate, 5, 0.5);
    ck_assert_double_lt(pn_progress_rate_get(&rate), 1000);
    ck_assert_double_gt(pn_progress_rate_get(&rate), 900);
    for (int i = 0; i < 139; i++) pn_progress_rate_add(&rate, 5, 0.5);
    ck_assert_double_eq_tol(pn_progress_rate_get(&rate), 10, 1); /* 70 s: what is before counts e^-7 */
    pn_progress_rate_add(&rate, 1, 1000); /* one long step outweighs all */
    ck_assert_double_eq_tol(pn_progress_rate_get(&rate), 0.001, 1e-6);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("progress");
    TCase *test = tcase_create("progress");
    tcase_add_test(test, plain_lines);
    tcase_add_test(test, times_left);
    tcase_add_test(test, quiet_or_without_memory);
    tcase_add_test(test, live_line);
    tcase_add_test(test, usual_width);
    tcase_add_test(test, only_what_was_measured);
    tcase_add_test(test, rates_are_recent);
    suite_add_tcase(suite, test);
    return suite_run(suite);
}
