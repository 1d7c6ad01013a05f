/* Compiled problems: faces, normals, channels, evaluation sets, references. */
#include <Random123/philox.h>
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "problem/problem.h"
#include "suite.h"

static pn_config *config;
static pn_problem *problem;

static void compile(const char *text) {
    ck_assert_msg(pn_config_parse("bad/test.toml", text, strlen(text), NULL, 0, &config) == PINN_OK, "%s", pinn_error_message());
    ck_assert_msg(pn_problem_create(config, &problem) == PINN_OK, "%s", pinn_error_message());
}

static void teardown(void) {
    pn_problem_destroy(problem);
    pn_config_destroy(config);
    problem = NULL;
    config = NULL;
}

#define TAIL "[[train]]\nsteps = 1\n"

static bool has_channel(const pn_layout *layout, unsigned order, unsigned a, unsigned b) {
    const pn_channel channel = {.order = (uint8_t)order, .coordinate = {(uint8_t)a, (uint8_t)b}};
    return pn_layout_find(layout, &channel) >= 0;
}

/* When it is what there is no memory for, the message has its size and the key that sets it. */
START_TEST(test_evaluation_without_memory) {
    static const char text[] = "[domain]\nx = [0, 1]\n[fields]\nu = {}\n[[equation]]\nresidual = \"u_x\"\npoints = 5\n"
                               "[output]\nevaluate = { points = [1000] }\n" TAIL;
    bool told = false;
    ck_assert_int_eq(pn_config_parse("bad/test.toml", text, strlen(text), NULL, 0, &config), PINN_OK);
    for (long n = 0; n < 1000 && !told; n++) {
        pn_memory_fail_after(n);
        const pinn_status status = pn_problem_create(config, &problem);
        pn_memory_fail_after(-1);
        if (status == PINN_OK) {
            pn_problem_destroy(problem);
            problem = NULL;
        }
        told = status != PINN_OK && strstr(pinn_error_message(), "1000 points need 16000 bytes") && strstr(pinn_error_message(), "output.evaluate");
    }
    ck_assert(told);
}
END_TEST

START_TEST(test_faces) {
    compile("time = \"t\"\n[constants]\nL = 2\n[domain]\nx = [0, \"L\"]\ny = [0, 1]\nt = [0, 1]\n[fields]\nu = {}\n"
            "[[equation]]\nresidual = \"u_t - lap(u)\"\npoints = 5\n"
            "[[condition]]\nname = \"a\"\non = \"boundary\"\nresidual = \"dn(u)\"\npoints = 4\n"
            "[[condition]]\nname = \"b\"\non = [\"x=min\", \"x = L\", \"y=1/2\", \"t=0\"]\nresidual = \"u\"\npoints = 100\n"
            "[[condition]]\nname = \"c\"\non = \"x=max\"\nresidual = \"dn(u) - ny\"\npoints = 3\nresample = \"never\"\n" TAIL);
    ck_assert_uint_eq(problem->sets, 4);
    ck_assert_int_eq(problem->time, 2);
    ck_assert_double_eq(problem->upper[0], 2);
    const pn_set *inside = &problem->set[0], *a = &problem->set[1], *b = &problem->set[2], *c = &problem->set[3];
    ck_assert_uint_eq(inside->face_count, 1);
    ck_assert_int_eq(inside->face->axis, -1);
    ck_assert(!inside->uses_normal && a->uses_normal && !b->uses_normal && !c->uses_normal);
    ck_assert_uint_eq(a->face_count, 4);
    ck_assert_uint_eq(a->points, 4);
    const pn_face expected[] = {{0, -1, 0}, {0, 1, 2}, {1, 0, 0.5}, {2, -1, 0}};
    ck_assert_uint_eq(b->face_count, 4);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(b->face[i].axis, expected[i].axis);
        ck_assert_int_eq(b->face[i].side, expected[i].side);
        ck_assert_double_eq(b->face[i].value, expected[i].value);
    }
    pn_text printed = {0};
    for (int i = 0; i < 4; i++) pn_face_print(problem, &b->face[i], &printed);
    ck_assert_str_eq(pn_text_get(&printed), "x=minx=maxy=0.5t=min");
    pn_text_free(&printed);
    ck_assert(c->fixed && !b->fixed);
    /* On x=max the normal is (1, 0): dn(u) - ny is u_x, and no other derivative is carried. */
    ck_assert_uint_eq(c->layout.count, 2);
    ck_assert(has_channel(&c->layout, 1, 0, 0));
    ck_assert_uint_eq(b->layout.count, 1);
}
END_TEST

