/* Who chooses the tiles of the network pass, what a run keeps of it, and what the user is told; on a CPU, which only keeps them. */
#include <sys/stat.h>

#include "io/checkpoint.h"
#include "io/file.h"
#include "notes.h"
#include "scratch.h"

#define A "units 5, splits 2, keep shared, weights all"
#define B "units 4, splits 4, keep device, weights one"

static char directory[64];

static void begin(void) {
    make_scratch();
    snprintf(directory, sizeof directory, "%s/run", scratch);
    unsetenv("PINN_TILES");
    *notes = '\0';
}

/* `tiles`: of --set, or NULL. */
static pinn_status create(const char *tiles, const char *option, bool resume, const char *steps, pinn_training **out) {
    const char *set[] = {"equation.0.points=40", "condition.0.points=8", "condition.1.points=8", "network.width=8", "output.events=10", steps, tiles};
    const pinn_options options = {.config = CONFIG("heat.toml"), .device = "cpu", .set = set, .set_count = tiles ? 7 : 6, .tiles = option,
                                  .directory = directory, .resume = resume, .message = note};
    *notes = '\0';
    return pinn_training_create(&options, out);
}

static void train(const char *tiles, const char *option, bool resume, const char *steps) {
    pinn_training *training = NULL;
    must(create(tiles, option, resume, steps, &training));
    must(pinn_training_run(training));
    pinn_training_destroy(training);
}

/* Both config.toml and the checkpoint hold them. */
static void expect_kept(const char *tiles) {
    char path[128], *stored = NULL, *found = NULL;
    pn_text text = {0};
    snprintf(path, sizeof path, "%s/config.toml", directory);
    must(pn_text_read_file(&text, path, 1 << 20));
    must(pn_config_find_string(text.data, "tiles", &found));
    ck_assert_str_eq(found, tiles);
    pn_free(found);
    pn_text_free(&text);
    snprintf(path, sizeof path, "%s/checkpoint.h5", directory);
    must(pn_checkpoint_read_config(path, &stored, NULL));
    must(pn_config_find_string(stored, "tiles", &found));
    ck_assert_str_eq(found, tiles);
    pn_free(found);
    pn_free(stored);
}

static void expect_note(const char *one, const char *two) {
    ck_assert_msg(strstr(notes, one) && strstr(notes, two), "notes: %s", notes);
}

START_TEST(a_run_keeps_what_it_was_given) {
    train("tiles=" A, NULL, false, "train.0.steps=20");
    expect_note("--set tiles: \"" A "\"", "not used on this CPU");
    expect_kept(A);
    train(NULL, NULL, true, "train.0.steps=30"); /* from the checkpoint: nothing to say */
    ck_assert_str_eq(notes, "");
    expect_kept(A);
    train("tiles=" B, NULL, true, "train.0.steps=40");
    expect_kept(B);
    train(NULL, "layered", true, "train.0.steps=50");
    expect_kept("layered");
}
END_TEST

/* "auto" takes the place of what a run has where it is asked for beside the file, whose own is the one that the run began with. */
START_TEST(auto_is_a_choice_too) {
    train("tiles=" A, NULL, false, "train.0.steps=20");
    train("tiles=auto", NULL, true, "train.0.steps=30");
    ck_assert_str_eq(notes, ""); /* a CPU's bits are the same */
    expect_kept("auto");
    train("tiles=" B, NULL, true, "train.0.steps=40");
    ck_assert_int_eq(setenv("PINN_TILES", "auto", 1), 0);
    train("tiles=" A, NULL, true, "train.0.steps=50");
    expect_kept("auto");
    unsetenv("PINN_TILES");
    train("tiles=" A, "auto", true, "train.0.steps=60");
    expect_kept("auto");
    train("tiles=" A, NULL, true, "train.0.steps=70");
    train(NULL, NULL, true, "train.0.steps=80");
    expect_kept(A);
}
END_TEST

