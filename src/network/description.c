/* The programs of the network pass and the places of their operands; conventions in description.h.
 *
 * Loss. With r_k the k-th residual of a set and scale_k = 2 weight/points, d loss/d r_k = scale_k r_k: the adjoint of the residuals
 * is seeded with that product, so the program of a set yields squares and derivatives in one go. The output bias is added to the
 * value of each raw field inside the program; its derivative is the sum over points of the value channel's. There, too, raw derivatives,
 * which are carried per network->unit of their coordinates, become those of the problem.
 */
#include "network/description.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

/* A program being put together. */
typedef struct draft {
    pn_ir *ir;
    uint32_t *slot; pn_stride *in_stride; size_t inputs;
    pn_value *output; pn_output_kind *kind; pn_stride *out_stride; size_t outputs;
} draft;

static pinn_status draft_create(pn_ir *ir, size_t inputs, size_t outputs, draft *out) {
    *out = (draft){.ir = ir,
                   .slot = pn_allocate(inputs, sizeof *out->slot),
                   .in_stride = pn_allocate(inputs, sizeof *out->in_stride),
                   .output = pn_allocate(outputs, sizeof *out->output),
                   .kind = pn_allocate(outputs, sizeof *out->kind),
                   .out_stride = pn_allocate(outputs, sizeof *out->out_stride)};
    return out->slot && out->in_stride && out->output && out->kind && out->out_stride ? PINN_OK : PN_NO_MEMORY("a program");
}

static void draft_free(draft *d) {
    pn_free(d->slot);
    pn_free(d->in_stride);
    pn_free(d->output);
    pn_free(d->kind);
    pn_free(d->out_stride);
}

static pn_value draft_input(draft *d, uint32_t slot, size_t row, size_t column) {
    d->slot[d->inputs] = slot;
    d->in_stride[d->inputs++] = (pn_stride){row, column};
    return pn_ir_input(d->ir, slot);
}

static void draft_output(draft *d, pn_value value, pn_output_kind kind, size_t row, size_t column) {
    d->output[d->outputs] = value;
    d->kind[d->outputs] = kind;
    d->out_stride[d->outputs++] = (pn_stride){row, column};
}

static pinn_status draft_compile(const draft *d, pn_real real, size_t width, pn_program **out) {
    pinn_status status = pn_ir_check(d->ir);
    if (status != PINN_OK) return status;
    return pn_program_create(&(pn_program_spec){.ir = d->ir, .real = real, .width = width,
                                                .input = d->slot, .input_stride = d->in_stride, .inputs = d->inputs,
                                                .output = d->output, .kind = d->kind, .output_stride = d->out_stride, .outputs = d->outputs},
                             out);
}

/* ---- layers ----------------------------------------------------------------------------------------------------------------- */

/* Inputs every layer program has (slots 0, 1, ... in operand order), then the layer's output channels. */
static pinn_status build_layer(const pn_layer *layer, const pn_layout *layout, draft *d, pn_value *node, pn_value *out) {
    const size_t arguments = layer->coordinates ? layout->coordinates : layout->count;
    for (size_t i = 0; i < arguments; i++)
        node[i] = draft_input(d, (uint32_t)i, layer->coordinates ? 1 : layer->in, layer->coordinates ? 0 : 1);
    for (size_t k = 0; k < layer->parameters; k++) node[arguments + k] = draft_input(d, (uint32_t)(arguments + k), 0, 1);
    return layer->build(layer, d->ir, layout, node, node + arguments, out);
}

/* Reverse pass of a built layer: seeds are new inputs, outputs are dZ and the sums of trained vectors. */
static pinn_status differentiate_layer(const pn_layer *layer, const pn_layout *layout, draft *d, const pn_value *value, uint32_t *wrt,
                                       pn_value *seed, pn_value *adjoint) {
    const size_t arguments = layer->coordinates ? layout->coordinates : layout->count, channels = layer->blocks * layout->count;
    size_t count = 0, stored;
    if (!layer->coordinates)
        for (; count < layout->count; count++) wrt[count] = (uint32_t)count;
    stored = count;
    for (size_t k = 0; k < layer->parameters; k++)
        if (layer->parameter[k].trained) wrt[count++] = (uint32_t)(arguments + k);
    const uint32_t first_seed = (uint32_t)d->inputs;
    for (size_t c = 0; c < channels; c++) seed[c] = draft_input(d, first_seed + (uint32_t)c, layer->out, 1);
    pinn_status status = pn_ir_adjoint(d->ir, value, seed, channels, wrt, count, adjoint);
    if (status != PINN_OK) return status;
    for (size_t i = 0; i < count; i++)
        draft_output(d, adjoint[i], i < stored ? PN_STORE : PN_SUM_POINTS, i < stored ? layer->in : 0, 1);
    return PINN_OK;
}