START_TEST(test_terms) {
    compile("[domain]\nx = [0, 1]\ny = [0, 1]\n[fields]\nu = {}\nv = {}\n"
            "[[equation]]\nname = \"flow\"\nresidual = { mass = \"u_x + v_y\", swirl = \"u_y - v_x\" }\nweight = { swirl = 3 }\npoints = 5\n"
            "[[condition]]\nname = \"wall\"\non = \"boundary\"\nresidual = \"u\"\npoints = 8\nweight = 2\n"
            "[[condition]]\nname = \"one\"\non = \"x=min\"\nresidual = { only = \"v\" }\npoints = 8\n" TAIL);
    const char *const name[] = {"flow.mass", "flow.swirl", "wall", "one.only"};
    const double weight[] = {1, 3, 2, 1};
    ck_assert_uint_eq(problem->terms, 4);
    for (int i = 0; i < 4; i++) {
        ck_assert_str_eq(problem->term[i].name, name[i]);
        ck_assert_double_eq(problem->term[i].weight, weight[i]);
    }
    ck_assert_uint_eq(problem->set[0].term_count, 2);
    ck_assert_uint_eq(problem->set[1].first_term, 2);
    ck_assert_uint_eq(problem->set[0].layout.count, 3);
    ck_assert(has_channel(&problem->set[0].layout, 1, 0, 0) && has_channel(&problem->set[0].layout, 1, 1, 0));
}
END_TEST

/* A formula on a grid: coordinates in place, last one fastest, values as computed here. */
START_TEST(test_grid_and_formula) {
    compile("time = \"t\"\n[domain]\nx = [-1, 1]\nt = [0, 2]\n[constants]\nk = 3\n[define]\nwave = \"sin(k*x)\"\n[fields]\nu = {}\nv = {}\n"
            "[[equation]]\nresidual = { a = \"u_t - u_xx\", b = \"v - u\" }\npoints = 5\n"
            "[reference]\nu = \"exp(-t)*wave\"\n" TAIL "[output]\nevaluate = { points = [5, 3] }\n");
    ck_assert_uint_eq(problem->evaluation_points, 15);
    ck_assert_uint_eq(problem->evaluation_grid[0], 5);
    ck_assert(problem->has_reference[0] && !problem->has_reference[1]);
    ck_assert_double_nan(problem->reference_error[0]);
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 3; j++) {
            const int k = i * 3 + j;
            const double x = -1 + 0.5 * i, t = j;
            ck_assert_double_eq(problem->evaluation_coordinate[k], x);
            ck_assert_double_eq(problem->evaluation_coordinate[15 + k], t);
            /* the order of two roundings may differ */
            ck_assert_double_eq_tol(problem->reference[k], exp(-t) * sin(3 * x), 1e-15);
            ck_assert_double_nan(problem->reference[15 + k]);
        }
}
END_TEST

static void many(size_t coordinates, const char *output, pn_text *text) {
    pn_text_string(text, "seed = 4294967299\n[domain]\n");
    for (size_t i = 0; i < coordinates; i++) pn_text_printf(text, "x%zu = [%zu, %zu]\n", i + 1, i, i + 2);
    pn_text_printf(text, "[fields]\nu = {}\n[[equation]]\nresidual = \"lap(u)\"\npoints = 5\n%s%s", TAIL, output);
}

