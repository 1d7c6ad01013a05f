/* The progress line: plain lines into a file, a rewritten line on a terminal (a pseudo-terminal here), nothing when quiet. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/progress.h"
#include "suite.h"
#include "terminal.h"

static const char *const fields[] = {"u", "v"};
static const double errors[] = {1.234e-3, NAN};
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
                     "step 1000/25000  loss 3.210e-03  learning rate 2.00e-03  relative L2 u 1.23e-03  120 steps/s  3m 20s left\n"
                     "checkpoint at step 1000\n");
    free(text);
}
END_TEST

START_TEST(times_left) {
    static const struct {
        double rate;
        const char *left;
    } cases[] = {
        {24000, "  24000 steps/s  1s left\n"}, {2, "  2.0 steps/s  3h 20m left\n"}, {0, "1.23e-03\n"}, {NAN, "1.23e-03\n"}};
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
    /* The line is cut to 20 columns. */
    ck_assert_str_eq(text, "\r\033[Kstep 1000/25000  los\r\033[Khello\r\n\r\033[Kstep 1000/25000  los\r\n");
    close_terminal(&t);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("progress");
    TCase *test = tcase_create("progress");
    tcase_add_test(test, plain_lines);
    tcase_add_test(test, times_left);
    tcase_add_test(test, quiet_or_without_memory);
    tcase_add_test(test, live_line);
    suite_add_tcase(suite, test);
    return suite_run(suite);
}
