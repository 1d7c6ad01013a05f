/* Texts, numbers as decimals, files, diagnostics, nearest names, and memory that fails on request. */
#include <check.h>
#include <dirent.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/diagnostics.h"
#include "core/memory.h"
#include "suite.h"

/* ---- numbers ---------------------------------------------------------------------------------------------------------------- */

static void check_number(double value) {
    pn_text text = {0};
    pn_text_number(&text, value);
    const double again = strtod(pn_text_get(&text), NULL);
    ck_assert_msg(memcmp(&again, &value, sizeof value) == 0, "%.17g became \"%s\"", value, pn_text_get(&text));
    pn_text_free(&text);
}

START_TEST(numbers_read_back) {
    static const double special[] = {0.0, -0.0, 1, -1, 0.1, 1.0 / 3, DBL_MIN, DBL_MAX, -DBL_MAX, 0x1p-1074, 0x1.fffffffffffffp-1023, 1e22, 1e23,
                                     9007199254740993.0, INFINITY, -INFINITY, FLT_MIN, 5e-324};
    for (size_t i = 0; i < sizeof special / sizeof *special; i++) check_number(special[i]);
    uint64_t state = 1;
    for (int i = 0; i < 100000; i++) { /* all exponents: bit patterns of a linear congruential generator (Knuth's MMIX) */
        state = state * 6364136223846793005u + 1442695040888963407u;
        const uint64_t bits = state ^ state >> 29;
        double value;
        memcpy(&value, &bits, sizeof value);
        if (isfinite(value)) check_number(value);
    }
}
END_TEST

START_TEST(numbers_are_short) {
    static const struct {
        double value;
        const char *text;
    } number[] = {{0.1, "0.1"}, {100, "1e+02"}, {1e22, "1e+22"}, {-2.5, "-2.5"}, {INFINITY, "inf"}, {-INFINITY, "-inf"}, {NAN, "nan"}};
    for (size_t i = 0; i < sizeof number / sizeof *number; i++) {
        pn_text text = {0};
        pn_text_number(&text, number[i].value);
        ck_assert_str_eq(text.data, number[i].text);
        pn_text_free(&text);
    }
}
END_TEST

/* ---- UTF-8 ------------------------------------------------------------------------------------------------------------------ */

static const struct {
    const char *text;
    size_t length; /* 0: not UTF-8 */
    unsigned code;
} characters[] = {
    {"a", 1, 'a'},
    {"\x7f", 1, 0x7f},
    {"\xc2\x80", 2, 0x80},
    {"\xdf\xbf", 2, 0x7ff},
    {"\xe0\xa0\x80", 3, 0x800},
    {"\xed\x9f\xbf", 3, 0xd7ff},
    {"\xee\x80\x80", 3, 0xe000},
    {"\xef\xbf\xbf", 3, 0xffff},
    {"\xf0\x90\x80\x80", 4, 0x10000},
    {"\xf4\x8f\xbf\xbf", 4, 0x10ffff},
    {"\x80", 0, 0},             /* a continuation alone */
    {"\xc3", 0, 0},             /* cut */
    {"\xe2\x82", 0, 0},
    {"\xf0\x90\x80", 0, 0},
    {"\xc3(", 0, 0},
    {"\xc0\x80", 0, 0},         /* overlong */
    {"\xc1\xbf", 0, 0},
    {"\xe0\x9f\xbf", 0, 0},
    {"\xf0\x8f\xbf\xbf", 0, 0},
    {"\xed\xa0\x80", 0, 0},     /* surrogates */
    {"\xed\xbf\xbf", 0, 0},
    {"\xf4\x90\x80\x80", 0, 0}, /* over U+10FFFF */
    {"\xf8\x88\x80\x80\x80", 0, 0},
    {"\xff", 0, 0},
};

START_TEST(characters_are_decoded) {
    unsigned code = 77;
    ck_assert_uint_eq(pn_text_utf8(characters[_i].text, &code), characters[_i].length);
    ck_assert_uint_eq(code, characters[_i].length ? characters[_i].code : 77);
    ck_assert(pn_text_is_utf8(characters[_i].text) == (characters[_i].length > 0));
}
END_TEST

