/* Jets through nonlinear functions: the chain rule for partial derivatives, written into the IR.
 *
 * Channel with coordinates a_1..a_n of s(z), Faa di Bruno for partial derivatives (Hardy, Combinatorics of partial derivatives,
 * Electronic J. Combinatorics 13, 2006):
 *     sum over set partitions p of {1..n} of s^(|p|)(z) * product over blocks B in p of z_{a_i : i in B}.
 * Partitions that give the same product become one with an integer factor; products are gathered by |p|, so that each derivative
 * s^(k) is multiplied once a channel. Laplacian (Li et al., Forward Laplacian, 2024): L s(z) = s'(z) Lz + s''(z) sum_i a_i z_i^2.
 */
#include "pointwise/jet.h"

#include <string.h>

#include "core/memory.h"
#include "pointwise/ir_internal.h"

/* The argument of s while it is differentiated. A node of the graph itself cannot be the variable: simplifying may have taken it
 * apart, as sin(-w) is -sin(w). */
#define ARGUMENT_SLOT 0xfffffff0u

static pn_value argument_tangent(void *user, pn_ir *ir, uint32_t slot) {
    (void)user;
    return slot == ARGUMENT_SLOT ? pn_ir_const(ir, 1) : PN_NONE;
}

static pn_value argument_value(void *user, pn_ir *ir, uint32_t slot) {
    (void)ir;
    return slot == ARGUMENT_SLOT ? *(const pn_value *)user : PN_NONE;
}

/* Whether the argument is the only input; a trainable slope, say, would be another. */
static bool depends_on_argument_alone(pn_ir *ir, pn_value value) {
    if (value == PN_NONE) return false;
    size_t limit = 0;
    bool *reached = pn_ir_reach(ir, &value, 1, PN_WALK_VALUES, &limit);
    bool alone = true;
    if (!reached) ir->failed = true;
    for (size_t i = 0; i < limit; i++)
        if (reached[i] && ir->node[i].op == PN_OP_INPUT && ir->node[i].input != ARGUMENT_SLOT) alone = false;
    pn_free(reached);
    return alone;
}

/* s^(k)(z) for k = 0..order, each with its derivative noted, so that an adjoint costs one more derivative of s and no more. */
static void scalar_derivatives(pn_ir *ir, pn_scalar_function *s, void *user, pn_value z, unsigned order, pn_value *derivative) {
    bool gather = ir->gather;
    ir->gather = true;
    pn_value d = s(user, ir, pn_ir_input(ir, ARGUMENT_SLOT));
    bool alone = depends_on_argument_alone(ir, d);
    for (unsigned k = 0; k <= order + 1; k++) {
        derivative[k] = pn_ir_substitute(ir, d, argument_value, &z);
        if (k <= order) d = pn_ir_tangent(ir, d, argument_tangent, NULL);
    }
    for (unsigned k = 0; alone && k <= order; k++) pn_ir_know(ir, derivative[k], z, derivative[k + 1]);
    ir->gather = gather;
}

/* ---- set partitions -------------------------------------------------------------------------------------------------------- */

enum { MOST_PARTITIONS = 4140 }; /* Bell number of PN_MAX_ORDER */

/* factor * product of channels[0..blocks), which are indices into the layout, ascending. */
typedef struct product {
    unsigned factor, blocks;
    size_t channel[PN_MAX_ORDER];
} product;

/* Adds the partition that puts coordinate i of `channel` into block block[i]. */
static void add_partition(const pn_layout *layout, const pn_channel *channel, const unsigned *block, unsigned blocks, product *list,
                          size_t *count) {
    product found = {.factor = 1, .blocks = blocks};
    for (unsigned b = 0; b < blocks; b++) {
        pn_channel part = {0};
        for (unsigned i = 0; i < channel->order; i++)
            if (block[i] == b) part = pn_channel_derivative(&part, channel->coordinate[i]);
        size_t index = (size_t)pn_layout_find(layout, &part); /* there: the layout is closed downward */
        unsigned at = b;
        for (; at > 0 && found.channel[at - 1] > index; at--) found.channel[at] = found.channel[at - 1];
        found.channel[at] = index;
    }
    for (size_t i = 0; i < *count; i++)
        if (list[i].blocks == blocks && memcmp(list[i].channel, found.channel, sizeof found.channel) == 0) {
            list[i].factor++;
            return;
        }
    list[(*count)++] = found;
}

