/* Jets: the chain rule, activations.
 *
 * Compositions are held against truncated Taylor arithmetic in several variables, written here on its own: products of dense
 * polynomials, and the Taylor coefficients of each activation from its differential equation (sigmoid' = sigmoid - sigmoid^2,
 * Phi'' = -z Phi' and so on), none of which the library uses.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "channels.h"
#include "core/memory.h"
#include "pointwise/ir_internal.h"
#include "pointwise/jet.h"
#include "suite.h"

enum { MOST_CHANNELS = 256 };

static pn_ir *ir;

static void setup(void) { ck_assert_int_eq(pn_ir_create(&ir), PINN_OK); }
static void teardown(void) { pn_ir_destroy(ir); }

static uint64_t random_state;
static double random_real(double low, double high) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX constants */
    return low + (high - low) * ((double)(random_state >> 32) / 4294967296.0);
}

/* ---- Taylor arithmetic ----------------------------------------------------------------------------------------------------- */

enum { ORDER = 6, SIDE = ORDER + 1 };

/* Coefficient of x^i y^j z^k, total degree at most ORDER. */
typedef struct taylor {
    double c[SIDE][SIDE][SIDE];
} taylor;

#define FOR_DEGREES(i, j, k)                 \
    for (int i = 0; i <= ORDER; i++)         \
        for (int j = 0; i + j <= ORDER; j++) \
            for (int k = 0; i + j + k <= ORDER; k++)

static taylor taylor_product(const taylor *f, const taylor *g) {
    taylor h = {0};
    FOR_DEGREES(i, j, k)
    FOR_DEGREES(p, q, r)
    if (i + j + k + p + q + r <= ORDER) h.c[i + p][j + q][k + r] += f->c[i][j][k] * g->c[p][q][r];
    return h;
}

/* sum_n s_n w^n, w = z without its constant, s_n the Taylor coefficients of s at that constant. */
static taylor taylor_compose(const double *s, const taylor *z) {
    taylor w = *z, sum = {0};
    w.c[0][0][0] = 0;
    for (int n = ORDER; n >= 0; n--) {
        sum = taylor_product(&sum, &w);
        sum.c[0][0][0] += s[n];
    }
    return sum;
}

static double factorial(int n) { return n < 2 ? 1 : n * factorial(n - 1); }

/* The partial derivative at the origin. */
static double taylor_derivative(const taylor *f, const pn_channel *which) {
    int power[3] = {0, 0, 0};
    for (int k = 0; k < which->order; k++) power[which->coordinate[k]]++;
    return f->c[power[0]][power[1]][power[2]] * factorial(power[0]) * factorial(power[1]) * factorial(power[2]);
}

static double taylor_channel(const taylor *f, const pn_layout *layout, size_t c) {
    if (!layout->channel[c].laplacian) return taylor_derivative(f, &layout->channel[c]);
    double sum = 0;
    for (size_t i = 0; i < layout->coordinates; i++) {
        pn_channel second = {.order = 2, .coordinate = {(uint8_t)i, (uint8_t)i}};
        sum += layout->laplacian[i] * taylor_derivative(f, &second);
    }
    return sum;
}

/* Coefficient n of the product of two series known up to n. */
static double convolve(const double *f, const double *g, int n) {
    double sum = 0;
    for (int k = 0; k <= n; k++) sum += f[k] * g[n - k];
    return sum;
}