START_TEST(quoted_texts) {
    static const char *const example[][2] = {
        {"", "\"\""},
        {"plain", "\"plain\""},
        {"a\"b\\c", "\"a\\\"b\\\\c\""},
        {"line\nline\ttab\x1b\x7f", "\"line\\nline\\u0009tab\\u001b\\u007f\""},
        {"\xc3\xa9 \xf0\x9f\x98\x80", "\"\xc3\xa9 \xf0\x9f\x98\x80\""},
        {"a\xff" "b", "\"a\\ufffdb\""},
        {"\xe2\x82", "\"\\ufffd\\ufffd\""}, /* a cut character: one for each byte */
        {"\xed\xa0\x80\xc3\xa9", "\"\\ufffd\\ufffd\\ufffd\xc3\xa9\""},
    };
    for (size_t i = 0; i < sizeof example / sizeof *example; i++) {
        pn_text text = {0};
        pn_text_quoted(&text, example[i][0]);
        ck_assert_str_eq(text.data, example[i][1]);
        ck_assert(pn_text_is_utf8(text.data));
        pn_text_free(&text);
    }
}
END_TEST

/* ---- memory ----------------------------------------------------------------------------------------------------------------- */

START_TEST(memory_fails_once) {
    pn_memory_fail_after(1);
    void *first = pn_allocate(1, 8), *second = pn_allocate(1, 8), *third = pn_allocate(1, 8);
    ck_assert(first && !second && third);
    pn_free(first);
    pn_free(third);
    pn_memory_fail_after(0);
    pn_memory_fail_after(-1);
    void *fine = pn_allocate(0, 8);
    ck_assert_ptr_nonnull(fine);
    pn_free(fine);
    ck_assert_ptr_null(pn_allocate(SIZE_MAX / 2, 3)); /* the product overflows */
}
END_TEST

START_TEST(reallocation_keeps_the_old_block) {
    char *block = pn_duplicate("abc", 3);
    pn_memory_fail_after(0);
    ck_assert_ptr_null(pn_reallocate(block, 4, 1000, 1));
    ck_assert_str_eq(block, "abc");
    block = pn_reallocate(block, 4, 1000, 1);
    ck_assert_str_eq(block, "abc");
    for (int i = 4; i < 1000; i++) ck_assert_int_eq(block[i], 0);
    pn_free(block);
}
END_TEST

/* A failed growth marks the text; what is appended then is lost, nothing else happens. */
START_TEST(texts_without_memory) {
    for (long n = 0; n < 2; n++) {
        pn_text text = {0};
        pn_memory_fail_after(n);
        for (int i = 0; i < 1000; i++) pn_text_string(&text, "0123456789");
        pn_memory_fail_after(-1);
        ck_assert(text.failed);
        ck_assert_uint_lt(text.length, 10000);
        ck_assert_int_eq(pn_text_check(&text), PINN_NO_MEMORY);
        ck_assert_int_eq(pn_text_write_file(&text, "/tmp/pinn_never"), PINN_NO_MEMORY);
        pn_text_free(&text);
    }
}
END_TEST

/* ---- files ------------------------------------------------------------------------------------------------------------------ */

static char folder[] = "/tmp/pinn_text_XXXXXX";

static void make_folder(void) { ck_assert_ptr_nonnull(mkdtemp(folder)); }

static int entries(void) {
    DIR *open = opendir(folder);
    ck_assert_ptr_nonnull(open);
    int count = -2; /* . and .. */
    while (readdir(open)) count++;
    closedir(open);
    return count;
}

/* The old content or the new, under the same name, with nothing left beside it. */
START_TEST(files_are_replaced_whole) {
    pn_text path = {0}, content = {0}, read = {0};
    make_folder();
    pn_text_printf(&path, "%s/file", folder);
    pn_text_append(&content, "a\0b", 3);
    ck_assert_int_eq(pn_text_write_file(&content, path.data), PINN_OK);
    FILE *old = fopen(path.data, "r");
    pn_text_string(&content, "more");
    ck_assert_int_eq(pn_text_write_file(&content, path.data), PINN_OK);
    char byte[8];
    ck_assert_uint_eq(fread(byte, 1, sizeof byte, old), 3); /* a reader keeps the file it opened */
    fclose(old);
    ck_assert_int_eq(pn_text_read_file(&read, path.data, 7), PINN_OK);
    ck_assert_uint_eq(read.length, 7);
    ck_assert_mem_eq(read.data, "a\0bmore", 7);
    ck_assert_int_eq(pn_text_read_file(&read, path.data, 6), PINN_IO);
    ck_assert_ptr_nonnull(strstr(pinn_error_message(), "larger than 6 bytes"));
    ck_assert_int_eq(entries(), 1);
    unlink(path.data);
    rmdir(folder);
    pn_text_free(&path);
    pn_text_free(&content);
    pn_text_free(&read);
}
END_TEST

