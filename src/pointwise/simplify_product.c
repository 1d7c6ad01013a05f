/* Products, quotients and powers, simplified as they are built.
 *
 * Normal form: one constant factor, first; signs outside (-(x*y)); the operands of a product in the order of their ids, so that a*b
 * and b*a are one node. Constants join only where that cannot turn a float32 program's value into 0 or infinity: the joined
 * constant stays inside float32's normal range, and only constants near 1 move across other factors.
 *
 * (k*x)*y normally stays: k*x is often a factor of many products (a derivative s'(z) of all channels), and moving k out would cost
 * a multiplication in each. While a scalar function is differentiated again and again (jet.c), `gather` moves it out: there it
 * meets other constants and common factors of sums.
 */
#include <float.h>
#include <math.h>

#include "pointwise/ir_internal.h"

/* 0, or normal in float32 with a margin. */
static bool fits_float32(double k) { return k == 0 || (fabs(k) > 1e-37 && fabs(k) < 1e37); }

/* The product of two constants; k * (1/k) is 1 though the reciprocal was rounded. */
static double join_constants(double p, double q) {
    double product = p * q;
    return fabs(fabs(product) - 1) <= 2 * DBL_EPSILON ? copysign(1, product) : product;
}

/* Small enough a factor to be moved from one operand to the whole product. */
static bool near_one(double k) { return fabs(k) >= 0x1p-20 && fabs(k) <= 0x1p20; }

/* value = k * x with a constant that may leave the operand. */
static bool split_constant(const pn_ir *ir, pn_value value, double *k, pn_value *x) {
    pn_node node = ir->node[value];
    if (node.op != PN_OP_MUL || !pn_ir_is_const(ir, node.a, k) || !near_one(*k)) return false;
    *x = node.b;
    return true;
}

/* c*(k*y), c*(k/y), c*((k*y)*z): one constant. */
static bool scale_scaled(pn_ir *ir, double constant, pn_value x, pn_value *out) {
    pn_node node = ir->node[x];
    double k;
    pn_value inner, other = node.b;
    bool outer = (node.op == PN_OP_MUL || node.op == PN_OP_DIV) && pn_ir_is_const(ir, node.a, &k);
    if (!outer) {
        if (node.op != PN_OP_MUL) return false;
        if (!split_constant(ir, node.a, &k, &inner)) {
            if (!split_constant(ir, node.b, &k, &inner)) return false;
            other = node.a;
        }
    }
    double joined = join_constants(constant, k);
    if (joined == 0 || !fits_float32(joined)) return false;
    if (!outer)
        *out = pn_ir_scale(ir, joined, pn_ir_mul(ir, inner, other));
    else
        *out = node.op == PN_OP_MUL ? pn_ir_scale(ir, joined, node.b) : pn_ir_div(ir, pn_ir_const(ir, joined), node.b);
    return true;
}

pn_value pn_ir_scale(pn_ir *ir, double constant, pn_value x) {
    if (x == PN_NONE) return PN_NONE;
    double k;
    if (pn_ir_is_const(ir, x, &k)) return pn_ir_const(ir, constant * k);
    if (constant == 0) return pn_ir_const(ir, 0);
    if (constant == 1) return x;
    if (constant == -1) return pn_ir_neg(ir, x);
    pn_node node = ir->node[x];
    pn_mask mask;
    if (node.op == PN_OP_NEG) return pn_ir_scale(ir, -constant, node.a);
    pn_value joined;
    if (scale_scaled(ir, constant, x, &joined)) return joined;
    if (pn_ir_mask(ir, x, &mask)) return pn_ir_masked(ir, mask, pn_ir_scale(ir, constant, mask.x));
    if (ir->trait[x] & PN_TRAIT_BOOLEAN) return pn_ir_select(ir, x, pn_ir_const(ir, constant), pn_ir_const(ir, 0));
    return pn_ir_intern(ir, PN_OP_MUL, pn_ir_const(ir, constant), x, PN_NONE);
}

/* x*x, sign(x)*x and the like. a <= b. */
static bool multiply_alike(pn_ir *ir, pn_value a, pn_value b, pn_value *out) {
    pn_node x = ir->node[a], y = ir->node[b];
    if (a == b && (ir->trait[a] & PN_TRAIT_BOOLEAN))
        *out = a;
    else if (a == b && x.op == PN_OP_SQRT)
        *out = x.a;
    else if (a == b && x.op == PN_OP_ABS)
        *out = pn_ir_mul(ir, x.a, x.a);
    else if (y.op == PN_OP_SIGN && y.a == a)
        *out = pn_ir_unary(ir, PN_OP_ABS, a);
    else if ((x.op == PN_OP_SIGN && y.op == PN_OP_ABS && x.a == y.a) || (x.op == PN_OP_ABS && y.op == PN_OP_SIGN && x.a == y.a))
        *out = x.a;
    else if (y.op == PN_OP_DIV && y.b == a)
        *out = y.a;
    else
        return false;
    return true;
}