/* Taylor coefficients of the activation at z, up to ORDER. */
static void activation_series(const char *name, double z, double *s) {
    const double argument[SIDE] = {z, 1};
    double sigmoid[SIDE + 1] = {1 / (1 + exp(-z))}, normal[SIDE + 1] = {0.5 * erfc(-z / sqrt(2))};
    for (int n = 0; n < ORDER; n++) sigmoid[n + 1] = (sigmoid[n] - convolve(sigmoid, sigmoid, n)) / (n + 1);
    normal[1] = exp(-z * z / 2) / sqrt(2 * acos(-1.0));
    for (int n = 0; n + 2 <= ORDER; n++) /* Phi'' = -z Phi' */
        normal[n + 2] = -(z * (n + 1) * normal[n + 1] + (n ? n * normal[n] : 0)) / ((n + 2) * (n + 1));
    s[0] = tanh(z);
    for (int n = 0; n <= ORDER; n++) {
        if (strcmp(name, "sin") == 0) s[n] = sin(z + n * acos(-1.0) / 2) / factorial(n);
        if (strcmp(name, "silu") == 0) s[n] = convolve(argument, sigmoid, n);
        if (strcmp(name, "gelu") == 0) s[n] = convolve(argument, normal, n);
        if (strcmp(name, "softplus") == 0) s[n] = n ? sigmoid[n - 1] / n : log1p(exp(-fabs(z))) + fmax(z, 0);
        if (strcmp(name, "tanh") == 0 && n < ORDER) s[n + 1] = ((n == 0) - convolve(s, s, n)) / (n + 1);
    }
}

/* ---- composition ----------------------------------------------------------------------------------------------------------- */

/* All derivatives of order up to `order` in `coordinates` coordinates, and the Laplacian with `a` if not NULL. */
static pn_layout full_layout(size_t coordinates, int order, const double *a) {
    pn_channel want[128];
    size_t count = 0;
    ck_assert(order >= 0 && order <= ORDER);
    for (int i = 0; i <= order; i++)
        for (int j = 0; i + j <= (coordinates > 1 ? order : i); j++) {
            int k = order - i - j;
            if ((coordinates < 3 && k > 0) || (coordinates < 2 && j > 0)) continue;
            want[count] = (pn_channel){.order = (uint8_t)(i + j + k)};
            for (int at = i; at < i + j + k; at++) want[count].coordinate[at] = at < i + j ? 1 : 2;
            count++;
        }
    if (a) want[count++] = laplacian_channel;
    pn_layout layout;
    ck_assert_int_eq(pn_layout_create(coordinates, want, count, a, &layout), PINN_OK);
    static const size_t expected[4][SIDE] = {{0}, {1, 2, 3, 4, 5, 6, 7}, {1, 3, 6, 10, 15, 21, 28}, {1, 4, 10, 20, 35, 56, 84}};
    ck_assert_uint_eq(layout.count, expected[coordinates][order] + (a != NULL)); /* binomial(order + coordinates, coordinates) */
    return layout;
}

static taylor random_taylor(double constant) {
    taylor f = {0};
    FOR_DEGREES(i, j, k) f.c[i][j][k] = random_real(-1, 1);
    f.c[0][0][0] = constant;
    return f;
}

/* Inputs 0, 1, ... stand for the channels of f. */
static void jet_inputs(const pn_layout *layout, const taylor *f, pn_value *value, double *at) {
    for (size_t c = 0; c < layout->count; c++) {
        value[c] = pn_ir_input(ir, (uint32_t)c);
        at[c] = taylor_channel(f, layout, c);
    }
}

/* Each channel against the same derivative by Taylor arithmetic. Both are sums of products of a few hundred roundings at most:
 * 1e-12 of the largest channel of the jet leaves a factor of ten. */
static void check_jet(const char *what, const pn_layout *layout, const pn_value *out, const double *at, const taylor *expected) {
    double largest = 0;
    for (size_t c = 0; c < layout->count; c++) largest = fmax(largest, fabs(taylor_channel(expected, layout, c)));
    for (size_t c = 0; c < layout->count; c++) {
        double value = pn_ir_evaluate(ir, out[c], at), wanted = taylor_channel(expected, layout, c);
        ck_assert_msg(fabs(value - wanted) <= 1e-12 * largest, "%s, channel %zu: %.17g, not %.17g (largest %g)", what, c, value,
                      wanted, largest);
    }
}