static pinn_status compile_layer(const pn_pass *pass, const pn_layer *layer, const pn_layout *layout, bool backward, pn_program **out) {
    pinn_status status;
    pn_ir *ir = NULL;
    draft d = {0};
    const size_t channels = layer->blocks * layout->count;
    const size_t arguments = (layer->coordinates ? layout->coordinates : layout->count) + layer->parameters;
    pn_value *node = pn_allocate(2 * arguments + 2 * channels, sizeof *node); /* inputs, outputs, seeds, adjoints */
    uint32_t *wrt = pn_allocate(arguments, sizeof *wrt);
    if (!node || !wrt) {
        status = PN_NO_MEMORY("a program");
        goto fail;
    }
    pn_value *value = node + arguments;
    PN_TRY(pn_ir_create(&ir));
    PN_TRY(draft_create(ir, arguments + channels, arguments + channels, &d));
    PN_TRY(build_layer(layer, layout, &d, node, value));
    if (backward)
        PN_TRY(differentiate_layer(layer, layout, &d, value, wrt, value + channels, value + 2 * channels));
    else
        for (size_t c = 0; c < channels; c++) draft_output(&d, value[c], PN_STORE, layer->out, 1);
    PN_TRY(draft_compile(&d, pass->real, layer->in, out));
fail:
    draft_free(&d);
    pn_ir_destroy(ir);
    pn_free(node);
    pn_free(wrt);
    return status;
}

/* ---- layers whose input is kept as the elementary function of it ---------------------------------------------------------------- */

/* A kept layer being described: inputs and outputs of the layer in `ir`, and what stands for the elementary function. */
typedef struct kept_layer {
    const pn_layer *layer;
    const pn_layout *layout;
    pn_ir *ir;
    pn_value *node, *value, *adjoint; /* as in compile_layer */
    uint32_t *wrt;
    pn_value special, kept; /* PN_NONE: Z itself is kept */
} kept_layer;

/* Outputs in terms of what is kept; its slot takes the place of the first input's. */
static pinn_status compile_recall(const pn_pass *pass, kept_layer *k, bool backward, pn_program **out) {
    pinn_status status;
    const size_t channels = k->layout->count, arguments = channels + k->layer->parameters;
    draft d = {0};
    PN_TRY(draft_create(k->ir, arguments + channels, arguments + channels, &d));
    PN_TRY(build_layer(k->layer, k->layout, &d, k->node, k->value));
    if (backward)
        PN_TRY(differentiate_layer(k->layer, k->layout, &d, k->value, k->wrt, k->adjoint, k->adjoint + channels));
    else
        for (size_t c = 0; c < channels; c++) draft_output(&d, k->value[c], PN_STORE, k->layer->out, 1);
    if (k->special != PN_NONE) {
        d.slot[0] = pn_ir_node(k->ir, k->kept)->input;
        for (size_t i = 0; i < d.outputs; i++) d.output[i] = pn_ir_replace(k->ir, d.output[i], k->special, k->kept);
    }
    PN_TRY(draft_compile(&d, pass->real, k->layer->in, out));
fail:
    draft_free(&d);
    return status;
}

static pinn_status compile_remember(const pn_pass *pass, kept_layer *k, pn_program **out) {
    pinn_status status;
    const size_t channels = k->layout->count, arguments = channels + k->layer->parameters;
    draft d = {0};
    PN_TRY(draft_create(k->ir, arguments, channels + 1, &d));
    PN_TRY(build_layer(k->layer, k->layout, &d, k->node, k->value));
    for (size_t c = 0; c < channels; c++) draft_output(&d, k->value[c], PN_STORE, k->layer->out, 1);
    draft_output(&d, k->special == PN_NONE ? k->node[0] : k->special, PN_STORE, k->layer->out, 1);
    PN_TRY(draft_compile(&d, pass->real, k->layer->in, out));
fail:
    draft_free(&d);
    return status;
}