/* What a CPU's pass is does not depend on tiles, nor do its bits. */
START_TEST(a_cpu_keeps_layered_whatever_the_pass) {
    train("tiles=layered", NULL, false, "train.0.steps=20");
    ck_assert_int_eq(setenv("PINN_PASS", "tiled", 1), 0);
    train(NULL, NULL, true, "train.0.steps=30");
    ck_assert_str_eq(notes, "");
    expect_kept("layered");
    ck_assert_int_eq(setenv("PINN_PASS", "layered", 1), 0); /* another pass, and other bits */
    train(NULL, NULL, true, "train.0.steps=40");
    unsetenv("PINN_PASS");
    expect_note("layered pass", "will not repeat bit for bit");
    expect_kept("layered");
}
END_TEST

START_TEST(nothing_given_stays_auto) {
    train(NULL, NULL, false, "train.0.steps=20");
    ck_assert_str_eq(notes, "");
    expect_kept("auto");
}
END_TEST

START_TEST(the_option_comes_before_the_environment_before_the_file) {
    ck_assert_int_eq(setenv("PINN_TILES", B, 1), 0);
    train("tiles=layered", NULL, false, "train.0.steps=20");
    expect_note("PINN_TILES: \"" B "\"", "");
    expect_kept(B);
    train("tiles=layered", A, true, "train.0.steps=30");
    expect_note("the option \"tiles\": \"" A "\"", "");
    expect_kept(A);
    unsetenv("PINN_TILES");
}
END_TEST

START_TEST(wrong_ones_are_errors) {
    pinn_training *training = NULL;
    ck_assert_int_eq(create(NULL, "units", false, "train.0.steps=20", &training), PINN_CONFIG);
    ck_assert_ptr_nonnull(strstr(pinn_error_message(), "the option \"tiles\": \"units\" is no choice"));
    ck_assert_int_eq(setenv("PINN_TILES", "fast", 1), 0);
    ck_assert_int_eq(create(NULL, NULL, false, "train.0.steps=20", &training), PINN_CONFIG);
    ck_assert_ptr_nonnull(strstr(pinn_error_message(), "PINN_TILES: \"fast\" is no choice"));
    unsetenv("PINN_TILES");
    ck_assert_int_eq(create("tiles=fast", NULL, false, "train.0.steps=20", &training), PINN_CONFIG);
    ck_assert_ptr_nonnull(strstr(pinn_error_message(), "--set tiles=fast: \"fast\" is no choice of tiles"));
    ck_assert_int_eq(create("tiles=5", NULL, false, "train.0.steps=20", &training), PINN_CONFIG);
    ck_assert_ptr_null(training);
}
END_TEST

/* A choice that does not fit, as a GPU's pass would report it: the caller's is an error, a checkpoint's is given up. */
START_TEST(what_does_not_fit) {
    pinn_training *training = NULL;
    must(create("tiles=" A, NULL, false, "train.0.steps=20", &training));
    ck_assert_int_eq(pn_fail(PINN_UNSUPPORTED, "tiles of X don't fit: Y"), PINN_UNSUPPORTED);
    ck_assert_int_eq(pn_tiles_refused(training), PINN_CONFIG);
    ck_assert_str_eq(pinn_error_message(), "--set tiles: tiles of X don't fit: Y; write tiles = \"auto\", or let pinn-train --tune find tiles for this problem and device");
    must(pinn_training_run(training));
    pinn_training_destroy(training);
    must(create(NULL, NULL, true, "train.0.steps=30", &training));
    ck_assert_str_eq(training->tiles, A);
    pn_fail(PINN_UNSUPPORTED, "tiles of X don't fit: Y");
    must(pn_tiles_refused(training));
    ck_assert_ptr_null(training->tiles);
    expect_note("tiles of X don't fit: Y", "will not repeat bit for bit");
    pinn_training_destroy(training);
}
END_TEST

/* Tiles of another pass than PINN_PASS asks for, as a GPU's pass would report them. */
START_TEST(tiles_of_another_pass) {
    pinn_training *training = NULL;
    must(create("tiles=rows 128", NULL, false, "train.0.steps=20", &training));
    training->lowering = PN_LOWERING_TILED;
    pn_fail(PINN_UNSUPPORTED, "X");
    ck_assert_int_eq(pn_tiles_refused(training), PINN_CONFIG);
    ck_assert_str_eq(pinn_error_message(), "--set tiles: \"rows 128\" are tiles of the streamed pass, and PINN_PASS asks for the tiled one: unset "
                                           "PINN_PASS to keep these tiles, or write tiles = \"auto\" to keep that pass");
    training->lowering = PN_LOWERING_AUTO;
    must(pinn_training_run(training));
    pinn_training_destroy(training);
    must(create(NULL, NULL, true, "train.0.steps=30", &training));
    training->lowering = PN_LOWERING_TILED;
    pn_fail(PINN_UNSUPPORTED, "X");
    must(pn_tiles_refused(training));
    ck_assert_ptr_null(training->tiles);
    expect_note("cannot be kept: \"rows 128\" are tiles of the streamed pass, and PINN_PASS asks for the tiled one; they are chosen anew", "");
    pinn_training_destroy(training);
}
END_TEST

