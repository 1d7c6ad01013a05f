/* The pointwise IR on random graphs, against an evaluator of this file's own: a list of operations, never simplified, that carries
 * a running error bound, so that tolerances follow from the operations. Simplifying may move roundings, nothing else.
 */
#include <check.h>
#include <math.h>
#include <string.h>

#include "pointwise/ir_internal.h"
#include "suite.h"

static pn_ir *ir;

static void setup(void) { ck_assert_int_eq(pn_ir_create(&ir), PINN_OK); }
static void teardown(void) { pn_ir_destroy(ir); }

/* Its own generator (Knuth's MMIX constants), so that the cases never change. */
static uint64_t random_state;
static uint32_t random_word(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 32);
}
static uint32_t random_below(uint32_t n) { return (uint32_t)(((uint64_t)random_word() * n) >> 32); }
static double random_real(double low, double high) { return low + (high - low) * (random_word() / 4294967296.0); }

/* Its own meaning of the operations, independent of pn_op_apply. */
static double meaning(pn_op op, double a, double b, double k) {
    switch (op) {
    case PN_OP_NEG: return 0 - a;
    case PN_OP_ABS: return a < 0 ? -a : a;
    case PN_OP_SIGN: return a < 0 ? -1 : a > 0 ? 1 : 0;
    case PN_OP_FLOOR: return floor(a);
    case PN_OP_SQRT: return sqrt(a);
    case PN_OP_EXP: return exp(a);
    case PN_OP_EXPM1: return expm1(a);
    case PN_OP_LOG: return log(a);
    case PN_OP_LOG1P: return log1p(a);
    case PN_OP_SIN: return sin(a);
    case PN_OP_COS: return cos(a);
    case PN_OP_TAN: return tan(a);
    case PN_OP_ASIN: return asin(a);
    case PN_OP_ACOS: return acos(a);
    case PN_OP_ATAN: return atan(a);
    case PN_OP_SINH: return sinh(a);
    case PN_OP_COSH: return cosh(a);
    case PN_OP_TANH: return tanh(a);
    case PN_OP_ERF: return erf(a);
    case PN_OP_SOFTPLUS: return a > 30 ? a + exp(-a) : log1p(exp(a));
    case PN_OP_ADD: return a + b;
    case PN_OP_SUB: return a - b;
    case PN_OP_MUL: return a * b;
    case PN_OP_DIV: return a / b;
    case PN_OP_POW: return pow(a, b);
    case PN_OP_ATAN2: return atan2(a, b);
    case PN_OP_MIN: return a < b ? a : b;
    case PN_OP_MAX: return a > b ? a : b;
    case PN_OP_LT: return a < b;
    case PN_OP_LE: return a <= b;
    case PN_OP_EQ: return a == b;
    case PN_OP_SELECT: return a != 0 ? b : k;
    default: return (double)NAN;
    }
}

static pn_value build(pn_op op, pn_value a, pn_value b, pn_value c) {
    int arity = pn_op_arity(op);
    return arity == 1 ? pn_ir_unary(ir, op, a) : arity == 2 ? pn_ir_binary(ir, op, a, b) : pn_ir_select(ir, a, b, c);
}

START_TEST(operations_mean_what_they_say) {
    static const double sample[][3] = {{0.3, 0.7, -1.1}, {0.85, 0.2, 0.6}};
    pn_value x = pn_ir_input(ir, 0), y = pn_ir_input(ir, 1), z = pn_ir_input(ir, 2);
    for (int i = PN_OP_NEG; i < PN_OP_COUNT; i++)
        for (int s = 0; s < 2; s++) {
            pn_op op = (pn_op)i;
            const double *at = sample[s];
            double expected = meaning(op, at[0], at[1], at[2]);
            double constant = (double)NAN;
            ck_assert(
                pn_ir_is_const(ir, build(op, pn_ir_const(ir, at[0]), pn_ir_const(ir, at[1]), pn_ir_const(ir, at[2])), &constant));
            /* Two libm calls of the same function: a few roundings at most. */
            ck_assert_double_eq_tol(constant, expected, 1e-15 * (1 + fabs(expected)));
            ck_assert_double_eq_tol(pn_ir_evaluate(ir, build(op, x, y, z), at), expected, 1e-15 * (1 + fabs(expected)));
        }
    ck_assert_double_eq(pn_op_apply(PN_OP_SOFTPLUS, 800, 0, 0), 800);
    ck_assert_double_eq(pn_op_apply(PN_OP_SOFTPLUS, -800, 0, 0), 0);
    double infinite = 0;
    ck_assert(pn_ir_is_const(ir, pn_ir_div(ir, pn_ir_const(ir, 1), pn_ir_const(ir, 0)), &infinite));
    ck_assert(isinf(infinite));
}
END_TEST

