/* All other operations, simplified as they are built: elementary functions, powers, comparisons, select.
 *
 * A derivative under a condition is a mask, select(c, x, 0). Factors and signs go into the mask and masks of masks become one, so
 * that what the condition excludes (0 * NaN of sqrt(x) at x < 0, say) never reaches a sum.
 */
#include <math.h>

#include "pointwise/ir_internal.h"

enum { MOST_MULTIPLICATIONS_POWER = 64 }; /* above it pow() is both quicker and closer */

typedef enum symmetry { NONE, ODD, EVEN } symmetry;

static symmetry op_symmetry(pn_op op) {
    switch (op) {
    case PN_OP_SIGN:
    case PN_OP_SIN:
    case PN_OP_TAN:
    case PN_OP_ASIN:
    case PN_OP_ATAN:
    case PN_OP_SINH:
    case PN_OP_TANH:
    case PN_OP_ERF: return ODD;
    case PN_OP_ABS:
    case PN_OP_COS:
    case PN_OP_COSH: return EVEN;
    default: return NONE;
    }
}

/* f(g(x)) where that is x, |x| or g(x); each holds wherever the inner function is defined. */
static bool unary_of_unary(pn_ir *ir, pn_op op, pn_value a, pn_value *out) {
    static const pn_op inverse[][2] = {
        {PN_OP_EXP, PN_OP_LOG},  {PN_OP_LOG, PN_OP_EXP},  {PN_OP_EXPM1, PN_OP_LOG1P}, {PN_OP_LOG1P, PN_OP_EXPM1},
        {PN_OP_TAN, PN_OP_ATAN}, {PN_OP_SIN, PN_OP_ASIN}, {PN_OP_COS, PN_OP_ACOS},
    };
    pn_node x = ir->node[a];
    for (size_t i = 0; i < sizeof inverse / sizeof *inverse; i++)
        if (inverse[i][0] == op && inverse[i][1] == x.op) {
            *out = x.a;
            return true;
        }
    if (op == PN_OP_ABS && (ir->trait[a] & PN_TRAIT_NONNEGATIVE))
        *out = a;
    else if (x.op == op && (op == PN_OP_FLOOR || op == PN_OP_SIGN))
        *out = a;
    else if (op == PN_OP_SIGN && (x.op == PN_OP_EXP || x.op == PN_OP_COSH))
        *out = pn_ir_const(ir, 1);
    else if (op == PN_OP_SQRT && x.op == PN_OP_MUL && x.a == x.b)
        *out = pn_ir_unary(ir, PN_OP_ABS, x.a);
    else
        return false;
    return true;
}

pn_value pn_ir_unary(pn_ir *ir, pn_op op, pn_value a) {
    if (a == PN_NONE) return PN_NONE;
    if (op == PN_OP_NEG) return pn_ir_neg(ir, a);
    double k;
    if (pn_ir_is_const(ir, a, &k)) return pn_ir_const(ir, pn_op_apply(op, k, 0, 0));
    pn_value x;
    symmetry parity = op_symmetry(op);
    if (parity != NONE && pn_ir_opposite(ir, a, &x)) {
        pn_value f = pn_ir_unary(ir, op, x);
        return parity == ODD ? pn_ir_neg(ir, f) : f;
    }
    if (unary_of_unary(ir, op, a, &x)) return x;
    return pn_ir_intern(ir, op, a, PN_NONE, PN_NONE);
}

/* a^k for a constant k: products for integers, with one square root for halves. */
static pn_value power_constant(pn_ir *ir, pn_value a, double k) {
    double whole = floor(k);
    if (fabs(k) <= MOST_MULTIPLICATIONS_POWER && k == whole) return pn_ir_power(ir, a, (int)k);
    if (fabs(k) <= MOST_MULTIPLICATIONS_POWER && k - whole == 0.5) {
        pn_value root = pn_ir_unary(ir, PN_OP_SQRT, a);
        if (k < 0) return pn_ir_div(ir, pn_ir_const(ir, 1), power_constant(ir, a, -k));
        return pn_ir_mul(ir, pn_ir_power(ir, a, (int)whole), root);
    }
    return pn_ir_intern(ir, PN_OP_POW, a, pn_ir_const(ir, k), PN_NONE);
}

/* Comparisons, min and max of one value with itself, and "not not c". */
static bool compare_alike(pn_ir *ir, pn_op op, pn_value a, pn_value b, pn_value *out) {
    pn_node y = ir->node[b];
    double zero, inner;
    if (a == b && (op == PN_OP_MIN || op == PN_OP_MAX))
        *out = a;
    else if (a == b && (op == PN_OP_LE || op == PN_OP_EQ))
        *out = pn_ir_const(ir, 1);
    else if (a == b && op == PN_OP_LT)
        *out = pn_ir_const(ir, 0);
    else if (op == PN_OP_EQ && y.op == PN_OP_EQ && pn_ir_is_const(ir, a, &zero) && zero == 0 && pn_ir_is_const(ir, y.a, &inner) &&
             inner == 0 && (ir->trait[y.b] & PN_TRAIT_BOOLEAN))
        *out = y.b;
    else
        return false;
    return true;
}

