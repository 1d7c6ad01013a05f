/* The progress line: plain lines into a file, a rewritten line on a terminal (a pseudo-terminal here), nothing when quiet. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/progress.h"
#include "suite.h"
#include "terminal.h"

static const char *const fields[] = {"u", "v"};
static const double errors[] = {1.234e-3, NAN}, two_errors[] = {1.234e-3, 5.678e-3};
static const pn_progress_state state = {.step = 1000,
                                        .steps = 25000,
                                        .loss = 0.00321,
                                        .learning_rate = 2e-3,
                                        .steps_per_second = 120,
                                        .field = fields,
                                        .relative_l2 = errors,
                                        .fields = 2};

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

START_TEST(times_left) {
    static const struct {
        double rate;
        const char *left;
    } cases[] = {
        {24000, "  24000 steps/s  1s left  rel"}, {2, "  2.0 steps/s  3h 20m left  rel"}, {0, "3.210e-03  rel"}, {NAN, "3.210e-03  rel"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = NULL;
        size_t size = 0;
        FILE *stream = open_memstream(&text, &size);
        pn_progress *progress = pn_progress_create(stream, false);
        pn_progress_state other = state;
        other.steps_per_second = cases[i].rate;
        pn_progress_update(progress, &other, true);
        pn_progress_destroy(progress);
        fclose(stream);
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
    } cases[] = {{80, 1000, 25000, 120, "\r\033[Kstep 1000/25000  loss 3.210e-03  120 steps/s  3m 20s left  L2 u 1.23e-03\r\n"},
                 {80, 12000, 100000, 12000, "\r\033[Kstep 12000/100000  loss 3.210e-03  12000 steps/s  7s left  L2 u 1.23e-03\r\n"},
                 {80, 12000, 100000, 20, "\r\033[Kstep 12000/100000  loss 3.210e-03  20 steps/s  1h 13m left  L2 u 1.23e-03\r\n"},
                 {10, 1000, 25000, 120, "\r\033[Kstep 1000\r\n"},
                 {90, 1000, 25000, 120, "\r\033[Kstep 1000/25000  loss 3.210e-03  120 steps/s  3m 20s left  L2 u 1.23e-03  v 5.68e-03\r\n", two_errors},
                 {80, 1000, 25000, 120, "\r\033[Kstep 1000/25000  loss 3.210e-03  120 steps/s  3m 20s left  L2 u 1.23e-03\r\n", two_errors}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        terminal t;
        char text[256];
        if (!open_terminal(&t, cases[i].columns)) return;
        pn_progress *progress = pn_progress_create(t.stream, false);
        pn_progress_state other = state;
        other.step = cases[i].step;
        other.steps = cases[i].steps;
        other.steps_per_second = cases[i].rate;
        if (cases[i].errors) other.relative_l2 = cases[i].errors;
        pn_progress_update(progress, &other, true);
        pn_progress_destroy(progress);
        read_terminal(&t, text, sizeof text);
        ck_assert_str_eq(text, cases[i].line);
        close_terminal(&t);
    }
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
    suite_add_tcase(suite, test);
    return suite_run(suite);
}
