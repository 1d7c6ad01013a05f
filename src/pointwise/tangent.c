/* Derivatives of the IR: the table of partial derivatives, and forward (tangent) differentiation with it.
 *
 * Derivatives reuse what the value already computed: tanh' = 1 - t*t, exp' = e, sqrt' = 1/(2s), (a/b)' = (a' - q*b')/b. Powers are
 * the exception: a^(k-1) is built anew, for k*p/a would be 0/0 at a = 0. Softplus' is written by tanh, smooth and exact everywhere.
 * Where a function has a kink, the derivative is that of one side (min, max: of the first operand at a tie; abs: 0 at 0).
 * Source of the sweeps: Griewank & Walther, Evaluating Derivatives, 2nd ed. 2008, chapters 3 and 4.
 */
#include <math.h>

#include "core/memory.h"
#include "pointwise/ir_internal.h"

/* f'(a) for the unary f of this node, or PN_NONE with *zero set where it vanishes. */
static pn_value unary_derivative(pn_ir *ir, pn_value value, bool *zero) {
    pn_node node = ir->node[value];
    pn_value a = node.a, one = pn_ir_const(ir, 1);
    switch (node.op) {
    case PN_OP_ABS: return pn_ir_unary(ir, PN_OP_SIGN, a);
    case PN_OP_SQRT: return pn_ir_div(ir, pn_ir_const(ir, 0.5), value);
    case PN_OP_EXP: return value;
    case PN_OP_EXPM1: return pn_ir_unary(ir, PN_OP_EXP, a);
    case PN_OP_LOG: return pn_ir_div(ir, one, a);
    case PN_OP_LOG1P: return pn_ir_div(ir, one, pn_ir_add(ir, one, a));
    case PN_OP_SIN: return pn_ir_unary(ir, PN_OP_COS, a);
    case PN_OP_COS: return pn_ir_neg(ir, pn_ir_unary(ir, PN_OP_SIN, a));
    case PN_OP_TAN: return pn_ir_add(ir, one, pn_ir_mul(ir, value, value));
    case PN_OP_ASIN:
    case PN_OP_ACOS: {
        pn_value root = pn_ir_unary(ir, PN_OP_SQRT, pn_ir_sub(ir, one, pn_ir_mul(ir, a, a)));
        return pn_ir_div(ir, node.op == PN_OP_ASIN ? one : pn_ir_const(ir, -1), root);
    }
    case PN_OP_ATAN: return pn_ir_div(ir, one, pn_ir_add(ir, one, pn_ir_mul(ir, a, a)));
    case PN_OP_SINH: return pn_ir_unary(ir, PN_OP_COSH, a);
    case PN_OP_COSH: return pn_ir_unary(ir, PN_OP_SINH, a);
    case PN_OP_TANH: return pn_ir_sub(ir, one, pn_ir_mul(ir, value, value));
    case PN_OP_ERF: return pn_ir_scale(ir, M_2_SQRTPI, pn_ir_unary(ir, PN_OP_EXP, pn_ir_neg(ir, pn_ir_mul(ir, a, a))));
    case PN_OP_SOFTPLUS: {
        pn_value half = pn_ir_const(ir, 0.5);
        return pn_ir_mul(ir, half, pn_ir_add(ir, one, pn_ir_unary(ir, PN_OP_TANH, pn_ir_mul(ir, half, a))));
    }
    default: *zero = true; return PN_NONE; /* sign, floor */
    }
}

/* (d a^b / d operand k) * g. */
static pn_value power_chain(pn_ir *ir, pn_value value, int k, pn_value g) {
    pn_node node = ir->node[value];
    pn_value zero = pn_ir_const(ir, 0);
    if (k == 0) {
        pn_value less = pn_ir_add(ir, pn_ir_const(ir, -1), node.b);
        return pn_ir_mul(ir, pn_ir_mul(ir, node.b, pn_ir_binary(ir, PN_OP_POW, node.a, less)), g);
    }
    /* p*log(a) tends to 0 with a; below 0 a power with a varying exponent is not defined. */
    pn_value product = pn_ir_mul(ir, pn_ir_mul(ir, value, pn_ir_unary(ir, PN_OP_LOG, node.a)), g);
    return pn_ir_select(ir, pn_ir_binary(ir, PN_OP_LT, zero, node.a), product, zero);
}

