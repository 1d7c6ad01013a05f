/* Tiles of a GPU's network pass: what is given is used or refused, a run keeps and repeats its own, tuning measures them. Needs a GPU. */
#include "io/checkpoint.h"
#include "notes.h"
#include "scratch.h"

/* burgers.toml, made small; `more`: further assignments, NULL-terminated. */
static pinn_status create(const char *const *more, const char *tiles, const char *directory, bool resume, pinn_training **out) {
    const char *set[16] = {"equation.0.points=2000", "train.0.steps=100", "output.events=50", "output.checkpoint=50"};
    size_t count = 4;
    while (more && *more) set[count++] = *more++;
    const pinn_options options = {.config = CONFIG("burgers.toml"), .device = "cuda", .set = set, .set_count = count, .tiles = tiles, .directory = directory,
                                  .no_directory = !directory, .resume = resume, .message = note};
    *notes = '\0';
    return pinn_training_create(&options, out);
}

static const char *const stop[] = {"stop.step=50", NULL};

/* A choice that fits but is not the model's first, into `tiles`. */
static void find_another(char tiles[PN_TILE_CHOICE_BYTES]) {
    pinn_training *training = NULL;
    pn_pass_tiling tiling[2];
    size_t count = 0;
    must(create(NULL, "auto", NULL, false, &training));
    must(pn_pass_tilings(training->machinery.pass, tiling, 2, &count));
    ck_assert_uint_eq(count, 2);
    ck_assert_str_eq(pn_pass_tiles(training->machinery.pass), tiling[0].tiles);
    ck_assert_str_eq(training->tiles, tiling[0].tiles);
    strcpy(tiles, tiling[1].tiles);
    pinn_training_destroy(training);
}

START_TEST(a_given_choice_is_used_and_kept_by_a_resume) {
    char tiles[PN_TILE_CHOICE_BYTES], *stored = NULL, *found = NULL;
    pinn_training *straight = NULL, *parts = NULL;
    find_another(tiles);
    must(create(NULL, tiles, in_scratch("straight"), false, &straight));
    ck_assert_str_eq(pn_pass_tiles(straight->machinery.pass), tiles);
    must(pinn_training_run(straight));
    must(create(stop, tiles, in_scratch("parts"), false, &parts));
    must(pinn_training_run(parts));
    pinn_training_destroy(parts);
    must(pn_checkpoint_read_config(in_scratch("parts/checkpoint.h5"), &stored, NULL));
    must(pn_config_find_string(stored, "tiles", &found));
    ck_assert_str_eq(found, tiles);
    pn_free(found);
    pn_free(stored);
    must(create(NULL, NULL, in_scratch("parts"), true, &parts)); /* "auto" in the file: the checkpoint's */
    ck_assert_str_eq(pn_pass_tiles(parts->machinery.pass), tiles);
    ck_assert_str_eq(notes, "");
    must(pinn_training_run(parts));
    assert_same_parameters(straight, parts);
    pinn_training_destroy(parts);
    pinn_training_destroy(straight);
    must(create((const char *const[]){"train.0.steps=110", NULL}, "layered", in_scratch("parts"), true, &parts));
    ck_assert_str_eq(pn_pass_lowering_name(parts->machinery.pass), "layered");
    ck_assert_msg(strstr(notes, "resuming with tiles \"layered\" (the option \"tiles\") in place of"), "%s", notes);
    pinn_training_destroy(parts);
}
END_TEST

/* "auto" beside the file lets tiles be chosen anew; what the pass completes to what it was is nothing to tell. */
START_TEST(auto_of_an_option_chooses_anew) {
    char tiles[PN_TILE_CHOICE_BYTES], expected[256];
    pinn_training *training = NULL;
    find_another(tiles);
    must(create(stop, tiles, in_scratch("anew"), false, &training));
    must(pinn_training_run(training));
    pinn_training_destroy(training);
    must(create(NULL, "auto", in_scratch("anew"), true, &training));
    ck_assert_str_ne(pn_pass_tiles(training->machinery.pass), tiles);
    snprintf(expected, sizeof expected, "resuming with tiles \"%s\" (the option \"tiles\") in place of \"%s\"", pn_pass_tiles(training->machinery.pass), tiles);
    ck_assert_msg(strstr(notes, expected) != NULL, "%s", notes);
    pinn_training_destroy(training);
    must(create(stop, "rows 64", in_scratch("rows"), false, &training));
    must(pinn_training_run(training));
    pinn_training_destroy(training);
    must(create(NULL, "rows 64", in_scratch("rows"), true, &training));
    ck_assert_str_eq(notes, "");
    ck_assert_ptr_nonnull(strstr(pn_pass_tiles(training->machinery.pass), "rows 64, warps "));
    pinn_training_destroy(training);
}
END_TEST

START_TEST(the_choice_of_auto_is_kept_too) {
    char *stored = NULL, *found = NULL;
    pinn_training *training = NULL;
    must(create(stop, NULL, in_scratch("auto"), false, &training));
    ck_assert_str_eq(notes, "");
    must(pinn_training_run(training));
    must(pn_checkpoint_read_config(in_scratch("auto/checkpoint.h5"), &stored, NULL));
    must(pn_config_find_string(stored, "tiles", &found));
    ck_assert_str_eq(found, pn_pass_tiles(training->machinery.pass));
    pn_free(found);
    pn_free(stored);
    pinn_training_destroy(training);
}
END_TEST