static void check_compositions(size_t coordinates, int order, const double *a) {
    static const double constant[] = {0, 0.3, -0.8, 1.5, -2.5, 4};
    pn_layout layout = full_layout(coordinates, order, a);
    pn_value z[MOST_CHANNELS], out[MOST_CHANNELS];
    double at[MOST_CHANNELS], s[SIDE + 1];
    for (int n = 0; pn_activation_names[n]; n++)
        for (size_t i = 0; i < sizeof constant / sizeof *constant; i++) {
            taylor f = random_taylor(constant[i]);
            jet_inputs(&layout, &f, z, at);
            ck_assert_int_eq(pn_jet_compose(ir, &layout, pn_activation_find(pn_activation_names[n]), NULL, z, out), PINN_OK);
            activation_series(pn_activation_names[n], constant[i], s);
            taylor expected = taylor_compose(s, &f);
            check_jet(pn_activation_names[n], &layout, out, at, &expected);
        }
    pn_layout_free(&layout);
}

START_TEST(activations_of_one_coordinate) { check_compositions(1, 6, NULL); }
END_TEST
START_TEST(activations_of_two_coordinates) { check_compositions(2, 4, NULL); }
END_TEST
START_TEST(activations_of_three_coordinates) { check_compositions(3, 4, (double[]){1, 0.5, -2}); }
END_TEST
START_TEST(activations_to_order_six) { check_compositions(2, 6, (double[]){0, 3}); }
END_TEST

/* tanh of x: derivatives as polynomials in t = tanh(x). */
START_TEST(closed_forms) {
    pn_layout layout = full_layout(1, 4, NULL);
    pn_value z[5], out[5];
    z[0] = pn_ir_input(ir, 0);
    z[1] = pn_ir_const(ir, 1);
    z[2] = z[3] = z[4] = pn_ir_const(ir, 0);
    ck_assert_int_eq(pn_jet_compose(ir, &layout, pn_activation_find("tanh"), NULL, z, out), PINN_OK);
    for (double at = -6; at <= 6; at += 0.125) {
        double t = tanh(at), d = 1 - t * t;
        const double expected[] = {t, d, -2 * t * d, d * (6 * t * t - 2), d * t * (16 - 24 * t * t)};
        for (int c = 0; c < 5; c++)
            ck_assert_double_eq_tol(pn_ir_evaluate(ir, out[c], &at), expected[c], 1e-14); /* values below 5 */
    }
    pn_layout_free(&layout);
}
END_TEST

static pn_value exponential(void *user, pn_ir *graph, pn_value z) {
    (void)user;
    return pn_ir_unary(graph, PN_OP_EXP, z);
}

/* With all channels of z equal to 1 and s = exp, a channel of order n is e^z times the number of set partitions. */
START_TEST(partitions_are_complete) {
    static const double bell[] = {1, 1, 2, 5, 15, 52, 203, 877, 4140};
    pn_channel want = {.order = PN_MAX_ORDER};
    for (int same = 0; same < 2; same++) {
        for (uint8_t i = 0; i < PN_MAX_ORDER; i++) want.coordinate[i] = same ? 0 : i;
        pn_layout layout;
        ck_assert_int_eq(pn_layout_create(PN_MAX_ORDER, &want, 1, NULL, &layout), PINN_OK);
        ck_assert_uint_eq(layout.count, same ? PN_MAX_ORDER + 1 : 1u << PN_MAX_ORDER);
        pn_value z[MOST_CHANNELS], out[MOST_CHANNELS];
        double at[MOST_CHANNELS];
        for (size_t c = 0; c < layout.count; c++) z[c] = pn_ir_input(ir, (uint32_t)c), at[c] = c ? 1 : 0;
        ck_assert_int_eq(pn_jet_compose(ir, &layout, exponential, NULL, z, out), PINN_OK);
        for (size_t c = 0; c < layout.count; c++) /* integers: exact */
            ck_assert_double_eq(pn_ir_evaluate(ir, out[c], at), bell[layout.channel[c].order]);
        pn_layout_free(&layout);
    }
}
END_TEST