/* ---- random graphs --------------------------------------------------------------------------------------------------------- */

enum { MOST_STEPS = 40, INPUTS = 3 };

typedef struct step { /* operation on earlier steps; the first INPUTS steps are the inputs */
    pn_op op;
    int a, b, c;
    double constant;
} step;

static int random_graph(step *list, bool smooth) {
    static const double constant[] = {0, 1, -1, 2, -2, 0.5, 3, -0.25, 1.7, 10};
    int count = INPUTS + 5 + (int)random_below(MOST_STEPS - INPUTS - 5);
    for (int i = 0; i < count; i++) {
        step *s = &list[i];
        *s = (step){.op = PN_OP_INPUT};
        if (i < INPUTS) continue;
        /* half sums and products: they have the most rules */
        uint32_t kind = random_below(10);
        if (kind == 0)
            s->op = PN_OP_CONST;
        else if (kind < 6)
            s->op = (pn_op)(PN_OP_ADD + (int)random_below(4));
        else if (kind == 6)
            s->op = PN_OP_NEG;
        else
            s->op = (pn_op)(PN_OP_NEG + (int)random_below(PN_OP_COUNT - PN_OP_NEG));
        if (smooth && (s->op == PN_OP_FLOOR || s->op == PN_OP_SIGN)) s->op = PN_OP_TANH;
        s->constant = constant[random_below(sizeof constant / sizeof *constant)];
        s->a = (int)random_below((uint32_t)i);
        s->b = (int)random_below((uint32_t)i);
        s->c = (int)random_below((uint32_t)i);
    }
    return count;
}

/* |df/da| etc. for the error bound: a crude bound over the error interval would need more; near singular points cases are dropped.
 */
static bool step_error(const step *s, const double *v, const double *e, double value, double *error) {
    const double eps = 4.5e-16; /* two roundings: the simplified form may do one more */
    double a = v[s->a], b = v[s->b], ea = e[s->a], eb = e[s->b];
    bool near_tie = s->a != s->b && fabs(a - b) <= ea + eb && ea + eb > 0;
    switch (s->op) {
    case PN_OP_ADD:
    case PN_OP_SUB: *error = ea + eb + eps * (fabs(a) + fabs(b)); return true;
    case PN_OP_MUL: *error = fabs(a) * eb + fabs(b) * ea + ea * eb + eps * fabs(value); return true;
    case PN_OP_DIV: *error = (ea + fabs(value) * eb) / (fabs(b) - eb) + 2 * eps * fabs(value); return fabs(b) > 1e3 * eb && b != 0;
    case PN_OP_LT:
    case PN_OP_LE:
    case PN_OP_EQ: *error = 0; return !near_tie;
    case PN_OP_MIN:
    case PN_OP_MAX: *error = fmax(ea, eb); return true;
    case PN_OP_SELECT: *error = a != 0 ? eb : e[s->c]; return fabs(a) > ea || ea == 0;
    case PN_OP_SIGN: *error = 0; return fabs(a) > ea || ea == 0;
    case PN_OP_FLOOR: *error = 0; return ea == 0 || floor(a - ea) == floor(a + ea);
    case PN_OP_NEG:
    case PN_OP_ABS: *error = ea; return true;
    default: break;
    }
    /* elementary functions: the spread over the error interval, widened; and their own error of a few roundings */
    double da = 4 * ea + 1e-15 * fabs(a), db = 4 * eb + 1e-15 * fabs(b), spread = 0;
    for (int k = 0; k < 4; k++) {
        double other = meaning(s->op, k & 1 ? a + da : a - da, k & 2 ? b + db : b - db, 0);
        if (!isfinite(other)) return false;
        spread = fmax(spread, fabs(other - value));
    }
    *error = spread + 8 * eps * fabs(value);
    return spread <= 1e-6 * (1 + fabs(value)); /* else at a branch cut or a pole */
}

