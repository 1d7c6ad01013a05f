/* The tiled lowering, for CPUs: one node. A tile, a run of points of one set, goes through the whole pass (layers forward, residual
 * and its adjoint, layers backward) while its activations sit in a core's second-level cache.
 *
 * Order of sums. Tiles and groups of consecutive tiles follow from the problem's sizes alone. Each group adds its tiles, in order, into
 * its own row of partial gradients and losses; whichever thread takes a group, the bits are the same. OpenMP hands out groups as
 * threads become free.
 */
#include <omp.h>
#include <string.h>

#include "core/memory.h"
#include "graph/plan.h"
#include "network/description.h"
#include "network/product.h"

/* Constants, not the machine's cache sizes, so that one problem is summed in one order everywhere. */
enum {
    TILE_BYTES = 1 << 20, /* activations of a tile; half of a 2 MiB second-level cache: weights and scratch need room too */
    TILE_ROWS = 512,      /* products of fewer rows run below the core's speed */
    TILE_UNIT = 16,       /* points: in float32 a cache line, so that every channel starts at one whatever the width */
    TILES = 64,           /* wanted at least, as long as tiles keep TILE_ROWS rows */
    TILE_GROUPS = 64      /* at most: each costs a partial gradient */
};

typedef struct tile {
    size_t member, first, points;
} tile;

typedef struct worker { /* one thread's memory */
    void *buffer, *scratch;
    pn_operand *operand;  /* [operands] */
    void **address;       /* [operands] */
} worker;

typedef struct tiled {
    pinn_operation operation;
    tile *tile; size_t tiles, groups;
    worker *worker; size_t workers;
    void *transposed; /* [network->parameters]: W^T [out, in] of every LINEAR layer, where W lies among the parameters */
    size_t operands; /* most inputs plus outputs of a program */
} tiled;

static const unsigned read_mask = 1u << PN_BASE_PARAMETERS | 1u << PN_BASE_FIXED | 1u << PN_BASE_POINTS | 1u << PN_BASE_SCALE;
static const unsigned write_mask = 1u << PN_BASE_GRADIENT | 1u << PN_BASE_LOSS | 1u << PN_BASE_FIELDS;

/* ---- one tile ----------------------------------------------------------------------------------------------------------------- */

static void run_program(const pn_pass *pass, const worker *w, const pn_program *program, size_t points, void *const *base) {
    const size_t inputs = pn_program_inputs(program), operands = inputs + pn_program_outputs(program);
    for (size_t i = 0; i < operands; i++) w->address[i] = pn_operand_address(pass, base, w->operand[i]);
    pn_program_run(program, points, (const void *const *)w->address, w->address + inputs, w->scratch);
}

static void linear_forward(const pn_pass *pass, size_t l, size_t rows, void *const *base) {
    const pn_layer *layer = &pass->network->layer[l];
    const pn_product product = {.m = rows, .n = layer->out, .k = layer->in, .batch = 1};
    pn_product_run(&product, pass->real, pn_operand_address(pass, base, (pn_operand){PN_BASE_WORK, pass->buffer[l - 1]}),
                   pn_operand_address(pass, base, (pn_operand){PN_BASE_PARAMETERS, layer->parameter[0].offset}), false,
                   pn_operand_address(pass, base, (pn_operand){PN_BASE_WORK, pass->buffer[l]}));
}

/* dW += A^T dZ, then dA = dZ W^T over A. */
static void linear_backward(const pn_pass *pass, size_t l, size_t rows, void *const *base) {
    const tiled *t = pass->lowered;
    const pn_layer *layer = &pass->network->layer[l];
    void *a = pn_operand_address(pass, base, (pn_operand){PN_BASE_WORK, pass->buffer[l - 1]});
    void *dz = pn_operand_address(pass, base, (pn_operand){PN_BASE_WORK, pass->buffer[l]});
    const size_t weight = layer->parameter[0].offset;
    const pn_product by_weight = {.transpose_a = true, .m = layer->in, .n = layer->out, .k = rows, .batch = 1};
    pn_product_run(&by_weight, pass->real, a, dz, true, pn_operand_address(pass, base, (pn_operand){PN_BASE_GRADIENT, weight}));
    if (l <= pass->trained_from) return;
    const pn_product by_input = {.m = rows, .n = layer->in, .k = layer->out, .batch = 1};
    pn_product_run(&by_input, pass->real, dz, (const char *)t->transposed + weight * pn_real_bytes(pass->real), false, a);
}