/* z's value may be any expression, one the simplifier takes apart inside s too: sin(-w) is -sin(w). */
START_TEST(argument_is_an_expression) {
    pn_layout layout = full_layout(1, 2, NULL);
    pn_value w = pn_ir_input(ir, 0);
    pn_value older = pn_ir_neg(ir, pn_ir_unary(ir, PN_OP_SIN, w)); /* s(z) is there before z: nothing may be noted of it */
    pn_value z[3] = {pn_ir_neg(ir, w), pn_ir_const(ir, -1), pn_ir_const(ir, 0)}, out[3], one = pn_ir_const(ir, 1), gradient;
    const uint32_t wrt = 0;
    ck_assert_int_eq(pn_jet_compose(ir, &layout, pn_activation_find("sin"), NULL, z, out), PINN_OK);
    const double at[] = {0.4};
    ck_assert_double_eq_tol(pn_ir_evaluate(ir, out[0], at), -sin(0.4), 1e-16);
    ck_assert_double_eq_tol(pn_ir_evaluate(ir, out[1], at), -cos(0.4), 1e-16);
    ck_assert_double_eq_tol(pn_ir_evaluate(ir, out[2], at), sin(0.4), 1e-16);
    ck_assert_uint_eq(out[0], older);
    ck_assert_int_eq(pn_ir_adjoint(ir, &older, &one, 1, &wrt, 1, &gradient), PINN_OK);
    ck_assert_double_eq_tol(pn_ir_evaluate(ir, gradient, at), -cos(0.4), 1e-16);
    pn_layout_free(&layout);
}
END_TEST

/* ---- adjoints -------------------------------------------------------------------------------------------------------------- */

enum { SEED = 64 }; /* first input slot of the seeds; channels stay below it */

/* sum over channels of seed * channel, as training needs it. */
static double weighted_sum(const pn_layout *layout, const pn_value *out, const double *at) {
    double sum = 0;
    for (size_t c = 0; c < layout->count; c++) sum += at[SEED + c] * pn_ir_evaluate(ir, out[c], at);
    return sum;
}

static void check_adjoint(const char *name, double constant) {
    pn_layout layout = full_layout(2, 3, (double[]){1, 0.7});
    pn_value z[SEED], out[SEED], seed[SEED], gradient[SEED];
    uint32_t wrt[SEED];
    double at[2 * SEED];
    taylor f = random_taylor(constant);
    jet_inputs(&layout, &f, z, at);
    for (size_t c = 0; c < layout.count; c++) {
        wrt[c] = (uint32_t)c;
        seed[c] = pn_ir_input(ir, SEED + (uint32_t)c);
        at[SEED + c] = random_real(-1, 1);
    }
    ck_assert_int_eq(pn_jet_compose(ir, &layout, pn_activation_find(name), NULL, z, out), PINN_OK);
    ck_assert_int_eq(pn_ir_adjoint(ir, out, seed, layout.count, wrt, layout.count, gradient), PINN_OK);
    for (size_t c = 0; c < layout.count; c++) {
        /* fourth-order central difference: h^4/30 f5 + 1.5 eps/h |f|, f up to 100 and f5 up to 1e4 here: below 1e-8 */
        const double h = 1e-3, kept = at[c];
        double value[4];
        for (int k = 0; k < 4; k++) {
            at[c] = kept + h * (k < 2 ? k - 2 : k - 1);
            value[k] = weighted_sum(&layout, out, at);
        }
        at[c] = kept;
        double expected = (value[0] - 8 * value[1] + 8 * value[2] - value[3]) / (12 * h);
        double reverse = pn_ir_evaluate(ir, gradient[c], at);
        ck_assert_msg(fabs(reverse - expected) <= 1e-8 * (1 + fabs(expected)), "%s at %g, adjoint of channel %zu: %.15g, not %.15g",
                      name, constant, c, reverse, expected);
    }
    pn_layout_free(&layout);
}

START_TEST(adjoints_of_jets) {
    static const double constant[] = {0, 0.6, -1.2, 3};
    for (int n = 0; pn_activation_names[n]; n++)
        for (int i = 0; i < 4; i++) check_adjoint(pn_activation_names[n], constant[i]);
}
END_TEST

