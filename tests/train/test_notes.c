/* Notes on a terminal: none of them cuts into the live line. */
#include "io/file.h"
#include "terminal.h"
#include "training_tools.h"

/* A phase each for the note that makes the program wait until a live line is due, for that line, and for the note above it. */
static const char config[] =
    "title = \"notes\"\n"
    "[domain]\nx = [0, 1]\n"
    "[fields]\nu = {}\n"
    "[[equation]]\nname = \"slope\"\nresidual = \"u_x - 1\"\npoints = 4\n"
    "[network]\nkind = \"mlp\"\nwidth = 2\ndepth = 1\nactivation = \"tanh\"\n"
    "[[train]]\noptimizer = \"adam\"\nsteps = 1\n"
    "[[train]]\noptimizer = \"adam\"\nsteps = 1\n"
    "[[train]]\noptimizer = \"adam\"\nsteps = 1\n";

static void note(void *stream, const char *line) {
    fprintf(stream, "note: %s\n", line);
    usleep(250000); /* longer than there is between two live lines */
}

START_TEST(notes_stand_above_the_live_line) {
    terminal t;
    char scratch[] = "/tmp/pinn-test-XXXXXX", path[64], text[4096];
    pinn_training *training = NULL;
    if (!open_terminal(&t, 80)) return;
    ck_assert_ptr_nonnull(mkdtemp(scratch));
    snprintf(path, sizeof path, "%s/notes.toml", scratch);
    must(pn_file_write(path, config, strlen(config)));
    const pinn_options options = {
        .config = path, .device = "cpu", .no_directory = true, .progress = t.stream, .message = note, .message_user = t.stream};
    must(pinn_training_create(&options, &training));
    must(pinn_training_run(training));
    read_terminal(&t, text, sizeof text);
    ck_assert_msg(strstr(text, "step 2/3"), "no live line: %s", text);
    ck_assert_msg(strstr(text, "\r\033[Knote: [[train]] 3 of 3 begins at step 2\r\n\r\033[Kstep 2/3"), "%s", text);
    /* No event row has come yet, but the steps have their loss. */
    ck_assert_msg(strstr(text, "step 2/3  loss ") && !strstr(text, "nan"), "%s", text);
    for (const char *at = strstr(text, "note: "); at; at = strstr(at + 1, "note: "))
        ck_assert_msg(at == text || at[-1] == 'K' || at[-1] == '\n', "cut in: %s", text);
    pinn_training_destroy(training);
    close_terminal(&t);
    remove_tree(scratch);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("notes");
    TCase *test = tcase_create("terminal");
    tcase_set_timeout(test, 60);
    tcase_add_test(test, notes_stand_above_the_live_line);
    suite_add_tcase(suite, test);
    return suite_run_nofork(suite); /* the pass uses OpenMP */
}