/* Sets special and kept if outputs and adjoint need nothing but that function of the first input. */
static pinn_status find_special(kept_layer *k) {
    pinn_status status;
    const size_t channels = k->layout->count, arguments = channels + k->layer->parameters;
    draft d = {0};
    bool needed = false;
    PN_TRY(draft_create(k->ir, arguments + channels, arguments + channels, &d));
    PN_TRY(build_layer(k->layer, k->layout, &d, k->node, k->value));
    PN_TRY(differentiate_layer(k->layer, k->layout, &d, k->value, k->wrt, k->adjoint, k->adjoint + channels));
    for (size_t c = 0; c < channels; c++) draft_output(&d, k->value[c], PN_STORE, 0, 0);
    k->special = pn_ir_lone_special(k->ir, d.output, d.outputs);
    if (k->special == PN_NONE) goto fail;
    k->kept = pn_ir_input(k->ir, (uint32_t)d.inputs);
    for (size_t i = 0; i < d.outputs; i++) pn_ir_inputs(k->ir, pn_ir_replace(k->ir, d.output[i], k->special, k->kept), &needed, 1);
    if (needed) k->special = PN_NONE;
    status = pn_ir_check(k->ir);
fail:
    draft_free(&d);
    return status;
}

pinn_status pn_describe_kept(const pn_pass *pass, const pn_group *group, size_t l, pn_kept *out) {
    pinn_status status;
    const pn_layer *layer = &pass->network->layer[l];
    const size_t channels = group->channels, arguments = channels + layer->parameters;
    kept_layer k = {.layer = layer, .layout = &group->carried,
                    .node = pn_allocate(2 * arguments + 2 * channels, sizeof *k.node), .wrt = pn_allocate(arguments, sizeof *k.wrt)};
    if (!k.node || !k.wrt) {
        status = PN_NO_MEMORY("a program");
        goto fail;
    }
    k.value = k.node + arguments;
    k.adjoint = k.value + channels;
    PN_TRY(pn_ir_create(&k.ir));
    PN_TRY(find_special(&k));
    PN_TRY(compile_remember(pass, &k, &out->remember));
    PN_TRY(compile_recall(pass, &k, false, &out->recall));
    PN_TRY(compile_recall(pass, &k, true, &out->adjoint));
fail:
    if (status != PINN_OK) pn_kept_free(out);
    pn_ir_destroy(k.ir);
    pn_free(k.node);
    pn_free(k.wrt);
    return status;
}

void pn_kept_free(pn_kept *kept) {
    pn_program_destroy(kept->remember);
    pn_program_destroy(kept->recall);
    pn_program_destroy(kept->adjoint);
    *kept = (pn_kept){0};
}

pinn_status pn_describe_group(const pn_pass *pass, pn_group *group) {
    pinn_status status = PINN_OK;
    for (size_t l = 0; l < pass->network->layers; l++) {
        const pn_layer *layer = &pass->network->layer[l];
        if (layer->kind != PN_LAYER_POINTWISE) continue;
        PN_TRY(compile_layer(pass, layer, &group->carried, false, &group->forward[l]));
        if (!pass->evaluate && l >= pass->trained_from) PN_TRY(compile_layer(pass, layer, &group->carried, true, &group->backward[l]));
    }
fail:
    return status;
}

/* ---- networks of equal layers -------------------------------------------------------------------------------------------------- */

/* Either all vectors of a layer are trained or none. */
static bool mixed_training(const pn_layer *layer) {
    for (size_t k = 1; k < layer->parameters; k++)
        if (layer->parameter[k].trained != layer->parameter[0].trained) return true;
    return false;
}

