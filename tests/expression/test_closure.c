/* Which channels a point set carries: plain derivatives, and Laplacian-like sums folded into one channel.
 *
 * A case gives its residuals, the channels expected as text, and the coefficients of the Laplacian. Folded residuals are compared
 * with the original ones at a point where the Laplacian slot holds sum a_i u_ii. */
#include <time.h>

#include "support.h"

typedef struct closure_case {
    const char *name;
    const char *coordinates[4];
    int time;
    const char *fields[4];
    const char *residuals[4];
    const char *channels;
    double laplacian[4];
} closure_case;

#define XT {"x", "t"}, 1
#define XY {"x", "y"}, -1
#define XYT {"x", "y", "t"}, 2
#define XYZ {"x", "y", "z"}, -1

static const closure_case cases[] = {
    {"heat", XT, {"u"}, {"u_t - 0.4*u_xx"}, "u u_x u_t u_xx", {0}},
    {"value only", XT, {"u"}, {"u - x"}, "u", {0}},
    {"no field", XT, {"u"}, {"x"}, "u", {0}},
    {"burgers", XT, {"u"}, {"u_t + u*u_x - 0.01/pi*u_xx"}, "u u_x u_t u_xx", {0}},
    {"closed downward", XT, {"u"}, {"u_xxt"}, "u u_x u_t u_xx u_xt u_xxt", {0}},
    {"poisson", XY, {"u"}, {"u_xx + u_yy + sin(x)"}, "u u_x u_y lap(u)", {1, 1}},
    {"poisson by lap", XY, {"u"}, {"-lap(u) - x"}, "u u_x u_y lap(u)", {1, 1}},
    {"helmholtz", XY, {"u"}, {"u_xx + u_yy + 3^2*u"}, "u u_x u_y lap(u)", {1, 1}},
    {"navier-stokes",
     XYT,
     {"u", "v", "p"},
     {"u_t + u*u_x + v*u_y + p_x - 0.01*(u_xx + u_yy)", "v_t + u*v_x + v*v_y + p_y - 0.01*(v_xx + v_yy)", "u_x + v_y"},
     "u u_x u_y u_t lap(u)",
     {1, 1, 0}},
    {"different viscosities", XY, {"u", "v"}, {"lap(u) + v", "-7*lap(v) + u"}, "u u_x u_y lap(u)", {1, 1}},
    {"anisotropic", XY, {"u"}, {"2*u_xx + u_yy"}, "u u_x u_y 2*u_xx + u_yy", {2, 1}},
    {"anisotropic, scaled", XY, {"u"}, {"x*(u_yy/2 - 1.5*u_xx)"}, "u u_x u_y u_yy - 3*u_xx", {-3, 1}},
    {"wave", XT, {"u"}, {"u_tt - 4*u_xx"}, "u u_x u_t u_tt - 4*u_xx", {-4, 1}},
    {"divergence form", XY, {"u"}, {"d(exp(x)*u_x, x) + d(exp(x)*u_y, y)"}, "u u_x u_y lap(u)", {1, 1}},
    {"variable factor", XY, {"u"}, {"(1 + u^2)*u_xx + u_yy*(u^2 + 1)"}, "u u_x u_y lap(u)", {1, 1}},
    {"factor in a quotient", XY, {"u"}, {"2*u_xx/x + u_yy/x"}, "u u_x u_y 2*u_xx + u_yy", {2, 1}},
    {"laplacian of a function", XY, {"u"}, {"lap(u^2)"}, "u u_x u_y lap(u)", {1, 1}},
    {"nonlinear in the sum", XY, {"u"}, {"(u_xx + u_yy)^2 - 1"}, "u u_x u_y lap(u)", {1, 1}},
    {"magnitude of the sum", XY, {"u"}, {"abs(u_xx + u_yy) - 1"}, "u u_x u_y lap(u)", {1, 1}},
    {"time left plain", XYT, {"u"}, {"u*u_tt - lap(u)"}, "u u_x u_y u_t u_tt lap(u)", {1, 1, 0}},
    {"two of three", XYZ, {"u"}, {"u_xx + u_yy + x*u_zz"}, "u u_x u_y u_z u_zz u_xx + u_yy", {1, 1, 0}},
    {"with a mixed derivative", XY, {"u"}, {"u_xx + u_yy + u_xy"}, "u u_x u_y u_xy lap(u)", {1, 1}},
    {"one of three needed elsewhere", XYZ, {"u"}, {"lap(u) + u_xxy"}, "u u_x u_y u_z u_xx u_xy u_xxy u_yy + u_zz", {0, 1, 1}},
    {"only one field has a laplacian", XY, {"u", "v"}, {"lap(u) + v_x", "v_y"}, "u u_x u_y lap(u)", {1, 1}},
    {"monge-ampere", XY, {"u"}, {"u_xx*u_yy - 1"}, "u u_x u_y u_xx u_yy", {0}},
    {"sum and product", XY, {"u"}, {"u_xx + u_yy + u_xx*u_yy"}, "u u_x u_y u_xx u_yy", {0}},
    {"unequal factors", XY, {"u"}, {"x*u_xx + y*u_yy"}, "u u_x u_y u_xx u_yy", {0}},
    {"higher order on both", XY, {"u"}, {"u_xx + u_yy + u_xxy + u_yyx"}, "u u_x u_y u_xx u_xy u_yy u_xxy u_xyy", {0}},
    {"higher order on one", XY, {"u"}, {"u_xx + u_yy + u_xxy"}, "u u_x u_y u_xx u_xy u_yy u_xxy", {0}},
    {"biharmonic", XY, {"u"}, {"lap(lap(u))"}, "u u_x u_y u_xx u_xy u_yy u_xxx u_xxy u_xyy u_yyy u_xxxx u_xxyy u_yyyy", {0}},
    {"two vectors in two fields", XY, {"u", "v"}, {"u_xx + u_yy", "2*v_xx + v_yy"}, "u u_x u_y u_xx u_yy", {0}},
    {"two vectors in two residuals", XY, {"u"}, {"u_xx + u_yy", "u_xx - u_yy"}, "u u_x u_y u_xx u_yy", {0}},
    {"one needed alone by another residual", XY, {"u"}, {"u_xx + u_yy", "u_xx"}, "u u_x u_y u_xx u_yy", {0}},
    {"one needed alone by another field", XY, {"u", "v"}, {"u_xx + u_yy", "v_yy"}, "u u_x u_y u_xx u_yy", {0}},
    {"under a condition", XY, {"u"}, {"u_xx + u_yy + if(u_xx < 0, 1, 2)"}, "u u_x u_y u_xx u_yy", {0}},
    {"under a sign", XY, {"u"}, {"u_xx + u_yy + sign(u_yy)"}, "u u_x u_y u_xx u_yy", {0}},
    {"separate magnitudes", XY, {"u"}, {"abs(u_xx) + abs(u_yy)"}, "u u_x u_y u_xx u_yy", {0}},
};

