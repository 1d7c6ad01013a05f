/* The streamed lowering: three nodes, a kernel each. On a CPU it exists only as a check that its kernels compile.
 *
 * Partials. Every block of the pass writes one row of the gradient's partials and one of the losses'; a row holds the summed vectors, the output
 * weights and the output bias. The weight gradients of the hidden layers follow, `splits` rows each. */
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "core/tiles.h"
#include "graph/plan.h"
#include "network/stream.h"
#include "pointwise/code.h"
#include "pointwise/kernel.h"

enum { POINTERS = PN_STREAM_POINTERS, OFFSETS = PN_STREAM_OFFSETS, KERNELS = 3, ELEMENT_ALIGNMENT = 64 };

typedef struct node {
    pinn_operation operation;
    const pn_pass *pass;
    pn_code *code;
    unsigned blocks, threads;
    unsigned reads, writes;
} node;

typedef struct streamed {
    pn_stream_plan plan;
    node node[KERNELS];
    pn_compilation *compilation; /* until it is finished */
    uint64_t *argument; size_t arguments; /* the kernels' one parameter, a structure of 64-bit words */
} streamed;

/* ---- partials ------------------------------------------------------------------------------------------------------------------- */

static pinn_status add_rows(pn_pass *pass, size_t first, size_t count, size_t *at) {
    const pn_stream_plan *plan = &((const streamed *)pass->lowered)->plan;
    const pn_partial partial = {first, count, plan->blocks, plan->gradient_row, *at};
    *at += count;
    return pn_pass_add_gradient(pass, partial);
}

/* In the order of the kernel's rows. */
static pinn_status place_vectors(pn_pass *pass) {
    const pn_network *network = pass->network;
    const size_t last = network->layers - 1;
    pinn_status status = PINN_OK;
    size_t at = 0;
    for (size_t l = pass->trained_from == 0 ? 0 : 2; l < last; l += 2)
        for (size_t k = 0; k < network->layer[l].parameters; k++) PN_TRY(add_rows(pass, network->layer[l].parameter[k].offset, network->layer[l].in, &at));
    PN_TRY(add_rows(pass, network->layer[last].parameter[0].offset, network->layer[last].in * network->fields, &at));
    PN_TRY(add_rows(pass, network->output_bias, network->fields, &at));
fail:
    return status;
}

static size_t aligned(size_t elements) { return (elements + ELEMENT_ALIGNMENT - 1) / ELEMENT_ALIGNMENT * ELEMENT_ALIGNMENT; }

/* `word` receives where each hidden layer's partials start. */
static pinn_status place_partials(pn_pass *pass, uint64_t *word) {
    pinn_status status;
    const pn_stream_plan *plan = &((const streamed *)pass->lowered)->plan;
    size_t end = aligned(plan->blocks * plan->gradient_row);
    PN_TRY(place_vectors(pass));
    for (size_t l = 1; l + 1 < pass->network->layers; l += 2) {
        const pn_layer *layer = &pass->network->layer[l];
        const size_t count = layer->in * layer->out;
        PN_TRY(pn_pass_add_gradient(pass, (pn_partial){layer->parameter[0].offset, count, plan->splits, count, end}));
        *word++ = end;
        end = aligned(end + plan->splits * count);
    }
    PN_TRY(pn_pass_add_loss(pass, (pn_partial){0, pass->terms, plan->blocks, pass->terms, 0}));
    PN_TRY(pn_pass_allocate(pass, PN_BASE_GRADIENT, "gradient partials", end));
    PN_TRY(pn_pass_allocate(pass, PN_BASE_LOSS, "loss partials", plan->blocks * pass->terms));
    PN_TRY(pn_pass_allocate(pass, PN_BASE_WORK, "activations", plan->work_bytes / pn_real_bytes(pass->real)));
fail:
    return status;
}

/* ---- the kernels' parameter ------------------------------------------------------------------------------------------------------ */

/* Tiles of nearly as many rows for each of the splits: first[splits + 1]. */
static void cut_tiles(const pn_pass *pass, const pn_stream_plan *plan, uint64_t *first) {
    size_t tile = 0, row = 0, split = 0;
    for (size_t i = 0; i < pass->members; i++) {
        const pn_member *member = &pass->member[plan->order[i]];
        const pn_stream_group *group = &plan->group[member->group];
        for (size_t k = (member->points + group->points - 1) / group->points; k > 0; k--, tile++, row += group->rows)
            while (split < plan->splits && row * plan->splits >= split * plan->all_rows) first[split++] = tile;
    }
    while (split <= plan->splits) first[split++] = plan->tiles;
}