static void run_tile(const pn_pass *pass, const worker *w, const tile *t, void *const *base) {
    const pn_member *member = &pass->member[t->member];
    const pn_group *group = &pass->group[member->group];
    const size_t rows = group->channels * t->points;
    const pn_span span = {t->points, 0, t->points, member->point_offset + t->first, member->points,
                          member->field_offset + t->first, member->points};
    for (size_t l = 0; l < pass->network->layers; l++) {
        if (pass->network->layer[l].kind == PN_LAYER_LINEAR) {
            linear_forward(pass, l, rows, base);
        } else {
            pn_bind_forward(pass, group, l, &span, w->operand, w->operand + pn_program_inputs(group->forward[l]));
            run_program(pass, w, group->forward[l], t->points, base);
        }
    }
    pn_bind_residual(pass, member, &span, w->operand, w->operand + pn_program_inputs(member->residual));
    run_program(pass, w, member->residual, t->points, base);
    if (pass->evaluate) return;
    for (size_t l = pass->network->layers; l-- > pass->trained_from;) {
        if (pass->network->layer[l].kind == PN_LAYER_LINEAR) {
            linear_backward(pass, l, rows, base);
        } else {
            pn_bind_backward(pass, group, l, &span, w->operand, w->operand + pn_program_inputs(group->backward[l]));
            run_program(pass, w, group->backward[l], t->points, base);
        }
    }
}

/* ---- the node ----------------------------------------------------------------------------------------------------------------- */

static void run_group(const pn_pass *pass, const worker *w, size_t g, void *const *shared) {
    const tiled *t = pass->lowered;
    void *base[PN_BASES];
    memcpy(base, shared, sizeof base);
    base[PN_BASE_WORK] = w->buffer;
    if (!pass->evaluate) {
        const size_t gradient = pass->network->parameters * pn_real_bytes(pass->real), loss = pass->terms * sizeof(double);
        base[PN_BASE_GRADIENT] = (char *)base[PN_BASE_GRADIENT] + g * gradient;
        base[PN_BASE_LOSS] = (char *)base[PN_BASE_LOSS] + g * loss;
        memset(base[PN_BASE_GRADIENT], 0, gradient);
        memset(base[PN_BASE_LOSS], 0, loss);
    }
    for (size_t i = g * t->tiles / t->groups; i < (g + 1) * t->tiles / t->groups; i++) run_tile(pass, w, &t->tile[i], base);
}

/* All tiles multiply by W^T: it is made once a pass. */
static void transpose_weights(const pn_pass *pass, const void *parameters) {
    const tiled *t = pass->lowered;
    const bool wide = pass->real == PN_FLOAT64;
    for (size_t l = pass->trained_from + 1; l < pass->network->layers; l++) {
        const pn_layer *layer = &pass->network->layer[l];
        if (layer->kind != PN_LAYER_LINEAR) continue;
        const size_t weight = layer->parameter[0].offset;
        for (size_t i = 0; i < layer->in; i++)
            for (size_t j = 0; j < layer->out; j++) {
                const size_t from = weight + i * layer->out + j, to = weight + j * layer->in + i;
                if (wide)
                    ((double *)t->transposed)[to] = ((const double *)parameters)[from];
                else
                    ((float *)t->transposed)[to] = ((const float *)parameters)[from];
            }
    }
}

