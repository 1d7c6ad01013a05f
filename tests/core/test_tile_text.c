/* Tiles as text. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "core/tiles.h"
#include "suite.h"

START_TEST(choices_read_back) {
    for (unsigned units = 1; units <= 24; units += 7)
        for (unsigned splits = 1; splits <= 8; splits++)
            for (int memory = 0; memory < 4; memory++) {
                const pn_tile_choice choice = {units, splits, memory < 2, memory % 2 == 0};
                pn_tile_choice again = {0};
                char text[PN_TILE_CHOICE_BYTES], canonical[PN_TILE_CHOICE_BYTES];
                pn_tile_choice_print(&choice, text);
                ck_assert_int_eq(pn_tile_choice_parse(text, &again), PINN_OK);
                ck_assert(again.units == units && again.splits == splits && again.keep_shared == choice.keep_shared && again.weights_all == choice.weights_all);
                ck_assert_int_eq(pn_tiles_read(text, canonical), PINN_OK);
                ck_assert_str_eq(canonical, text);
            }
}
END_TEST

START_TEST(words) {
    char text[PN_TILE_CHOICE_BYTES];
    ck_assert_int_eq(pn_tiles_read(NULL, text), PINN_OK);
    ck_assert_str_eq(text, "auto");
    ck_assert_int_eq(pn_tiles_read("", text), PINN_OK);
    ck_assert_str_eq(text, "auto");
    ck_assert_int_eq(pn_tiles_read("layered", text), PINN_OK);
    ck_assert_str_eq(text, "layered");
    ck_assert_int_eq(pn_tiles_read("rows 128", text), PINN_OK);
    ck_assert_str_eq(text, "rows 128");
    ck_assert_int_eq(pn_tiles_read("rows 64,warps 16, blocks 1", text), PINN_OK);
    ck_assert_str_eq(text, "rows 64, warps 16, blocks 1");
    pn_tile_rows rows = {0};
    ck_assert(pn_tiles_rows("rows 128", &rows));
    ck_assert(rows.rows == 128 && rows.warps == 0 && rows.blocks == 0);
    ck_assert(pn_tiles_rows(text, &rows));
    ck_assert(rows.rows == 64 && rows.warps == 16 && rows.blocks == 1);
    static const char *const no_rows[] = {"rows 0", "rows64", "layered", "rows 64, warps 16", "rows 64, warps 0, blocks 1", "rows 64, warps 8, blocks 2, more"};
    for (size_t k = 0; k < sizeof no_rows / sizeof no_rows[0]; k++) ck_assert(!pn_tiles_rows(no_rows[k], &rows));
    ck_assert(!pn_tiles_rows(NULL, &rows));
}
END_TEST

static const struct {
    const char *text, *canonical;
} spaced[] = {{"units  5,splits 2, keep shared, weights one", "units 5, splits 2, keep shared, weights one"},
              {"units  5 ,splits 2,  keep device , weights\tall", "units 5, splits 2, keep device, weights all"},
              {" rows 64 , warps 16,blocks 1 ", "rows 64, warps 16, blocks 1"},
              {"\trows  128 ", "rows 128"},
              {" layered ", "layered"},
              {"auto ", "auto"}};

START_TEST(blanks_stand_anywhere_between) {
    char text[PN_TILE_CHOICE_BYTES];
    ck_assert_int_eq(pn_tiles_read(spaced[_i].text, text), PINN_OK);
    ck_assert_str_eq(text, spaced[_i].canonical);
}
END_TEST

#define NUMBER "takes a number from 1 to 999, without leading zeros, not "
#define ALL "units 5, splits 2, keep shared, weights all"

/* The value, quoted, and what is wrong in it, or "" where nothing more can be said. */
static const struct {
    const char *text, *fault;
} wrong[] = {{"Auto", ""},
             {"layered, rows 64", ""},
             {"  ", ""},
             {",", ""},
             {"5", ""},
             {"units", "\"units\" " NUMBER "nothing"},
             {"units 5", "\"splits\" is missing"},
             {"units 5,", "\"splits\" is missing"},
             {"units 5, keep shared", "\"splits\" is missing: in its place stands \"keep\""},
             {"units5,splits2,keepdevice,weightsone", "\"units\" is missing: in its place stands \"units5\""},
             {"units 0, splits 2, keep shared, weights all", "\"units\" " NUMBER "\"0\""},
             {"units 5, splits 02, keep shared, weights all", "\"splits\" " NUMBER "\"02\""},
             {"units -5, splits 2, keep shared, weights all", "\"units\" " NUMBER "\"-5\""},
             {"units 4294967301, splits 2, keep shared, weights all", "\"units\" " NUMBER "\"4294967301\""},
             {"units 5 splits 2, keep shared, weights all", "\"splits\" must come after a comma"},
             {"units 5, splits 2, keep sharedly, weights all", "\"keep\" takes \"shared\" or \"device\", not \"sharedly\""},
             {"units 5, splits 2, keep shared, weights none", "\"weights\" takes \"all\" or \"one\", not \"none\""},
             {"units 5, splits 2, keep shared, weights", "\"weights\" takes \"all\" or \"one\", not nothing"},
             {ALL ", more", "\", more\" is too much"},
             {ALL ",", "\",\" is too much"},
             {"rows", "\"rows\" " NUMBER "nothing"},
             {"rows64", "\"rows\" is missing: in its place stands \"rows64\""},
             {"rows 064", "\"rows\" " NUMBER "\"064\""},
             {"rows 1000", "\"rows\" " NUMBER "\"1000\""},
             {"rows 6x", "\"rows\" " NUMBER "\"6x\""},
             {"rows 128, units 5", "\"warps\" is missing: in its place stands \"units\""},
             {"rows 64, warps 16", "\"blocks\" is missing"},
             {"rows 64, blocks 1", "\"warps\" is missing: in its place stands \"blocks\""},
             {"rows 64 warps 16", "\"warps\" must come after a comma"},
             {"rows 64, warps 16, blocks 1 1", "\"1\" is too much"}};

