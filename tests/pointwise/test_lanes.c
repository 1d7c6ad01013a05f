/* The elementary functions that generated kernels bring along, against libm in float64. The text runs on the host, where 2^x and 1/x are libm's
 * instead of the GPU's approximate instructions (2 and 1 units in the last place): what is proved is polynomials, ranges and their seams. */
#include <math.h>

#include "core/text.h"
#include "emulate.h"
#include "pointwise/kernel.h"
#include "suite.h"

typedef void lane_function(const float *x, float *y, unsigned long count);

static const char loops[] =
    "#define LOOP(f) extern \"C\" void loop_##f(const float *x, float *y, unsigned long n) { for (unsigned long i = 0; i < n; i++) y[i] = lane_##f(x[i]); }\n"
    "LOOP(tanhf)\nLOOP(sinf)\nLOOP(cosf)\n";

enum { COUNT = 200001 };
static float x[COUNT], y[COUNT];

static void *library;
static pn_text text;

static bool run(bool coarse, const char *name) {
    lane_function *function;
    pn_lane_prelude(coarse, &text);
    ck_assert_int_eq(pn_text_check(&text), PINN_OK);
    *(void **)&function = emulate_function(pn_text_get(&text), loops, name, &library);
    pn_text_free(&text);
    if (!function) return false; /* no C++ compiler */
    function(x, y, COUNT);
    return true;
}

static void close_library(void) {
    if (library) dlclose(library);
    library = NULL;
}

/* Both signs, logarithmic from `least` to `most`. */
static void spread(double least, double most) {
    for (int i = 0; i < COUNT; i++) {
        const double magnitude = least * pow(most / least, (double)(i / 2) / (COUNT / 2));
        x[i] = (float)(i % 2 ? -magnitude : magnitude);
    }
}

static double units_apart(float got, double exact) { /* in the last place of the exact value */
    int exponent;
    frexp(exact, &exponent);
    return fabs((double)got - exact) / ldexp(1.0, exponent - 24);
}

START_TEST(tanh_is_exact_to_four_units) {
    spread(1e-30, 30);
    if (!run(false, "loop_tanhf")) return;
    double worst = 0;
    for (int i = 0; i < COUNT; i++) worst = fmax(worst, units_apart(y[i], tanh((double)x[i])));
    ck_assert_msg(worst <= 4, "%g units", worst);
}
END_TEST

/* As accurate as a factor of a tf32 product, for small arguments too: those that come out as they went in, and those beside them. */
START_TEST(coarse_tanh_is_exact_to_tf32) {
    spread(1e-30, 30);
    if (!run(true, "loop_tanhf")) return;
    double worst = 0;
    for (int i = 0; i < COUNT; i++) worst = fmax(worst, fabs(y[i] / tanh((double)x[i]) - 1));
    ck_assert_msg(worst <= 0x1p-14, "2^%g", log2(worst));
}
END_TEST

START_TEST(sine_and_cosine_are_exact_to_two_units) {
    static double (*const exact[])(double) = {sin, cos};
    static const char *const name[] = {"loop_sinf", "loop_cosf"};
    spread(1e-20, 1e5);
    if (!run(false, name[_i])) return;
    double worst = 0;
    for (int i = 0; i < COUNT; i++) worst = fmax(worst, fabs(y[i] - exact[_i]((double)x[i])));
    ck_assert_msg(worst <= 0x1p-23, "%g", worst); /* of 1 */
}
END_TEST

START_TEST(what_is_not_finite_stays_so) {
    const float given[] = {INFINITY, -INFINITY, NAN};
    for (int i = 0; i < COUNT; i++) x[i] = given[i % 3];
    if (!run(_i, "loop_tanhf")) return;
    ck_assert(y[0] == 1 && y[1] == -1 && isnan(y[2]));
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("elementary functions");
    tcase_add_checked_fixture(tests, NULL, close_library);
    tcase_add_test(tests, tanh_is_exact_to_four_units);
    tcase_add_test(tests, coarse_tanh_is_exact_to_tf32);
    tcase_add_loop_test(tests, sine_and_cosine_are_exact_to_two_units, 0, 2);
    tcase_add_loop_test(tests, what_is_not_finite_stays_so, 0, 2);
    Suite *suite = suite_create("elementary functions of kernels");
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
