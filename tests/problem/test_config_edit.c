/* One key of a problem file is changed in its text, and nothing else. */
#include <check.h>
#include <string.h>

#include "core/memory.h"
#include "problem/config.h"
#include "suite.h"

#define REST "[domain]\nx = [0, 1] # a line\n[fields]\nu = {}\n[[equation]]\nresidual = \"u_x - 1\"\npoints = 4\n[[train]]\nsteps = 1\n"
#define TILES "units 5, splits 2, keep shared, weights all"
#define LINE "tiles = \"" TILES "\"\n"

#define CRLF_REST "[domain]\r\nx = [0, 1]\r\n[fields]\r\nu = {}\r\n[[equation]]\r\nresidual = \"u_x - 1\"\r\npoints = 4\r\n[[train]]\r\nsteps = 1\r\n"
#define CRLF_LINE "tiles = \"" TILES "\"\r\n"

static const struct {
    const char *before, *after; /* after NULL: refused */
} edits[] = {
    /* behind the last plain key of the top level */
    {"# heat\ntitle = \"t\" # its name\n\n# where\n" REST, "# heat\ntitle = \"t\" # its name\n" LINE "\n# where\n" REST},
    {"seed = 3\n\nprecision = \"float64\"\n" REST, "seed = 3\n\nprecision = \"float64\"\n" LINE REST},
    /* before whatever comes first */
    {REST, LINE REST},
    {"# comment\n\n" REST, "# comment\n\n" LINE REST},
    {"title = \"\"\"\n[no table]\nx = 1\n\"\"\"\n" REST, LINE "title = \"\"\"\n[no table]\nx = 1\n\"\"\"\n" REST},
    /* lines end as the file's do */
    {"title = \"t\"\r\n\r\n# where\r\n" CRLF_REST, "title = \"t\"\r\n" CRLF_LINE "\r\n# where\r\n" CRLF_REST},
    {CRLF_REST, CRLF_LINE CRLF_REST},
    /* in place */
    {"title = \"t\"\n  tiles=\"auto\"# mine\n" REST, "title = \"t\"\n  tiles=\"" TILES "\"# mine\n" REST},
    {"tiles = 'units 1, splits 4, keep device, weights one'\n" REST, "tiles = '" TILES "'\n" REST},
    {"tiles = \"\"\"layered\"\"\"\n" REST, "tiles = \"\"\"" TILES "\"\"\"\n" REST},
    {"tiles = \"" TILES "\"\n" REST, LINE REST},
    {"\"tiles\" = \"layered\"\r\n" REST, "\"tiles\" = \"" TILES "\"\r\n" REST},
    /* an escape: not written plainly */
    {"tiles = \"layere\\u0064\"\n" REST, NULL},
};

START_TEST(edits_change_one_key) {
    const char *before = edits[_i].before, *after = edits[_i].after;
    pn_config *config = NULL;
    pn_text out = {0};
    ck_assert_msg(pn_config_parse("a.toml", before, strlen(before), NULL, 0, &config) == PINN_OK, "%s", pinn_error_message());
    const pinn_status status = pn_config_edit_tiles(config, TILES, &out);
    if (after) {
        ck_assert_msg(status == PINN_OK, "%s", pinn_error_message());
        ck_assert_str_eq(pn_text_get(&out), after);
    } else {
        ck_assert_int_eq(status, PINN_UNSUPPORTED);
        ck_assert_ptr_nonnull(strstr(pinn_error_message(), "by hand"));
        ck_assert_uint_eq(out.length, 0);
    }
    pn_text_free(&out);
    pn_config_destroy(config);
}
END_TEST

START_TEST(resolved_texts_are_searched) {
    char *found = NULL;
    ck_assert_int_eq(pn_config_find_string("seed = 0\ntiles = \"layered\"\n[network]\nkind = \"mlp\"\n", "tiles", &found), PINN_OK);
    ck_assert_str_eq(found, "layered");
    pn_free(found);
    ck_assert_int_eq(pn_config_find_string("seed = 0\n[network]\ntiles = \"x\"\n", "tiles", &found), PINN_OK);
    ck_assert_ptr_null(found);
    ck_assert_int_eq(pn_config_find_string("seed = ", "tiles", &found), PINN_CONFIG);
}
END_TEST

START_TEST(what_shows_is_compared) {
    static const struct {
        const char *old, *new;
        bool same;
    } cases[] = {{"seed = 0\n", "seed = 1\n[output]\nevents = 3\nevaluate = { every = 2 }\n", true},
                 {"title = \"a\"\n", "title = \"b\"\n", false},
                 {"title = \"a\"\n", "", false},
                 {"", "[reference]\nu = \"x\"\n", false},
                 {"[output]\nevaluate = { points = [3, 4] }\n", "[output]\nevaluate = { points = [3, 4], every = 5 }\n", true},
                 {"[output]\nevaluate = { points = [3, 4] }\n", "[output]\nevaluate = { points = [3, 5] }\n", false},
                 {"[output]\nevaluate = { points = [3, 4] }\n", "[output]\nevaluate = { points = 12 }\n", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool same = !cases[i].same;
        ck_assert_int_eq(pn_config_same_solution(cases[i].old, cases[i].new, &same), PINN_OK);
        ck_assert_msg(same == cases[i].same, "case %zu", i);
    }
    ck_assert_int_eq(pn_config_same_solution("a = ", "", &(bool){false}), PINN_CONFIG);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("config edit");
    TCase *tests = tcase_create("edit");
    tcase_add_loop_test(tests, edits_change_one_key, 0, sizeof edits / sizeof *edits);
    tcase_add_test(tests, resolved_texts_are_searched);
    tcase_add_test(tests, what_shows_is_compared);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
