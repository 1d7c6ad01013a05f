/* The pointwise IR: interning, simplification, derivatives, depth, memory faults. Random graphs are in test_ir_random.c. */
#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "pointwise/ir.h"
#include "suite.h"

static pn_ir *ir;
static pn_value x, y, z;

static void setup(void) {
    ck_assert_int_eq(pn_ir_create(&ir), PINN_OK);
    x = pn_ir_input(ir, 0);
    y = pn_ir_input(ir, 1);
    z = pn_ir_input(ir, 2);
}

static void teardown(void) { pn_ir_destroy(ir); }

/* Short names: the tests below read as formulas. */
static pn_value c(double value) { return pn_ir_const(ir, value); }
static pn_value add(pn_value a, pn_value b) { return pn_ir_add(ir, a, b); }
static pn_value sub(pn_value a, pn_value b) { return pn_ir_sub(ir, a, b); }
static pn_value mul(pn_value a, pn_value b) { return pn_ir_mul(ir, a, b); }
static pn_value quo(pn_value a, pn_value b) { return pn_ir_div(ir, a, b); }
static pn_value neg(pn_value a) { return pn_ir_neg(ir, a); }
static pn_value fun(pn_op op, pn_value a) { return pn_ir_unary(ir, op, a); }
static pn_value bin(pn_op op, pn_value a, pn_value b) { return pn_ir_binary(ir, op, a, b); }
static pn_value sel(pn_value k, pn_value a, pn_value b) { return pn_ir_select(ir, k, a, b); }

