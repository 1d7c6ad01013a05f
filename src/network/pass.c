/* Creation of the network pass: groups, programs, planes; the choice of a lowering; its results and its cost. */
#include "network/pass.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "network/description.h"
#include "network/stream.h"
#include "network/tile.h"

/* ---- services for the lowerings ----------------------------------------------------------------------------------------------- */

static pinn_status add_partial(pn_partial **list, size_t *count, pn_partial partial) {
    pn_partial *grown = pn_reallocate(*list, *count, *count + 1, sizeof *grown);
    if (!grown) return PN_NO_MEMORY("the network pass");
    grown[(*count)++] = partial;
    *list = grown;
    return PINN_OK;
}

pinn_status pn_pass_add_gradient(pn_pass *pass, pn_partial partial) { return add_partial(&pass->gradient, &pass->gradients, partial); }
pinn_status pn_pass_add_loss(pn_pass *pass, pn_partial partial) { return add_partial(&pass->loss, &pass->losses, partial); }

pinn_status pn_pass_allocate(pn_pass *pass, pn_base base, const char *name, size_t elements) {
    const size_t bytes = elements * pn_base_bytes(pass, base);
    if (!bytes) return PINN_OK;
    pinn_status status = pinn_plane_create(pass->context, name, PINN_DEVICE, bytes, &pass->plane[base]);
    if (status != PINN_NO_MEMORY) return status;
    return pn_fail(PINN_REFUSED, "the network pass needs %.1f MiB for its %s (%zu rows): use fewer points or a narrower network",
                   (double)bytes / 1048576.0, name, pass->rows);
}

pinn_planes pn_pass_planes(const pn_pass *pass, unsigned mask, pinn_plane **list) {
    size_t count = 0;
    for (pn_base b = 0; b < PN_BASES; b++)
        if ((mask & (1u << b)) && pass->plane[b]) list[count++] = pass->plane[b];
    return (pinn_planes){list, count};
}

void pn_pass_addresses(const pn_pass *pass, unsigned mask, void *const *address, void **base) {
    for (pn_base b = 0; b < PN_BASES; b++)
        if ((mask & (1u << b)) && pass->plane[b]) base[b] = *address++;
}

/* ---- creation ----------------------------------------------------------------------------------------------------------------- */

static pinn_status find_group(pn_pass *pass, const pn_layout *layout, size_t *out) {
    for (*out = 0; *out < pass->groups; ++*out)
        if (pn_layout_equal(pass->group[*out].layout, layout)) return PINN_OK;
    pn_group *group = &pass->group[pass->groups++]; /* room for one a set */
    *group = (pn_group){.layout = layout,
                        .carried = pn_layout_carried(layout, pass->network->unit),
                        .channels = layout->count,
                        .forward = pn_allocate(pass->network->layers, sizeof *group->forward),
                        .backward = pn_allocate(pass->network->layers, sizeof *group->backward)};
    return group->forward && group->backward ? PINN_OK : PN_NO_MEMORY("the network pass");
}

static pinn_status describe_sets(const pn_pass_spec *spec, pn_pass *pass) {
    pinn_status status = PINN_OK;
    size_t field_offset = 0;
    for (size_t s = 0; s < spec->sets; s++) {
        const pn_pass_set *set = &spec->set[s];
        size_t group = 0;
        PN_TRY(find_group(pass, set->layout, &group));
        pass->member[s] = (pn_member){group, set->points, pass->group[group].points, set->point_columns, set->point_offset,
                                      set->residuals, set->first_term, field_offset, NULL};
        pass->members++;
        pass->group[group].points += set->points;
        field_offset += set->points * (spec->residuals ? set->residuals : spec->network->fields);
        PN_TRY(pn_describe_member(spec, pass, set, &pass->member[s]));
    }
    for (size_t g = 0; g < pass->groups; g++) {
        pass->group[g].row = pass->rows;
        pass->rows += pass->group[g].channels * pass->group[g].points;
        PN_TRY(pn_describe_group(pass, &pass->group[g]));
    }
    if (pass->rows > INT_MAX / 2) return pn_fail(PINN_REFUSED, "%zu rows of points times channels are too many: use fewer points", pass->rows);
    if (spec->evaluate) PN_TRY(pn_pass_allocate(pass, PN_BASE_FIELDS, "fields", field_offset));
fail:
    return status;
}

