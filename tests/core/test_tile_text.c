/* Tiles as text. */
#include <check.h>
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
    static const char *const no_rows[] = {"rows 0", "rows 128 ", "layered", "rows 64, warps 16", "rows 64, warps 0, blocks 1", "rows 64, warps 8, blocks 2, more"};
    for (size_t k = 0; k < sizeof no_rows / sizeof no_rows[0]; k++) ck_assert(!pn_tiles_rows(no_rows[k], &rows));
    ck_assert_int_eq(pn_tiles_read("units  5,splits 2, keep shared, weights one", text), PINN_OK); /* spaces don't matter */
    ck_assert_str_eq(text, "units 5, splits 2, keep shared, weights one");
}
END_TEST

static const char *const wrong[] = {"Auto", "layered ", "5", "units 5", "units 0, splits 2, keep shared, weights all", "units 5, splits 0, keep shared, weights all",
                                    "units -5, splits 2, keep shared, weights all", "units 4294967301, splits 2, keep shared, weights all",
                                    "units 5, splits 2, keep sharedly, weights all", "units 5, splits 2, keep shared, weights all, more",
                                    "rows", "rows 0", "rows -128", "rows 128, units 5", "rows 1000000", "units 5, splits 2, keep register, weights all", "units 5, splits 2, keep shared, weights none"};

START_TEST(anything_else_is_refused) {
    char text[PN_TILE_CHOICE_BYTES] = "untouched";
    ck_assert_int_eq(pn_tiles_read(wrong[_i], text), PINN_CONFIG);
    ck_assert_str_eq(text, "untouched");
    ck_assert_ptr_nonnull(strstr(pinn_error_message(), wrong[_i]));
    ck_assert_ptr_nonnull(strstr(pinn_error_message(), "\"auto\""));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("tiles");
    TCase *tests = tcase_create("text");
    tcase_add_test(tests, choices_read_back);
    tcase_add_test(tests, words);
    tcase_add_loop_test(tests, anything_else_is_refused, 0, sizeof wrong / sizeof *wrong);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
