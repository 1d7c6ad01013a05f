/* The tiled lowering on a GPU: one node, one kernel. On a CPU it exists only as a check that its kernel compiles.
 *
 * Partials. Every block of the kernel writes one row of the gradient's partials and one of the losses'. A row holds the weight gradients of the
 * hidden layers, then the summed vectors, the output weights and the output bias. */
#include <string.h>

#include "core/memory.h"
#include "network/tile.h"
#include "pointwise/code.h"
#include "pointwise/kernel.h"

typedef struct tiled {
    pn_tile_plan plan;
    pinn_operation operation;
    const pn_pass *pass;
    pn_compilation *compilation; /* until it is finished */
    pn_code *code;
    uint64_t *argument; size_t arguments; /* the kernel's one parameter, a structure of 64-bit words */
    unsigned reads, writes;
} tiled;

enum { POINTERS = PN_TILE_POINTERS }; /* parameter, fixed, point, scale, gradient, loss, keep */

/* ---- partials ------------------------------------------------------------------------------------------------------------------ */

static pinn_status add_rows(pn_pass *pass, size_t first, size_t count, size_t *at) {
    const tiled *w = pass->lowered;
    const pn_partial partial = {first, count, w->plan.blocks, w->plan.gradient_row, *at};
    *at += count;
    return pn_pass_add_gradient(pass, partial);
}

static pinn_status add_vectors(pn_pass *pass, size_t l, size_t *at) {
    const pn_layer *layer = &pass->network->layer[l];
    pinn_status status = PINN_OK;
    for (size_t k = 0; status == PINN_OK && k < layer->parameters; k++) status = add_rows(pass, layer->parameter[k].offset, layer->in, at);
    return status;
}

/* In the order of the kernel's rows. */
static pinn_status place_partials(pn_pass *pass) {
    pinn_status status;
    const tiled *w = pass->lowered;
    const pn_network *network = pass->network;
    const size_t last = network->layers - 1;
    size_t at = 0;
    for (size_t l = 1; l < last; l += 2) PN_TRY(add_rows(pass, network->layer[l].parameter[0].offset, network->layer[l].in * network->layer[l].out, &at));
    for (size_t l = pass->trained_from == 0 ? 0 : 2; l < last; l += 2) PN_TRY(add_vectors(pass, l, &at));
    PN_TRY(add_rows(pass, network->layer[last].parameter[0].offset, network->layer[last].in * network->fields, &at));
    PN_TRY(add_rows(pass, network->output_bias, network->fields, &at));
    PN_TRY(pn_pass_add_loss(pass, (pn_partial){0, pass->terms, w->plan.blocks, pass->terms, 0}));
    PN_TRY(pn_pass_allocate(pass, PN_BASE_GRADIENT, "gradient partials", w->plan.blocks * w->plan.gradient_row));
    PN_TRY(pn_pass_allocate(pass, PN_BASE_LOSS, "loss partials", w->plan.blocks * pass->terms));
    if (!w->plan.choice.keep_shared) PN_TRY(pn_pass_allocate(pass, PN_BASE_WORK, "activations", w->plan.blocks * w->plan.keep_block));
fail:
    return status;
}

/* ---- the kernel's parameter ----------------------------------------------------------------------------------------------------- */

static size_t put_layer_vectors(const pn_pass *pass, size_t l, uint64_t *word) {
    const pn_layer *layer = &pass->network->layer[l];
    for (size_t k = 0; k < layer->parameters; k++) word[k] = layer->parameter[k].offset;
    return layer->parameters;
}