static pinn_status run_pass(const pinn_run *run) {
    const pn_pass *pass = *(const pn_pass *const *)run->arguments;
    const tiled *t = pass->lowered;
    void *base[PN_BASES] = {0};
    pn_pass_addresses(pass, read_mask, run->read, base);
    pn_pass_addresses(pass, write_mask, run->write, base);
    if (!pass->evaluate) transpose_weights(pass, base[PN_BASE_PARAMETERS]);
    const int available = omp_get_max_threads(), threads = (size_t)available < t->workers ? available : (int)t->workers;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (size_t g = 0; g < t->groups; g++) run_group(pass, &t->worker[omp_get_thread_num()], g, base);
    return PINN_OK;
}

static pinn_status tiled_record(pn_pass *pass, pinn_graph *graph) {
    const tiled *t = pass->lowered;
    pinn_plane *reads[PN_BASES], *writes[PN_BASES];
    return pinn_graph_operation(graph, &t->operation, &pass, sizeof pass, pn_pass_planes(pass, read_mask, reads),
                                pn_pass_planes(pass, write_mask, writes));
}

/* ---- creation ----------------------------------------------------------------------------------------------------------------- */

/* Points a tile of the group: as many as fit the budget, fewer when that leaves too few tiles to share out, never under TILE_ROWS
 * rows. */
static size_t tile_points(const pn_pass *pass, const pn_group *group) {
    size_t columns = 0;
    for (size_t l = 0; l < pass->network->layers; l++) columns += pass->network->layer[l].out;
    size_t rows = TILE_BYTES / (columns * pn_real_bytes(pass->real));
    if (rows > pass->rows / TILES) rows = pass->rows / TILES;
    if (rows < TILE_ROWS) rows = TILE_ROWS;
    return (rows + group->channels - 1) / group->channels;
}

/* Where tile i of `count` starts. Tiles are of nearly equal size, and none is empty: the unit is at most half of a tile. */
static size_t cut(size_t points, size_t i, size_t count, size_t unit) {
    return i == count ? points : i * points / count / unit * unit;
}

/* Cuts every set into tiles; returns the most rows a tile has. */
static pinn_status cut_tiles(pn_pass *pass, tiled *t, size_t *most_rows) {
    for (size_t s = 0; s < pass->members; s++) {
        const pn_member *member = &pass->member[s];
        const pn_group *group = &pass->group[member->group];
        const size_t wanted = tile_points(pass, group), count = (member->points + wanted - 1) / wanted;
        const size_t unit = wanted < 2 * TILE_UNIT ? 1 : TILE_UNIT;
        tile *grown = pn_reallocate(t->tile, t->tiles, t->tiles + count, sizeof *grown);
        if (!grown) return PN_NO_MEMORY("the network pass");
        t->tile = grown;
        for (size_t i = 0; i < count; i++) {
            const size_t first = cut(member->points, i, count, unit), points = cut(member->points, i + 1, count, unit) - first;
            t->tile[t->tiles++] = (tile){s, first, points};
            if (points * group->channels > *most_rows) *most_rows = points * group->channels;
            if (points > pass->cost.tile_points) pass->cost.tile_points = points;
        }
    }
    t->groups = t->tiles < TILE_GROUPS ? t->tiles : TILE_GROUPS;
    pass->cost.tile_groups = t->groups;
    return PINN_OK;
}

/* Where buffers start in a worker's memory, cache lines apart; returns the elements needed. Evaluation keeps two layers only. */
static size_t place_buffers(pn_pass *pass, size_t rows) {
    size_t end = 0, widest = 0;
    for (size_t l = 0; l < pass->network->layers; l++)
        if (pass->network->layer[l].out > widest) widest = pass->network->layer[l].out;
    for (size_t l = 0; l < pass->network->layers; l++) {
        const size_t elements = (rows * (pass->evaluate ? widest : pass->network->layer[l].out) + 15) / 16 * 16;
        pass->buffer[l] = pass->evaluate ? l % 2 * elements : end;
        end = pass->evaluate ? 2 * elements : end + elements;
    }
    return end;
}

static void measure_program(const pn_program *program, size_t *operands, size_t *scratch) {
    if (!program) return;
    const size_t count = pn_program_inputs(program) + pn_program_outputs(program), bytes = pn_program_scratch(program);
    if (count > *operands) *operands = count;
    if (bytes > *scratch) *scratch = bytes;
}

