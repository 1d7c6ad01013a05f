/* The kernels that a GPU would run for every config of configs/ and configs/bench/, compiled by NVRTC: no GPU is needed for that. */
#include "notes.h"
#include "training_tools.h"

#ifdef PINN_HAVE_CUDA

#include <glob.h>

static void compile_kernels(const char *path, const char *precision, const char *architecture) {
    const char *const set[] = {precision};
    const pinn_options options = {.config = path, .compile_for = architecture, .set = set, .set_count = 1, .no_directory = true};
    pinn_training *training = NULL;
    pinn_status status = pinn_training_create(&options, &training);
    ck_assert_msg(status == PINN_OK, "%s, %s, %s: %s", path, precision, architecture, pinn_error_message());
    pinn_training_destroy(training);
}

START_TEST(every_config) {
    glob_t found;
    ck_assert_int_eq(glob(PINN_SOURCE_DIR "/configs/*.toml", 0, NULL, &found), 0);
    ck_assert_int_eq(glob(PINN_SOURCE_DIR "/configs/bench/*.toml", GLOB_APPEND, NULL, &found), 0);
    ck_assert_uint_ge(found.gl_pathc, 13);
    for (size_t i = 0; i < found.gl_pathc; i++) compile_kernels(found.gl_pathv[i], "precision=float32", "sm_90");
    compile_kernels(CONFIG("heat.toml"), "precision=float64", "sm_90");
    compile_kernels(CONFIG("heat.toml"), "precision=tf32", "sm_90");
    compile_kernels(CONFIG("heat.toml"), "precision=float32", "sm_80");
    compile_kernels(CONFIG("heat.toml"), "precision=float32", "sm_89"); /* 99 KiB of shared memory */
    globfree(&found);
}
END_TEST

/* Another place for compiled kernels, until the one before is returned to. */
static char *take_cache(const char *place) {
    char *const before = strdup(getenv("PINN_CACHE"));
    ck_assert(before && setenv("PINN_CACHE", place, 1) == 0);
    return before;
}
static void return_cache(char *before) {
    ck_assert(setenv("PINN_CACHE", before, 1) == 0);
    free(before);
}

/* Hidden layers are alike, so their kernels are too: 153 of the layered pass have eight texts. */
START_TEST(layers_share_kernels) {
    const char *const set[] = {"network.depth=50", "network.width=8"};
    const pinn_options options = {.config = CONFIG("heat.toml"), .device = "cpu", .lowering = "layered", .compile_for = "sm_90", .set = set,
                                  .set_count = 2, .no_directory = true};
    char empty[] = "/tmp/pinn-test-XXXXXX";
    ck_assert(mkdtemp(empty));
    char *const before = take_cache(empty);
    for (int again = 0; again < 2; again++) {
        pinn_training *training = NULL;
        pinn_result result;
        must(pinn_training_create(&options, &training));
        pinn_training_result(training, &result);
        if (again)
            ck_assert_uint_eq(result.start_compiled, 0);
        else
            ck_assert_uint_eq(result.start_compiled, 8);
        pinn_training_destroy(training);
    }
    return_cache(before);
    remove_tree(empty);
}
END_TEST

static pinn_status create(const char *lowering, const char *architecture, const char *set, void (*message)(void *, const char *), pinn_training **out) {
    const pinn_options options = {.config = CONFIG("heat.toml"), .lowering = lowering, .compile_for = architecture, .set = &set, .set_count = 1,
                                  .no_directory = true, .message = message};
    return pinn_training_create(&options, out);
}

START_TEST(an_unknown_architecture_is_an_error) {
    static const char *const wrong[] = {"nonsense", "sm_1", "sm_75", "sm_90x", "sm_", "compute_", "sm_ 90", "sm_-90", "sm_090", ""};
    pinn_training *training = NULL;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char quoted[32];
        snprintf(quoted, sizeof quoted, "\"%s\"", wrong[i]);
        ck_assert_int_eq(create(NULL, wrong[i], "seed=1", NULL, &training), PINN_CONFIG);
        ck_assert_msg(strstr(pinn_error_message(), quoted) && strstr(pinn_error_message(), "sm_80, ") && strstr(pinn_error_message(), "sm_90, "),
                      "%s", pinn_error_message());
        ck_assert_ptr_null(training);
    }
}
END_TEST

