/* What the files of the IR share: storage, interning, traits of nodes. Callers of the IR include ir.h alone. */
#ifndef PN_POINTWISE_IR_INTERNAL_H
#define PN_POINTWISE_IR_INTERNAL_H

#include "pointwise/ir.h"

/* What is known of a node's value wherever it is defined; lets the simplifier drop abs and join conditions. */
enum { PN_TRAIT_BOOLEAN = 1, PN_TRAIT_NONNEGATIVE = 2 };

/* dv = derivative * d(argument) for a node v that depends on nothing but `argument` (jet.c: v = s^(k)(z), derivative = s^(k+1)(z)).
 * Differentiation takes this step in place of v's operands; without it, s, s', s''... would each be differentiated through again.
 */
typedef struct pn_known {
    pn_value argument, derivative; /* PN_NONE if nothing is known */
} pn_known;

struct pn_ir {
    pn_node *node;   /* [capacity], the first `count` in use */
    uint8_t *trait;  /* [capacity], bits of PN_TRAIT_* */
    pn_known *known; /* [capacity] */
    pn_value *table; /* [buckets] open addressing by the hash of a node's content; PN_NONE = free */
    size_t count, capacity;
    size_t buckets; /* a power of two, more than twice `capacity` */
    bool failed;    /* a builder ran out of memory */
    bool gather;    /* x*(k*y) becomes k*(x*y): see simplify_product.c */
};

/* The node with exactly this content, made if there is none: no simplification. */
pn_value pn_ir_intern(pn_ir *ir, pn_op op, pn_value a, pn_value b, pn_value c);

/* Any operation through its builder (simplified); CONST and INPUT are no operations here. */
pn_value pn_ir_build(pn_ir *ir, pn_op op, pn_value a, pn_value b, pn_value c);

/* Whom a walk goes to from a node: its operands, or, when differentiating, the argument of its known derivative if it has one. */
typedef enum pn_walk { PN_WALK_VALUES, PN_WALK_DERIVATIVES } pn_walk;

/* reached[i] = whether one of `value` depends on node i, for i < *limit = largest value + 1. Owned by the caller (pn_free); NULL
 * when memory is short. PN_NONE values are skipped. */
bool *pn_ir_reach(const pn_ir *ir, const pn_value *value, size_t count, pn_walk walk, size_t *limit);

/* Notes a known derivative; ignored where it cannot help (v is a leaf, or older than its argument) or one is noted already. */
void pn_ir_know(pn_ir *ir, pn_value v, pn_value argument, pn_value derivative);

/* Operand k (0, 1, 2) of a node. */
static inline pn_value pn_node_operand(const pn_node *node, int k) { return k == 0 ? node->a : k == 1 ? node->b : node->c; }

/* The nodes that differentiation steps to from `value`: how many, and which. */
static inline int pn_ir_steps(const pn_ir *ir, pn_value value, pn_value step[3]) {
    const pn_node *node = &ir->node[value];
    int arity = pn_op_arity(node->op);
    for (int k = 0; k < arity; k++) step[k] = pn_node_operand(node, k);
    if (ir->known[value].argument == PN_NONE) return arity;
    step[0] = ir->known[value].argument;
    return 1;
}

/* (d value / d step k) * g: the one table of derivatives that tangent and adjoint share. */
pn_value pn_ir_chain(pn_ir *ir, pn_value value, int k, pn_value g);

/* constant * x, simplified; the part of the product rules that sums need as well. */
pn_value pn_ir_scale(pn_ir *ir, double constant, pn_value x);

/* If `value` is -p, k*p or k/p with k < 0: true, and the node of its opposite. */
bool pn_ir_opposite(pn_ir *ir, pn_value value, pn_value *opposite);

/* select(c, x, 0) (`first`) or select(c, 0, x): what masked derivatives are made of. */
typedef struct pn_mask {
    pn_value condition, x;
    bool first;
} pn_mask;
bool pn_ir_mask(const pn_ir *ir, pn_value value, pn_mask *mask);
/* The mask around another content. */
pn_value pn_ir_masked(pn_ir *ir, pn_mask mask, pn_value x);

#endif
