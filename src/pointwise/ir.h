/* The pointwise IR: a hash-consed DAG of scalar operations.
 *
 * Everything that is a pure function of a few scalars per point is written in it: activations with their jets, embeddings,
 * residuals, exact solutions. A node is an operation on earlier nodes; equal nodes are one node, and the builders simplify
 * (constants folded, identities removed, x-x, x*1, -(-x), products of constants gathered), so building an expression twice
 * costs nothing. Derivatives (tangent, adjoint) are built in the same DAG and share what they can with the values.
 *
 * Arithmetic convention: folding and meaning are float64; programs (program.h) evaluate in the precision asked for. Simplifying
 * keeps every value to rounding wherever the expression as written is finite; it may give a number where that would be NaN or
 * infinite (x*0 is 0, x/x is 1, sqrt(x)^2 is x), and zero has no sign. Division by a constant is a product with its reciprocal, one
 * rounding more. a*b + a*c stays: with a fused multiply-add it costs no more than a*(b+c), and a*b is often needed elsewhere.
 * All builders accept PN_NONE as an operand and return PN_NONE then (memory ran out before); pn_ir_check reports it once.
 */
#ifndef PN_POINTWISE_IR_H
#define PN_POINTWISE_IR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/text.h"

typedef uint32_t pn_value; /* a node of one pn_ir */
#define PN_NONE UINT32_MAX

/* name, operand count, text form. Comparisons give 0 or 1; SELECT(c, a, b) is a where c != 0, else b; SIGN(0) is 0.
 * SOFTPLUS(x) = log(1 + e^x), computed as max(x, 0) + log1p(exp(-|x|)); it is an operation of its own so that every derivative is
 * smooth and exact at 0 too (softplus' = (1 + tanh(x/2))/2). MIN and MAX of a NaN are unspecified; ATAN2(y, x) as in C. */
#define PN_OP_TABLE(X)         \
    X(CONST, 0, "const")       \
    X(INPUT, 0, "input")       \
    X(NEG, 1, "-")             \
    X(ABS, 1, "abs")           \
    X(SIGN, 1, "sign")         \
    X(FLOOR, 1, "floor")       \
    X(SQRT, 1, "sqrt")         \
    X(EXP, 1, "exp")           \
    X(EXPM1, 1, "expm1")       \
    X(LOG, 1, "log")           \
    X(LOG1P, 1, "log1p")       \
    X(SIN, 1, "sin")           \
    X(COS, 1, "cos")           \
    X(TAN, 1, "tan")           \
    X(ASIN, 1, "asin")         \
    X(ACOS, 1, "acos")         \
    X(ATAN, 1, "atan")         \
    X(SINH, 1, "sinh")         \
    X(COSH, 1, "cosh")         \
    X(TANH, 1, "tanh")         \
    X(ERF, 1, "erf")           \
    X(SOFTPLUS, 1, "softplus") \
    X(ADD, 2, "+")             \
    X(SUB, 2, "-")             \
    X(MUL, 2, "*")             \
    X(DIV, 2, "/")             \
    X(POW, 2, "pow")           \
    X(ATAN2, 2, "atan2")       \
    X(MIN, 2, "min")           \
    X(MAX, 2, "max")           \
    X(LT, 2, "<")              \
    X(LE, 2, "<=")             \
    X(EQ, 2, "==")             \
    X(SELECT, 3, "if")

typedef enum pn_op {
#define X(name, arity, text) PN_OP_##name,
    PN_OP_TABLE(X)
#undef X
        PN_OP_COUNT
} pn_op;

typedef struct pn_node {
    pn_op op;
    pn_value a, b, c; /* operands, PN_NONE where unused; always smaller than the node's own id */
    double constant;  /* of PN_OP_CONST */
    uint32_t input;   /* of PN_OP_INPUT: the caller's slot number */
} pn_node;

typedef struct pn_ir pn_ir;