pinn_status pn_describe_uniform(const pn_pass *pass, const char *lowering, pn_uniform *out) {
    const pn_network *network = pass->network;
    const pn_layer *first = &network->layer[0];
    const char *reason = NULL;
    if (pass->evaluate)
        reason = "an evaluation runs layer by layer";
    else if (network->layers < 4)
        reason = "the network has one hidden layer";
    if (reason) return pn_fail(PINN_UNSUPPORTED, "no %s pass: %s", lowering, reason);
    pn_uniform net = {.hidden = network->layers / 2 - 1, .first = first->out, .first_lanes = first->in, .width = network->layer[1].out,
                      .first_vectors = first->parameters, .vectors = network->layer[2].parameters, .first_trained = pass->trained_from == 0};
    for (size_t l = 0; l < network->layers && !reason; l++) {
        const pn_layer *layer = &network->layer[l];
        if (layer->kind == PN_LAYER_LINEAR) continue;
        if (!layer->parameters || mixed_training(layer))
            reason = "a layer has no vector parameters, or trains some of them";
        else if (l > 0 && (layer->in != net.width || layer->blocks != 1 || layer->parameters != net.vectors || !layer->parameter[0].trained))
            reason = "the hidden layers differ";
    }
    if (!reason && net.first_trained && (first->blocks != 1 || net.first != net.width)) reason = "the first layer is not like the hidden ones";
    if (reason) return pn_fail(PINN_UNSUPPORTED, "no %s pass: %s", lowering, reason);
    net.sum_vectors = (net.first_trained ? net.first_vectors : 0) + net.hidden * net.vectors + network->fields;
    *out = net;
    return PINN_OK;
}

/* Shared memory a block may have: CUDA C++ Programming Guide, "Compute Capabilities", technical specifications; of 8.8, which that leaves out,
 * cuda_occupancy.h of the CUDA Toolkit: 100 KiB a multiprocessor, of which a block has 99. Multiprocessors: of the GPU named, by its data sheet. */
static const struct {
    unsigned capability;
    pn_device_limits limits;
} known_limits[] = {{80, {163 * 1024, 108}},  /* A100 */
                    {86, {99 * 1024, 84}},    /* A40 */
                    {87, {163 * 1024, 16}},   /* Jetson AGX Orin */
                    {88, {99 * 1024, 16}},    /* none is listed: as many as 8.7 */
                    {89, {99 * 1024, 142}},   /* L40S */
                    {90, {227 * 1024, 132}},  /* H200 */
                    {100, {227 * 1024, 148}}, /* B200 */
                    {103, {227 * 1024, 148}}, /* B300 */
                    {110, {227 * 1024, 20}},  /* Jetson AGX Thor */
                    {120, {99 * 1024, 170}},  /* RTX 5090 */
                    {121, {99 * 1024, 48}}};  /* GB10 */

static const pn_device_limits *find_limits(const char *architecture) {
    const char *number = strchr(architecture, '_');
    const unsigned long capability = number ? strtoul(number + 1, NULL, 10) : 0;
    for (size_t i = 0; i < sizeof known_limits / sizeof known_limits[0]; i++)
        if (known_limits[i].capability == capability) return &known_limits[i].limits;
    return NULL;
}

bool pn_limits_known(const char *architecture) { return find_limits(architecture) != NULL; }

pn_device_limits pn_limits_of(const char *architecture) {
    const pn_device_limits *found = find_limits(architecture);
    return found ? *found : (pn_device_limits){99 * 1024, 16};
}

size_t pn_most_channels(const pn_pass *pass) {
    size_t most = 0;
    for (size_t g = 0; g < pass->groups; g++)
        if (pass->group[g].channels > most) most = pass->group[g].channels;
    return most;
}

void pn_describe_order(const pn_pass *pass, size_t *order) {
    size_t n = 0;
    for (size_t channels = pn_most_channels(pass); channels > 0; channels--)
        for (size_t g = 0; g < pass->groups; g++)
            for (size_t m = 0; m < pass->members && pass->group[g].channels == channels; m++)
                if (pass->member[m].group == g) order[n++] = m;
}

/* ---- residuals -------------------------------------------------------------------------------------------------------------- */

typedef struct raw_map {
    const pn_scope *scope;
    const pn_layout *layout;
    const double *unit; /* [coordinates] */
    uint32_t first; /* slot of field 0's output bias; the scope's own slots end before it */
} raw_map;

/* u is raw u + bias; its derivatives don't feel that, and are as many raw ones as their units tell. */
static pn_value field_of_raw(void *user, pn_ir *ir, uint32_t slot) {
    const raw_map *map = user;
    if (slot >= map->first) return PN_NONE;
    const pn_slot meaning = pn_scope_slot(map->scope, slot);
    if (meaning.kind != PN_SLOT_FIELD) return PN_NONE;
    const pn_value raw = pn_ir_input(ir, slot);
    if (!meaning.channel.order) return pn_ir_add(ir, raw, pn_ir_input(ir, map->first + meaning.index));
    return pn_ir_mul(ir, pn_ir_const(ir, pn_channel_factor(map->layout, &meaning.channel, map->unit)), raw);
}

