/* What expressions are worth: precedence, functions, numbers, derivatives, against the same formulas in C. */
#include "support.h"

static const double AT[3] = {0.37, 0.81, 1.21}; /* x, y, t */

/* ---- Constant expressions ---------------------------------------------------------------------------------------------- */

static const struct {
    const char *text;
    double value;
} constant_cases[] = {
    {"-pi^2", -(M_PI *M_PI)},
    {"2^3^2", 512},
    {"(2^3)^2", 64},
    {"-2^2", -4},
    {"(-2)^2", 4},
    {"2^-1", 0.5},
    {"2^-3^0", 0.5},
    {"2^-(3^0)", 0.5},
    {"-2^-2", -0.25},
    {"1-2-3", -4},
    {"1-(2-3)", 2},
    {"8/4/2", 1},
    {"8/(4/2)", 4},
    {"8/4*2", 4},
    {"2*3+4*5", 26},
    {"2+3*4^2", 50},
    {"--2", 2},
    {"---2", -2},
    {"- - -2", -2},
    {"+2", 2},
    {"+-+2", -2},
    {"2*-3", -6},
    {"2--3", 5},
    {"2-+3", -1},
    {"6/-3", -2},
    {"-6/3", -2},
    {"-2*-3", 6},
    {"1 < 2", 1},
    {"2 < 1", 0},
    {"2 <= 2", 1},
    {"3 > 2", 1},
    {"2 >= 3", 0},
    {"1+1 == 2", 1},
    {"1 == 2", 0},
    {"-1 < 1-1", 1},
    {"(1 < 2)*(2 < 3)", 1},
    {"(1 < 2) == 1", 1},
    {"1e-4", 1e-4},
    {"1E+2", 100},
    {"1.5e2", 150},
    {".5", 0.5},
    {"2.", 2},
    {"2.e1", 20},
    {"0.1", 0.1},
    {"007", 7},
    {"0e5", 0},
    {"0.000e-999", 0},
    {"1.7976931348623157e308", 1.7976931348623157e308},
    {"4.9e-324", 4.9e-324},
    {"0.1000000000000000055511151231257827", 0.1},
    {"2*pi", 2 * M_PI},
    {"\t 1 \r\n + \n1 ", 2},
    {"if(1 < 2, 3, 4)", 3},
    {"if(2 < 1, 3, 4)", 4},
    {"if(0, 3, 4)", 4},
    {"pow(2, 10)", 1024},
    {"2^0.5", M_SQRT2},
    {"0^0", 1},
    {"(-8)^3", -512},
    {"10^-2", 0.01},
};

START_TEST(constants_have_the_value_c_gives) {
    double value = -99;
    pn_diagnostics list;
    pn_diagnostics_init(&list, "test.toml", NULL);
    pinn_status status = pn_expression_number(NULL, constant_cases[_i].text, (pn_position){1, 1}, &list, &value);
    ck_assert_msg(status == PINN_OK, "\"%s\": %s", constant_cases[_i].text,
                  list.count ? list.item[0].message : pinn_error_message());
    /* 4 ulp: powers and pi^2 may round differently from the C expression. */
    ck_assert_msg(fabs(value - constant_cases[_i].value) <= 1e-15 * fabs(constant_cases[_i].value), "\"%s\" gives %.17g, not %.17g",
                  constant_cases[_i].text, value, constant_cases[_i].value);
    pn_diagnostics_free(&list);
}
END_TEST

START_TEST(numbers_use_the_constants_of_the_scope) {
    world w;
    double value = 0;
    world_open(&w);
    ck_assert_int_eq(pn_scope_define(w.scope, "half", "alpha/(2*alpha)", (pn_position){9, 1}), PINN_OK);
    ck_assert_int_eq(pn_expression_number(w.scope, "k*half + 1", (pn_position){1, 1}, &w.list, &value), PINN_OK);
    ck_assert_double_eq_tol(value, 2.5, 1e-15);
    value = 7;
    ck_assert_int_eq(pn_expression_number(w.scope, "k*x", (pn_position){1, 1}, &w.list, &value), PINN_CONFIG);
    ck_assert_double_eq(value, 7); /* untouched */
    world_close(&w);
}
END_TEST

/* ---- Formulas ---------------------------------------------------------------------------------------------------------- */