/* Values and error bounds of all steps; false if the case is singular or hangs on a rounding. */
static bool evaluate_list(const step *list, int count, const double *at, double *v, double *e) {
    for (int i = 0; i < count; i++) {
        const step *s = &list[i];
        e[i] = 0;
        if (s->op == PN_OP_INPUT || s->op == PN_OP_CONST) {
            v[i] = s->op == PN_OP_INPUT ? at[i] : s->constant;
            continue;
        }
        v[i] = meaning(s->op, v[s->a], v[s->b], v[s->c]);
        if (!isfinite(v[i]) || fabs(v[i]) > 1e6 || !step_error(s, v, e, v[i], &e[i])) return false;
    }
    return true;
}

static void build_list(const step *list, int count, pn_value *value) {
    for (int i = 0; i < count; i++) {
        const step *s = &list[i];
        if (s->op == PN_OP_INPUT)
            value[i] = pn_ir_input(ir, (uint32_t)i);
        else if (s->op == PN_OP_CONST)
            value[i] = pn_ir_const(ir, s->constant);
        else
            value[i] = build(s->op, value[s->a], value[s->b], value[s->c]);
    }
}

START_TEST(simplified_graphs_keep_their_values) {
    random_state = 1;
    int checked = 0;
    for (int round = 0; round < 20000; round++) {
        step list[MOST_STEPS];
        pn_value value[MOST_STEPS];
        double at[INPUTS], v[MOST_STEPS], e[MOST_STEPS];
        int count = random_graph(list, false);
        for (int i = 0; i < INPUTS; i++) at[i] = random_real(-2, 2);
        if (!evaluate_list(list, count, at, v, e)) continue;
        ir->gather = round % 2; /* the rules while jets differentiate a function */
        build_list(list, count, value);
        for (int i = 0; i < count; i++) {
            double simplified = pn_ir_evaluate(ir, value[i], at);
            ck_assert_msg(fabs(simplified - v[i]) <= 4 * e[i] + 1e-300, "round %d, step %d (%s): %.17g, not %.17g +- %g", round, i,
                          pn_op_text(list[i].op), simplified, v[i], 4 * e[i]);
        }
        checked++;
        if (pn_ir_count(ir) > 1000) { /* a fresh graph now and then; a shared one tests interning harder */
            teardown();
            setup();
        }
    }
    ck_assert_int_gt(checked, 2000);
}
END_TEST

static pn_value direction(void *user, pn_ir *graph, uint32_t slot) {
    const double *v = user;
    return slot < 3 ? pn_ir_const(graph, v[slot]) : PN_NONE;
}

START_TEST(adjoint_agrees_with_tangent) {
    random_state = 2;
    const uint32_t wrt[INPUTS] = {0, 1, 2};
    int checked = 0;
    for (int round = 0; round < 8000; round++) {
        step list[MOST_STEPS];
        pn_value value[MOST_STEPS], gradient[INPUTS];
        double at[INPUTS], v[MOST_STEPS], e[MOST_STEPS], along[INPUTS];
        int count = random_graph(list, true);
        for (int i = 0; i < INPUTS; i++) at[i] = random_real(-2, 2), along[i] = random_real(-1, 1);
        if (!evaluate_list(list, count, at, v, e)) continue;
        teardown();
        setup();
        build_list(list, count, value);
        /* two outputs with seeds 1.5 and -0.75 */
        pn_value out[2] = {value[count - 1], value[count - 2]}, seed[2] = {pn_ir_const(ir, 1.5), pn_ir_const(ir, -0.75)};
        ck_assert_int_eq(pn_ir_adjoint(ir, out, seed, 2, wrt, INPUTS, gradient), PINN_OK);
        double reverse = 0, scale = 0;
        for (int i = 0; i < INPUTS; i++) {
            double term = pn_ir_evaluate(ir, gradient[i], at) * along[i];
            reverse += term;
            scale += fabs(term);
        }
        double forward = 0;
        for (int k = 0; k < 2; k++)
            forward += (k ? -0.75 : 1.5) * pn_ir_evaluate(ir, pn_ir_tangent(ir, out[k], direction, along), at);
        if (!isfinite(forward) || !isfinite(reverse) || scale > 1e6) continue;
        /* Both are sums over the same paths in another order; cancelling paths of size <= 1e6 would show as 1e-10. */
        ck_assert_msg(fabs(forward - reverse) <= 1e-9 * (1 + scale), "round %d: tangent %.17g, adjoint %.17g", round, forward,
                      reverse);
        checked++;
    }
    ck_assert_int_gt(checked, 1000);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("pointwise IR, random graphs");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 120);
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, operations_mean_what_they_say);
    tcase_add_test(all, simplified_graphs_keep_their_values);
    tcase_add_test(all, adjoint_agrees_with_tangent);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
