/* mlp: a fully connected network, optionally behind Fourier features.
 *
 * Inputs are scaled to [-1, 1]: xhat_i = s_i (x_i - m_i), s_i = 2/(upper_i - lower_i), m_i the middle. With hidden layers
 * a_l = s(a_{l-1} W_l + b_l), l = 1..depth, and the fields u = a_depth W + b, where a_0 = xhat, or, with Fourier features (Tancik et
 * al. 2020), a_0 = [cos 2 pi B xhat, sin 2 pi B xhat], B [coordinates, features] normal with standard deviation `scale` in the scaled
 * coordinates, fixed.
 *
 * Layers as the pass sees them: the first is pointwise over coordinates and holds either the embedding or the whole first dense
 * layer, since sum_i xhat_i W_i is a function of one point and one column: the jet of the affine map is z = b + sum_i xhat_i W_i,
 * z_{x_i} = s_i W_i, all else zero; carried per unit_i, which makes s_i unit_i about 1 (with Fourier features 2 pi scale s_i unit_i). It
 * costs no matrix product. Then LINEAR and POINTWISE (bias, activation) alternate.
 */
#include <stdio.h>

#include "core/memory.h"
#include "models/models.h"

static const double two_pi = 6.283185307179586476925286766559;

typedef struct mlp {
    pn_scalar_function *activation;
    size_t coordinates;
    double middle[PN_MAX_COORDINATES], slope[PN_MAX_COORDINATES]; /* m_i, s_i */
    const double *unit; /* [coordinates]: the network's */
} mlp;

/* Jet of factor * sum_i xhat_i row_i + bias; bias PN_NONE = none. */
static void affine_jet(const mlp *m, pn_ir *ir, const pn_layout *layout, const pn_value *x, const pn_value *row, double factor,
                       const pn_value *bias, pn_value *z) {
    for (size_t c = 0; c < layout->count; c++) {
        const pn_channel *channel = &layout->channel[c];
        z[c] = pn_ir_const(ir, 0.0);
        if (channel->order == 0) {
            for (size_t i = 0; i < m->coordinates; i++) {
                pn_value scaled = pn_ir_mul(ir, pn_ir_sub(ir, x[i], pn_ir_const(ir, m->middle[i])), pn_ir_const(ir, m->slope[i] * factor));
                z[c] = pn_ir_add(ir, z[c], pn_ir_mul(ir, scaled, row[i]));
            }
            if (bias) z[c] = pn_ir_add(ir, z[c], *bias);
        } else if (channel->order == 1) {
            unsigned i = channel->coordinate[0];
            z[c] = pn_ir_mul(ir, pn_ir_const(ir, m->slope[i] * m->unit[i] * factor), row[i]);
        }
    }
}

static pinn_status build_first_dense(const pn_layer *layer, pn_ir *ir, const pn_layout *layout, const pn_value *input,
                                     const pn_value *parameter, pn_value *out) {
    const mlp *m = layer->user;
    pn_value *z = pn_allocate(layout->count, sizeof *z);
    if (!z) return PN_NO_MEMORY("a jet");
    affine_jet(m, ir, layout, input, parameter, 1.0, &parameter[m->coordinates], z);
    pinn_status status = pn_jet_compose(ir, layout, m->activation, NULL, z, out);
    pn_free(z);
    return status;
}

static pn_value cosine(void *user, pn_ir *ir, pn_value z) {
    (void)user;
    return pn_ir_unary(ir, PN_OP_COS, z);
}

static pn_value sine(void *user, pn_ir *ir, pn_value z) {
    (void)user;
    return pn_ir_unary(ir, PN_OP_SIN, z);
}

static pinn_status build_fourier(const pn_layer *layer, pn_ir *ir, const pn_layout *layout, const pn_value *input,
                                 const pn_value *parameter, pn_value *out) {
    pinn_status status;
    pn_value *z = pn_allocate(layout->count, sizeof *z);
    if (!z) return PN_NO_MEMORY("a jet");
    affine_jet(layer->user, ir, layout, input, parameter, two_pi, NULL, z);
    PN_TRY(pn_jet_compose(ir, layout, cosine, NULL, z, out));
    PN_TRY(pn_jet_compose(ir, layout, sine, NULL, z, out + layout->count));
fail:
    pn_free(z);
    return status;
}

static pinn_status build_hidden(const pn_layer *layer, pn_ir *ir, const pn_layout *layout, const pn_value *input,
                                const pn_value *parameter, pn_value *out) {
    const mlp *m = layer->user;
    pn_value *z = pn_allocate(layout->count, sizeof *z);
    if (!z) return PN_NO_MEMORY("a jet");
    for (size_t c = 0; c < layout->count; c++) z[c] = input[c];
    z[0] = pn_ir_add(ir, z[0], parameter[0]);
    pinn_status status = pn_jet_compose(ir, layout, m->activation, NULL, z, out);
    pn_free(z);
    return status;
}