/* Inputs of a set's program, `wrt` receives the slots of raw fields [C][F] and biases [F], `scale` the nodes of the scales. */
static pinn_status residual_inputs(const pn_pass_spec *spec, const pn_pass_set *set, draft *d, uint32_t *wrt, pn_value *scale,
                                   raw_map *map) {
    const size_t fields = spec->network->fields, coordinates = spec->network->coordinates, channels = set->layout->count;
    const size_t geometric = set->point_columns >= 2 * coordinates ? 2 * coordinates : coordinates; /* normals or not */
    for (size_t i = 0; i < geometric; i++) draft_input(d, (uint32_t)i, 1, 0);
    for (size_t i = 0; i < channels * fields; i++) {
        wrt[i] = pn_scope_field_slot(spec->scope, (unsigned)(i % fields), &set->layout->channel[i / fields]);
        if (wrt[i] == PN_NONE) return PN_NO_MEMORY("a program");
        draft_input(d, wrt[i], fields, 0);
    }
    *map = (raw_map){spec->scope, set->layout, spec->network->unit, (uint32_t)pn_scope_slots(spec->scope)};
    for (size_t f = 0; f < fields; f++) {
        wrt[channels * fields + f] = map->first + (uint32_t)f;
        draft_input(d, map->first + (uint32_t)f, 0, 0);
    }
    if (!spec->evaluate)
        for (size_t k = 0; k < set->residuals; k++) scale[k] = draft_input(d, map->first + (uint32_t)(fields + k), 0, 0);
    return PINN_OK;
}

static pinn_status residual_outputs(const pn_pass_spec *spec, const pn_pass_set *set, draft *d, const uint32_t *wrt, const pn_value *scale,
                                    raw_map *map, pn_value *work) {
    const size_t fields = spec->network->fields, stored = set->layout->count * fields;
    pn_value *r = work, *seed = work + set->residuals, *adjoint = seed + set->residuals;
    for (size_t k = 0; k < set->residuals; k++) {
        r[k] = pn_ir_substitute(d->ir, set->residual[k], field_of_raw, map);
        seed[k] = pn_ir_mul(d->ir, scale[k], r[k]);
    }
    pinn_status status = pn_ir_adjoint(d->ir, r, seed, set->residuals, wrt, stored + fields, adjoint);
    if (status != PINN_OK) return status;
    for (size_t k = 0; k < set->residuals; k++) draft_output(d, pn_ir_mul(d->ir, r[k], r[k]), PN_SUM_POINTS_F64, 0, 1);
    for (size_t i = 0; i < stored; i++) draft_output(d, adjoint[i], PN_STORE, fields, 0);
    for (size_t f = 0; f < fields; f++) draft_output(d, adjoint[stored + f], PN_SUM_POINTS, 0, 1);
    return PINN_OK;
}

pinn_status pn_describe_member(const pn_pass_spec *spec, const pn_pass *pass, const pn_pass_set *set, pn_member *member) {
    pinn_status status;
    const size_t fields = spec->network->fields, raw = set->layout->count * fields;
    draft d = {0};
    raw_map map;
    uint32_t *wrt = pn_allocate(raw + fields, sizeof *wrt);
    pn_value *node = pn_allocate(3 * set->residuals + raw + fields, sizeof *node); /* scales, residuals, seeds, adjoints */
    if (!wrt || !node) {
        status = PN_NO_MEMORY("a program");
        goto fail;
    }
    PN_TRY(draft_create(spec->ir, 2 * spec->network->coordinates + raw + fields + set->residuals, set->residuals + raw + fields, &d));
    PN_TRY(residual_inputs(spec, set, &d, wrt, node, &map));
    if (spec->residuals)
        for (size_t k = 0; k < set->residuals; k++)
            draft_output(&d, pn_ir_substitute(spec->ir, set->residual[k], field_of_raw, &map), PN_STORE, 1, 0);
    else if (spec->evaluate)
        for (size_t f = 0; f < fields; f++) draft_output(&d, field_of_raw(&map, spec->ir, wrt[f]), PN_STORE, 1, 0);
    else
        PN_TRY(residual_outputs(spec, set, &d, wrt, node, &map, node + set->residuals));
    PN_TRY(draft_compile(&d, pass->real, 1, &member->residual));
fail:
    draft_free(&d);
    pn_free(wrt);
    pn_free(node);
    return status;
}

