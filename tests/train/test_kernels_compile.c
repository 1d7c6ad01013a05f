/* The kernels that a GPU would run for every config of configs/ and configs/bench/, compiled by NVRTC: no GPU is needed for that. */
#include "training_tools.h"

#ifdef PINN_HAVE_CUDA

#include <glob.h>

static void compile_kernels(const char *path, const char *precision, const char *architecture) {
    const char *const set[] = {precision};
    const pinn_options options = {.config = path, .device = "cpu", .lowering = "layered", .compile_for = architecture, .set = set, .set_count = 1, .no_directory = true};
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
    compile_kernels(CONFIG("heat.toml"), "precision=float32", "sm_80");
    globfree(&found);
}
END_TEST

/* Hidden layers are alike, so their kernels are too: 153 of the layered pass have nine texts; the tenth is the tiled pass. */
START_TEST(layers_share_kernels) {
    const char *const set[] = {"network.depth=50", "network.width=8"};
    const pinn_options options = {.config = CONFIG("heat.toml"), .device = "cpu", .lowering = "layered", .compile_for = "sm_90", .set = set,
                                  .set_count = 2, .no_directory = true};
    for (int again = 0; again < 2; again++) {
        pinn_training *training = NULL;
        pinn_result result;
        must(pinn_training_create(&options, &training));
        pinn_training_result(training, &result);
        if (again)
            ck_assert_uint_eq(result.start_compiled, 0);
        else
            ck_assert(result.start_compiled > 5 && result.start_compiled <= 10);
        pinn_training_destroy(training);
    }
}
END_TEST

START_TEST(an_unknown_architecture_is_an_error) {
    const pinn_options options = {.config = CONFIG("heat.toml"), .device = "cpu", .lowering = "layered", .compile_for = "sm_1", .no_directory = true};
    pinn_training *training = NULL;
    ck_assert_int_ne(pinn_training_create(&options, &training), PINN_OK);
    ck_assert_ptr_null(training);
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
    suite_add_tcase(suite, group);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    remove_tree(cache);
    return failed != 0;
}

#else

int main(void) {
    printf("skipped: built without CUDA\n");
    return 77;
}

#endif