/* (d atan2(y, x) / d operand k) * g: x/(x^2+y^2) and -y/(x^2+y^2). */
static pn_value atan2_chain(pn_ir *ir, pn_value value, int k, pn_value g) {
    pn_node node = ir->node[value];
    pn_value square = pn_ir_add(ir, pn_ir_mul(ir, node.a, node.a), pn_ir_mul(ir, node.b, node.b));
    pn_value d = pn_ir_div(ir, k == 0 ? node.b : node.a, square);
    return k == 0 ? pn_ir_mul(ir, d, g) : pn_ir_neg(ir, pn_ir_mul(ir, d, g));
}

static pn_value quotient_chain(pn_ir *ir, pn_value value, int k, pn_value g) {
    pn_node node = ir->node[value];
    pn_value scaled = pn_ir_mul(ir, pn_ir_div(ir, pn_ir_const(ir, 1), node.b), g);
    return k == 0 ? scaled : pn_ir_neg(ir, pn_ir_mul(ir, value, scaled));
}

pn_value pn_ir_chain(pn_ir *ir, pn_value value, int k, pn_value g) {
    if (ir->known[value].argument != PN_NONE) return pn_ir_mul(ir, ir->known[value].derivative, g);
    pn_node node = ir->node[value];
    pn_value zero = pn_ir_const(ir, 0);
    switch (node.op) {
    case PN_OP_NEG: return pn_ir_neg(ir, g);
    case PN_OP_ADD: return g;
    case PN_OP_SUB: return k == 0 ? g : pn_ir_neg(ir, g);
    case PN_OP_MUL: return pn_ir_mul(ir, k == 0 ? node.b : node.a, g);
    case PN_OP_DIV: return quotient_chain(ir, value, k, g);
    case PN_OP_POW: return power_chain(ir, value, k, g);
    case PN_OP_ATAN2: return atan2_chain(ir, value, k, g);
    case PN_OP_MIN:
    case PN_OP_MAX: {
        pn_value low = node.op == PN_OP_MIN ? node.a : node.b, high = node.op == PN_OP_MIN ? node.b : node.a;
        if (k == 0) return pn_ir_select(ir, pn_ir_binary(ir, PN_OP_LE, low, high), g, zero);
        return pn_ir_select(ir, pn_ir_binary(ir, PN_OP_LE, low, high), zero, g);
    }
    case PN_OP_SELECT:
        if (k == 0) return zero;
        return k == 1 ? pn_ir_select(ir, node.a, g, zero) : pn_ir_select(ir, node.a, zero, g);
    case PN_OP_LT:
    case PN_OP_LE:
    case PN_OP_EQ: return zero;
    default: break;
    }
    bool vanishes = false;
    pn_value derivative = unary_derivative(ir, value, &vanishes);
    return vanishes ? zero : pn_ir_mul(ir, derivative, g);
}

static bool is_zero(const pn_ir *ir, pn_value value) {
    double k;
    return pn_ir_is_const(ir, value, &k) && k == 0;
}

pn_value pn_ir_tangent(pn_ir *ir, pn_value value, pn_value (*tangent)(void *user, pn_ir *ir, uint32_t slot), void *user) {
    if (value == PN_NONE) return PN_NONE;
    pn_value zero = pn_ir_const(ir, 0);
    size_t limit = 0;
    bool *reached = pn_ir_reach(ir, &value, 1, PN_WALK_DERIVATIVES, &limit);
    pn_value *d = reached ? pn_allocate(limit, sizeof *d) : NULL; /* [node] its derivative */
    if (!d) ir->failed = true;
    for (size_t i = 0; d && i < limit; i++) {
        if (!reached[i]) continue;
        pn_node node = ir->node[i];
        d[i] = node.op == PN_OP_INPUT ? tangent(user, ir, node.input) : zero;
        if (d[i] == PN_NONE) d[i] = zero;
        pn_value step[3];
        int steps = pn_ir_steps(ir, (pn_value)i, step);
        for (int k = 0; k < steps; k++) {
            pn_value inner = d[step[k]];
            if (!is_zero(ir, inner)) d[i] = pn_ir_add(ir, d[i], pn_ir_chain(ir, (pn_value)i, k, inner));
        }
    }
    pn_value result = d && !ir->failed ? d[value] : PN_NONE;
    pn_free(d);
    pn_free(reached);
    return result;
}