static pinn_status check_spec(const pn_pass_spec *spec) {
    const bool cpu = pinn_context_executor(spec->context) == PINN_EXECUTOR_CPU;
    if (!spec->sets) return pn_fail(PINN_BAD_ARGUMENT, "a network pass needs at least one point set");
    if (spec->tf32 && ((cpu && !spec->compile_for) || spec->real != PN_FLOAT32))
        return pn_fail(PINN_UNSUPPORTED, "precision \"tf32\" exists on a GPU only: use \"float32\" on a CPU");
    if (!spec->evaluate && !spec->scale) return pn_fail(PINN_BAD_ARGUMENT, "a training pass needs the plane of loss scales");
    if (spec->residuals && !spec->evaluate) return pn_fail(PINN_BAD_ARGUMENT, "residuals are stored by a pass that evaluates");
    const size_t real = pn_real_bytes(spec->real);
    if (pinn_plane_bytes(spec->parameters) < spec->network->parameters * real)
        return pn_fail(PINN_BAD_ARGUMENT, "the parameters plane is smaller than the network's %zu parameters", spec->network->parameters);
    for (size_t s = 0; s < spec->sets; s++) {
        const pn_pass_set *set = &spec->set[s];
        if (!set->points || set->point_columns < spec->network->coordinates || (!spec->evaluate && set->first_term + set->residuals > spec->terms))
            return pn_fail(PINN_BAD_ARGUMENT, "point set %zu has no points, too few columns or terms beyond the last", s);
        if (pinn_plane_bytes(spec->points) < (set->point_offset + set->point_columns * set->points) * real)
            return pn_fail(PINN_BAD_ARGUMENT, "the points plane is smaller than point set %zu needs", s);
    }
    return PINN_OK;
}

/* Untrained numbers go to the device once. */
static pinn_status place_fixed(pn_pass *pass) {
    pinn_status status;
    const size_t count = pass->network->fixed_count, bytes = count * pn_real_bytes(pass->real);
    if (!count) return PINN_OK;
    void *rounded = pn_allocate(bytes, 1);
    if (!rounded) return PN_NO_MEMORY("the network pass");
    for (size_t i = 0; i < count; i++) pn_real_set(pass->real, rounded, i, pass->network->fixed[i]);
    PN_TRY(pn_pass_allocate(pass, PN_BASE_FIXED, "fixed parameters", count));
    PN_TRY(pinn_plane_write(pass->plane[PN_BASE_FIXED], 0, rounded, bytes));
fail:
    pn_free(rounded);
    return status;
}

static size_t first_trained_layer(const pn_network *network) {
    for (size_t l = 0; l < network->layers; l++)
        for (size_t k = 0; k < network->layer[l].parameters; k++)
            if (network->layer[l].parameter[k].trained) return l;
    return network->layers;
}

static void count_cost(pn_pass *pass);

enum { STREAMED_WIDTH = 129 }; /* a GPU's pass is streamed rather than tiled from here on */

static bool is_wide(const pn_network *network) {
    for (size_t l = 0; l < network->layers; l++)
        if (network->layer[l].out >= STREAMED_WIDTH) return true;
    return false;
}

/* Of a CPU. With compile_for what else a GPU might run, or does run to evaluate, is checked by being made. */
static const pn_lowering_form *cpu_form(const pn_pass_spec *spec) {
    const bool checked = spec->compile_for && (spec->evaluate || spec->lowering == PN_LOWERING_AUTO);
    if (spec->lowering == PN_LOWERING_LAYERED || checked) return &pn_layered_form;
    return spec->lowering == PN_LOWERING_STREAMED && !spec->compile_for ? &pn_stream_form : &pn_tiled_form;
}

/* Of a GPU: lowerings to try one after another until one supports the pass. AUTO: streamed from STREAMED_WIDTH on, tiled, layered; evaluations,
 * which are rare, layered. What was asked for is an error where it cannot be. */
static size_t list_forms(const pn_pass_spec *spec, const pn_lowering_form *form[3]) {
    const bool tiles = !pn_tiles_auto(spec->tiles), rows = pn_tiles_rows(spec->tiles, &(pn_tile_rows){0});
    size_t count = 0;
    if (spec->lowering == PN_LOWERING_LAYERED || spec->evaluate || pn_tiles_layered(spec->tiles))
        form[count++] = &pn_layered_form;
    else if (spec->lowering == PN_LOWERING_STREAMED || (spec->lowering == PN_LOWERING_AUTO && rows))
        form[count++] = &pn_stream_form;
    else if (spec->lowering == PN_LOWERING_TILED || tiles)
        form[count++] = &pn_tile_form;
    else {
        const bool wide = is_wide(spec->network);
        form[count++] = wide ? &pn_stream_form : &pn_tile_form;
        form[count++] = wide ? &pn_tile_form : &pn_stream_form;
        form[count++] = &pn_layered_form;
    }
    return count;
}