START_TEST(formulas_have_the_value_c_gives) {
    const double x = AT[0], y = AT[1], t = AT[2];
    const struct {
        const char *text;
        double value;
    } cases[] = {
        {"x + y*t", x + y * t},
        {"x - y - t", x - y - t},
        {"x/y/t", x / y / t},
        {"x/y*t", x / y * t},
        {"-x^2", -(x * x)},
        {"x^2^t", pow(x, pow(2, t))},
        {"x^-2", 1 / (x * x)},
        {"x^-y", pow(x, -y)},
        {"x^2.5", pow(x, 2.5)},
        {"2^x", pow(2, x)},
        {"x^100", pow(x, 100)},
        {"-x*-y", x * y},
        {"x--y", x + y},
        {"sin(x)", sin(x)},
        {"cos(x)", cos(x)},
        {"tan(x)", tan(x)},
        {"asin(x)", asin(x)},
        {"acos(x)", acos(x)},
        {"atan(x)", atan(x)},
        {"sinh(x)", sinh(x)},
        {"cosh(x)", cosh(x)},
        {"tanh(x)", tanh(x)},
        {"exp(x)", exp(x)},
        {"expm1(x)", expm1(x)},
        {"log(x)", log(x)},
        {"log1p(x)", log1p(x)},
        {"sqrt(x)", sqrt(x)},
        {"abs(x - y)", fabs(x - y)},
        {"sign(x - y)", -1},
        {"floor(10*x)", 3},
        {"erf(x)", erf(x)},
        {"min(x, y)", x},
        {"max(x, y)", y},
        {"atan2(x, y)", atan2(x, y)},
        {"pow(x, y)", pow(x, y)},
        {"if(x < y, t, 5)", t},
        {"if(x > y, t, 5)", 5},
        {"(x < y) + 2*(x >= y) + 4*(x == x)", 5},
        {"exp(-pi^2*alpha*t)*sin(pi*x)", exp(-(M_PI * M_PI) * 0.4 * t) * sin(M_PI * x)},
        {"nx*x + ny*y", 0.6 * x - 0.8 * y},
        {"k*x", 3 * x},
    };
    world w;
    world_open(&w);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double value = world_evaluate(&w, world_compile(&w, cases[i].text), AT);
        /* A few operations of 1e-16 each; x^100 loses 100 of them by repeated rounding. */
        ck_assert_msg(fabs(value - cases[i].value) <= 2e-14 * fabs(cases[i].value), "\"%s\" gives %.17g, not %.17g", cases[i].text,
                      value, cases[i].value);
    }
    world_close(&w);
}
END_TEST

/* ---- Derivatives ------------------------------------------------------------------------------------------------------- */

static const char *const same_cases[][2] = {
    /* pairs that are the same node or at least the same number */
    {"u_xx", "d(u, x, x)"},
    {"u_xy", "d(u, y, x)"},
    {"u_xyt", "u_tyx"},
    {"d(u_x, t)", "u_xt"},
    {"d(d(u, x), x)", "u_xx"},
    {"lap(u)", "u_xx + u_yy"},
    {"lap(u^2)", "2*u*lap(u) + 2*(u_x^2 + u_y^2)"},
    {"lap(lap(u))", "u_xxxx + 2*u_xxyy + u_yyyy"},
    {"lap(x^2*y)", "2*y"},
    {"dn(u)", "nx*u_x + ny*u_y"},
    {"dn(u*x)", "nx*(u_x*x + u) + ny*u_y*x"},
    {"dn(nx*u)", "nx*dn(u)"},
    {"d(k*u_x, x)", "k*u_xx"},
    {"d(x*u, x)", "u + x*u_x"},
    {"d(u*v, x, y)", "u_xy*v + u_x*v_y + u_y*v_x + u*v_xy"},
    {"d(sin(u), x, x)", "cos(u)*u_xx - sin(u)*u_x^2"},
    {"d(x, x)", "1"},
    {"d(x, t)", "0"},
    {"d(alpha, x)", "0"},
    {"d(exp(x*t), x, t)", "exp(x*t)*(1 + x*t)"},
    {"d(u/v, x)", "(u_x*v - u*v_x)/v^2"},
    {"d(if(x < y, u, v), x)", "if(x < y, u_x, v_x)"},
    {"d(u^3, t)", "3*u^2*u_t"},
    {"d(2^u, x)", "log(2)*2^u*u_x"},
    {"d(u, x, x, x, x, x, x, x, x)", "u_xxxxxxxx"},
};

START_TEST(derivatives_equal_their_closed_forms) {
    world w;
    world_open(&w);
    double a = world_evaluate(&w, world_compile(&w, same_cases[_i][0]), AT),
           b = world_evaluate(&w, world_compile(&w, same_cases[_i][1]), AT);
    /* Tens of operations on numbers of order 1. */
    ck_assert_msg(fabs(a - b) <= 1e-13 * (1 + fabs(b)), "%s = %.17g, %s = %.17g", same_cases[_i][0], a, same_cases[_i][1], b);
    world_close(&w);
}
END_TEST

static const char *const smooth_cases[] = {
    "u",
    "u_t + u*u_x",
    "sin(x*u)*exp(-t)",
    "u^2*v_y/(2 + p)",
    "tanh(u + v*x)",
    "sqrt(3 + u)*log(4 + v_xy)",
    "atan2(u + 2, v + 3)",
    "max(u, v)*min(u_x, 5)",
    "erf(u)*x^3",
    "pow(2 + u, v)",
    "abs(u - 5)",
    "alpha*u_xx - k*lap(v)",
    "dn(u)*t",
};