pinn_status pn_ir_create(pn_ir **out);
void pn_ir_destroy(pn_ir *ir);
/* NO_MEMORY if any builder ran out of memory since creation. */
pinn_status pn_ir_check(const pn_ir *ir);
size_t pn_ir_count(const pn_ir *ir);
const pn_node *pn_ir_node(const pn_ir *ir, pn_value value); /* borrowed until the next builder call */
int pn_op_arity(pn_op op);
const char *pn_op_text(pn_op op);
/* The operation's meaning, in float64; unused operands are ignored. CONST and INPUT have none: NaN. */
double pn_op_apply(pn_op op, double a, double b, double c);

pn_value pn_ir_const(pn_ir *ir, double value);
pn_value pn_ir_input(pn_ir *ir, uint32_t slot);
pn_value pn_ir_unary(pn_ir *ir, pn_op op, pn_value a);
pn_value pn_ir_binary(pn_ir *ir, pn_op op, pn_value a, pn_value b);
pn_value pn_ir_select(pn_ir *ir, pn_value condition, pn_value a, pn_value b);
pn_value pn_ir_add(pn_ir *ir, pn_value a, pn_value b);
pn_value pn_ir_sub(pn_ir *ir, pn_value a, pn_value b);
pn_value pn_ir_mul(pn_ir *ir, pn_value a, pn_value b);
pn_value pn_ir_div(pn_ir *ir, pn_value a, pn_value b);
pn_value pn_ir_neg(pn_ir *ir, pn_value a);
/* a^n for an integer n by repeated multiplication (n may be negative: 1/a^|n|). */
pn_value pn_ir_power(pn_ir *ir, pn_value a, int n);
bool pn_ir_is_const(const pn_ir *ir, pn_value value, double *constant);

/* Rebuilds `value` with inputs replaced: `replace(user, slot)` gives the new node, or PN_NONE to keep the input. */
pn_value pn_ir_substitute(pn_ir *ir, pn_value value, pn_value (*replace)(void *user, pn_ir *ir, uint32_t slot), void *user);
/* Rebuilds `value` with `other` in the place of `node`. */
pn_value pn_ir_replace(pn_ir *ir, pn_value value, pn_value node, pn_value other);
/* The only elementary function (square root, power) that `value[0..count)` need; PN_NONE when there are none or several. */
pn_value pn_ir_lone_special(const pn_ir *ir, const pn_value *value, size_t count);
/* Sets used[slot] = true for every input slot < `slots` that `value` depends on; for all of them when memory ran out. */
void pn_ir_inputs(const pn_ir *ir, pn_value value, bool *used, size_t slots);

/* Forward derivative of `value` in one direction; `tangent(user, slot)` is the derivative of each input as a node (PN_NONE = 0).
 * abs, sign, floor, comparisons, min, max and select are differentiated where they are smooth. */
pn_value pn_ir_tangent(pn_ir *ir, pn_value value, pn_value (*tangent)(void *user, pn_ir *ir, uint32_t slot), void *user);

/* Reverse derivative: out[i] = sum_k seed[k] * d value[k] / d input slot wrt[i]. One reverse sweep over the DAG. `out[i]` is the
 * constant 0 where nothing depends on it. Errors: NO_MEMORY. */
pinn_status pn_ir_adjoint(pn_ir *ir, const pn_value *value, const pn_value *seed, size_t count, const uint32_t *wrt,
                          size_t wrt_count, pn_value *out);

/* Plain float64 evaluation of one node at one point, for tests and constants: inputs by slot. NaN when memory ran out. */
double pn_ir_evaluate(const pn_ir *ir, pn_value value, const double *input);

/* Human-readable text with let-bindings; `input_name(user, slot)` may be NULL (then in0, in1, ...). */
void pn_ir_print(const pn_ir *ir, const pn_value *value, size_t count, const char *(*input_name)(void *user, uint32_t slot),
                 void *user, pn_text *out);

#endif