static pinn_status create_workers(pn_pass *pass, tiled *t, size_t buffer_elements) {
    size_t scratch = 0;
    for (size_t g = 0; g < pass->groups; g++)
        for (size_t l = 0; l < pass->network->layers; l++) {
            measure_program(pass->group[g].forward[l], &t->operands, &scratch);
            measure_program(pass->group[g].backward[l], &t->operands, &scratch);
        }
    for (size_t s = 0; s < pass->members; s++) measure_program(pass->member[s].residual, &t->operands, &scratch);
    t->workers = (size_t)omp_get_max_threads();
    const size_t bytes = buffer_elements * pn_real_bytes(pass->real) + scratch;
    pass->cost.workspace_bytes = pass->cost.beside_bytes = t->workers * bytes;
    if (pn_context_plans(pass->context)) return PINN_OK;
    t->worker = pn_allocate(t->workers, sizeof *t->worker);
    if (!t->worker) return PN_NO_MEMORY("the network pass");
    for (size_t i = 0; i < t->workers; i++) {
        worker *w = &t->worker[i];
        w->buffer = pn_allocate(buffer_elements, pn_real_bytes(pass->real));
        w->scratch = pn_allocate(scratch, 1);
        w->operand = pn_allocate(t->operands, sizeof *w->operand);
        w->address = pn_allocate(t->operands, sizeof *w->address);
        if (!w->buffer || !w->scratch || !w->operand || !w->address)
            return pn_fail(PINN_NO_MEMORY, "out of memory for the network pass, which needs %zu bytes in each of %zu threads: use a narrower network, "
                                           "or fewer threads (OMP_NUM_THREADS)", bytes, t->workers);
    }
    return PINN_OK;
}

static void tiled_destroy(pn_pass *pass) {
    tiled *t = pass->lowered;
    if (!t) return;
    for (size_t i = 0; t->worker && i < t->workers; i++) {
        pn_free(t->worker[i].buffer);
        pn_free(t->worker[i].scratch);
        pn_free(t->worker[i].operand);
        pn_free(t->worker[i].address);
    }
    pn_free(t->worker);
    pn_free(t->transposed);
    pn_free(t->tile);
    pn_free(t);
}

static pinn_status tiled_create(pn_pass *pass) {
    pinn_status status;
    size_t most_rows = 0;
    tiled *t = pn_allocate(1, sizeof *t);
    if (!t) return PN_NO_MEMORY("the network pass");
    pass->lowered = t;
    t->operation = (pinn_operation){pass->evaluate ? "network evaluation, tiled" : "network pass, tiled", run_pass, NULL};
    PN_TRY(cut_tiles(pass, t, &most_rows));
    PN_TRY(create_workers(pass, t, place_buffers(pass, most_rows)));
    if (!pass->evaluate) {
        const size_t parameters = pass->network->parameters;
        pass->cost.beside_bytes += parameters * pn_real_bytes(pass->real);
        if (!pn_context_plans(pass->context)) {
            t->transposed = pn_allocate(parameters, pn_real_bytes(pass->real));
            if (!t->transposed)
                return pn_fail(PINN_NO_MEMORY, "out of memory for the network pass, which needs %zu bytes for its transposed weights: use a narrower network",
                               parameters * pn_real_bytes(pass->real));
        }
        PN_TRY(pn_pass_allocate(pass, PN_BASE_GRADIENT, "gradient partials", t->groups * parameters));
        PN_TRY(pn_pass_allocate(pass, PN_BASE_LOSS, "loss partials", t->groups * pass->terms));
        PN_TRY(pn_pass_add_gradient(pass, (pn_partial){0, parameters, t->groups, parameters, 0}));
        PN_TRY(pn_pass_add_loss(pass, (pn_partial){0, pass->terms, t->groups, pass->terms, 0}));
    }
fail:
    return status; /* pn_pass_destroy frees what was made */
}

const pn_lowering_form pn_tiled_form = {"tiled", tiled_create, tiled_destroy, tiled_record};