START_TEST(what_does_not_fit_is_an_error) {
    pinn_training *training = NULL;
    ck_assert_int_eq(create(NULL, "units 24, splits 8, keep shared, weights all", NULL, false, &training), PINN_CONFIG);
    ck_assert_msg(strstr(pinn_error_message(), "the option \"tiles\": tiles of units 24") && strstr(pinn_error_message(), "write tiles = \"auto\""), "%s",
                  pinn_error_message());
    ck_assert_int_eq(create((const char *const[]){"tiles=units 24, splits 8, keep shared, weights all", NULL}, NULL, NULL, false, &training), PINN_CONFIG);
    ck_assert_ptr_nonnull(strstr(pinn_error_message(), "--set tiles: tiles of units 24"));
    /* no tiles at all for one hidden layer */
    ck_assert_int_eq(create((const char *const[]){"network.depth=1", NULL}, "units 4, splits 1, keep shared, weights all", NULL, false, &training), PINN_CONFIG);
    ck_assert_ptr_nonnull(strstr(pinn_error_message(), "one hidden layer"));
    ck_assert_ptr_null(training);
}
END_TEST

START_TEST(auto_says_when_it_is_layered) {
    pinn_training *training = NULL;
    char *plan = NULL;
    must(create((const char *const[]){"network.depth=1", NULL}, NULL, NULL, false, &training));
    ck_assert_msg(strstr(notes, "the network pass runs layer by layer: ") && strstr(notes, "one hidden layer"), "%s", notes);
    must(pinn_training_plan(training, &plan));
    ck_assert_ptr_nonnull(strstr(plan, "layered   because: "));
    ck_assert_str_eq(training->tiles, "layered");
    free(plan);
    pinn_training_destroy(training);
    must(create((const char *const[]){"network.depth=1", NULL}, "layered", NULL, false, &training)); /* asked for: nothing to say */
    ck_assert_str_eq(notes, "");
    pinn_training_destroy(training);
}
END_TEST

/* A checkpoint of a device that could hold more. */
START_TEST(a_checkpoints_choice_may_not_fit) {
    pinn_training *training = NULL;
    must(create(stop, NULL, in_scratch("other"), false, &training));
    pn_free(training->config->tiles.text);
    training->config->tiles.text = pn_duplicate("units 24, splits 8, keep shared, weights all", 44);
    pn_text_free(&training->resolved);
    must(pn_config_write(training->config, &training->resolved));
    must(pinn_training_run(training));
    pinn_training_destroy(training);
    must(create(NULL, NULL, in_scratch("other"), true, &training));
    ck_assert_msg(strstr(notes, "the tiles of the run so far cannot be kept: tiles of units 24"), "%s", notes);
    ck_assert_str_eq(pn_pass_lowering_name(training->machinery.pass), "tiled");
    pinn_training_destroy(training);
}
END_TEST

START_TEST(tuning_measures_and_names_the_fastest) {
    pinn_training *training = NULL;
    char *table = NULL, *tiles = NULL, canonical[PN_TILE_CHOICE_BYTES];
    must(create(NULL, "auto", NULL, false, &training));
    must(pinn_training_tune(training, &table, &tiles));
    printf("%s", table);
    must(pn_tiles_read(tiles, canonical));
    ck_assert_str_eq(canonical, tiles);
    ck_assert(strstr(table, "layered") && strstr(table, "  auto\n"));
    ck_assert_ptr_eq(strstr(strchr(table, '\n') + 1, tiles), strchr(table, '\n') + 1); /* the first line after the head */
    pinn_training_destroy(training);
    must(create(NULL, tiles, NULL, false, &training));
    must(pinn_training_steps(training, 10, NULL, NULL));
    pinn_training_destroy(training);
    free(table);
    free(tiles);
}
END_TEST

/* Everything came from the cache the second time, and quickly. */
START_TEST(a_warm_start_compiles_nothing) {
    pinn_training *training = NULL;
    pinn_result r;
    for (int i = 0; i < 2; i++) {
        must(create(NULL, NULL, NULL, false, &training));
        pinn_training_result(training, &r);
        printf("start %.3f s: context %.3f s, kernels %.3f s, %zu compiled\n", r.start_seconds, r.start_context, r.start_kernels, r.start_compiled);
        pinn_training_destroy(training);
    }
    ck_assert_uint_eq(r.start_compiled, 0);
    ck_assert(r.start_context + r.start_kernels <= r.start_seconds);
}
END_TEST

int main(void) {
    if (pinn_device_count() == 0) return suite_skip("no GPU");
    if (!mkdtemp(scratch) || unsetenv("PINN_TILES") != 0 || unsetenv("PINN_PASS") != 0) return 1;
    Suite *suite = suite_create("tiles on a GPU");
    TCase *tests = tcase_create("cuda");
    tcase_set_timeout(tests, 500);
    tcase_add_test(tests, a_given_choice_is_used_and_kept_by_a_resume);
    tcase_add_test(tests, auto_of_an_option_chooses_anew);
    tcase_add_test(tests, the_choice_of_auto_is_kept_too);
    tcase_add_test(tests, what_does_not_fit_is_an_error);
    tcase_add_test(tests, auto_says_when_it_is_layered);
    tcase_add_test(tests, a_checkpoints_choice_may_not_fit);
    tcase_add_test(tests, tuning_measures_and_names_the_fastest);
    tcase_add_test(tests, a_warm_start_compiles_nothing);
    suite_add_tcase(suite, tests);
    const int status = suite_run_nofork(suite);
    remove_tree(scratch);
    return status;
}