/* The last error is why one more lowering cannot be. */
static void note_reason(pn_pass *pass) {
    const size_t length = strlen(pass->note);
    snprintf(pass->note + length, sizeof pass->note - length, "%s%s", length ? "; " : "", pinn_error_message());
}

/* Compiles, on a CPU, what a GPU of the architecture would run. */
static pinn_status check_kernels(const pn_pass_spec *spec, pn_pass *pass) {
    const pn_lowering_form *form[3];
    const size_t count = list_forms(spec, form);
    pinn_status status = PINN_UNSUPPORTED;
    for (size_t i = 0; i < count && status == PINN_UNSUPPORTED; i++) {
        if (i > 0) note_reason(pass);
        pass->checked = form[i];
        status = form[i]->check ? form[i]->check(pass, spec->compile_for, &pass->check) : PINN_OK;
    }
    if (pass->checked != &pn_layered_form) pass->note[0] = '\0';
    return status;
}

static pinn_status create_lowering(const pn_pass_spec *spec, pn_pass *pass) {
    const bool cpu = pinn_context_executor(spec->context) == PINN_EXECUTOR_CPU;
    const pn_lowering_form *form[3] = {cpu ? cpu_form(spec) : NULL};
    const size_t count = cpu ? 1 : list_forms(spec, form);
    pinn_status status = PINN_UNSUPPORTED;
    for (size_t i = 0; i < count && status == PINN_UNSUPPORTED; i++) {
        if (i > 0) {
            note_reason(pass);
            pass->form->destroy(pass);
        }
        pass->form = form[i];
        status = pass->form->create(pass);
    }
    if (pass->form != &pn_layered_form) pass->note[0] = '\0';
    return status == PINN_OK && cpu && spec->compile_for ? check_kernels(spec, pass) : status;
}

pinn_status pn_pass_create(const pn_pass_spec *spec, pn_pass **out) {
    pinn_status status;
    pn_pass *pass = NULL;
    PN_TRY(check_spec(spec));
    pass = pn_allocate(1, sizeof *pass);
    if (!pass) return PN_NO_MEMORY("the network pass");
    pass->context = spec->context;
    pass->network = spec->network;
    pass->real = spec->real;
    pass->tf32 = spec->tf32;
    pass->evaluate = spec->evaluate;
    pass->compile_for = spec->compile_for;
    pass->tiles = spec->tiles;
    pass->products_fma = spec->products_fma;
    pass->store_residuals = spec->residuals;
    pass->terms = spec->terms;
    pass->trained_from = first_trained_layer(spec->network);
    pass->plane[PN_BASE_PARAMETERS] = spec->parameters;
    pass->plane[PN_BASE_POINTS] = spec->points;
    pass->plane[PN_BASE_SCALE] = spec->evaluate ? NULL : spec->scale;
    pass->group = pn_allocate(spec->sets, sizeof *pass->group);
    pass->member = pn_allocate(spec->sets, sizeof *pass->member);
    pass->buffer = pn_allocate(spec->network->layers, sizeof *pass->buffer);
    if (!pass->group || !pass->member || !pass->buffer) {
        status = PN_NO_MEMORY("the network pass");
        goto fail;
    }
    PN_TRY(describe_sets(spec, pass));
    PN_TRY(place_fixed(pass));
    PN_TRY(create_lowering(spec, pass));
    for (size_t g = 0; g < pass->groups; g++) pass->group[g].layout = NULL, pass->group[g].carried = (pn_layout){0}; /* the caller's */
    count_cost(pass);
    *out = pass;
    return PINN_OK;
fail:
    pn_pass_destroy(pass);
    return status;
}

void pn_pass_destroy(pn_pass *pass) {
    if (!pass) return;
    if (pass->form) pass->form->destroy(pass);
    pn_compilation_drop(pass->check);
    for (size_t g = 0; g < pass->groups; g++) {
        for (size_t l = 0; l < pass->network->layers; l++) {
            if (pass->group[g].forward) pn_program_destroy(pass->group[g].forward[l]);
            if (pass->group[g].backward) pn_program_destroy(pass->group[g].backward[l]);
        }
        pn_free(pass->group[g].forward);
        pn_free(pass->group[g].backward);
    }
    for (size_t s = 0; s < pass->members; s++) pn_program_destroy(pass->member[s].residual);
    const pn_base owned[] = {PN_BASE_FIXED, PN_BASE_WORK, PN_BASE_GRADIENT, PN_BASE_LOSS, PN_BASE_FIELDS};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++) pinn_plane_destroy(pass->plane[owned[i]]);
    pn_free(pass->group);
    pn_free(pass->member);
    pn_free(pass->buffer);
    pn_free(pass->gradient);
    pn_free(pass->loss);
    pn_free(pass);
}

