/* Building, freeing and initialising networks, and the registry of models.
 *
 * Random numbers: Philox4x32-10 (Salmon et al. 2011) with key = seed and counter = (index low, stream, 2^32-1, 2^32-1). The sampler's
 * counters end in the step number, so step 2^64-1, which no run reaches, keeps the two apart. Stream b < 2^31 belongs to parameter
 * block b, stream 2^31 to fixed numbers. Two words make one uniform number of 53 bits.
 */
#include "network/network.h"

#include <math.h>
#include <string.h>

#include <Random123/philox.h>

#include "core/memory.h"
#include "models/models.h"

static const uint32_t fixed_stream = UINT32_C(1) << 31;

/* Two uniform numbers in [0, 1). */
static void uniform_pair(uint64_t seed, uint32_t stream, uint32_t index, double u[2]) {
    const philox4x32_key_t key = {{(uint32_t)seed, (uint32_t)(seed >> 32)}};
    const philox4x32_ctr_t counter = {{index, stream, UINT32_MAX, UINT32_MAX}};
    const philox4x32_ctr_t word = philox4x32(counter, key);
    for (int i = 0; i < 2; i++) u[i] = ldexp((double)((((uint64_t)word.v[2 * i + 1] << 32) | word.v[2 * i]) >> 11), -53);
}

void pn_network_initialise(const pn_network *network, uint64_t seed, double *parameters) {
    for (size_t b = 0; b < network->parameter_blocks; b++) {
        const pn_parameter *block = &network->parameter[b];
        const size_t count = block->columns ? block->rows * block->columns : block->rows;
        const double range = block->init == PN_INIT_ZERO ? 0.0 : sqrt(6.0 / (double)(block->rows + block->columns));
        for (size_t i = 0; i < count; i++) {
            double u[2];
            uniform_pair(seed, (uint32_t)b, (uint32_t)(i / 2), u);
            parameters[block->offset + i] = range * (2.0 * u[i % 2] - 1.0);
        }
    }
}

/* ---- for models ----------------------------------------------------------------------------------------------------------- */

pinn_status pn_network_add_parameter(pn_network *network, const char *name, size_t rows, size_t columns, pn_initial init, size_t *offset) {
    const size_t blocks = network->parameter_blocks;
    pn_parameter *grown = pn_reallocate(network->parameter, blocks, blocks + 1, sizeof *grown);
    if (!grown) return PN_NO_MEMORY("a network");
    network->parameter = grown;
    char *copy = pn_duplicate(name, strlen(name));
    if (!copy) return PN_NO_MEMORY("a network");
    network->parameter[blocks] = (pn_parameter){copy, network->parameters, rows, columns, init};
    network->parameter_blocks++;
    *offset = network->parameters;
    network->parameters += columns ? rows * columns : rows;
    return PINN_OK;
}

pinn_status pn_network_add_fixed_normal(pn_network *network, size_t count, double deviation, uint64_t seed, size_t *offset) {
    double *grown = pn_reallocate(network->fixed, network->fixed_count, network->fixed_count + count, sizeof *grown);
    if (!grown) return PN_NO_MEMORY("a network");
    network->fixed = grown;
    for (size_t i = 0; i < count; i++) {
        double u[2];
        uniform_pair(seed, fixed_stream, (uint32_t)(network->fixed_count + i), u);
        /* 1 - u lies in (0, 1], so the logarithm is finite */
        grown[network->fixed_count + i] = deviation * sqrt(-2.0 * log(1.0 - u[0])) * cos(2.0 * M_PI * u[1]);
    }
    *offset = network->fixed_count;
    network->fixed_count += count;
    return PINN_OK;
}

