/* Walks over the part of a graph that some values depend on. Operands have smaller ids than their node, so one sweep down finds
 * that part and one sweep up visits operands first: no recursion, whatever the depth.
 */
#include <math.h>

#include "core/memory.h"
#include "pointwise/ir_internal.h"

bool *pn_ir_reach(const pn_ir *ir, const pn_value *value, size_t count, pn_walk walk, size_t *limit) {
    size_t nodes = 0;
    for (size_t i = 0; i < count; i++)
        if (value[i] != PN_NONE && value[i] >= nodes) nodes = (size_t)value[i] + 1;
    bool *reached = pn_allocate(nodes, sizeof *reached);
    if (!reached) return NULL;
    for (size_t i = 0; i < count; i++)
        if (value[i] != PN_NONE) reached[value[i]] = true;
    for (size_t i = nodes; i-- > 0;) {
        if (!reached[i]) continue;
        const pn_node *node = &ir->node[i];
        if (walk == PN_WALK_DERIVATIVES && ir->known[i].argument != PN_NONE) {
            reached[ir->known[i].argument] = true;
            continue;
        }
        for (int k = 0; k < pn_op_arity(node->op); k++) reached[pn_node_operand(node, k)] = true;
    }
    *limit = nodes;
    return reached;
}

/* What a walk puts in a node's place; PN_NONE: the node over the images of its operands. */
typedef pn_value replacement(void *user, pn_ir *ir, pn_value value);

static pn_value rebuild(pn_ir *ir, pn_value value, replacement *replace, void *user) {
    if (value == PN_NONE) return PN_NONE;
    size_t limit = 0;
    bool *reached = pn_ir_reach(ir, &value, 1, PN_WALK_VALUES, &limit);
    pn_value *image = reached ? pn_allocate(limit, sizeof *image) : NULL;
    if (!image) ir->failed = true;
    for (size_t i = 0; image && i < limit; i++) {
        if (!reached[i]) continue;
        pn_node node = ir->node[i]; /* a copy: builders move the array */
        image[i] = replace(user, ir, (pn_value)i);
        if (image[i] != PN_NONE) continue;
        image[i] = (pn_value)i;
        if (node.op != PN_OP_INPUT && node.op != PN_OP_CONST) {
            pn_value operand[3] = {PN_NONE, PN_NONE, PN_NONE};
            bool changed = false;
            for (int k = 0; k < pn_op_arity(node.op); k++) {
                operand[k] = image[pn_node_operand(&node, k)];
                changed |= operand[k] != pn_node_operand(&node, k);
            }
            if (changed) image[i] = pn_ir_build(ir, node.op, operand[0], operand[1], operand[2]);
        }
    }
    pn_value result = image && !ir->failed ? image[value] : PN_NONE;
    pn_free(image);
    pn_free(reached);
    return result;
}

typedef struct substitution { /* of inputs */
    pn_value (*replace)(void *user, pn_ir *ir, uint32_t slot);
    void *user;
} substitution;

static pn_value substitute_input(void *user, pn_ir *ir, pn_value value) {
    const substitution *s = user;
    return ir->node[value].op == PN_OP_INPUT ? s->replace(s->user, ir, ir->node[value].input) : PN_NONE;
}

pn_value pn_ir_substitute(pn_ir *ir, pn_value value, pn_value (*replace)(void *user, pn_ir *ir, uint32_t slot), void *user) {
    return rebuild(ir, value, substitute_input, &(substitution){replace, user});
}

static pn_value replace_node(void *user, pn_ir *ir, pn_value value) {
    const pn_value *pair = user;
    (void)ir;
    return value == pair[0] ? pair[1] : PN_NONE;
}

pn_value pn_ir_replace(pn_ir *ir, pn_value value, pn_value node, pn_value other) {
    return rebuild(ir, value, replace_node, (pn_value[]){node, other});
}

pn_value pn_ir_lone_special(const pn_ir *ir, const pn_value *value, size_t count) {
    size_t limit = 0;
    pn_value found = PN_NONE;
    bool *reached = pn_ir_reach(ir, value, count, PN_WALK_VALUES, &limit), several = !reached;
    for (size_t i = 0; i < limit; i++) {
        const pn_op op = ir->node[i].op;
        if (!reached[i] || !((op >= PN_OP_SQRT && op <= PN_OP_SOFTPLUS) || op == PN_OP_POW || op == PN_OP_ATAN2)) continue;
        several |= found != PN_NONE;
        found = (pn_value)i;
    }
    pn_free(reached);
    return several ? PN_NONE : found;
}

void pn_ir_inputs(const pn_ir *ir, pn_value value, bool *used, size_t slots) {
    if (value == PN_NONE) return;
    size_t limit = 0;
    bool *reached = pn_ir_reach(ir, &value, 1, PN_WALK_VALUES, &limit);
    for (size_t i = 0; !reached && i < slots; i++) used[i] = true;
    for (size_t i = 0; i < limit; i++)
        if (reached[i] && ir->node[i].op == PN_OP_INPUT && ir->node[i].input < slots) used[ir->node[i].input] = true;
    pn_free(reached);
}

double pn_ir_evaluate(const pn_ir *ir, pn_value value, const double *input) {
    if (value == PN_NONE) return (double)NAN;
    size_t limit = 0;
    bool *reached = pn_ir_reach(ir, &value, 1, PN_WALK_VALUES, &limit);
    double *at = reached ? pn_allocate(limit, sizeof *at) : NULL;
    for (size_t i = 0; at && i < limit; i++) {
        if (!reached[i]) continue;
        const pn_node *node = &ir->node[i];
        if (node->op == PN_OP_CONST)
            at[i] = node->constant;
        else if (node->op == PN_OP_INPUT)
            at[i] = input[node->input];
        else {
            double operand[3] = {0, 0, 0};
            for (int k = 0; k < pn_op_arity(node->op); k++) operand[k] = at[pn_node_operand(node, k)];
            at[i] = pn_op_apply(node->op, operand[0], operand[1], operand[2]);
        }
    }
    double result = at ? at[value] : (double)NAN;
    pn_free(at);
    pn_free(reached);
    return result;
}