/* ---- operands --------------------------------------------------------------------------------------------------------------- */

/* Channel c, column block b of a layer's buffer over a span. */
static pn_operand buffer_operand(const pn_pass *pass, size_t layer, const pn_span *span, size_t channel, size_t block) {
    const pn_layer *l = &pass->network->layer[layer];
    return (pn_operand){PN_BASE_WORK, pass->buffer[layer] + (span->row + channel * span->pitch) * l->out + block * l->in};
}

/* Arguments and vector parameters of a layer program; returns their number. */
static size_t bind_arguments(const pn_pass *pass, const pn_group *group, size_t layer, const pn_span *span, pn_operand *in) {
    const pn_layer *l = &pass->network->layer[layer];
    size_t n = 0;
    if (l->coordinates)
        for (size_t i = 0; i < pass->network->coordinates; i++)
            in[n++] = (pn_operand){PN_BASE_POINTS, span->point + i * span->point_pitch};
    else
        for (size_t c = 0; c < group->channels; c++) in[n++] = buffer_operand(pass, layer - 1, span, c, 0);
    for (size_t k = 0; k < l->parameters; k++)
        in[n++] = (pn_operand){l->parameter[k].trained ? PN_BASE_PARAMETERS : PN_BASE_FIXED, l->parameter[k].offset};
    return n;
}

static void bind_jet(const pn_pass *pass, const pn_group *group, size_t layer, const pn_span *span, pn_operand *operand) {
    for (size_t b = 0; b < pass->network->layer[layer].blocks; b++)
        for (size_t c = 0; c < group->channels; c++) *operand++ = buffer_operand(pass, layer, span, c, b);
}

void pn_bind_forward(const pn_pass *pass, const pn_group *group, size_t layer, const pn_span *span, pn_operand *in, pn_operand *out) {
    bind_arguments(pass, group, layer, span, in);
    bind_jet(pass, group, layer, span, out);
}

void pn_bind_backward(const pn_pass *pass, const pn_group *group, size_t layer, const pn_span *span, pn_operand *in, pn_operand *out) {
    const pn_layer *l = &pass->network->layer[layer];
    const size_t arguments = bind_arguments(pass, group, layer, span, in);
    bind_jet(pass, group, layer, span, in + arguments);
    size_t n = 0;
    if (!l->coordinates)
        for (size_t c = 0; c < group->channels; c++) out[n++] = buffer_operand(pass, layer - 1, span, c, 0);
    for (size_t k = 0; k < l->parameters; k++)
        if (l->parameter[k].trained) out[n++] = (pn_operand){PN_BASE_GRADIENT, l->parameter[k].offset};
}

void pn_bind_residual(const pn_pass *pass, const pn_member *member, const pn_span *span, pn_operand *in, pn_operand *out) {
    const size_t fields = pass->network->fields, coordinates = pass->network->coordinates, last = pass->network->layers - 1;
    const size_t channels = pass->group[member->group].channels;
    const size_t geometric = member->point_columns >= 2 * coordinates ? 2 * coordinates : coordinates;
    size_t n = 0, m = 0;
    for (size_t i = 0; i < geometric; i++) in[n++] = (pn_operand){PN_BASE_POINTS, span->point + i * span->point_pitch};
    pn_operand *raw = in + n;
    for (size_t c = 0; c < channels; c++)
        for (size_t f = 0; f < fields; f++) {
            in[n] = buffer_operand(pass, last, span, c, 0);
            in[n++].offset += f;
        }
    for (size_t f = 0; f < fields; f++) in[n++] = (pn_operand){PN_BASE_PARAMETERS, pass->network->output_bias + f};
    if (pass->evaluate) {
        const size_t stored = pass->store_residuals ? member->residuals : fields;
        for (size_t f = 0; f < stored; f++) out[m++] = (pn_operand){PN_BASE_FIELDS, span->field + f * span->field_pitch};
        return;
    }
    for (size_t k = 0; k < member->residuals; k++) in[n++] = (pn_operand){PN_BASE_SCALE, member->first_term + k};
    for (size_t k = 0; k < member->residuals; k++) out[m++] = (pn_operand){PN_BASE_LOSS, member->first_term + k};
    for (size_t i = 0; i < channels * fields; i++) out[m++] = raw[i];
    for (size_t f = 0; f < fields; f++) out[m++] = (pn_operand){PN_BASE_GRADIENT, pass->network->output_bias + f};
}
