/* Total derivatives: by coordinate i, each field channel goes one order up (u_x -> u_xx), coordinate i becomes 1, everything else
 * 0. A normal is constant along its face, so its components are 0 too.
 */
#include "core/memory.h"
#include "expression/internal.h"

typedef struct direction {
    pn_scope *scope;
    unsigned coordinate;
} direction;

static pn_value input_derivative(void *user, pn_ir *ir, uint32_t slot) {
    const direction *along = user;
    pn_scope *scope = along->scope;
    const pn_slot meaning = scope->slot[slot];
    if (meaning.kind == PN_SLOT_COORDINATE) return meaning.index == along->coordinate ? pn_ir_const(ir, 1) : PN_NONE;
    if (meaning.kind == PN_SLOT_NORMAL) return PN_NONE;
    if (meaning.channel.order == PN_MAX_ORDER || meaning.channel.laplacian) {
        scope->trouble = PN_TROUBLE_ORDER;
        return PN_NONE;
    }
    const pn_channel higher = pn_channel_derivative(&meaning.channel, along->coordinate);
    uint32_t higher_slot = pn_scope_field_slot(scope, meaning.index, &higher);
    if (higher_slot == PN_NONE) {
        scope->trouble = PN_TROUBLE_MEMORY;
        return PN_NONE;
    }
    return pn_ir_input(ir, higher_slot);
}

pn_value pn_derivative(pn_scope *scope, pn_value value, unsigned i) {
    direction along = {scope, i};
    if (value == PN_NONE || scope->trouble != PN_TROUBLE_NONE) return PN_NONE;
    pn_value derivative = pn_ir_tangent(scope->ir, value, input_derivative, &along);
    if (pn_ir_count(scope->ir) > scope->node_limit) scope->trouble = PN_TROUBLE_SIZE;
    return scope->trouble == PN_TROUBLE_NONE ? derivative : PN_NONE;
}

pn_value pn_expression_derivative(pn_scope *scope, pn_value value, unsigned i) {
    scope->trouble = PN_TROUBLE_NONE;
    scope->node_limit = SIZE_MAX;
    return pn_derivative(scope, value, i);
}

pn_value pn_derivative_laplacian(pn_scope *scope, pn_value value) {
    pn_value sum = pn_ir_const(scope->ir, 0);
    for (unsigned i = 0; i < scope->coordinates && sum != PN_NONE; i++)
        if ((int)i != scope->time) sum = pn_ir_add(scope->ir, sum, pn_derivative(scope, pn_derivative(scope, value, i), i));
    return sum;
}

pn_value pn_derivative_normal(pn_scope *scope, pn_value value) {
    pn_value sum = pn_ir_const(scope->ir, 0);
    for (unsigned i = 0; i < scope->coordinates && sum != PN_NONE; i++) {
        if ((int)i == scope->time) continue;
        pn_value component = pn_ir_input(scope->ir, (uint32_t)(scope->coordinates + i));
        sum = pn_ir_add(scope->ir, sum, pn_ir_mul(scope->ir, component, pn_derivative(scope, value, i)));
    }
    return sum;
}

bool pn_expression_has_field(const pn_scope *scope, pn_value value) {
    if (value == PN_NONE) return false;
    bool *used = pn_allocate(scope->slots, sizeof *used);
    if (!used) return true; /* "no field" is a claim about the text; without memory it can't be made */
    pn_ir_inputs(scope->ir, value, used, scope->slots);
    bool found = false;
    for (size_t i = 2 * scope->coordinates; i < scope->slots; i++) found |= used[i];
    pn_free(used);
    return found;
}