#define UNITS "units 1, splits 4, keep device, weights one"

/* What a GPU would refuse is refused: the tiles are those that were given, and of the pass that was asked for. */
static const struct {
    const char *lowering, *architecture, *set, *reason; /* NULL: it compiles */
} given[] = {{NULL, "sm_90", "tiles=" UNITS, NULL},
             {NULL, "sm_90", "tiles=rows 64", NULL},
             {NULL, "sm_90", "tiles=layered", NULL},
             {"streamed", "sm_90", "seed=1", NULL},
             {"tiled", "compute_90", "seed=1", NULL},
             {NULL, "sm_90", "tiles=units 24, splits 4, keep device, weights one", "at most 24, not 96"},
             {NULL, "sm_90", "tiles=rows 64, warps 16, blocks 2", "no such combination"},
             {NULL, "sm_89", "tiles=units 8, splits 2, keep shared, weights all", "the device has 101376 bytes"},
             {"tiled", "sm_90", "tiles=rows 64", "\"rows 64\" are tiles of the streamed pass, and the option \"lowering\" asks for the tiled one: unset the option \"lowering\""},
             {"streamed", "sm_90", "tiles=" UNITS, "tiles of the tiled pass, and the option \"lowering\" asks for the streamed one"}};

START_TEST(given_tiles_are_checked) {
    pinn_training *training = NULL;
    const pinn_status status = create(given[_i].lowering, given[_i].architecture, given[_i].set, NULL, &training);
    if (given[_i].reason) {
        ck_assert_int_eq(status, PINN_CONFIG);
        ck_assert_msg(strstr(pinn_error_message(), given[_i].reason) && strstr(pinn_error_message(), "--set tiles: "), "%s", pinn_error_message());
        ck_assert_ptr_null(training);
        return;
    }
    must(status);
    ck_assert_int_eq(pinn_training_run(training), PINN_BAD_ARGUMENT);
    pinn_training_destroy(training);
}
END_TEST

/* A pass that cannot be: who asked for it, why not, and what to do. */
static const struct {
    const char *lowering, *set, *reason;
} impossible[] = {{"tiled", "network.width=256", "no tiled pass: a tile of eight points"},
                  {"fma", "network.depth=1", "no tiled pass: the network has one hidden layer"},
                  {"tiled", "network.depth=1", "no tiled pass: the network has one hidden layer"},
                  {"streamed", "network.depth=1", "no streamed pass: the network has one hidden layer"},
                  {"streamed", "network.width=511", "no streamed pass: layers are wider than 256"},
                  {"streamed", "precision=float64", "no streamed pass: it multiplies in float32"}};

START_TEST(a_pass_that_cannot_be_is_an_error) {
    for (int by_option = 0; by_option < 2; by_option++) {
        pinn_training *training = NULL;
        char expected[128];
        if (!by_option) ck_assert_int_eq(setenv("PINN_PASS", impossible[_i].lowering, 1), 0);
        const pinn_status status = create(by_option ? impossible[_i].lowering : NULL, "sm_90", impossible[_i].set, NULL, &training);
        unsetenv("PINN_PASS");
        ck_assert_int_eq(status, PINN_UNSUPPORTED);
        snprintf(expected, sizeof expected, "%s is \"%s\": %s", by_option ? "the option \"lowering\"" : "PINN_PASS", impossible[_i].lowering,
                 impossible[_i].reason);
        ck_assert_msg(strncmp(pinn_error_message(), expected, strlen(expected)) == 0 && strstr(pinn_error_message(), "unset it, or make it \"auto\""),
                      "%s", pinn_error_message());
        ck_assert_ptr_null(training);
    }
}
END_TEST