static size_t length_of(const char *const *list) {
    size_t n = 0;
    while (n < 4 && list[n]) n++;
    return n;
}

static void check_channels(const closure_case *test, const pn_layout *layout) {
    pn_text text = {0};
    for (size_t c = 0; c < layout->count; c++) {
        if (c) pn_text_string(&text, " ");
        pn_channel_print(layout, &layout->channel[c], "u", test->coordinates, test->time, &text);
    }
    ck_assert_str_eq(pn_text_get(&text), test->channels);
    pn_text_free(&text);
    for (size_t i = 0; i < layout->coordinates; i++) ck_assert_double_eq(layout->laplacian[i], test->laplacian[i]);
    ck_assert_uint_eq(layout->coordinates, length_of(test->coordinates));
}

/* Inputs without any relation to each other, but L = sum a_i u_ii of the same field. */
static void fill_inputs(const world *w, const pn_layout *layout, double *input) {
    size_t slots = pn_scope_slots(w->scope);
    for (size_t s = 0; s < slots; s++) input[s] = 0.3 + 0.17 * (double)(s * s % 13);
    for (size_t s = 0; s < slots; s++) {
        pn_slot slot = pn_scope_slot(w->scope, (uint32_t)s);
        if (slot.kind != PN_SLOT_FIELD || !slot.channel.laplacian) continue;
        input[s] = 0;
        for (size_t i = 0; i < layout->coordinates; i++) {
            pn_channel second = {.order = 2, .coordinate = {(uint8_t)i, (uint8_t)i}};
            if (layout->laplacian[i] != 0)
                input[s] += layout->laplacian[i] * input[pn_scope_field_slot(w->scope, slot.index, &second)];
        }
    }
}