static pinn_status add_layer(pn_network *network, const pn_layer *layer, const pn_vector_parameter *parameter, size_t count) {
    pn_layer *grown = pn_reallocate(network->layer, network->layers, network->layers + 1, sizeof *grown);
    if (!grown) return PN_NO_MEMORY("a network");
    network->layer = grown;
    pn_vector_parameter *copy = pn_allocate(count, sizeof *copy);
    if (!copy) return PN_NO_MEMORY("a network");
    for (size_t k = 0; k < count; k++) copy[k] = parameter[k];
    pn_layer *added = &network->layer[network->layers++];
    *added = *layer;
    added->parameter = copy;
    added->parameters = count;
    return PINN_OK;
}

pinn_status pn_network_add_linear(pn_network *network, size_t in, size_t out, size_t weight) {
    const pn_layer layer = {.kind = PN_LAYER_LINEAR, .in = in, .out = out};
    return add_layer(network, &layer, &(pn_vector_parameter){weight, true}, 1);
}

pinn_status pn_network_add_pointwise(pn_network *network, const pn_layer *layer, const pn_vector_parameter *parameter, size_t count) {
    pn_layer sized = *layer;
    sized.out = layer->blocks * layer->in;
    return add_layer(network, &sized, parameter, count);
}

/* ---- creation --------------------------------------------------------------------------------------------------------------- */

static const struct model {
    const char *name;
    pinn_status (*build)(const pn_network_spec *, pn_network *);
} models[] = {
#define X(name, build) {#name, build},
    PN_MODEL_TABLE(X)
#undef X
};
enum { MODELS = sizeof models / sizeof models[0] };

static pinn_status find_model(const char *kind, const struct model **out) {
    for (size_t i = 0; i < MODELS; i++)
        if (kind && strcmp(kind, models[i].name) == 0) {
            *out = &models[i];
            return PINN_OK;
        }
    pn_text known = {0};
    for (size_t i = 0; i < MODELS; i++) pn_text_printf(&known, "%s%s", i ? ", " : "", models[i].name);
    pinn_status status = pn_fail(PINN_CONFIG, "unknown network kind \"%s\"; known are: %s", kind ? kind : "", pn_text_get(&known));
    pn_text_free(&known);
    return status;
}

static pinn_status check_spec(const pn_network_spec *spec) {
    if (!spec->coordinates || spec->coordinates > PN_MAX_COORDINATES)
        return pn_fail(PINN_BAD_ARGUMENT, "a network has 1 to %d coordinates, not %zu", PN_MAX_COORDINATES, spec->coordinates);
    if (!spec->fields || !spec->width || !spec->depth)
        return pn_fail(PINN_BAD_ARGUMENT, "a network needs at least one field, a width and a depth of at least 1 (got %zu, %zu, %zu)",
                       spec->fields, spec->width, spec->depth);
    for (size_t i = 0; i < spec->coordinates; i++)
        if (!(spec->lower[i] < spec->upper[i]))
            return pn_fail(PINN_BAD_ARGUMENT, "coordinate %zu has the empty interval [%g, %g]", i, spec->lower[i], spec->upper[i]);
    return PINN_OK;
}

pinn_status pn_network_create(const pn_network_spec *spec, pn_network **out) {
    pinn_status status;
    pn_network *network = NULL;
    const struct model *model = NULL;
    PN_TRY(check_spec(spec));
    PN_TRY(find_model(spec->kind, &model));
    network = pn_allocate(1, sizeof *network);
    if (!network) {
        status = PN_NO_MEMORY("a network");
        goto fail;
    }
    network->coordinates = spec->coordinates;
    network->fields = spec->fields;
    for (size_t i = 0; i < PN_MAX_COORDINATES; i++) network->unit[i] = 1;
    PN_TRY(model->build(spec, network));
    *out = network;
    return PINN_OK;
fail:
    pn_network_destroy(network);
    return status;
}

void pn_network_destroy(pn_network *network) {
    if (!network) return;
    for (size_t l = 0; l < network->layers; l++) pn_free(network->layer[l].parameter);
    pn_free(network->layer);
    for (size_t b = 0; b < network->parameter_blocks; b++) pn_free(network->parameter[b].name);
    pn_free(network->parameter);
    pn_free(network->fixed);
    if (network->free_model) network->free_model(network->model);
    pn_free(network);
}