START_TEST(anything_else_is_refused) {
    char text[PN_TILE_CHOICE_BYTES] = "untouched", expected[512];
    ck_assert_int_eq(pn_tiles_read(wrong[_i].text, text), PINN_CONFIG);
    ck_assert_str_eq(text, "untouched");
    snprintf(expected, sizeof expected, "\"%s\" is no choice of tiles%s%s", wrong[_i].text, *wrong[_i].fault ? ": " : "", wrong[_i].fault);
    ck_assert_str_eq(pinn_error_message(), expected);
}
END_TEST

/* What is quoted stays in its line, and short. */
START_TEST(quotes_are_tame) {
    char text[PN_TILE_CHOICE_BYTES], lengthy[1000];
    ck_assert_int_eq(pn_tiles_read("rows\n64", text), PINN_CONFIG);
    ck_assert_str_eq(pinn_error_message(), "\"rows\\n64\" is no choice of tiles: \"rows\" is missing: in its place stands \"rows\\n64\"");
    ck_assert_int_eq(pn_tiles_read("rows 64\n", text), PINN_CONFIG);
    memset(lengthy, 'x', sizeof lengthy - 1);
    lengthy[sizeof lengthy - 1] = '\0';
    ck_assert_int_eq(pn_tiles_read(lengthy, text), PINN_CONFIG);
    ck_assert_uint_lt(strlen(pinn_error_message()), 120);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("tiles");
    TCase *tests = tcase_create("text");
    tcase_add_test(tests, choices_read_back);
    tcase_add_test(tests, words);
    tcase_add_loop_test(tests, blanks_stand_anywhere_between, 0, sizeof spaced / sizeof *spaced);
    tcase_add_loop_test(tests, anything_else_is_refused, 0, sizeof wrong / sizeof *wrong);
    tcase_add_test(tests, quotes_are_tame);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