/* tanh(a*z) with a trainable slope a in slot SEED - 1: its derivative by a must not get lost in what is known of s'(z). */
static pn_value adaptive_tanh(void *user, pn_ir *graph, pn_value z) {
    (void)user;
    return pn_ir_unary(graph, PN_OP_TANH, pn_ir_mul(graph, pn_ir_input(graph, SEED - 1), z));
}

START_TEST(functions_with_parameters) {
    pn_layout layout = full_layout(1, 1, NULL);
    pn_value z[2] = {pn_ir_input(ir, 0), pn_ir_input(ir, 1)}, out[2], seed[2] = {pn_ir_const(ir, 1), pn_ir_const(ir, 1)},
             gradient[2];
    const uint32_t wrt[] = {SEED - 1, 0};
    double at[SEED] = {0.3, 0.8}, a = at[SEED - 1] = 1.4, t = tanh(a * at[0]), d = 1 - t * t;
    ck_assert_int_eq(pn_jet_compose(ir, &layout, adaptive_tanh, NULL, z, out), PINN_OK);
    ck_assert_int_eq(pn_ir_adjoint(ir, out, seed, 2, wrt, 2, gradient), PINN_OK);
    /* u + u_x = t + a d z_x */
    ck_assert_double_eq_tol(pn_ir_evaluate(ir, gradient[0], at), d * at[0] + (d - 2 * a * t * d * at[0]) * at[1], 1e-15);
    ck_assert_double_eq_tol(pn_ir_evaluate(ir, gradient[1], at), a * d - 2 * a * a * t * d * at[1], 1e-15);
    pn_layout_free(&layout);
}
END_TEST

/* Operations of some nodes together: sums and products, and all others. */
static void count_operations(const pn_value *value, size_t count, int *arithmetic, int *special) {
    size_t limit = 0;
    bool *reached = pn_ir_reach(ir, value, count, PN_WALK_VALUES, &limit);
    ck_assert_ptr_nonnull(reached);
    *arithmetic = *special = 0;
    for (size_t i = 0; i < limit; i++) {
        pn_op op = pn_ir_node(ir, (pn_value)i)->op;
        if (!reached[i] || pn_op_arity(op) == 0) continue;
        ++*(op == PN_OP_ADD || op == PN_OP_SUB || op == PN_OP_MUL || op == PN_OP_NEG ? arithmetic : special);
    }
    pn_free(reached);
}

/* The heat equation's layer: a rule that stops working shows here, not in any value. */
START_TEST(jets_stay_cheap) {
    static const struct {
        const char *name;
        int value, adjoint, value_special, adjoint_special;
    } most[] = {
        {"tanh", 10, 28, 1, 1}, {"sin", 6, 18, 2, 2}, {"silu", 21, 40, 1, 1}, {"gelu", 20, 36, 2, 2}, {"softplus", 12, 27, 2, 1}};
    const pn_channel want[] = {channel("xx"), channel("y")};
    pn_layout layout;
    ck_assert_int_eq(pn_layout_create(2, want, 2, NULL, &layout), PINN_OK);
    for (int n = 0; n < 5; n++) {
        pn_value z[4], out[4], seed[4], gradient[4];
        const uint32_t wrt[] = {0, 1, 2, 3};
        int arithmetic, special;
        for (uint32_t c = 0; c < 4; c++) z[c] = pn_ir_input(ir, c), seed[c] = pn_ir_input(ir, SEED + c);
        ck_assert_int_eq(pn_jet_compose(ir, &layout, pn_activation_find(most[n].name), NULL, z, out), PINN_OK);
        count_operations(out, 4, &arithmetic, &special);
        ck_assert_int_le(arithmetic, most[n].value);
        ck_assert_int_le(special, most[n].value_special);
        ck_assert_int_eq(pn_ir_adjoint(ir, out, seed, 4, wrt, 4, gradient), PINN_OK);
        count_operations(gradient, 4, &arithmetic, &special);
        ck_assert_int_le(arithmetic, most[n].adjoint);
        ck_assert_int_le(special, most[n].adjoint_special);
    }
    pn_layout_free(&layout);
}
END_TEST

