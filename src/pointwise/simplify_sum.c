/* Sums, differences and negation, simplified as they are built.
 *
 * Normal form: constants stand first (c + x; x - c is -c + x); minus signs travel outwards (x + (-y) is x - y, -x - y is -(x + y),
 * -(x - y) is y - x) and coefficients inside a sum are positive where a sign change of the operation can make them so; k1*x + k2*x
 * is one product. Each rule either removes an operation or moves a sign outwards, so that building ends.
 */
#include "pointwise/ir_internal.h"

/* value = coefficient * base. */
static pn_value split_coefficient(const pn_ir *ir, pn_value value, double *coefficient) {
    pn_node node = ir->node[value];
    *coefficient = 1;
    if (node.op == PN_OP_NEG) {
        *coefficient = -1;
        return node.a;
    }
    return node.op == PN_OP_MUL && pn_ir_is_const(ir, node.a, coefficient) ? node.b : value;
}

bool pn_ir_opposite(pn_ir *ir, pn_value value, pn_value *opposite) {
    pn_node node = ir->node[value];
    double k;
    if (node.op == PN_OP_NEG) {
        *opposite = node.a;
        return true;
    }
    if ((node.op != PN_OP_MUL && node.op != PN_OP_DIV) || !pn_ir_is_const(ir, node.a, &k) || !(k < 0)) return false;
    *opposite = pn_ir_neg(ir, value);
    return true;
}

pn_value pn_ir_neg(pn_ir *ir, pn_value a) {
    if (a == PN_NONE) return PN_NONE;
    pn_node node = ir->node[a];
    double k;
    pn_mask mask;
    switch (node.op) {
    case PN_OP_CONST: return pn_ir_const(ir, -node.constant);
    case PN_OP_NEG: return node.a;
    case PN_OP_SUB: return pn_ir_sub(ir, node.b, node.a);
    case PN_OP_ADD:
        if (pn_ir_is_const(ir, node.a, &k)) return pn_ir_sub(ir, pn_ir_const(ir, -k), node.b);
        break;
    case PN_OP_MUL:
        if (pn_ir_is_const(ir, node.a, &k)) return pn_ir_scale(ir, -k, node.b);
        break;
    case PN_OP_DIV:
        if (pn_ir_is_const(ir, node.a, &k)) return pn_ir_div(ir, pn_ir_const(ir, -k), node.b);
        break;
    case PN_OP_SELECT:
        if (pn_ir_mask(ir, a, &mask)) return pn_ir_masked(ir, mask, pn_ir_neg(ir, mask.x));
        break;
    default: break;
    }
    if (ir->trait[a] & PN_TRAIT_BOOLEAN) return pn_ir_select(ir, a, pn_ir_const(ir, -1), pn_ir_const(ir, 0));
    return pn_ir_intern(ir, PN_OP_NEG, a, PN_NONE, PN_NONE);
}

/* constant +- b with a constant inside b: c + (k + y), c + (k - y), c - (k + y), c - (k - y). */
static bool gather_constant(pn_ir *ir, double constant, double sign, pn_value b, pn_value *out) {
    pn_node node = ir->node[b];
    double k;
    if ((node.op != PN_OP_ADD && node.op != PN_OP_SUB) || !pn_ir_is_const(ir, node.a, &k)) return false;
    bool plus = (node.op == PN_OP_ADD) == (sign > 0);
    pn_value gathered = pn_ir_const(ir, constant + sign * k);
    *out = plus ? pn_ir_add(ir, gathered, node.b) : pn_ir_sub(ir, gathered, node.b);
    return true;
}

/* Masks of one condition: select(c,u,0) +- select(c,v,0) is one mask; with opposite ones it is one select. */
static bool join_masks(pn_ir *ir, double sign, pn_value a, pn_value b, pn_value *out) {
    pn_mask p, q;
    if (!pn_ir_mask(ir, a, &p) || !pn_ir_mask(ir, b, &q) || p.condition != q.condition) return false;
    if (p.first == q.first)
        *out = pn_ir_masked(ir, p, sign > 0 ? pn_ir_add(ir, p.x, q.x) : pn_ir_sub(ir, p.x, q.x));
    else {
        pn_value v = sign > 0 ? q.x : pn_ir_neg(ir, q.x);
        *out = p.first ? pn_ir_select(ir, p.condition, p.x, v) : pn_ir_select(ir, p.condition, v, p.x);
    }
    return true;
}