static uint64_t *put_members(const pn_pass *pass, const pn_stream_plan *plan, uint64_t *word) {
    size_t tiles = 0, row = 0;
    for (size_t i = 0; i < pass->members; i++) {
        const pn_member *member = &pass->member[plan->order[i]];
        const pn_stream_group *group = &plan->group[member->group];
        const size_t own = (member->points + group->points - 1) / group->points;
        const size_t part[] = {member->points, tiles + own, member->point_offset, member->point_columns, row, group->rows};
        for (size_t k = 0; k < sizeof part / sizeof part[0]; k++) *word++ = part[k];
        tiles += own;
        row += own * group->rows;
    }
    return word;
}

/* All but the addresses. Places the partials on the way. */
static pinn_status fill_arguments(pn_pass *pass) {
    streamed *w = pass->lowered;
    const pn_stream_plan *plan = &w->plan;
    const pn_network *network = pass->network;
    const size_t last = network->layers - 1;
    w->arguments = pn_stream_words(pass, plan);
    if (w->arguments > PN_KERNEL_WORDS) return pn_fail(PINN_UNSUPPORTED, "no streamed pass: too many layers and point sets for one kernel");
    w->argument = pn_allocate(w->arguments, sizeof *w->argument);
    if (!w->argument) return PN_NO_MEMORY("the network pass");
    uint64_t *word = w->argument + POINTERS;
    const size_t offset[OFFSETS] = {0, plan->weight_scale, plan->images, plan->image_scale, plan->keep, plan->all_rows, plan->tiles};
    for (size_t i = 0; i < OFFSETS; i++) *word++ = offset[i];
    for (size_t l = 1; l < last; l += 2) *word++ = network->layer[l].parameter[0].offset;
    for (size_t l = 0; l < last; l += 2)
        for (size_t k = 0; k < network->layer[l].parameters; k++) *word++ = network->layer[l].parameter[k].offset;
    *word++ = network->layer[last].parameter[0].offset;
    *word++ = network->output_bias;
    pinn_status status = place_partials(pass, word);
    if (status != PINN_OK) return status;
    word += plan->net.hidden;
    cut_tiles(pass, plan, word);
    put_members(pass, plan, word + plan->splits + 1);
    return PINN_OK;
}

static pinn_status launch(const pinn_run *run) {
    const node *n = *(const node *const *)run->arguments;
    const streamed *w = n->pass->lowered;
    static const pn_base pointer[POINTERS] = {PN_BASE_PARAMETERS, PN_BASE_FIXED, PN_BASE_POINTS, PN_BASE_SCALE,
                                              PN_BASE_GRADIENT, PN_BASE_LOSS, PN_BASE_WORK};
    void *base[PN_BASES] = {NULL};
    uint64_t argument[PN_KERNEL_WORDS];
    pn_pass_addresses(n->pass, n->reads, run->read, base);
    pn_pass_addresses(n->pass, n->writes, run->write, base);
    memcpy(argument, w->argument, w->arguments * sizeof *argument);
    for (size_t i = 0; i < POINTERS; i++) argument[i] = (uint64_t)(uintptr_t)base[pointer[i]];
    return pn_code_launch(n->code, run->stream, n->blocks, n->threads, argument);
}

/* ---- creation -------------------------------------------------------------------------------------------------------------------- */

static pinn_status compile(const pn_pass *pass, pn_stream_plan *plan, const char *architecture, pn_compilation **out) {
    pinn_status status;
    pn_text source = {0};
    PN_TRY(pn_stream_describe(pass, plan));
    PN_TRY(pn_stream_source(pass, plan, &source));
    PN_TRY(pn_compilation_begin(pn_text_get(&source), architecture, out));
fail:
    pn_text_free(&source);
    return status;
}

static pinn_status load_kernel(pn_pass *pass, size_t k, const void *image, const char *name, size_t shared_bytes) {
    pinn_status status;
    node *n = &((streamed *)pass->lowered)->node[k];
    PN_TRY(pn_code_load(pass->context, name, image, &n->code));
    if (shared_bytes) PN_TRY(pn_code_share(n->code, shared_bytes));
fail:
    return status;
}