/* The rename fails because a folder stands there: it stays, and the temporary file goes. */
START_TEST(a_failed_write_leaves_nothing) {
    pn_text path = {0}, content = {0};
    make_folder();
    pn_text_printf(&path, "%s/file", folder);
    ck_assert_int_eq(mkdir(path.data, 0777), 0);
    pn_text_string(&content, "x");
    ck_assert_int_eq(pn_text_write_file(&content, path.data), PINN_IO);
    ck_assert_ptr_nonnull(strstr(pinn_error_message(), path.data));
    ck_assert_int_eq(entries(), 1);
    ck_assert_int_eq(pn_text_read_file(&content, path.data, 100), PINN_IO);
    ck_assert_ptr_nonnull(strstr(pinn_error_message(), "is a directory"));
    rmdir(path.data);
    rmdir(folder);
    ck_assert_int_eq(pn_text_write_file(&content, path.data), PINN_IO); /* no such folder */
    ck_assert_int_eq(pn_text_read_file(&content, path.data, 100), PINN_IO);
    pn_text_free(&path);
    pn_text_free(&content);
}
END_TEST

/* ---- diagnostics ------------------------------------------------------------------------------------------------------------ */

static void check_print(const char *source, pn_position at, const char *hint, const char *expected) {
    pn_diagnostics list;
    pn_text text = {0};
    pn_diagnostics_init(&list, "f.toml", source);
    ck_assert_int_eq(pn_diagnostics_check(&list), PINN_OK);
    ck_assert_int_eq(pn_diagnose(&list, at, hint, "wrong %d", 7), PINN_CONFIG);
    pn_diagnostics_print(&list, &text);
    ck_assert_str_eq(text.data, expected);
    ck_assert_int_eq(pn_diagnostics_check(&list), PINN_CONFIG);
    ck_assert_uint_eq(strlen(pinn_error_message()), text.length - 1); /* without the last line's end */
    pn_text_free(&text);
    pn_diagnostics_free(&list);
}

START_TEST(carets) {
    check_print("a\nbcd\n", (pn_position){2, 3}, "mend it", "f.toml:2:3: wrong 7\n  bcd\n    ^\n  mend it\n");
    check_print("a\r\nbcd\r\n", (pn_position){2, 4}, NULL, "f.toml:2:4: wrong 7\n  bcd\n     ^\n");
    check_print("a\n", (pn_position){1, 0}, NULL, "f.toml:1: wrong 7\n  a\n");
    check_print("a\n", (pn_position){0, 0}, NULL, "f.toml: wrong 7\n");
    check_print("a\n", (pn_position){9, 1}, NULL, "f.toml:9:1: wrong 7\n");
    check_print("a\n", (pn_position){1, 90}, NULL, "f.toml:1:90: wrong 7\n  a\n   ^\n");
    check_print(NULL, (pn_position){1, 1}, NULL, "f.toml:1:1: wrong 7\n");
    check_print("\x1b[0m\tx", (pn_position){1, 6}, NULL, "f.toml:1:6: wrong 7\n   [0m x\n       ^\n"); /* control bytes print as blanks */
    /* columns count bytes, carets stand under characters */
    check_print("\xc3\xa9\xf0\x9f\x98\x80z", (pn_position){1, 7}, NULL, "f.toml:1:7: wrong 7\n  \xc3\xa9\xf0\x9f\x98\x80z\n    ^\n");
}
END_TEST

/* A long line of two-byte characters is cut to a window around the caret, never through a character. */
START_TEST(long_lines) {
    for (unsigned column = 1; column < 1000; column++) {
        pn_text source = {0}, text = {0};
        if (column % 2) pn_text_string(&source, "x");
        while (source.length < 1000) pn_text_string(&source, "\xc3\xa9");
        pn_diagnostics list;
        pn_diagnostics_init(&list, "f.toml", source.data);
        pn_diagnose(&list, (pn_position){1, column}, NULL, "wrong");
        pn_diagnostics_print(&list, &text);
        ck_assert_msg(pn_text_is_utf8(text.data), "column %u: %s", column, text.data);
        ck_assert_uint_lt(text.length, 350);
        pn_diagnostics_free(&list);
        pn_text_free(&source);
        pn_text_free(&text);
    }
}
END_TEST