pn_value pn_ir_binary(pn_ir *ir, pn_op op, pn_value a, pn_value b) {
    if (a == PN_NONE || b == PN_NONE) return PN_NONE;
    switch (op) {
    case PN_OP_ADD: return pn_ir_add(ir, a, b);
    case PN_OP_SUB: return pn_ir_sub(ir, a, b);
    case PN_OP_MUL: return pn_ir_mul(ir, a, b);
    case PN_OP_DIV: return pn_ir_div(ir, a, b);
    default: break;
    }
    double p, q;
    bool p_const = pn_ir_is_const(ir, a, &p), q_const = pn_ir_is_const(ir, b, &q);
    if (p_const && q_const) return pn_ir_const(ir, pn_op_apply(op, p, q, 0));
    if (op == PN_OP_POW && q_const) return power_constant(ir, a, q);
    if (op == PN_OP_POW && p_const && p == 1) return a;
    bool commutes = op == PN_OP_MIN || op == PN_OP_MAX || op == PN_OP_EQ;
    if (commutes && (q_const || (!p_const && a > b))) {
        pn_value swap = a;
        a = b;
        b = swap;
    }
    pn_value x;
    if (compare_alike(ir, op, a, b, &x)) return x;
    return pn_ir_intern(ir, op, a, b, PN_NONE);
}

/* ---- select and masks ------------------------------------------------------------------------------------------------------ */

/* A mask whose content is a mask again cannot be entered: that bounds the recursion. */
bool pn_ir_mask(const pn_ir *ir, pn_value value, pn_mask *mask) {
    pn_node node = ir->node[value];
    double k;
    if (node.op != PN_OP_SELECT) return false;
    if (pn_ir_is_const(ir, node.c, &k) && k == 0)
        *mask = (pn_mask){node.a, node.b, true};
    else if (pn_ir_is_const(ir, node.b, &k) && k == 0)
        *mask = (pn_mask){node.a, node.c, false};
    else
        return false;
    pn_node inner = ir->node[mask->x];
    bool nested =
        inner.op == PN_OP_SELECT && ((pn_ir_is_const(ir, inner.b, &k) && k == 0) || (pn_ir_is_const(ir, inner.c, &k) && k == 0));
    return !nested;
}

pn_value pn_ir_masked(pn_ir *ir, pn_mask mask, pn_value x) {
    pn_value zero = pn_ir_const(ir, 0);
    return mask.first ? pn_ir_select(ir, mask.condition, x, zero) : pn_ir_select(ir, mask.condition, zero, x);
}

/* The mask's condition for keeping its content, as a boolean; false if the condition is not known to be 0 or 1. */
static bool keeps(pn_ir *ir, pn_value condition, bool first, pn_value *out) {
    if (!(ir->trait[condition] & PN_TRAIT_BOOLEAN)) return false;
    *out = first ? condition : pn_ir_binary(ir, PN_OP_EQ, pn_ir_const(ir, 0), condition);
    return true;
}

/* select(c, mask, 0) as one mask. */
static bool flatten(pn_ir *ir, pn_value condition, pn_value x, bool first, pn_value *out) {
    pn_mask inner;
    pn_value outer_keeps, inner_keeps;
    if (!pn_ir_mask(ir, x, &inner) || !keeps(ir, condition, first, &outer_keeps) ||
        !keeps(ir, inner.condition, inner.first, &inner_keeps))
        return false;
    *out = pn_ir_select(ir, pn_ir_mul(ir, outer_keeps, inner_keeps), inner.x, pn_ir_const(ir, 0));
    return true;
}

pn_value pn_ir_select(pn_ir *ir, pn_value condition, pn_value a, pn_value b) {
    if (condition == PN_NONE || a == PN_NONE || b == PN_NONE) return PN_NONE;
    double k, p, q;
    if (pn_ir_is_const(ir, condition, &k)) return k != 0 ? a : b;
    if (ir->node[a].op == PN_OP_SELECT && ir->node[a].a == condition) a = ir->node[a].b;
    if (ir->node[b].op == PN_OP_SELECT && ir->node[b].a == condition) b = ir->node[b].c;
    if (a == b) return a;
    bool a_zero = pn_ir_is_const(ir, a, &p) && p == 0, b_zero = pn_ir_is_const(ir, b, &q) && q == 0;
    pn_value out;
    if (b_zero && pn_ir_is_const(ir, a, &p) && p == 1 && (ir->trait[condition] & PN_TRAIT_BOOLEAN)) return condition;
    if (b_zero && flatten(ir, condition, a, true, &out)) return out;
    if (a_zero && flatten(ir, condition, b, false, &out)) return out;
    return pn_ir_intern(ir, PN_OP_SELECT, condition, a, b);
}

pn_value pn_ir_build(pn_ir *ir, pn_op op, pn_value a, pn_value b, pn_value c) {
    switch (pn_op_arity(op)) {
    case 1: return pn_ir_unary(ir, op, a);
    case 2: return pn_ir_binary(ir, op, a, b);
    case 3: return pn_ir_select(ir, a, b, c);
    default: return PN_NONE;
    }
}