static void describe_nodes(pn_pass *pass) {
    streamed *w = pass->lowered;
    const unsigned parameters = 1u << PN_BASE_PARAMETERS, work = 1u << PN_BASE_WORK, gradient = 1u << PN_BASE_GRADIENT;
    const unsigned inputs = parameters | 1u << PN_BASE_FIXED | 1u << PN_BASE_POINTS | 1u << PN_BASE_SCALE;
    w->node[0] = (node){{.name = "weights in fp16", .cuda = launch}, pass, NULL, (unsigned)w->plan.chunks, PN_STREAM_PREPARE_THREADS, parameters, work};
    w->node[1] = (node){{.name = "network pass", .cuda = launch}, pass, NULL, w->plan.blocks, 32 * w->plan.warps, inputs | work,
                        gradient | 1u << PN_BASE_LOSS | work};
    w->node[2] = (node){{.name = "weight gradients", .cuda = launch}, pass, NULL, w->plan.splits * w->plan.items, PN_STREAM_GRADIENT_THREADS, work, gradient};
}

static void streamed_destroy(pn_pass *pass) {
    streamed *w = pass->lowered;
    if (!w) return;
    pn_compilation_drop(w->compilation);
    for (size_t k = 0; k < KERNELS; k++) pn_code_unload(w->node[k].code);
    pn_stream_plan_free(&w->plan);
    pn_free(w->argument);
    pn_free(w);
    pass->lowered = NULL;
}

static void print_tiles(const pn_stream_plan *plan, char text[PN_TILE_CHOICE_BYTES]) {
    pn_tile_rows_print(&(pn_tile_rows){plan->about, plan->warps, plan->residents}, text);
}

static pinn_status streamed_create(pn_pass *pass) {
    pinn_status status;
    char architecture[PN_ARCHITECTURE_BYTES];
    pn_device_limits limits = {0};
    if (pinn_context_executor(pass->context) == PINN_EXECUTOR_CPU) return pn_fail(PINN_UNSUPPORTED, "no streamed pass: it runs on a GPU only");
    streamed *w = pn_allocate(1, sizeof *w);
    if (!w) return PN_NO_MEMORY("the network pass");
    pass->lowered = w;
    PN_TRY(pn_code_limits(pass->context, &limits.shared_bytes, &limits.processors));
    limits.memory = pn_context_memory(pass->context);
    PN_TRY(pn_code_architecture(pass->context, architecture));
    PN_TRY(pn_stream_plan_create(pass, &limits, pass->tiles, &w->plan));
    describe_nodes(pass);
    PN_TRY(fill_arguments(pass));
    PN_TRY(compile(pass, &w->plan, architecture, &w->compilation));
    print_tiles(&w->plan, pass->chosen);
    pass->cost.tile_points = w->plan.points_most;
    pass->cost.tile_groups = w->plan.blocks;
    pass->cost.workspace_bytes = w->plan.work_bytes;
fail:
    return status; /* pn_pass_destroy frees what was made */
}

static pinn_status streamed_finish(pn_pass *pass) {
    pinn_status status;
    streamed *w = pass->lowered;
    void *image = NULL;
    if (!w->compilation) return w->node[KERNELS - 1].code ? PINN_OK : pn_fail(PINN_BAD_ARGUMENT, "the network pass has no kernels: making them failed");
    pn_compilation *const compilation = w->compilation;
    w->compilation = NULL;
    PN_TRY(pn_compilation_end(compilation, &image, NULL));
    PN_TRY(load_kernel(pass, 0, image, PN_STREAM_PREPARE, 0));
    PN_TRY(load_kernel(pass, 1, image, PN_STREAM_PASS, w->plan.shared_bytes));
    PN_TRY(load_kernel(pass, 2, image, PN_STREAM_GRADIENT, w->plan.gradient_shared_bytes));
fail:
    pn_free(image);
    return status;
}

static pinn_status streamed_check(pn_pass *pass, const char *architecture, pn_compilation **out) {
    const pn_device_limits limits = pn_limits_of(architecture);
    pinn_status status;
    pn_stream_plan plan = {0};
    PN_TRY(pn_stream_plan_create(pass, &limits, pass->tiles, &plan));
    PN_TRY(compile(pass, &plan, architecture, out));
    print_tiles(&plan, pass->chosen);
fail:
    pn_stream_plan_free(&plan);
    return status;
}

static pinn_status streamed_record(pn_pass *pass, pinn_graph *graph) {
    pinn_status status = PINN_OK;
    const streamed *w = pass->lowered;
    for (size_t k = 0; k < KERNELS; k++) {
        const node *n = &w->node[k];
        pinn_plane *reads[PN_BASES], *writes[PN_BASES];
        PN_TRY(pinn_graph_operation(graph, &n->operation, &n, sizeof n, pn_pass_planes(pass, n->reads, reads),
                                    pn_pass_planes(pass, n->writes, writes)));
    }
fail:
    return status;
}

const pn_lowering_form pn_stream_form = {"streamed", streamed_create, streamed_destroy, streamed_record, streamed_finish, streamed_check};