/* Every channel a rewritten residual reads must be in the layout. */
static void check_covered(const world *w, const pn_value *residual, size_t count, const pn_layout *layout) {
    size_t slots = pn_scope_slots(w->scope);
    bool *used = calloc(slots, 1);
    for (size_t r = 0; r < count; r++) pn_ir_inputs(w->ir, residual[r], used, slots);
    for (size_t s = 0; s < slots; s++) {
        pn_slot slot = pn_scope_slot(w->scope, (uint32_t)s);
        if (used[s] && slot.kind == PN_SLOT_FIELD) ck_assert_int_ge(pn_layout_find(layout, &slot.channel), 0);
    }
    free(used);
}

START_TEST(closure_carries_what_is_needed) {
    const closure_case *test = &cases[_i];
    size_t count = length_of(test->residuals);
    world w;
    pn_value before[4], after[4];
    pn_layout layout = {0};
    printf("  %s\n", test->name);
    world_open_with(&w, test->coordinates, length_of(test->coordinates), test->time, test->fields, length_of(test->fields));
    for (size_t r = 0; r < count; r++) before[r] = after[r] = world_compile(&w, test->residuals[r]);
    ck_assert_int_eq(pn_expression_closure(w.scope, after, count, &layout), PINN_OK);
    check_channels(test, &layout);
    check_covered(&w, after, count, &layout);
    double input[100];
    fill_inputs(&w, &layout, input); /* may add slots, all of them second derivatives, with values that nothing reads */
    ck_assert_uint_lt(pn_scope_slots(w.scope), 100);
    for (size_t r = 0; r < count; r++) {
        double x = pn_ir_evaluate(w.ir, before[r], input), y = pn_ir_evaluate(w.ir, after[r], input);
        ck_assert_msg(fabs(x - y) <= 1e-12 * (1 + fabs(x)), "residual %zu: %.17g became %.17g", r, x,
                      y); /* tens of operations near 1 */
    }
    if (!layout.channel[layout.count - 1].laplacian)
        for (size_t r = 0; r < count; r++) ck_assert_uint_eq(before[r], after[r]);
    pn_layout_free(&layout);
    world_close(&w);
}
END_TEST

/* lap(u) in many dimensions: one channel, and no time worth mentioning. */
START_TEST(many_dimensions_fold_quickly) {
    size_t n = (size_t[]){10, 100}[_i];
    char name[100][8];
    const char *coordinates[100], *const fields[] = {"u"};
    for (size_t i = 0; i < n; i++) {
        snprintf(name[i], sizeof name[i], "x%zu", i + 101);
        coordinates[i] = name[i];
    }
    world w;
    pn_layout layout = {0};
    world_open_with(&w, coordinates, n, -1, fields, 1);
    clock_t begin = clock();
    pn_value residual = world_compile(&w, "lap(u) + u^2 - 3*lap(u^2)");
    ck_assert_int_eq(pn_expression_closure(w.scope, &residual, 1, &layout), PINN_OK);
    double milliseconds = 1e3 * (double)(clock() - begin) / CLOCKS_PER_SEC;
    printf("  %zu dimensions: %.2f ms\n", n, milliseconds);
    ck_assert_double_lt(milliseconds,
                        1000); /* 100 dimensions take a few ms; the bound only catches quadratic work, on any machine */
    ck_assert_uint_eq(layout.count, n + 2);
    for (size_t i = 0; i < n; i++) ck_assert_double_eq(layout.laplacian[i], 1);
    ck_assert(layout.channel[n + 1].laplacian);
    pn_layout_free(&layout);
    world_close(&w);
}
END_TEST