pinn_status pn_pass_finish(pn_pass *pass) {
    pinn_status status = pass->form->finish ? pass->form->finish(pass) : PINN_OK;
    if (pass->check) {
        const pinn_status checked = pn_compilation_end(pass->check, NULL, NULL);
        if (status == PINN_OK) status = checked;
        pass->check = NULL;
    }
    return status;
}

pinn_status pn_pass_record(pn_pass *pass, pinn_graph *graph) {
    pinn_status status = pn_pass_finish(pass);
    return status == PINN_OK ? pass->form->record(pass, graph) : status;
}

/* ---- results ------------------------------------------------------------------------------------------------------------------ */

pinn_plane *pn_pass_gradient_partials(const pn_pass *pass) { return pass->plane[PN_BASE_GRADIENT]; }
pinn_plane *pn_pass_loss_partials(const pn_pass *pass) { return pass->plane[PN_BASE_LOSS]; }
pinn_plane *pn_pass_fields(const pn_pass *pass) { return pass->plane[PN_BASE_FIELDS]; }
const char *pn_pass_lowering_name(const pn_pass *pass) { return (pass->checked ? pass->checked : pass->form)->name; }
const char *pn_pass_tiles(const pn_pass *pass) { return pass->chosen; }
const char *pn_pass_note(const pn_pass *pass) { return pass->note; }
void pn_pass_get_cost(const pn_pass *pass, pn_pass_cost *out) { *out = pass->cost; }

const pn_partial *pn_pass_gradient_partial(const pn_pass *pass, size_t *count) {
    *count = pass->gradients;
    return pass->gradient;
}

const pn_partial *pn_pass_loss_partial(const pn_pass *pass, size_t *count) {
    *count = pass->losses;
    return pass->loss;
}

/* ---- cost --------------------------------------------------------------------------------------------------------------------- */

static double program_operations(const pn_program *program, size_t points) {
    if (!program) return 0.0;
    size_t arithmetic, special;
    pn_program_count(program, &arithmetic, &special);
    return (double)(arithmetic + special) * (double)pn_program_width(program) * (double)points;
}

static void count_linear(pn_pass *pass, size_t l) {
    const pn_layer *layer = &pass->network->layer[l];
    const double rows = (double)pass->rows, in = (double)layer->in, out = (double)layer->out, real = (double)pn_real_bytes(pass->real);
    double products = 1.0, elements = rows * (in + out) + in * out; /* Z = A W */
    if (!pass->evaluate) {
        products += 1.0; /* dW = A^T dZ */
        elements += rows * (in + out) + in * out;
        if (l > pass->trained_from) { /* dA = dZ W^T */
            products += 1.0;
            elements += rows * (in + out) + in * out;
        }
    }
    pass->cost.product_operations += 2.0 * products * rows * in * out;
    pass->cost.bytes += elements * real;
}

static void count_pointwise(pn_pass *pass, size_t l) {
    const pn_layer *layer = &pass->network->layer[l];
    for (size_t g = 0; g < pass->groups; g++) {
        const pn_group *group = &pass->group[g];
        const double points = (double)group->points, channels = (double)group->channels, real = (double)pn_real_bytes(pass->real);
        const double arguments = layer->coordinates ? (double)pass->network->coordinates : channels * (double)layer->in;
        const double jet = channels * (double)layer->out, adjoint = layer->coordinates ? 0.0 : arguments;
        pass->cost.pointwise_operations += program_operations(group->forward[l], group->points) + program_operations(group->backward[l], group->points);
        pass->cost.bytes += points * (arguments + jet) * real;
        if (group->backward[l]) pass->cost.bytes += points * (arguments + jet + adjoint) * real;
    }
}

static void count_cost(pn_pass *pass) {
    const double real = (double)pn_real_bytes(pass->real);
    pass->cost.rows = pass->rows;
    for (size_t l = 0; l < pass->network->layers; l++) {
        if (pass->network->layer[l].kind == PN_LAYER_LINEAR)
            count_linear(pass, l);
        else
            count_pointwise(pass, l);
    }
    for (size_t s = 0; s < pass->members; s++) {
        const pn_member *member = &pass->member[s];
        const double raw = (double)(pass->group[member->group].channels * pass->network->fields);
        pass->cost.pointwise_operations += program_operations(member->residual, member->points);
        pass->cost.bytes += (double)member->points * ((double)member->point_columns + (pass->evaluate ? 1.0 : 2.0) * raw) * real;
    }
    for (pn_base b = PN_BASE_GRADIENT; b <= PN_BASE_LOSS; b++)
        if (pass->plane[b]) pass->cost.partial_bytes += pinn_plane_bytes(pass->plane[b]);
}