START_TEST(diagnostics_are_sorted_and_limited) {
    pn_diagnostics list;
    pn_text text = {0};
    pn_diagnostics_init(&list, "f.toml", NULL);
    for (unsigned i = 60; i > 0; i--) pn_diagnose(&list, (pn_position){i, 1}, NULL, "line %u", i);
    pn_diagnostics_print(&list, &text);
    ck_assert_uint_eq(list.count, 50);
    ck_assert_uint_eq(list.dropped, 10);
    ck_assert_int_eq(strncmp(text.data, "f.toml:11:1: line 11\nf.toml:12:1: line 12\n", 42), 0);
    ck_assert_ptr_nonnull(strstr(text.data, "f.toml: and 10 more errors\n"));
    pn_text_free(&text);
    pn_diagnostics_free(&list);
}
END_TEST

/* Without memory an error is still an error. */
START_TEST(diagnostics_without_memory) {
    for (long n = 0; n < 4; n++) {
        pn_diagnostics list;
        pn_diagnostics_init(&list, "f.toml", "x\n");
        pn_memory_fail_after(n);
        ck_assert_int_eq(pn_diagnose(&list, (pn_position){1, 1}, "hint", "wrong"), PINN_CONFIG);
        ck_assert_int_eq(pn_diagnostics_check(&list), PINN_CONFIG);
        pn_memory_fail_after(-1);
        pn_diagnostics_free(&list);
    }
}
END_TEST

START_TEST(nearest_names) {
    static const char *const name[] = {"width", "depth", "activation", "x", "lr"};
    static const char *const word[][2] = {{"widht", "width"}, {"wdith", "width"},  {"activaton", "activation"}, {"dept", "depth"},
                                          {"", NULL},         {"zzzzzz", NULL},    {"y", NULL},                 {"rl", "lr"},
                                          {"width", "width"}, {"heighth", NULL},   {"actvtn", NULL}};
    for (size_t i = 0; i < sizeof word / sizeof *word; i++) {
        const char *found = pn_nearest(word[i][0], name, 5);
        ck_assert_msg(found == word[i][1] || (found && word[i][1] && strcmp(found, word[i][1]) == 0), "\"%s\": %s", word[i][0],
                      found ? found : "none");
    }
    char long_word[200];
    memset(long_word, 'w', sizeof long_word);
    long_word[199] = 0;
    ck_assert_ptr_null(pn_nearest(long_word, name, 5));
    ck_assert_ptr_null(pn_nearest("width", NULL, 0));
}
END_TEST

START_TEST(bytes_have_a_unit) {
    static const struct {
        size_t bytes;
        const char *text;
    } cases[] = {{0, "0 bytes"},
                 {1, "1 byte"},
                 {1023, "1023 bytes"},
                 {1024, "1024 bytes (1.0 KiB)"},
                 {862832, "862832 bytes (842.6 KiB)"},
                 {1048575, "1048575 bytes (1.0 MiB)"},
                 {2000000256, "2000000256 bytes (1.9 GiB)"},
                 {SIZE_MAX, "18446744073709551615 bytes (16.0 EiB)"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pn_text text = {0};
        pn_text_bytes(&text, cases[i].bytes);
        ck_assert_str_eq(pn_text_get(&text), cases[i].text);
        pn_text_free(&text);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("core");
    TCase *tests = tcase_create("core");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, numbers_read_back);
    tcase_add_test(tests, numbers_are_short);
    tcase_add_test(tests, bytes_have_a_unit);
    tcase_add_loop_test(tests, characters_are_decoded, 0, sizeof characters / sizeof *characters);
    tcase_add_test(tests, quoted_texts);
    tcase_add_test(tests, memory_fails_once);
    tcase_add_test(tests, reallocation_keeps_the_old_block);
    tcase_add_test(tests, texts_without_memory);
    tcase_add_test(tests, files_are_replaced_whole);
    tcase_add_test(tests, a_failed_write_leaves_nothing);
    tcase_add_test(tests, carets);
    tcase_add_test(tests, long_lines);
    tcase_add_test(tests, diagnostics_are_sorted_and_limited);
    tcase_add_test(tests, diagnostics_without_memory);
    tcase_add_test(tests, nearest_names);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