pn_value pn_ir_mul(pn_ir *ir, pn_value a, pn_value b) {
    if (a == PN_NONE || b == PN_NONE) return PN_NONE;
    double k;
    if (pn_ir_is_const(ir, a, &k)) return pn_ir_scale(ir, k, b);
    if (pn_ir_is_const(ir, b, &k)) return pn_ir_scale(ir, k, a);
    if (a > b) return pn_ir_mul(ir, b, a);
    if (ir->node[a].op == PN_OP_NEG) return pn_ir_neg(ir, pn_ir_mul(ir, ir->node[a].a, b));
    if (ir->node[b].op == PN_OP_NEG) return pn_ir_neg(ir, pn_ir_mul(ir, a, ir->node[b].a));
    double p = 1, q = 1;
    pn_value x = a, y = b;
    bool a_scaled = split_constant(ir, a, &p, &x), b_scaled = split_constant(ir, b, &q, &y);
    if ((a_scaled && b_scaled) || (ir->gather && (a_scaled || b_scaled)))
        return pn_ir_scale(ir, join_constants(p, q), pn_ir_mul(ir, x, y));
    if (multiply_alike(ir, a, b, &x)) return x;
    /* Under a mask, a NaN of the other factor where the condition excludes it cannot leak: 0 * NaN never happens. A condition is a
     * mask of 1; the product of two conditions is their "and". */
    pn_mask mask;
    bool a_boolean = ir->trait[a] & PN_TRAIT_BOOLEAN, b_boolean = ir->trait[b] & PN_TRAIT_BOOLEAN;
    if (a_boolean && !b_boolean) return pn_ir_select(ir, a, b, pn_ir_const(ir, 0));
    if (b_boolean && !a_boolean) return pn_ir_select(ir, b, a, pn_ir_const(ir, 0));
    if (pn_ir_mask(ir, a, &mask)) return pn_ir_masked(ir, mask, pn_ir_mul(ir, mask.x, b));
    if (pn_ir_mask(ir, b, &mask)) return pn_ir_masked(ir, mask, pn_ir_mul(ir, a, mask.x));
    return pn_ir_intern(ir, PN_OP_MUL, a, b, PN_NONE);
}

/* Quotients by a constant, by k*y and by k/y. */
static bool divide_scaled(pn_ir *ir, pn_value a, pn_value b, pn_value *out) {
    double k, reciprocal;
    pn_value y;
    pn_node node = ir->node[b];
    if (pn_ir_is_const(ir, b, &k)) {
        reciprocal = 1 / k;
        if (!isfinite(reciprocal) || reciprocal == 0 || !fits_float32(reciprocal)) return false;
        *out = pn_ir_scale(ir, reciprocal, a);
        return true;
    }
    if (split_constant(ir, b, &k, &y)) {
        *out = pn_ir_scale(ir, 1 / k, pn_ir_div(ir, a, y));
        return true;
    }
    if (node.op == PN_OP_DIV && pn_ir_is_const(ir, node.a, &k) && near_one(k)) {
        *out = pn_ir_scale(ir, 1 / k, pn_ir_mul(ir, a, node.b));
        return true;
    }
    return false;
}

pn_value pn_ir_div(pn_ir *ir, pn_value a, pn_value b) {
    if (a == PN_NONE || b == PN_NONE) return PN_NONE;
    double p, q;
    bool p_const = pn_ir_is_const(ir, a, &p);
    if (p_const && pn_ir_is_const(ir, b, &q)) return pn_ir_const(ir, p / q);
    if (p_const && p == 0) return a;
    if (a == b) return pn_ir_const(ir, 1);
    pn_value x;
    if (divide_scaled(ir, a, b, &x)) return x;
    pn_node n = ir->node[a], d = ir->node[b];
    if (n.op == PN_OP_NEG) return pn_ir_neg(ir, pn_ir_div(ir, n.a, b));
    if (d.op == PN_OP_NEG) return pn_ir_neg(ir, pn_ir_div(ir, a, d.a));
    if (split_constant(ir, a, &p, &x)) return pn_ir_scale(ir, p, pn_ir_div(ir, x, b));
    if (n.op == PN_OP_MUL && n.a == b) return n.b;
    if (n.op == PN_OP_MUL && n.b == b) return n.a;
    pn_mask mask;
    if (pn_ir_mask(ir, a, &mask)) return pn_ir_masked(ir, mask, pn_ir_div(ir, mask.x, b));
    return pn_ir_intern(ir, PN_OP_DIV, a, b, PN_NONE);
}

pn_value pn_ir_power(pn_ir *ir, pn_value a, int n) {
    if (a == PN_NONE) return PN_NONE;
    double k;
    if (pn_ir_is_const(ir, a, &k)) return pn_ir_const(ir, pow(k, n));
    unsigned left = n < 0 ? 0u - (unsigned)n : (unsigned)n;
    pn_value product = pn_ir_const(ir, 1);
    for (pn_value square = a; left; left >>= 1) {
        if (left & 1) product = pn_ir_mul(ir, product, square);
        if (left > 1) square = pn_ir_mul(ir, square, square);
    }
    return n < 0 ? pn_ir_div(ir, pn_ir_const(ir, 1), product) : product;
}