/* All but the addresses; the layout is `struct arguments` of kernels/tile_layout.cuh. */
static pinn_status fill_arguments(const pn_pass *pass) {
    tiled *w = pass->lowered;
    const pn_network *network = pass->network;
    const size_t last = network->layers - 1;
    w->arguments = pn_tile_words(pass, &w->plan);
    if (w->arguments > PN_KERNEL_WORDS) return pn_fail(PINN_UNSUPPORTED, "no tiled pass: too many layers and point sets for one kernel");
    w->argument = pn_allocate(w->arguments, sizeof *w->argument);
    if (!w->argument) return PN_NO_MEMORY("the network pass");
    uint64_t *word = w->argument + POINTERS;
    size_t tiles = 0;
    for (size_t l = 1; l < last; l += 2) *word++ = network->layer[l].parameter[0].offset;
    for (size_t l = 0; l < last; l += 2) word += put_layer_vectors(pass, l, word);
    *word++ = network->layer[last].parameter[0].offset;
    *word++ = network->output_bias;
    for (size_t i = 0; i < pass->members; i++) {
        const pn_member *member = &pass->member[w->plan.order[i]];
        const size_t points = w->plan.group[member->group].points;
        tiles += (member->points + points - 1) / points;
        *word++ = member->points;
        *word++ = tiles;
        *word++ = member->point_offset;
        *word++ = member->point_columns;
    }
    return PINN_OK;
}

static pinn_status launch(const pinn_run *run) {
    const tiled *w = *(const tiled *const *)run->arguments;
    static const pn_base pointer[POINTERS] = {PN_BASE_PARAMETERS, PN_BASE_FIXED, PN_BASE_POINTS, PN_BASE_SCALE,
                                              PN_BASE_GRADIENT, PN_BASE_LOSS, PN_BASE_WORK};
    void *base[PN_BASES] = {NULL};
    uint64_t argument[PN_KERNEL_WORDS];
    pn_pass_addresses(w->pass, w->reads, run->read, base);
    pn_pass_addresses(w->pass, w->writes, run->write, base);
    memcpy(argument, w->argument, w->arguments * sizeof *argument);
    for (size_t i = 0; i < POINTERS; i++) argument[i] = (uint64_t)(uintptr_t)base[pointer[i]];
    return pn_code_launch_overlapping(w->code, run->stream, w->plan.blocks, 32 * w->plan.warps, argument);
}

/* ---- creation ------------------------------------------------------------------------------------------------------------------- */

static pinn_status compile(const pn_pass *pass, pn_tile_plan *plan, const char *architecture, pn_compilation **out) {
    pinn_status status;
    pn_text source = {0};
    PN_TRY(pn_tile_describe(pass, plan));
    PN_TRY(pn_tile_source(pass, plan, &source));
    PN_TRY(pn_compilation_begin(pn_text_get(&source), architecture, out));
fail:
    pn_text_free(&source);
    return status;
}

static pinn_status find_choice(const pn_pass *pass, pn_tile_choice *choice, bool *given) {
    *given = !pn_tiles_auto(pass->tiles);
    if (pn_tiles_rows(pass->tiles, &(pn_tile_rows){0}))
        return pn_fail(PINN_UNSUPPORTED, "tiles of %s are the streamed pass's: those of the tiled one are units and splits", pass->tiles);
    return *given ? pn_tile_choice_parse(pass->tiles, choice) : PINN_OK;
}

static void tiled_destroy(pn_pass *pass) {
    tiled *w = pass->lowered;
    if (!w) return;
    pn_compilation_drop(w->compilation);
    pn_code_unload(w->code);
    pn_tile_plan_free(&w->plan);
    pn_free(w->argument);
    pn_free(w);
    pass->lowered = NULL;
}

