/* Activations as scalar functions in the IR; their jets of any order and their adjoints follow from these few lines.
 *
 *   silu(z) = z*sigmoid(z), sigmoid(z) = (1 + tanh(z/2))/2: one tanh gives every derivative as a polynomial
 *             (Elfwing et al. 2018)
 *   gelu(z) = z*Phi(z), Phi the normal distribution by erf, not its tanh approximation (Hendrycks & Gimpel 2016)
 *   softplus(z) = log(1 + e^z) (Dugas et al. 2001)
 */
#include <math.h>
#include <string.h>

#include "pointwise/jet.h"

static pn_value half_of_one_plus(pn_ir *ir, pn_value t) {
    return pn_ir_mul(ir, pn_ir_const(ir, 0.5), pn_ir_add(ir, pn_ir_const(ir, 1), t));
}

static pn_value activation_tanh(void *user, pn_ir *ir, pn_value z) {
    (void)user;
    return pn_ir_unary(ir, PN_OP_TANH, z);
}

static pn_value activation_sin(void *user, pn_ir *ir, pn_value z) {
    (void)user;
    return pn_ir_unary(ir, PN_OP_SIN, z);
}

static pn_value activation_silu(void *user, pn_ir *ir, pn_value z) {
    (void)user;
    pn_value t = pn_ir_unary(ir, PN_OP_TANH, pn_ir_mul(ir, pn_ir_const(ir, 0.5), z));
    return pn_ir_mul(ir, z, half_of_one_plus(ir, t));
}

static pn_value activation_gelu(void *user, pn_ir *ir, pn_value z) {
    (void)user;
    pn_value e = pn_ir_unary(ir, PN_OP_ERF, pn_ir_mul(ir, pn_ir_const(ir, M_SQRT1_2), z));
    return pn_ir_mul(ir, z, half_of_one_plus(ir, e));
}

static pn_value activation_softplus(void *user, pn_ir *ir, pn_value z) {
    (void)user;
    return pn_ir_unary(ir, PN_OP_SOFTPLUS, z);
}

#define ACTIVATIONS(X) X(tanh) X(sin) X(silu) X(gelu) X(softplus)

const char *const pn_activation_names[] = {
#define X(name) #name,
    ACTIVATIONS(X)
#undef X
        NULL,
};

pn_scalar_function *pn_activation_find(const char *name) {
    static pn_scalar_function *const function[] = {
#define X(name) activation_##name,
        ACTIVATIONS(X)
#undef X
    };
    for (size_t i = 0; pn_activation_names[i]; i++)
        if (strcmp(pn_activation_names[i], name) == 0) return function[i];
    return NULL;
}