/* Seeded points: inside the domain, uniform, and the documented Philox counters. */
START_TEST(test_random_points) {
    pn_text text = {0};
    many(5, "", &text);
    compile(text.data);
    pn_text_free(&text);
    const size_t n = problem->evaluation_points;
    ck_assert_uint_eq(n, 10000);
    ck_assert_ptr_null(problem->evaluation_grid);
    for (size_t i = 0; i < 5; i++) {
        double mean = 0;
        for (size_t k = 0; k < n; k++) {
            double x = problem->evaluation_coordinate[i * n + k];
            ck_assert(x >= (double)i && x <= (double)(i + 2));
            mean += x / (double)n;
        }
        ck_assert_double_eq_tol(mean, (double)i + 1, 0.03); /* five standard deviations: 5*2/sqrt(12*10000) */
    }
    /* seed 2^32 + 3; point 7, coordinate 3 is the second one of block 1 */
    const philox4x32_ctr_t counter = {{7, 1, 0xffffffffu, 0xffffffffu}};
    const philox4x32_key_t key = {{3, 1}};
    philox4x32_ctr_t words = philox4x32(counter, key);
    double u = (double)(((uint64_t)words.v[2] << 32 | words.v[3]) >> 11) * 0x1p-53 + 0x1p-54;
    ck_assert_double_eq(problem->evaluation_coordinate[3 * n + 7], fma(2, u, 3));
}
END_TEST

START_TEST(test_hundred_coordinates) {
    pn_text text = {0};
    many(100, "[output]\nevaluate = { points = 20 }\n", &text);
    compile(text.data);
    pn_text_free(&text);
    ck_assert_uint_eq(problem->coordinates, 100);
    /* one Laplacian channel beside the value and the first derivatives */
    ck_assert_uint_eq(problem->set->layout.count, 102);
    ck_assert(problem->set->layout.channel[101].laplacian);
}
END_TEST

START_TEST(test_default_grids) {
    const size_t expected[] = {1001, 101 * 101, 21 * 21 * 21, 10000};
    for (size_t d = 1; d <= 4; d++) {
        pn_text text = {0};
        many(d, "", &text);
        compile(text.data);
        ck_assert_uint_eq(problem->evaluation_points, expected[d - 1]);
        ck_assert((problem->evaluation_grid != NULL) == (d <= 3));
        pn_text_free(&text);
        teardown();
    }
}
END_TEST

/* bad/good.h5: axes 0, 0.5, 1 in x and t, u = 1. Relative to the config's folder, from wherever the program runs. */
START_TEST(test_reference_file) {
    const char *text = "time = \"t\"\n[domain]\nx = [0, 1]\nt = [0, 1]\n[fields]\nu = {}\n[[equation]]\nresidual = \"u_t - u_xx\"\npoints = 5\n"
                       "[reference]\nfile = \"good.h5\"\n[stop]\nrelative_l2 = 1e-3\n" TAIL;
    ck_assert_int_eq(pn_config_parse(PINN_SOURCE_DIR "/tests/problem/bad/x.toml", text, strlen(text), NULL, 0, &config), PINN_OK);
    ck_assert_msg(pn_problem_create(config, &problem) == PINN_OK, "%s", pinn_error_message());
    ck_assert_uint_eq(problem->evaluation_points, 9);
    ck_assert_uint_eq(problem->evaluation_grid[1], 3);
    ck_assert(problem->has_reference[0]);
    ck_assert_double_eq(problem->evaluation_coordinate[5], 0.5);
    ck_assert_double_eq(problem->evaluation_coordinate[9 + 5], 1);
    ck_assert_double_eq(problem->reference[8], 1);
}
END_TEST

