/* Wrong problem files: every bad/NAME.toml must be refused with exactly the text of bad/NAME.expected, the path shown as given.
 * With PINN_WRITE_EXPECTED=1 in the environment the expected texts are written anew, to be read before they are committed. */
#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory.h"
#include "problem/problem.h"
#include "suite.h"

/* The error message of a file, or "" when it is fine. */
static const char *message_of(const char *path) {
    pn_config *config = NULL;
    pn_problem *problem = NULL;
    pinn_status status = pn_config_read(path, NULL, 0, &config);
    if (status == PINN_OK) status = pn_problem_create(config, &problem);
    pn_problem_destroy(problem);
    pn_config_destroy(config);
    ck_assert_msg(status == PINN_OK || status == PINN_CONFIG, "%s: %s: %s", path, pinn_status_name(status), pinn_error_message());
    return status == PINN_OK ? "" : pinn_error_message();
}

static int is_toml(const struct dirent *entry) {
    const char *dot = strrchr(entry->d_name, '.');
    return dot && strcmp(dot, ".toml") == 0;
}

static struct dirent **corpus(int *count) {
    struct dirent **entry;
    ck_assert_int_eq(chdir(PINN_SOURCE_DIR "/tests/problem"), 0);
    *count = scandir("bad", &entry, is_toml, alphasort);
    ck_assert_int_ge(*count, 45);
    return entry;
}

static void expected_path(const char *name, char *path, size_t size) { snprintf(path, size, "bad/%.*s.expected", (int)strlen(name) - 5, name); }

START_TEST(test_corpus) {
    int count, wrong = 0;
    struct dirent **entry = corpus(&count);
    for (int i = 0; i < count; i++) {
        char path[512], expected_name[512];
        snprintf(path, sizeof path, "bad/%s", entry[i]->d_name);
        expected_path(entry[i]->d_name, expected_name, sizeof expected_name);
        pn_text expected = {0};
        if (getenv("PINN_WRITE_EXPECTED")) {
            pn_text_printf(&expected, "%s\n", message_of(path));
            ck_assert_int_eq(pn_text_write_file(&expected, expected_name), PINN_OK);
            pn_text_free(&expected);
        }
        ck_assert_msg(pn_text_read_file(&expected, expected_name, 1 << 20) == PINN_OK, "%s", pinn_error_message());
        const char *message = message_of(path);
        size_t length = expected.length && expected.data[expected.length - 1] == '\n' ? expected.length - 1 : expected.length;
        if (!*message || strlen(message) != length || memcmp(message, pn_text_get(&expected), length) != 0) {
            fprintf(stderr, "--- %s: expected\n%s--- got\n%s\n", path, pn_text_get(&expected), message);
            wrong++;
        }
        pn_text_free(&expected);
        free(entry[i]);
    }
    free(entry);
    ck_assert_int_eq(wrong, 0);
}
END_TEST

START_TEST(test_unreadable_files) {
    pn_config *config = NULL;
    ck_assert_int_eq(chdir(PINN_SOURCE_DIR "/tests/problem"), 0);
    ck_assert_int_eq(pn_config_read("bad", NULL, 0, &config), PINN_IO);
    ck_assert_str_eq(pinn_error_message(), "bad: is a directory");
    ck_assert_int_eq(pn_config_read("bad/nowhere.toml", NULL, 0, &config), PINN_IO);
    ck_assert_str_eq(pinn_error_message(), "bad/nowhere.toml: No such file or directory");
    if (geteuid() == 0) return; /* root reads everything */
    char path[] = "/tmp/pinn_config_XXXXXX";
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    fchmod(file, 0);
    close(file);
    ck_assert_int_eq(pn_config_read(path, NULL, 0, &config), PINN_IO);
    ck_assert_ptr_nonnull(strstr(pinn_error_message(), "Permission denied"));
    unlink(path);
}
END_TEST

/* A megabyte of bytes from a linear congruential generator, as they are, as printable characters, and as one long string. */
START_TEST(test_noise) {
    const size_t size = 1 << 20;
    char *noise = malloc(size);
    for (int kind = 0; kind < 3; kind++) {
        uint32_t state = 12345;
        for (size_t i = 0; i < size; i++) {
            state = state * 1664525u + 1013904223u;
            noise[i] = kind == 0 ? (char)(state >> 24) : (char)(32 + (state >> 24) % 95);
            if (kind == 2 && (noise[i] == '"' || noise[i] == '\\')) noise[i] = '.';
        }
        if (kind == 2) {
            memcpy(noise, "title = \"", 9);
            memcpy(noise + size - 2, "\"\n", 2);
        }
        pn_config *config = NULL;
        ck_assert_int_eq(pn_config_parse("noise.toml", noise, size, NULL, 0, &config), PINN_CONFIG);
        ck_assert_ptr_null(config);
        ck_assert_int_lt((int)strlen(pinn_error_message()), 5000);
    }
    free(noise);
}
END_TEST

/* Many thousand wrong keys: the list is cut, nothing grows without bound. */
START_TEST(test_flood_of_errors) {
    pn_text text = {0};
    for (int i = 0; i < 20000; i++) pn_text_printf(&text, "key%d = %d\n", i, i);
    pn_config *config = NULL;
    ck_assert_int_eq(pn_config_parse("flood.toml", text.data, text.length, NULL, 0, &config), PINN_CONFIG);
    pn_text_free(&text);
}
END_TEST

/* Whatever is cut off a good file's end, and whichever byte of it is replaced: an error or a config, never a crash. */
START_TEST(test_cut_and_changed) {
    pn_text text = {0};
    ck_assert_int_eq(pn_text_read_file(&text, PINN_SOURCE_DIR "/configs/heat.toml", 1 << 20), PINN_OK);
    static const char replacement[] = {0, '"', '[', '.', '=', '9', '\n', '\xff'};
    for (size_t i = 0; i < text.length; i++) {
        pn_config *config = NULL;
        if (pn_config_parse("cut.toml", text.data, i, NULL, 0, &config) == PINN_OK) pn_config_destroy(config);
        char old = text.data[i];
        text.data[i] = replacement[i % sizeof replacement];
        config = NULL;
        if (pn_config_parse("changed.toml", text.data, text.length, NULL, 0, &config) == PINN_OK) pn_config_destroy(config);
        text.data[i] = old;
    }
    pn_text_free(&text);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("bad configs");
    TCase *tests = tcase_create("bad configs");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, test_corpus);
    tcase_add_test(tests, test_unreadable_files);
    tcase_add_test(tests, test_noise);
    tcase_add_test(tests, test_flood_of_errors);
    tcase_add_test(tests, test_cut_and_changed);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