START_TEST(a_set_without_residuals_carries_the_value) {
    world w;
    pn_layout layout = {0};
    world_open(&w);
    ck_assert_int_eq(pn_expression_closure(w.scope, NULL, 0, &layout), PINN_OK);
    ck_assert_uint_eq(layout.count, 1);
    pn_layout_free(&layout);
    world_close(&w);
}
END_TEST

START_TEST(folding_twice_is_refused) {
    world w;
    pn_layout layout = {0}, again = {0};
    world_open(&w);
    pn_value residual = world_compile(&w, "lap(u)");
    ck_assert_int_eq(pn_expression_closure(w.scope, &residual, 1, &layout), PINN_OK);
    pn_value folded = residual;
    ck_assert_int_eq(pn_expression_closure(w.scope, &residual, 1, &again), PINN_BAD_ARGUMENT);
    ck_assert_uint_eq(residual, folded);
    ck_assert_uint_eq(pn_expression_derivative(w.scope, residual, 0), PN_NONE); /* a Laplacian has no derivative channel */
    residual = PN_NONE;
    ck_assert_int_eq(pn_expression_closure(w.scope, &residual, 1, &again), PINN_BAD_ARGUMENT);
    pn_layout_free(&layout);
    world_close(&w);
}
END_TEST

START_TEST(two_sets_fold_by_themselves) {
    world w;
    pn_layout first = {0}, second = {0};
    world_open(&w);
    pn_value a = world_compile(&w, "2*u_xx + u_yy"), b = world_compile(&w, "u_xx - u_yy");
    ck_assert_int_eq(pn_expression_closure(w.scope, &a, 1, &first), PINN_OK);
    ck_assert_int_eq(pn_expression_closure(w.scope, &b, 1, &second), PINN_OK);
    ck_assert_double_eq(first.laplacian[0], 2);
    ck_assert_double_eq(first.laplacian[1], 1);
    ck_assert_double_eq(second.laplacian[0], 1);
    ck_assert_double_eq(second.laplacian[1], -1);
    pn_layout_free(&first);
    pn_layout_free(&second);
    world_close(&w);
}
END_TEST

/* With the n-th allocation failing, for every n: NO_MEMORY, nothing written, nothing leaked (the sanitizer looks). The check of a
 * fold at trial points does without the points it has no memory for; so the end is where 40 failures in a row don't matter. */
START_TEST(memory_may_run_out_anywhere) {
    int quiet = 0;
    for (long n = 0; quiet < 40; n++) {
        world w;
        pn_layout layout = {.count = 77};
        world_open(&w);
        pn_value residual[2] = {world_compile(&w, "u_t - 0.01*lap(u) + p_x"), world_compile(&w, "u_x + v_y")}, before[2];
        memcpy(before, residual, sizeof before);
        pn_memory_fail_after(n);
        pinn_status status = pn_expression_closure(w.scope, residual, 2, &layout);
        pn_memory_fail_after(-1);
        if (status != PINN_OK) {
            ck_assert_int_eq(status, PINN_NO_MEMORY);
            ck_assert_uint_eq(layout.count, 77);
            ck_assert_mem_eq(before, residual, sizeof before);
        } else { /* nothing lost: u, u_x, u_y, u_t, lap(u) */
            ck_assert_uint_eq(layout.count, 5);
            ck_assert(layout.channel[4].laplacian);
            pn_layout_free(&layout);
        }
        world_close(&w);
        quiet = status == PINN_OK ? quiet + 1 : 0;
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("derivative closure");
    TCase *c = tcase_create("closure");
    tcase_add_loop_test(c, closure_carries_what_is_needed, 0, sizeof cases / sizeof *cases);
    tcase_add_loop_test(c, many_dimensions_fold_quickly, 0, 2);
    tcase_add_test(c, a_set_without_residuals_carries_the_value);
    tcase_add_test(c, folding_twice_is_refused);
    tcase_add_test(c, two_sets_fold_by_themselves);
    tcase_add_test(c, memory_may_run_out_anywhere);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