/* "layer<number>/weight" [in, out] and "layer<number>/bias" [out]. */
static pinn_status add_dense_parameters(pn_network *network, size_t number, size_t in, size_t out, size_t *weight, size_t *bias) {
    pinn_status status;
    char name[40];
    snprintf(name, sizeof name, "layer%zu/weight", number);
    PN_TRY(pn_network_add_parameter(network, name, in, out, PN_INIT_GLOROT_UNIFORM, weight));
    snprintf(name, sizeof name, "layer%zu/bias", number);
    PN_TRY(pn_network_add_parameter(network, name, out, 0, PN_INIT_ZERO, bias));
fail:
    return status;
}

static pinn_status add_first(const pn_network_spec *spec, pn_network *network) {
    pinn_status status;
    const size_t d = spec->coordinates;
    pn_vector_parameter vector[PN_MAX_COORDINATES + 1];
    if (spec->fourier_features) {
        const pn_layer layer = {.kind = PN_LAYER_POINTWISE, .in = spec->fourier_features, .blocks = 2, .coordinates = true,
                                .build = build_fourier, .user = network->model};
        size_t matrix;
        PN_TRY(pn_network_add_fixed_normal(network, d * layer.in, spec->fourier_scale, spec->seed, &matrix));
        for (size_t i = 0; i < d; i++) vector[i] = (pn_vector_parameter){matrix + i * layer.in, false};
        PN_TRY(pn_network_add_pointwise(network, &layer, vector, d));
    } else {
        const pn_layer layer = {.kind = PN_LAYER_POINTWISE, .in = spec->width, .blocks = 1, .coordinates = true,
                                .build = build_first_dense, .user = network->model};
        size_t weight, bias;
        PN_TRY(add_dense_parameters(network, 1, d, layer.in, &weight, &bias));
        for (size_t i = 0; i < d; i++) vector[i] = (pn_vector_parameter){weight + i * layer.in, true};
        vector[d] = (pn_vector_parameter){bias, true};
        PN_TRY(pn_network_add_pointwise(network, &layer, vector, d + 1));
    }
fail:
    return status;
}

static pinn_status add_hidden(const pn_network_spec *spec, pn_network *network, size_t number, size_t in) {
    pinn_status status;
    const pn_layer layer = {.kind = PN_LAYER_POINTWISE, .in = spec->width, .blocks = 1, .build = build_hidden, .user = network->model};
    size_t weight, bias;
    PN_TRY(add_dense_parameters(network, number, in, spec->width, &weight, &bias));
    PN_TRY(pn_network_add_linear(network, in, spec->width, weight));
    PN_TRY(pn_network_add_pointwise(network, &layer, &(pn_vector_parameter){bias, true}, 1));
fail:
    return status;
}

static pinn_status check_activation(const pn_network_spec *spec) {
    if (spec->activation && pn_activation_find(spec->activation)) return PINN_OK;
    pn_text known = {0};
    for (const char *const *name = pn_activation_names; *name; name++) pn_text_printf(&known, "%s%s", known.length ? ", " : "", *name);
    pinn_status status = pn_fail(PINN_CONFIG, "unknown activation \"%s\"; known are: %s", spec->activation ? spec->activation : "",
                                 pn_text_get(&known));
    pn_text_free(&known);
    return status;
}

pinn_status pn_mlp_build(const pn_network_spec *spec, pn_network *network) {
    pinn_status status;
    PN_TRY(check_activation(spec));
    mlp *m = pn_allocate(1, sizeof *m);
    if (!m) return PN_NO_MEMORY("a network");
    network->model = m;
    network->free_model = pn_free;
    m->activation = pn_activation_find(spec->activation);
    m->coordinates = spec->coordinates;
    m->unit = network->unit;
    for (size_t i = 0; i < spec->coordinates; i++) {
        m->middle[i] = 0.5 * (spec->lower[i] + spec->upper[i]);
        m->slope[i] = 2.0 / (spec->upper[i] - spec->lower[i]);
        network->unit[i] = 1 / pn_power_of_two(m->slope[i] * (spec->fourier_features ? two_pi * spec->fourier_scale : 1.0));
    }
    PN_TRY(add_first(spec, network));
    const size_t embedded = spec->fourier_features ? 2 * spec->fourier_features : 0; /* columns of the embedding */
    for (size_t number = embedded ? 1 : 2; number <= spec->depth; number++)
        PN_TRY(add_hidden(spec, network, number, number == 1 ? embedded : spec->width));
    size_t weight;
    PN_TRY(add_dense_parameters(network, spec->depth + 1, spec->width, spec->fields, &weight, &network->output_bias));
    PN_TRY(pn_network_add_linear(network, spec->width, spec->fields, weight));
fail:
    return status;
}