/* k*x +- k*y = k*(x +- y). */
static bool share_factor(pn_ir *ir, double sign, pn_value a, pn_value b, pn_value *out) {
    pn_node x = ir->node[a], y = ir->node[b];
    double k;
    if (x.op != PN_OP_MUL || y.op != PN_OP_MUL || x.a != y.a || !pn_ir_is_const(ir, x.a, &k)) return false;
    *out = pn_ir_scale(ir, k, sign > 0 ? pn_ir_add(ir, x.b, y.b) : pn_ir_sub(ir, x.b, y.b));
    return true;
}

/* a +- (p +- q) where p or q is a multiple of what a is a multiple of: joined, one operation less. */
static bool join_nested(pn_ir *ir, double sign, pn_value a, pn_value b, pn_value *out) {
    pn_node sum = ir->node[b];
    if (sum.op != PN_OP_ADD && sum.op != PN_OP_SUB) return false;
    double k, p, q, q_sign = sum.op == PN_OP_ADD ? sign : -sign;
    pn_value base = split_coefficient(ir, a, &k);
    if (base == split_coefficient(ir, sum.a, &p)) {
        pn_value joined = pn_ir_scale(ir, k + sign * p, base);
        *out = q_sign > 0 ? pn_ir_add(ir, joined, sum.b) : pn_ir_sub(ir, joined, sum.b);
    } else if (base == split_coefficient(ir, sum.b, &q)) {
        pn_value joined = pn_ir_scale(ir, k + q_sign * q, base);
        *out = sign > 0 ? pn_ir_add(ir, joined, sum.a) : pn_ir_sub(ir, joined, sum.a);
    } else
        return false;
    return true;
}

pn_value pn_ir_add(pn_ir *ir, pn_value a, pn_value b) {
    if (a == PN_NONE || b == PN_NONE) return PN_NONE;
    double p, q;
    bool p_const = pn_ir_is_const(ir, a, &p), q_const = pn_ir_is_const(ir, b, &q);
    if (p_const && q_const) return pn_ir_const(ir, p + q);
    if (q_const) return pn_ir_add(ir, b, a);
    if (!p_const && a > b) return pn_ir_add(ir, b, a);
    pn_value out;
    if (p_const) {
        if (p == 0) return b;
        if (gather_constant(ir, p, 1, b, &out)) return out;
    } else {
        pn_value base = split_coefficient(ir, a, &p);
        if (base == split_coefficient(ir, b, &q)) return pn_ir_scale(ir, p + q, base);
    }
    if (pn_ir_opposite(ir, b, &out)) return pn_ir_sub(ir, a, out);
    if (pn_ir_opposite(ir, a, &out)) return pn_ir_sub(ir, b, out);
    if (join_masks(ir, 1, a, b, &out) || share_factor(ir, 1, a, b, &out)) return out;
    if (join_nested(ir, 1, a, b, &out) || join_nested(ir, 1, b, a, &out)) return out;
    return pn_ir_intern(ir, PN_OP_ADD, a, b, PN_NONE);
}

pn_value pn_ir_sub(pn_ir *ir, pn_value a, pn_value b) {
    if (a == PN_NONE || b == PN_NONE) return PN_NONE;
    double p, q;
    bool p_const = pn_ir_is_const(ir, a, &p), q_const = pn_ir_is_const(ir, b, &q);
    if (q_const) return pn_ir_add(ir, pn_ir_const(ir, -q), a);
    pn_value out;
    if (p_const) {
        if (p == 0) return pn_ir_neg(ir, b);
        if (gather_constant(ir, p, -1, b, &out)) return out;
    } else {
        pn_value base = split_coefficient(ir, a, &p);
        if (base == split_coefficient(ir, b, &q)) return pn_ir_scale(ir, p - q, base);
    }
    if (pn_ir_opposite(ir, b, &out)) return pn_ir_add(ir, a, out);
    if (ir->node[a].op == PN_OP_NEG) return pn_ir_neg(ir, pn_ir_add(ir, ir->node[a].a, b));
    if (join_masks(ir, -1, a, b, &out) || share_factor(ir, -1, a, b, &out)) return out;
    if (join_nested(ir, -1, a, b, &out)) return out;
    if (join_nested(ir, -1, b, a, &out)) return pn_ir_neg(ir, out);
    return pn_ir_intern(ir, PN_OP_SUB, a, b, PN_NONE);
}