/* All set partitions as restricted growth strings: block[0] = 0, block[i] <= 1 + max(block[0..i)) (Knuth, TAOCP 4A, 7.2.1.5). */
static size_t partitions(const pn_layout *layout, const pn_channel *channel, product *list) {
    size_t count = 0;
    unsigned n = channel->order, block[PN_MAX_ORDER] = {0};
    for (;;) {
        unsigned blocks = 1;
        for (unsigned i = 0; i < n; i++)
            if (block[i] >= blocks) blocks = block[i] + 1;
        add_partition(layout, channel, block, blocks, list, &count);
        unsigned i = n; /* the next string: raise the last entry that may grow, clear those behind it */
        while (--i > 0) {
            unsigned limit = 0;
            for (unsigned j = 0; j < i; j++)
                if (block[j] >= limit) limit = block[j] + 1;
            if (block[i] < limit) break;
        }
        if (i == 0) return count;
        block[i]++;
        for (unsigned j = i + 1; j < n; j++) block[j] = 0;
    }
}

/* ---- composition ----------------------------------------------------------------------------------------------------------- */

static pn_value multiply_channels(pn_ir *ir, const product *term, const pn_value *z) {
    pn_value result = z[term->channel[0]];
    for (unsigned b = 1; b < term->blocks; b++) result = pn_ir_mul(ir, result, z[term->channel[b]]);
    return pn_ir_mul(ir, pn_ir_const(ir, term->factor), result);
}

static pn_value compose_partial(pn_ir *ir, const pn_layout *layout, const pn_channel *channel, const pn_value *derivative,
                                const pn_value *z, product *list) {
    size_t count = partitions(layout, channel, list);
    pn_value sum = pn_ir_const(ir, 0);
    for (unsigned blocks = 1; blocks <= channel->order; blocks++) {
        pn_value products = pn_ir_const(ir, 0);
        for (size_t i = 0; i < count; i++)
            if (list[i].blocks == blocks) products = pn_ir_add(ir, products, multiply_channels(ir, &list[i], z));
        sum = pn_ir_add(ir, sum, pn_ir_mul(ir, derivative[blocks], products));
    }
    return sum;
}

/* sum_i a_i z_i^2 over the first derivatives. */
static pn_value weighted_square(pn_ir *ir, const pn_layout *layout, const pn_value *z) {
    const pn_channel value = {0};
    pn_value sum = pn_ir_const(ir, 0);
    for (size_t i = 0; i < layout->coordinates; i++) {
        if (layout->laplacian[i] == 0) continue;
        pn_channel first = pn_channel_derivative(&value, (unsigned)i);
        int c = pn_layout_find(layout, &first);
        sum = pn_ir_add(ir, sum, pn_ir_mul(ir, pn_ir_const(ir, layout->laplacian[i]), pn_ir_mul(ir, z[c], z[c])));
    }
    return sum;
}

static unsigned layout_order(const pn_layout *layout) {
    unsigned order = 0;
    for (size_t c = 0; c < layout->count; c++)
        if (layout->channel[c].order > order) order = layout->channel[c].order;
    return order;
}

pinn_status pn_jet_compose(pn_ir *ir, const pn_layout *layout, pn_value (*s)(void *user, pn_ir *ir, pn_value z), void *user,
                           const pn_value *z, pn_value *out) {
    pinn_status status = PINN_OK;
    pn_value derivative[PN_MAX_ORDER + 2];
    pn_value *result = pn_allocate(layout->count, sizeof *result);
    product *list = pn_allocate(MOST_PARTITIONS, sizeof *list);
    if (!result || !list) {
        status = PN_NO_MEMORY("a jet");
        goto fail;
    }
    scalar_derivatives(ir, s, user, z[0], layout_order(layout), derivative);
    for (size_t c = 0; c < layout->count; c++) {
        const pn_channel *channel = &layout->channel[c];
        if (channel->laplacian) {
            pn_value curvature = pn_ir_mul(ir, derivative[2], weighted_square(ir, layout, z));
            result[c] = pn_ir_add(ir, pn_ir_mul(ir, derivative[1], z[c]), curvature);
        } else
            result[c] = channel->order ? compose_partial(ir, layout, channel, derivative, z, list) : derivative[0];
    }
    PN_TRY(pn_ir_check(ir));
    memcpy(out, result, layout->count * sizeof *out);
fail:
    pn_free(list);
    pn_free(result);
    return status;
}