/* Far out, derivatives vanish or settle; nothing may overflow on the way. */
START_TEST(far_arguments_stay_finite) {
    pn_layout layout = full_layout(1, 4, NULL);
    pn_value z[5], out[5], gradient[1], seed[5];
    const uint32_t wrt[] = {0};
    for (uint32_t c = 0; c < 5; c++) z[c] = pn_ir_input(ir, c), seed[c] = pn_ir_const(ir, 1);
    for (int n = 0; pn_activation_names[n]; n++) {
        ck_assert_int_eq(pn_jet_compose(ir, &layout, pn_activation_find(pn_activation_names[n]), NULL, z, out), PINN_OK);
        ck_assert_int_eq(pn_ir_adjoint(ir, out, seed, 5, wrt, 1, gradient), PINN_OK);
        for (int side = -1; side <= 1; side += 2) {
            const double at[] = {side * 1e4, 1, 1, 1, 1};
            for (int c = 0; c < 5; c++) ck_assert(isfinite(pn_ir_evaluate(ir, out[c], at)));
            ck_assert(isfinite(pn_ir_evaluate(ir, gradient[0], at)));
            if (strcmp(pn_activation_names[n], "sin") != 0 &&
                strcmp(pn_activation_names[n], "tanh") != 0) /* then s(z) ~ max(z, 0) */
                ck_assert_double_eq_tol(pn_ir_evaluate(ir, out[1], at), side > 0 ? 1 : 0, 1e-12);
        }
    }
    pn_layout_free(&layout);
}
END_TEST

START_TEST(names_are_found) {
    ck_assert_ptr_null(pn_activation_find("relu"));
    ck_assert_ptr_null(pn_activation_find(""));
    int count = 0;
    for (; pn_activation_names[count]; count++) ck_assert_ptr_nonnull(pn_activation_find(pn_activation_names[count]));
    ck_assert_int_eq(count, 5);
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------------------------------------------- */

static pinn_status use_jets(void) {
    const pn_channel want[] = {channel("xxy"), channel("xyy"), laplacian_channel};
    const double a[] = {1, 1};
    pinn_status status = PINN_OK;
    pn_ir *mine = NULL;
    pn_layout layout = {0};
    pn_value z[16], out[16];
    for (int c = 0; c < 16; c++) out[c] = 7;
    PN_TRY(pn_ir_create(&mine));
    PN_TRY(pn_layout_create(2, want, 3, a, &layout));
    for (size_t c = 0; c < layout.count; c++) z[c] = pn_ir_input(mine, (uint32_t)c);
    status = pn_jet_compose(mine, &layout, pn_activation_find("gelu"), NULL, z, out);
    if (status != PINN_OK) ck_assert_uint_eq(out[0], 7);
fail:
    pn_layout_free(&layout);
    pn_ir_destroy(mine);
    return status;
}

START_TEST(short_memory_is_reported) {
    long n = 0;
    for (;; n++) {
        pn_memory_fail_after(n);
        pinn_status status = use_jets();
        pn_memory_fail_after(-1);
        if (status == PINN_OK) break;
        ck_assert_int_eq(status, PINN_NO_MEMORY);
    }
    ck_assert_int_gt(n, 10);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("jets");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 120);
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, activations_of_one_coordinate);
    tcase_add_test(all, activations_of_two_coordinates);
    tcase_add_test(all, activations_of_three_coordinates);
    tcase_add_test(all, activations_to_order_six);
    tcase_add_test(all, closed_forms);
    tcase_add_test(all, partitions_are_complete);
    tcase_add_test(all, argument_is_an_expression);
    tcase_add_test(all, adjoints_of_jets);
    tcase_add_test(all, functions_with_parameters);
    tcase_add_test(all, jets_stay_cheap);
    tcase_add_test(all, far_arguments_stay_finite);
    tcase_add_test(all, names_are_found);
    tcase_add_test(all, short_memory_is_reported);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