START_TEST(total_derivatives_match_finite_differences) {
    world w;
    world_open(&w);
    pn_value value = world_compile(&w, smooth_cases[_i]);
    for (unsigned i = 0; i < 3; i++) {
        pn_value derivative = pn_expression_derivative(w.scope, value, i);
        ck_assert_uint_ne(derivative, PN_NONE);
        double step = 1e-5, high[3], low[3];
        memcpy(high, AT, sizeof high);
        memcpy(low, AT, sizeof low);
        high[i] += step;
        low[i] -= step;
        double numeric = (world_evaluate(&w, value, high) - world_evaluate(&w, value, low)) / (2 * step);
        /* Central differences: h^2 = 1e-10 truncation, 1e-16/h = 1e-11 rounding, third derivatives up to some tens. */
        ck_assert_msg(fabs(world_evaluate(&w, derivative, AT) - numeric) <= 2e-8 * (1 + fabs(numeric)),
                      "d(%s)/dx_%u: %.12g, not %.12g", smooth_cases[_i], i, world_evaluate(&w, derivative, AT), numeric);
    }
    world_close(&w);
}
END_TEST

START_TEST(equal_texts_are_one_node) {
    world w;
    world_open(&w);
    ck_assert_uint_eq(world_compile(&w, "u_t - alpha*u_xx"), world_compile(&w, " u_t-(alpha * d(u,x,x))"));
    ck_assert_uint_eq(world_compile(&w, "u_xx + u_yy"), world_compile(&w, "lap(u)"));
    world_close(&w);
}
END_TEST

START_TEST(slots_say_what_they_are) {
    world w;
    world_open(&w);
    ck_assert_uint_eq(pn_scope_slots(w.scope), 6);
    world_compile(&w, "v_ty");
    ck_assert_uint_eq(pn_scope_slots(w.scope), 7);
    pn_slot slot = pn_scope_slot(w.scope, 6);
    ck_assert_int_eq(slot.kind, PN_SLOT_FIELD);
    ck_assert_uint_eq(slot.index, 1);
    ck_assert_uint_eq(slot.channel.order, 2);
    ck_assert_uint_eq(slot.channel.coordinate[0], 1);
    ck_assert_uint_eq(slot.channel.coordinate[1], 2);
    ck_assert_uint_eq(pn_scope_field_slot(w.scope, 1, &slot.channel), 6);
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_int_eq(pn_scope_slot(w.scope, i).kind, PN_SLOT_COORDINATE);
        ck_assert_uint_eq(pn_scope_slot(w.scope, i).index, i);
        ck_assert_int_eq(pn_scope_slot(w.scope, 3 + i).kind, PN_SLOT_NORMAL);
        ck_assert_uint_eq(pn_scope_slot(w.scope, 3 + i).index, i);
    }
    world_close(&w);
}
END_TEST

START_TEST(has_field_looks_through_definitions) {
    world w;
    world_open(&w);
    ck_assert_int_eq(pn_scope_define(w.scope, "flux", "alpha*u_x", (pn_position){9, 1}), PINN_OK);
    ck_assert(pn_expression_has_field(w.scope, world_compile(&w, "1 + d(flux, x)")));
    ck_assert(pn_expression_has_field(w.scope, world_compile(&w, "dn(v)")));
    ck_assert(!pn_expression_has_field(w.scope, world_compile(&w, "x + nx*alpha")));
    ck_assert(!pn_expression_has_field(w.scope, world_compile(&w, "u - u")));
    world_close(&w);
}
END_TEST

START_TEST(coordinates_may_have_several_letters) {
    static const char *const coordinates[] = {"x1", "x2", "theta"}, *const fields[] = {"u", "u_n"};
    world w;
    world_open_with(&w, coordinates, 3, -1, fields, 2);
    ck_assert_uint_eq(world_compile(&w, "u_x1x2theta"), world_compile(&w, "d(u, theta, x2, x1)"));
    ck_assert_uint_eq(world_compile(&w, "u_n_x1"), world_compile(&w, "d(u_n, x1)"));
    ck_assert_uint_eq(world_compile(&w, "nx1*u_n_x1 + nx2*u_n_x2 + ntheta*u_n_theta"), world_compile(&w, "dn(u_n)"));
    double in[3] = {0.1, 0.2, 0.3};
    /* Without time lap runs over all coordinates. */
    ck_assert_double_eq_tol(world_evaluate(&w, world_compile(&w, "lap(u)"), in),
                            world_evaluate(&w, world_compile(&w, "u_x1x1 + u_x2x2 + u_thetatheta"), in), 1e-14);
    world_close(&w);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("expression values");
    TCase *c = tcase_create("values");
    tcase_add_loop_test(c, constants_have_the_value_c_gives, 0, sizeof constant_cases / sizeof *constant_cases);
    tcase_add_test(c, numbers_use_the_constants_of_the_scope);
    tcase_add_test(c, formulas_have_the_value_c_gives);
    tcase_add_loop_test(c, derivatives_equal_their_closed_forms, 0, sizeof same_cases / sizeof *same_cases);
    tcase_add_loop_test(c, total_derivatives_match_finite_differences, 0, sizeof smooth_cases / sizeof *smooth_cases);
    tcase_add_test(c, equal_texts_are_one_node);
    tcase_add_test(c, slots_say_what_they_are);
    tcase_add_test(c, has_field_looks_through_definitions);
    tcase_add_test(c, coordinates_may_have_several_letters);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