static pinn_status tiled_create(pn_pass *pass) {
    pinn_status status;
    char architecture[PN_ARCHITECTURE_BYTES];
    pn_device_limits limits = {0};
    pn_tile_choice choice;
    bool given = false;
    tiled *w = pn_allocate(1, sizeof *w);
    if (!w) return PN_NO_MEMORY("the network pass");
    pass->lowered = w;
    w->pass = pass;
    w->operation = (pinn_operation){.name = "network pass", .cuda = launch};
    w->reads = 1u << PN_BASE_PARAMETERS | 1u << PN_BASE_FIXED | 1u << PN_BASE_POINTS | 1u << PN_BASE_SCALE;
    w->writes = 1u << PN_BASE_GRADIENT | 1u << PN_BASE_LOSS | 1u << PN_BASE_WORK;
    PN_TRY(pn_code_limits(pass->context, &limits.shared_bytes, &limits.processors));
    PN_TRY(pn_code_architecture(pass->context, architecture));
    PN_TRY(find_choice(pass, &choice, &given));
    PN_TRY(pn_tile_plan_create(pass, &limits, given ? &choice : NULL, &w->plan));
    PN_TRY(fill_arguments(pass));
    PN_TRY(compile(pass, &w->plan, architecture, &w->compilation));
    PN_TRY(place_partials(pass));
    pn_tile_choice_print(&w->plan.choice, pass->chosen);
    pass->cost.tile_points = w->plan.points_most;
    pass->cost.tile_groups = w->plan.blocks;
    if (pass->plane[PN_BASE_WORK]) pass->cost.workspace_bytes = pinn_plane_bytes(pass->plane[PN_BASE_WORK]);
fail:
    return status; /* pn_pass_destroy frees what was made */
}

static pinn_status tiled_finish(pn_pass *pass) {
    tiled *w = pass->lowered;
    void *image = NULL;
    if (!w->compilation) return w->code ? PINN_OK : pn_fail(PINN_BAD_ARGUMENT, "the network pass has no kernel: making it failed");
    pinn_status status = pn_compilation_end(w->compilation, &image, NULL);
    w->compilation = NULL;
    if (status == PINN_OK) status = pn_code_load(pass->context, PN_TILE_KERNEL, image, &w->code);
    if (status == PINN_OK) status = pn_code_share(w->code, w->plan.shared_bytes);
    pn_free(image);
    return status;
}

static pinn_status tiled_check(pn_pass *pass, const char *architecture, pn_compilation **out) {
    const pn_device_limits limits = pn_limits_of(architecture);
    pinn_status status;
    pn_tile_plan plan = {0};
    pn_tile_choice choice;
    bool given = false;
    PN_TRY(find_choice(pass, &choice, &given));
    PN_TRY(pn_tile_plan_create(pass, &limits, given ? &choice : NULL, &plan));
    PN_TRY(compile(pass, &plan, architecture, out));
    pn_tile_choice_print(&plan.choice, pass->chosen);
fail:
    pn_tile_plan_free(&plan);
    return status;
}

/* ---- tuning --------------------------------------------------------------------------------------------------------------------- */

pinn_status pn_pass_tilings(const pn_pass *pass, pn_pass_tiling *out, size_t most, size_t *count) {
    pinn_status status = PINN_OK;
    pn_device_limits limits;
    pn_tile_candidate *best = NULL;
    pn_tile_group *group = NULL;
    *count = 0;
    if (pass->form != &pn_tile_form) return PINN_OK;
    pn_tile_plan scratch = ((const tiled *)pass->lowered)->plan; /* its sizes are overwritten: with groups of its own */
    PN_TRY(pn_code_limits(pass->context, &limits.shared_bytes, &limits.processors));
    best = pn_allocate(most, sizeof *best);
    group = pn_allocate(pass->groups, sizeof *group);
    if (!best || !group) {
        status = PN_NO_MEMORY("the candidates");
        goto fail;
    }
    memcpy(group, scratch.group, pass->groups * sizeof *group);
    scratch.group = group;
    const size_t found = pn_tile_candidates(pass, &limits, &scratch, best, most);
    for (; *count < found && best[*count].time <= 2.0 * best[0].time; ++*count) {
        pn_tile_choice_print(&best[*count].choice, out[*count].tiles);
        out[*count].time = best[*count].time / best[0].time;
    }
fail:
    pn_free(group);
    pn_free(best);
    return status;
}

static pinn_status tiled_record(pn_pass *pass, pinn_graph *graph) {
    const tiled *w = pass->lowered;
    pinn_plane *reads[PN_BASES], *writes[PN_BASES];
    return pinn_graph_operation(graph, &w->operation, &w, sizeof w, pn_pass_planes(pass, w->reads, reads), pn_pass_planes(pass, w->writes, writes));
}

const pn_lowering_form pn_tile_form = {"tiled", tiled_create, tiled_destroy, tiled_record, tiled_finish, tiled_check};