/* What a GPU would do: its pass, with tiles or not, and why not. */
static const struct {
    const char *set, *lowering, *tiles, *note;
} lowered[] = {{"seed=1", "tiled", "units ", ""},
               {"network.width=136", "streamed", "rows ", ""},
               {"tiles=" UNITS, "tiled", UNITS, ""},
               {"tiles=layered", "layered", "", ""},
               {"network.depth=1", "layered", "", "the network pass runs layer by layer: no tiled pass: the network has one hidden layer; no streamed pass: the network has"},
               {"network.width=1024", "layered", "", "the network pass runs layer by layer: no streamed pass: layers are wider than 256; no tiled pass: a tile of"}};

START_TEST(the_pass_of_a_gpu_is_told) {
    pinn_training *training = NULL;
    pinn_result result;
    *notes = '\0';
    must(create(NULL, "sm_90", lowered[_i].set, note, &training));
    pinn_training_result(training, &result);
    ck_assert_str_eq(result.lowering, lowered[_i].lowering);
    ck_assert_msg(strncmp(result.tiles, lowered[_i].tiles, strlen(lowered[_i].tiles)) == 0 && !*result.tiles == !*lowered[_i].tiles, "%s", result.tiles);
    ck_assert_msg(*lowered[_i].note ? strstr(notes, lowered[_i].note) != NULL : !strstr(notes, "layer by layer"), "%s", notes);
    pinn_training_destroy(training);
}
END_TEST

START_TEST(an_unusable_cache_is_said_once) {
    char *const before = take_cache("/dev/null");
    for (int again = 0; again < 2; again++) {
        pinn_training *training = NULL;
        *notes = '\0';
        must(create("layered", "sm_90", "network.width=4", note, &training));
        const char *line = strstr(notes, "compiled kernels cannot be kept: /dev/null/");
        ck_assert_msg(again ? !line : line && !strstr(line + 1, "compiled kernels cannot"), "%s", notes);
        pinn_training_destroy(training);
    }
    return_cache(before);
}
END_TEST

/* A cold start that takes longer than two seconds says what it waits for, once; a warm one has nothing to say. */
START_TEST(compiling_is_said) {
    const pinn_options options = {.config = CONFIG("bench/ks4.toml"), .compile_for = "sm_90", .no_directory = true, .message = note};
    char empty[] = "/tmp/pinn-test-XXXXXX";
    ck_assert(mkdtemp(empty));
    char *const before = take_cache(empty);
    for (int again = 0; again < 2; again++) {
        pinn_training *training = NULL;
        pinn_result result;
        *notes = '\0';
        must(pinn_training_create(&options, &training));
        pinn_training_result(training, &result);
        const char *line = strstr(notes, "waiting for ");
        if (again) ck_assert_msg(!line, "%s", notes);
        if (!again && result.start_seconds > 4) /* a fast machine may be done by then */
            ck_assert_msg(line && strstr(line, " to be compiled") && !strstr(line + 1, "waiting for "), "%s", notes);
        pinn_training_destroy(training);
    }
    return_cache(before);
    remove_tree(empty);
}
END_TEST

int main(void) {
    char cache[] = "/tmp/pinn-test-XXXXXX"; /* its own: nothing compiled before counts */
    if (!mkdtemp(cache) || setenv("PINN_CACHE", cache, 1) != 0) return 1;
    Suite *suite = suite_create("generated kernels");
    TCase *group = tcase_create("nvrtc");
    tcase_set_timeout(group, 550);
    tcase_add_test(group, every_config);
    tcase_add_test(group, layers_share_kernels);
    tcase_add_test(group, an_unknown_architecture_is_an_error);
    tcase_add_loop_test(group, given_tiles_are_checked, 0, sizeof given / sizeof *given);
    tcase_add_loop_test(group, a_pass_that_cannot_be_is_an_error, 0, sizeof impossible / sizeof *impossible);
    tcase_add_loop_test(group, the_pass_of_a_gpu_is_told, 0, sizeof lowered / sizeof *lowered);
    tcase_add_test(group, an_unusable_cache_is_said_once);
    tcase_add_test(group, compiling_is_said);
    suite_add_tcase(suite, group);
    const int status = suite_run_nofork(suite);
    remove_tree(cache);
    return status;
}

#else

int main(void) { return suite_skip("built without CUDA"); }

#endif
