/* What the files of the IR share: storage, interning, traits of nodes. Callers of the IR include ir.h alone. */
#ifndef PN_POINTWISE_IR_INTERNAL_H
#define PN_POINTWISE_IR_INTERNAL_H

#include "pointwise/ir.h"

/* What is known of a node's value wherever it is defined; lets the simplifier drop abs and join conditions. */
enum { PN_TRAIT_BOOLEAN = 1, PN_TRAIT_NONNEGATIVE = 2 };

struct pn_ir {
    pn_node *node;   /* [capacity], the first `count` in use */
    uint8_t *trait;  /* [capacity], bits of PN_TRAIT_* */
    pn_value *table; /* [buckets] open addressing by the hash of a node's content; PN_NONE = free */
    size_t count, capacity;
    size_t buckets; /* a power of two, more than twice `capacity` */
    bool failed;    /* a builder ran out of memory */
};

/* The node with exactly this content, made if there is none: no simplification. */
pn_value pn_ir_intern(pn_ir *ir, pn_op op, pn_value a, pn_value b, pn_value c);

/* Any operation through its builder (simplified); CONST and INPUT are no operations here. */
pn_value pn_ir_build(pn_ir *ir, pn_op op, pn_value a, pn_value b, pn_value c);

/* reached[i] = whether one of `value` depends on node i, for i < *limit = largest value + 1. Owned by the caller (pn_free); NULL when
 * memory is short. PN_NONE values are skipped. */
bool *pn_ir_reach(const pn_ir *ir, const pn_value *value, size_t count, size_t *limit);

/* (d value / d operand k) * g: the one table of derivatives that tangent and adjoint share. */
pn_value pn_ir_chain(pn_ir *ir, pn_value value, int k, pn_value g);

/* Operand k (0, 1, 2) of a node. */
static inline pn_value pn_node_operand(const pn_node *node, int k) { return k == 0 ? node->a : k == 1 ? node->b : node->c; }

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