START_TEST(test_set_points) {
    compile("[domain]\nx = [0, 1]\n[fields]\nu = {}\n[[equation]]\nname = \"a\"\nresidual = \"u_xx\"\npoints = 5\n"
            "[[condition]]\nname = \"b\"\non = \"boundary\"\nresidual = \"u\"\npoints = 6\n"
            "[[train]]\nsteps = 1\n[[train]]\nsteps = 1\npoints = { a = 7, b = 2 }\n");
    bool changed = true;
    ck_assert_int_eq(pn_problem_set_points(problem, &config->phase[0], &changed), PINN_OK);
    ck_assert(!changed);
    ck_assert_int_eq(pn_problem_set_points(problem, &config->phase[1], &changed), PINN_OK);
    ck_assert(changed);
    ck_assert_uint_eq(problem->set[0].points, 7);
    ck_assert_uint_eq(problem->set[1].points, 2);
    ck_assert_int_eq(pn_problem_set_points(problem, &config->phase[1], &changed), PINN_OK);
    ck_assert(!changed);
}
END_TEST

/* Just inside and just outside of what float32 tells apart: 4096 of its numbers, whose spacing in [2048, 4096) is 2^-12. */
static pinn_status read_domain(const char *precision, const char *lower, const char *upper) {
    pn_text text = {0};
    pn_text_printf(&text, "precision = \"%s\"\n[domain]\nx = [%s, %s]\n[fields]\nu = {}\n[[equation]]\nresidual = \"u_x\"\npoints = 5\n" TAIL
                   "[output]\nevaluate = { points = 5 }\n", precision, lower, upper);
    teardown();
    ck_assert_msg(pn_config_parse("bad/test.toml", text.data, text.length, NULL, 0, &config) == PINN_OK, "%s", pinn_error_message());
    pn_text_free(&text);
    return pn_problem_create(config, &problem);
}

START_TEST(test_narrow_domains) {
    ck_assert_int_eq(read_domain("float32", "2048", "2049"), PINN_OK);
    ck_assert_int_eq(read_domain("tf32", "2048", "2049"), PINN_OK);
    ck_assert_int_eq(read_domain("float32", "2048", "2048.99"), PINN_CONFIG);
    ck_assert_int_eq(read_domain("tf32", "2048", "2048.99"), PINN_CONFIG);
    ck_assert_int_eq(read_domain("float32", "-2048.99", "-2048"), PINN_CONFIG);
    ck_assert_int_eq(read_domain("float64", "2048", "2048.0000001"), PINN_OK);
    ck_assert_int_eq(read_domain("float32", "0", "1e-20"), PINN_OK);
    ck_assert_int_eq(read_domain("float32", "-8e37", "8e37"), PINN_OK);
    ck_assert_int_eq(read_domain("float32", "-9e37", "9e37"), PINN_CONFIG); /* 2/1.8e38 is subnormal */
    ck_assert_int_eq(read_domain("float64", "1e308", "1.7e308"), PINN_CONFIG); /* lower + upper overflows: there is no middle */
}
END_TEST

/* Numbers that fold away before they reach the device may be any; a constant that no residual uses, too. */
START_TEST(test_folded_constants) {
    compile("[domain]\nx = [0, 1]\n[constants]\nh = 1e-60\nm = 1e60\nunused = 1e300\n[fields]\nu = {}\n"
            "[[equation]]\nresidual = \"h*m*u_xx - u\"\npoints = 5\n" TAIL);
    ck_assert_uint_eq(problem->terms, 1);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("problem");
    TCase *tests = tcase_create("problem");
    tcase_add_checked_fixture(tests, NULL, teardown);
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, test_faces);
    tcase_add_test(tests, test_evaluation_without_memory);
    tcase_add_test(tests, test_terms);
    tcase_add_test(tests, test_grid_and_formula);
    tcase_add_test(tests, test_random_points);
    tcase_add_test(tests, test_hundred_coordinates);
    tcase_add_test(tests, test_default_grids);
    tcase_add_test(tests, test_reference_file);
    tcase_add_test(tests, test_set_points);
    tcase_add_test(tests, test_narrow_domains);
    tcase_add_test(tests, test_folded_constants);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