START_TEST(a_cpu_is_not_tuned) {
    pinn_training *training = NULL;
    char *table = NULL, *tiles = NULL;
    must(create(NULL, NULL, false, "train.0.steps=20", &training));
    ck_assert_int_eq(pinn_training_tune(training, &table, &tiles), PINN_CONFIG);
    ck_assert_ptr_nonnull(strstr(pinn_error_message(), "CPU"));
    ck_assert(!table && !tiles);
    pinn_training_destroy(training);
}
END_TEST

START_TEST(a_problem_file_is_given_its_tiles) {
    char path[64], link[64];
    pn_text before = {0}, after = {0};
    struct stat info;
    snprintf(path, sizeof path, "%s/heat.toml", scratch);
    snprintf(link, sizeof link, "%s/link.toml", scratch);
    must(pn_text_read_file(&before, CONFIG("heat.toml"), 1 << 20));
    must(pn_file_write(path, before.data, before.length));
    ck_assert_int_eq(chmod(path, 0640), 0);
    ck_assert_int_eq(symlink(path, link), 0);
    must(pinn_config_set_tiles(link, "units  5, splits 2, keep shared, weights all"));
    must(pn_text_read_file(&after, path, 1 << 20));
    char *line = strstr(after.data, "tiles = \"" A "\"\n");
    ck_assert_msg(line != NULL, "%s", after.data);
    memmove(line, strchr(line, '\n') + 1, strlen(strchr(line, '\n') + 1) + 1);
    ck_assert_str_eq(after.data, before.data); /* nothing but that line */
    ck_assert(lstat(link, &info) == 0 && S_ISLNK(info.st_mode));
    ck_assert(stat(path, &info) == 0 && (info.st_mode & 07777) == 0640);
    ck_assert_int_eq(pinn_config_set_tiles(path, "fast"), PINN_CONFIG);
    must(pinn_config_set_tiles(path, NULL));
    pn_text_free(&before);
    must(pn_text_read_file(&before, path, 1 << 20));
    ck_assert_ptr_nonnull(strstr(before.data, "tiles = \"" A "\"\n")); /* only looked at */
    ck_assert_int_eq(chmod(path, 0444), 0);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(pinn_config_set_tiles(link, i ? "layered" : NULL), PINN_CONFIG);
        ck_assert_msg(strstr(pinn_error_message(), "read-only") && strstr(pinn_error_message(), link), "%s", pinn_error_message());
    }
    ck_assert(stat(path, &info) == 0 && (info.st_mode & 07777) == 0444);
    ck_assert_int_eq(pinn_config_set_tiles("nowhere.toml", "auto"), PINN_IO);
    pn_text_free(&before);
    pn_text_free(&after);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("tiles of a run");
    TCase *tests = tcase_create("cpu");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, begin, remove_scratch);
    tcase_add_test(tests, a_run_keeps_what_it_was_given);
    tcase_add_test(tests, auto_is_a_choice_too);
    tcase_add_test(tests, a_cpu_keeps_layered_whatever_the_pass);
    tcase_add_test(tests, nothing_given_stays_auto);
    tcase_add_test(tests, the_option_comes_before_the_environment_before_the_file);
    tcase_add_test(tests, wrong_ones_are_errors);
    tcase_add_test(tests, what_does_not_fit);
    tcase_add_test(tests, tiles_of_another_pass);
    tcase_add_test(tests, a_cpu_is_not_tuned);
    tcase_add_test(tests, a_problem_file_is_given_its_tiles);
    suite_add_tcase(suite, tests);
    return suite_run_nofork(suite); /* the pass uses OpenMP */
}