#define SAME(a, b)                                                                               \
    do {                                                                                         \
        pn_value same_a = (a), same_b = (b);                                                     \
        ck_assert_msg(same_a == same_b, "%s is node %u, %s is node %u", #a, same_a, #b, same_b); \
    } while (0)

/* ---- construction ---------------------------------------------------------------------------------------------------------- */

START_TEST(equal_nodes_are_one) {
    SAME(mul(x, y), mul(y, x));
    SAME(add(x, y), add(y, x));
    SAME(bin(PN_OP_MIN, x, y), bin(PN_OP_MIN, y, x));
    SAME(bin(PN_OP_EQ, x, y), bin(PN_OP_EQ, y, x));
    ck_assert_uint_ne(bin(PN_OP_LT, x, y), bin(PN_OP_LT, y, x));
    ck_assert_uint_ne(sub(x, y), sub(y, x));
    SAME(c(0.0), c(-0.0));
    SAME(c((double)NAN), c(-(double)NAN));
    SAME(pn_ir_input(ir, 1), y);
    size_t count = pn_ir_count(ir);
    pn_value built = 0;
    for (int i = 0; i < 2; i++) {
        built = add(fun(PN_OP_SIN, mul(x, y)), mul(c(3), quo(x, add(y, z))));
        if (i == 0) ck_assert_uint_gt(pn_ir_count(ir), count);
        if (i == 0) count = pn_ir_count(ir);
    }
    ck_assert_uint_eq(pn_ir_count(ir), count);
    for (pn_value i = 0; i <= built; i++) {
        const pn_node *node = pn_ir_node(ir, i);
        if (pn_op_arity(node->op) > 0) ck_assert_uint_lt(node->a, i);
        if (pn_op_arity(node->op) > 1) ck_assert_uint_lt(node->b, i);
    }
}
END_TEST

START_TEST(sums_are_simplified) {
    SAME(add(x, c(0)), x);
    SAME(sub(x, c(0)), x);
    SAME(sub(c(0), x), neg(x));
    SAME(sub(x, x), c(0));
    SAME(neg(neg(x)), x);
    SAME(sub(x, neg(y)), add(x, y));
    SAME(add(x, neg(y)), sub(x, y));
    SAME(add(neg(x), y), sub(y, x));
    SAME(sub(neg(x), y), neg(add(x, y)));
    SAME(neg(sub(x, y)), sub(y, x));
    SAME(add(x, x), mul(c(2), x));
    SAME(add(mul(c(2), x), x), mul(c(3), x));
    SAME(sub(mul(c(2), x), x), x);
    SAME(sub(mul(x, y), mul(y, x)), c(0));
    SAME(add(c(1), add(c(2), x)), add(c(3), x));
    SAME(sub(c(1), sub(c(2), x)), add(c(-1), x));
    SAME(sub(x, c(2)), add(c(-2), x));
    SAME(add(mul(c(2), x), mul(c(2), y)), mul(c(2), add(x, y)));
    SAME(sub(mul(c(2), x), mul(c(2), y)), mul(c(2), sub(x, y)));
    SAME(add(x, sub(x, y)), sub(mul(c(2), x), y));
    SAME(sub(x, add(x, y)), neg(y));
    SAME(sub(sub(x, y), x), neg(y));
    SAME(add(x, sub(y, x)), y);
    SAME(sub(add(mul(c(3), x), y), x), add(mul(c(2), x), y));
    SAME(add(x, mul(c(-2), y)), sub(x, mul(c(2), y)));
    SAME(sub(x, mul(c(-2), y)), add(x, mul(c(2), y)));
}
END_TEST

START_TEST(products_are_simplified) {
    SAME(mul(x, c(0)), c(0));
    SAME(mul(x, c(1)), x);
    SAME(mul(x, c(-1)), neg(x));
    SAME(mul(neg(x), y), neg(mul(x, y)));
    SAME(mul(neg(x), neg(y)), mul(x, y));
    SAME(mul(c(2), mul(c(3), x)), mul(c(6), x));
    SAME(mul(mul(c(2), x), mul(c(3), y)), mul(c(6), mul(x, y)));
    SAME(neg(mul(c(2), x)), mul(c(-2), x));
    SAME(mul(c(3), mul(mul(c(2), x), y)), mul(c(6), mul(x, y)));
    SAME(mul(c(3), mul(c(1.0 / 3), x)), x);
    SAME(mul(c(49), mul(c(1 / 49.0), x)), x);                              /* though 49 * (1/49) rounds below 1 */
    ck_assert_int_eq(pn_ir_node(ir, mul(mul(c(2), x), y))->op, PN_OP_MUL); /* 2*x may be shared: it stays */
    ck_assert_uint_ne(pn_ir_node(ir, mul(mul(c(2), x), y))->a, c(2));
    SAME(quo(x, c(1)), x);
    SAME(quo(x, c(4)), mul(c(0.25), x));
    SAME(quo(c(0), x), c(0));
    SAME(quo(x, x), c(1));
    SAME(quo(neg(x), y), neg(quo(x, y)));
    SAME(quo(x, neg(y)), neg(quo(x, y)));
    SAME(quo(mul(x, y), y), x);
    SAME(mul(quo(x, y), y), x);
    SAME(quo(x, mul(c(2), y)), mul(c(0.5), quo(x, y)));
    SAME(quo(c(1), quo(c(1), x)), x);
    SAME(mul(fun(PN_OP_SQRT, x), fun(PN_OP_SQRT, x)), x);
    /* Constants whose product leaves float32's range stay apart. */
    ck_assert_int_eq(pn_ir_node(ir, pn_ir_node(ir, mul(c(1e-30), mul(c(1e-30), x)))->b)->op, PN_OP_MUL);
    ck_assert_int_eq(pn_ir_node(ir, mul(c(1e-200), mul(c(1e-200), x)))->op, PN_OP_MUL);
    ck_assert_int_eq(pn_ir_node(ir, quo(x, c(1e-40)))->op, PN_OP_DIV);
}
END_TEST

START_TEST(functions_are_simplified) {
    SAME(bin(PN_OP_POW, x, c(2)), mul(x, x));
    SAME(bin(PN_OP_POW, x, c(3)), mul(x, mul(x, x)));
    SAME(bin(PN_OP_POW, x, c(-1)), quo(c(1), x));
    SAME(bin(PN_OP_POW, x, c(0.5)), fun(PN_OP_SQRT, x));
    SAME(bin(PN_OP_POW, x, c(1.5)), mul(x, fun(PN_OP_SQRT, x)));
    SAME(bin(PN_OP_POW, x, c(0)), c(1));
    SAME(fun(PN_OP_SIN, neg(x)), neg(fun(PN_OP_SIN, x)));
    SAME(fun(PN_OP_TANH, mul(c(-2), x)), neg(fun(PN_OP_TANH, mul(c(2), x))));
    SAME(fun(PN_OP_COS, neg(x)), fun(PN_OP_COS, x));
    SAME(fun(PN_OP_ABS, mul(x, x)), mul(x, x));
    ck_assert_uint_ne(fun(PN_OP_ABS, bin(PN_OP_POW, x, y)), bin(PN_OP_POW, x, y)); /* (-2)^3 */
    SAME(fun(PN_OP_SQRT, mul(x, x)), fun(PN_OP_ABS, x));
    SAME(fun(PN_OP_LOG, fun(PN_OP_EXP, x)), x);
    SAME(mul(fun(PN_OP_SIGN, x), x), fun(PN_OP_ABS, x));
    SAME(bin(PN_OP_MAX, x, x), x);
    SAME(bin(PN_OP_LT, x, x), c(0));
    SAME(bin(PN_OP_LE, x, x), c(1));
    SAME(sel(c(1), x, y), x);
    SAME(sel(c(0), x, y), y);
    SAME(sel(z, x, x), x);
    SAME(sel(z, sel(z, x, y), y), sel(z, x, y));
    pn_value less = bin(PN_OP_LT, x, y);
    SAME(sel(less, c(1), c(0)), less);
    SAME(mul(less, less), less);
    SAME(add(sel(less, x, c(0)), sel(less, c(0), y)), sel(less, x, y));
    SAME(mul(less, z), sel(less, z, c(0)));
    SAME(mul(sel(less, x, c(0)), z), sel(less, mul(x, z), c(0)));
}
END_TEST

static pn_value build(pn_op op, pn_value a, pn_value b, pn_value k) {
    int arity = pn_op_arity(op);
    return arity == 1 ? fun(op, a) : arity == 2 ? bin(op, a, b) : sel(a, b, k);
}

/* Operands inside every function's domain and away from kinks; a second set with the order of a and b swapped for min and max. */
static const double sample[][3] = {{0.3, 0.7, -1.1}, {0.85, 0.2, 0.6}};

START_TEST(integer_powers) {
    const double at[] = {1.3, 0, 0};
    for (int n = -20; n <= 20; n++) {
        double expected = pow(1.3, n);
        /* |n| - 1 products at most, half a rounding each */
        ck_assert_double_eq_tol(pn_ir_evaluate(ir, pn_ir_power(ir, x, n), at), expected, 20 * 2.3e-16 * expected);
    }
    SAME(pn_ir_power(ir, x, 0), c(1));
    SAME(pn_ir_power(ir, x, 1), x);
    SAME(pn_ir_power(ir, x, 2), mul(x, x));
}
END_TEST

static pn_value replace_x_by_y_squared(void *user, pn_ir *graph, uint32_t slot) {
    (void)user;
    return slot == 0 ? pn_ir_mul(graph, y, y) : PN_NONE;
}

START_TEST(substitution_and_inputs) {
    pn_value f = add(fun(PN_OP_SIN, x), mul(x, z));
    SAME(pn_ir_substitute(ir, f, replace_x_by_y_squared, NULL), add(fun(PN_OP_SIN, mul(y, y)), mul(mul(y, y), z)));
    pn_value g = fun(PN_OP_COS, z);
    SAME(pn_ir_substitute(ir, g, replace_x_by_y_squared, NULL), g);
    bool used[3] = {false, false, false};
    pn_ir_inputs(ir, f, used, 3);
    ck_assert(used[0] && !used[1] && used[2]);
}
END_TEST

START_TEST(a_node_can_be_replaced) {
    const pn_value s = fun(PN_OP_SIN, x), f = mul(s, add(y, fun(PN_OP_EXP, s)));
    SAME(pn_ir_replace(ir, f, s, z), mul(z, add(y, fun(PN_OP_EXP, z)))); /* wherever it stands */
    SAME(pn_ir_replace(ir, f, f, z), z);
    SAME(pn_ir_replace(ir, f, fun(PN_OP_COS, x), z), f);
    SAME(pn_ir_replace(ir, mul(x, y), x, s), mul(s, y)); /* the x in what replaces it stays */
    SAME(pn_ir_replace(ir, add(s, y), s, c(0)), y);      /* simplified anew */
    bool used[3] = {false, false, false};
    pn_ir_inputs(ir, pn_ir_replace(ir, f, s, z), used, 3);
    ck_assert(!used[0] && used[1] && used[2]);
    ck_assert_int_eq(pn_ir_check(ir), PINN_OK);
}
END_TEST

START_TEST(a_lone_elementary_function_is_found) {
    const pn_value t = fun(PN_OP_TANH, add(x, y)), power = bin(PN_OP_POW, x, y), angle = bin(PN_OP_ATAN2, x, y), root = fun(PN_OP_SQRT, x);
    const pn_value one[] = {mul(t, t), sub(c(1), mul(t, z)), z};
    SAME(pn_ir_lone_special(ir, one, 3), t);
    SAME(pn_ir_lone_special(ir, &one[2], 1), PN_NONE); /* none at all */
    SAME(pn_ir_lone_special(ir, one, 0), PN_NONE);
    SAME(pn_ir_lone_special(ir, &power, 1), power);
    SAME(pn_ir_lone_special(ir, &angle, 1), angle);
    SAME(pn_ir_lone_special(ir, &root, 1), root);
    const pn_value plain = sel(bin(PN_OP_LT, x, y), fun(PN_OP_ABS, x), quo(fun(PN_OP_FLOOR, y), z));
    SAME(pn_ir_lone_special(ir, &plain, 1), PN_NONE);
    const pn_value apart[] = {mul(t, y), fun(PN_OP_SIN, x)}, nested = fun(PN_OP_EXP, t), other = add(t, fun(PN_OP_TANH, x));
    SAME(pn_ir_lone_special(ir, apart, 2), PN_NONE); /* two, each in a value of its own */
    SAME(pn_ir_lone_special(ir, apart, 1), t);
    SAME(pn_ir_lone_special(ir, &nested, 1), PN_NONE);
    SAME(pn_ir_lone_special(ir, &other, 1), PN_NONE); /* the same function of something else */
    pn_memory_fail_after(0);
    const pn_value unknown = pn_ir_lone_special(ir, one, 3);
    pn_memory_fail_after(-1);
    SAME(unknown, PN_NONE);
}
END_TEST

START_TEST(text_names_shared_nodes) {
    pn_value t = fun(PN_OP_TANH, x), out[] = {mul(t, sub(c(1), mul(t, t))), bin(PN_OP_MAX, y, c(-2))};
    pn_text text = {0};
    pn_ir_print(ir, out, 2, NULL, NULL, &text);
    char expected[200];
    snprintf(expected, sizeof expected, "let v%u = tanh(in0)\nout0 = v%u * (1 - (v%u * v%u))\nout1 = max((-2), in1)\n", t, t, t, t);
    ck_assert_str_eq(pn_text_get(&text), expected);
    pn_text_free(&text);
}
END_TEST

/* ---- derivatives ----------------------------------------------------------------------------------------------------------- */

static pn_value direction(void *user, pn_ir *graph, uint32_t slot) {
    const double *v = user;
    return slot < 3 ? pn_ir_const(graph, v[slot]) : PN_NONE;
}

/* Fourth-order central difference: error h^4/30 f''''' + 1.5*eps/h |f|, below 1e-10 for the functions and points here,
 * whose fifth derivatives stay below 1e6 (asin'' at 0.85 is the worst). */
static double difference(pn_value f, const double *at, int i) {
    const double h = 2e-4;
    double p[3], value[4];
    for (int k = 0; k < 4; k++) {
        memcpy(p, at, sizeof p);
        p[i] += h * (k < 2 ? k - 2 : k - 1);
        value[k] = pn_ir_evaluate(ir, f, p);
    }
    return (value[0] - 8 * value[1] + 8 * value[2] - value[3]) / (12 * h);
}

/* Gradient of f by both sweeps, checked against each other and against `expected`. */
static void check_gradient(const char *name, pn_value f, const double *at, const double *expected, double tolerance) {
    const uint32_t wrt[] = {0, 1, 2};
    pn_value gradient[3], one = c(1);
    ck_assert_int_eq(pn_ir_adjoint(ir, &f, &one, 1, wrt, 3, gradient), PINN_OK);
    for (int i = 0; i < 3; i++) {
        double v[3] = {0, 0, 0};
        v[i] = 1;
        double forward = pn_ir_evaluate(ir, pn_ir_tangent(ir, f, direction, v), at);
        double reverse = pn_ir_evaluate(ir, gradient[i], at);
        ck_assert_msg(fabs(forward - expected[i]) <= tolerance * (1 + fabs(expected[i])), "%s, tangent by %d: %.17g, not %.17g",
                      name, i, forward, expected[i]);
        ck_assert_msg(fabs(reverse - expected[i]) <= tolerance * (1 + fabs(expected[i])), "%s, adjoint by %d: %.17g, not %.17g",
                      name, i, reverse, expected[i]);
    }
}

START_TEST(derivatives_of_every_operation) {
    for (int i = PN_OP_NEG; i < PN_OP_COUNT; i++)
        for (int s = 0; s < 2; s++) {
            pn_value f = build((pn_op)i, x, y, z);
            double expected[3];
            for (int k = 0; k < 3; k++) expected[k] = difference(f, sample[s], k);
            check_gradient(pn_op_text((pn_op)i), f, sample[s], expected, 1e-9);
            /* and once more: the derivatives' own derivatives, of the first operand */
            double v[3] = {1, 0, 0};
            pn_value first = pn_ir_tangent(ir, f, direction, v);
            for (int k = 0; k < 3; k++) expected[k] = difference(first, sample[s], k);
            check_gradient(pn_op_text((pn_op)i), first, sample[s], expected, 1e-9);
        }
}
END_TEST

START_TEST(derivatives_at_special_points) {
    const double zero[] = {0, 0, 0}, negative[] = {-1, 0, 0}, big[] = {800, 0, 0}, small[] = {-800, 0, 0};
    check_gradient("softplus at 0", fun(PN_OP_SOFTPLUS, x), zero, (double[]){0.5, 0, 0}, 0);
    check_gradient("softplus far out", fun(PN_OP_SOFTPLUS, x), big, (double[]){1, 0, 0}, 0);
    check_gradient("softplus far left", fun(PN_OP_SOFTPLUS, x), small, (double[]){0, 0, 0}, 0);
    check_gradient("x^2.25 at 0", bin(PN_OP_POW, x, c(2.25)), zero, (double[]){0, 0, 0}, 0);
    check_gradient("x^y at x = 0", bin(PN_OP_POW, x, y), (double[]){0, 3, 0}, (double[]){0, 0, 0}, 0);
    check_gradient("relu below 0", bin(PN_OP_MAX, x, c(0)), negative, (double[]){0, 0, 0}, 0);
    check_gradient("relu above 0", bin(PN_OP_MAX, x, c(0)), (double[]){2, 0, 0}, (double[]){1, 0, 0}, 0);
    /* sqrt(x) is NaN where the condition excludes it, and must not spoil the adjoint. */
    pn_value positive = bin(PN_OP_LT, c(0), x), root = fun(PN_OP_SQRT, x);
    pn_value guarded = sel(positive, mul(fun(PN_OP_LOG, x), root), mul(x, x));
    check_gradient("guarded sqrt", guarded, negative, (double[]){-2, 0, 0}, 0);
    pn_value twice = sel(bin(PN_OP_LT, c(0.5), x), sel(positive, fun(PN_OP_SQRT, fun(PN_OP_LOG, x)), c(0)), c(0));
    check_gradient("twice guarded", twice, negative, (double[]){0, 0, 0}, 0);
}
END_TEST

START_TEST(adjoint_follows_only_what_matters) {
    pn_value f = x, one = c(1), gradient[2];
    const uint32_t wrt[] = {1, 9};
    for (int i = 0; i < 100; i++) f = fun(PN_OP_SIN, add(f, z));
    f = mul(f, y);
    size_t count = pn_ir_count(ir);
    ck_assert_int_eq(pn_ir_adjoint(ir, &f, &one, 1, wrt, 2, gradient), PINN_OK);
    ck_assert_uint_le(pn_ir_count(ir), count + 2); /* input 9 and the constant 0: the hundred cosines are not built */
    SAME(gradient[0], pn_ir_node(ir, f)->a == y ? pn_ir_node(ir, f)->b : pn_ir_node(ir, f)->a);
    SAME(gradient[1], c(0));
}
END_TEST

/* ---- depth and memory ------------------------------------------------------------------------------------------------------ */

enum { DEEP = 100000 };

/* A chain through every operation, values kept near 1. */
static pn_value deep_chain(void) {
    pn_value v = x;
    for (int i = 0; i < DEEP / 8; i++) {
        pn_value less = bin(PN_OP_LT, v, c(i % 7));
        v = fun(PN_OP_SIN, add(v, y));
        v = sub(c(1), neg(mul(v, y)));
        v = sel(less, quo(v, add(c(3), mul(v, v))), c(0));
        v = bin(PN_OP_MAX, neg(sub(v, x)), z);
    }
    return v;
}

static pn_value sum_of_inputs(void *user, pn_ir *graph, uint32_t slot) {
    (void)user;
    return slot == 0 ? pn_ir_add(graph, x, y) : PN_NONE;
}

static void *walk_deep(void *result) {
    const uint32_t wrt[] = {0, 1, 2};
    const double at[] = {0.4, 0.9, -0.2};
    double v[] = {1, 0, 0};
    pn_value f = deep_chain(), one = c(1), gradient[3];
    bool *ok = result;
    *ok = pn_ir_count(ir) > DEEP && isfinite(pn_ir_evaluate(ir, f, at));
    pn_value forward = pn_ir_tangent(ir, f, direction, v);
    *ok = *ok && pn_ir_adjoint(ir, &f, &one, 1, wrt, 3, gradient) == PINN_OK;
    double a = pn_ir_evaluate(ir, forward, at), b = pn_ir_evaluate(ir, gradient[0], at);
    *ok = *ok && fabs(a - b) <= 1e-9 * (1 + fabs(a));
    *ok = *ok && pn_ir_substitute(ir, f, sum_of_inputs, NULL) != PN_NONE;
    pn_text text = {0};
    pn_ir_print(ir, gradient, 3, NULL, NULL, &text);
    *ok = *ok && pn_text_check(&text) == PINN_OK && text.length > DEEP;
    pn_text_free(&text);
    /* chains of one kind: masks of masks, signs, sums, products */
    pn_value nested = y, signs = x, product = x;
    for (int i = 0; i < DEEP; i++) {
        nested = sel(i % 2 ? bin(PN_OP_LT, pn_ir_input(ir, 10 + (uint32_t)i), x) : pn_ir_input(ir, 10 + (uint32_t)i), nested, c(0));
        signs = sub(neg(signs), mul(c(-1e30), pn_ir_input(ir, 10 + (uint32_t)i)));
        product = mul(c(1e30), product);
    }
    *ok = *ok && mul(nested, neg(signs)) != PN_NONE && mul(product, signs) != PN_NONE && pn_ir_check(ir) == PINN_OK;
    return NULL;
}

START_TEST(depth_needs_no_stack) {
    pthread_attr_t attributes;
    pthread_t thread;
    bool ok = false;
    ck_assert_int_eq(pthread_attr_init(&attributes), 0);
    ck_assert_int_eq(pthread_attr_setstacksize(&attributes, 256 * 1024), 0); /* 2.6 bytes a node */
    ck_assert_int_eq(pthread_create(&thread, &attributes, walk_deep, &ok), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attributes);
    ck_assert(ok);
}
END_TEST

static pn_value keep(void *user, pn_ir *graph, uint32_t slot) {
    (void)user, (void)graph, (void)slot;
    return PN_NONE;
}

/* Everything that allocates, once. */
static pinn_status use_everything(void) {
    const uint32_t wrt[] = {0, 1, 2};
    double v[] = {1, 2, 3}, at[] = {0.1, 0.2, 0.3};
    pinn_status status;
    pn_ir *mine = NULL;
    if ((status = pn_ir_create(&mine)) != PINN_OK) return status;
    pn_value f = pn_ir_input(mine, 0), gradient[3] = {7, 7, 7};
    for (uint32_t i = 1; i < 200; i++) {
        f = pn_ir_unary(mine, PN_OP_SIN, pn_ir_add(mine, f, pn_ir_input(mine, i % 3)));
        f = pn_ir_select(mine, pn_ir_binary(mine, PN_OP_LT, f, pn_ir_const(mine, i)), pn_ir_power(mine, f, -3),
                         pn_ir_const(mine, 0));
    }
    pn_value d = pn_ir_tangent(mine, f, direction, v), one = pn_ir_const(mine, 1);
    pn_value s = pn_ir_substitute(mine, f, keep, NULL);
    bool used[3] = {false, false, false};
    pn_ir_inputs(mine, f, used, 3);
    if (f != PN_NONE) ck_assert(used[0] && used[1] && used[2]);
    (void)pn_ir_evaluate(mine, f, at);
    status = pn_ir_adjoint(mine, &f, &one, 1, wrt, 3, gradient);
    if (status == PINN_OK) {
        status = pn_ir_check(mine);
        ck_assert(status != PINN_OK || (d != PN_NONE && s == f));
    } else
        ck_assert(gradient[0] == 7 && gradient[1] == 7 && gradient[2] == 7);
    pn_text text = {0};
    pn_ir_print(mine, &f, 1, NULL, NULL, &text);
    if (status == PINN_OK) status = pn_text_check(&text);
    pn_text_free(&text);
    pn_ir_destroy(mine);
    return status;
}

START_TEST(short_memory_is_reported) {
    int failures = 0;
    for (long n = 0;; n++) {
        pn_memory_fail_after(n);
        pinn_status status = use_everything();
        pn_memory_fail_after(-1);
        /* An evaluation or a list of inputs that ran out says so by its result: the only failures without a status. */
        if (status == PINN_OK && n > 60) break;
        if (status != PINN_OK) {
            ck_assert_int_eq(status, PINN_NO_MEMORY);
            failures++;
        }
        ck_assert_int_lt(n, 500);
    }
    ck_assert_int_gt(failures, 20);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("pointwise IR");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 120);
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, equal_nodes_are_one);
    tcase_add_test(all, sums_are_simplified);
    tcase_add_test(all, products_are_simplified);
    tcase_add_test(all, functions_are_simplified);
    tcase_add_test(all, integer_powers);
    tcase_add_test(all, substitution_and_inputs);
    tcase_add_test(all, a_node_can_be_replaced);
    tcase_add_test(all, a_lone_elementary_function_is_found);
    tcase_add_test(all, text_names_shared_nodes);
    tcase_add_test(all, derivatives_of_every_operation);
    tcase_add_test(all, derivatives_at_special_points);
    tcase_add_test(all, adjoint_follows_only_what_matters);
    tcase_add_test(all, depth_needs_no_stack);
    tcase_add_test(all, short_memory_is_reported);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
