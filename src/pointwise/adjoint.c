/* Reverse differentiation: one sweep down the node ids. The adjoint of a node is the sum over its users of the user's partial
 * derivative times the user's adjoint; only nodes that lie between the inputs asked for and the outputs get one.
 * Source: Griewank & Walther, Evaluating Derivatives, 2nd ed. 2008, section 3.2.
 */
#include <string.h>

#include "core/memory.h"
#include "pointwise/ir_internal.h"

/* active[i] &= node i depends on an input of `variable`. */
static void keep_dependent(const pn_ir *ir, const pn_value *variable, size_t count, bool *active, bool *depends, size_t limit) {
    for (size_t i = 0; i < count; i++)
        if (variable[i] < limit) depends[variable[i]] = true;
    for (size_t i = 0; i < limit; i++) {
        pn_value step[3];
        int steps = pn_ir_steps(ir, (pn_value)i, step);
        for (int k = 0; k < steps; k++) depends[i] |= depends[step[k]];
        active[i] &= depends[i];
    }
}

static void accumulate(pn_ir *ir, pn_value *adjoint, pn_value term) {
    *adjoint = *adjoint == PN_NONE ? term : pn_ir_add(ir, *adjoint, term);
}

static void sweep(pn_ir *ir, const bool *active, pn_value *adjoint, size_t limit) {
    for (size_t i = limit; i-- > 0;) {
        if (!active[i] || adjoint[i] == PN_NONE) continue;
        pn_value step[3], g = adjoint[i];
        int steps = pn_ir_steps(ir, (pn_value)i, step);
        for (int k = 0; k < steps; k++)
            if (active[step[k]]) accumulate(ir, &adjoint[step[k]], pn_ir_chain(ir, (pn_value)i, k, g));
    }
}

pinn_status pn_ir_adjoint(pn_ir *ir, const pn_value *value, const pn_value *seed, size_t count, const uint32_t *wrt,
                          size_t wrt_count, pn_value *out) {
    pinn_status status = PINN_OK;
    size_t limit = 0;
    bool *active = pn_ir_reach(ir, value, count, PN_WALK_DERIVATIVES, &limit);
    bool *depends = pn_allocate(limit, sizeof *depends);
    pn_value *adjoint = pn_allocate(limit, sizeof *adjoint);
    pn_value *variable = pn_allocate(wrt_count, sizeof *variable);
    if (!active || !depends || !adjoint || !variable) {
        status = PN_NO_MEMORY("the adjoint of an expression");
        goto fail;
    }
    for (size_t i = 0; i < limit; i++) adjoint[i] = PN_NONE;
    for (size_t i = 0; i < wrt_count; i++) variable[i] = pn_ir_input(ir, wrt[i]);
    keep_dependent(ir, variable, wrt_count, active, depends, limit);
    for (size_t i = 0; i < count; i++)
        if (value[i] != PN_NONE && active[value[i]]) accumulate(ir, &adjoint[value[i]], seed[i]);
    sweep(ir, active, adjoint, limit);
    pn_value zero = pn_ir_const(ir, 0);
    for (size_t i = 0; i < wrt_count; i++) {
        bool reached = variable[i] < limit && adjoint[variable[i]] != PN_NONE;
        variable[i] = reached ? adjoint[variable[i]] : zero;
    }
    PN_TRY(pn_ir_check(ir));
    if (wrt_count) memcpy(out, variable, wrt_count * sizeof *out);
fail:
    pn_free(variable);
    pn_free(adjoint);
    pn_free(depends);
    pn_free(active);
    return status;
}
