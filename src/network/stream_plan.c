/* Sizes of the streamed pass: a function of the problem and of the device's sizes alone, so that a run repeats its bits. */
#include "network/stream.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "core/tiles.h"

enum {
    COLUMNS_STEP = 8 * PN_STREAM_WARPS, /* every warp has as many tiles of 8 columns */
    COLUMNS_MOST = 256,
    WARP_TILES_MOST = 32,               /* of 16 x 8 a warp: 128 accumulators a lane */
    ROW_TILES_MOST = 8,                 /* of 16 rows a warp */
    ROW_WARPS_MOST = 2,
    ROWS_STEP = 16, ROWS_MOST = 256,
    STAGES_MOST = 4,
    STAGES_LEAST = 2,
    SLABS_MOST = 5,
    SLAB_ROWS = 32,
    WINDOW_CHUNKS = 2,                  /* 64 values of k: twelve truncated additions of float32's accuracy */
    TF32_WINDOW_CHUNKS = COLUMNS_MOST / PN_STREAM_CHUNK_K, /* all: truncation is far below tf32's rounding */
    BYTES_ALIGNMENT = 256
};

static size_t round_up(size_t value, size_t step) { return (value + step - 1) / step * step; }
static size_t larger(size_t a, size_t b) { return a > b ? a : b; }
static pinn_status unsupported(const char *reason) { return pn_fail(PINN_UNSUPPORTED, "no streamed pass: %s", reason); }

/* ---- the network ---------------------------------------------------------------------------------------------------------------- */

/* Either all vectors of a layer are trained or none. */
static bool mixed_training(const pn_layer *layer) {
    for (size_t k = 1; k < layer->parameters; k++)
        if (layer->parameter[k].trained != layer->parameter[0].trained) return true;
    return false;
}

/* Layers POINTWISE over coordinates, then LINEAR and POINTWISE of one width, then LINEAR to the fields. */
static pinn_status read_network(const pn_pass *pass, pn_stream_plan *plan) {
    const pn_network *network = pass->network;
    const pn_layer *first = &network->layer[0];
    if (pass->real != PN_FLOAT32) return unsupported("it multiplies in float32");
    if (pass->evaluate) return unsupported("an evaluation runs layer by layer");
    if (network->layers < 4) return unsupported("the network has one hidden layer");
    plan->hidden = network->layers / 2 - 1;
    plan->first = first->out;
    plan->first_lanes = first->in;
    plan->first_vectors = first->parameters;
    plan->width = network->layer[1].out;
    plan->vectors = network->layer[2].parameters;
    plan->first_trained = pass->trained_from == 0;
    for (size_t l = 0; l < network->layers; l++) {
        const pn_layer *layer = &network->layer[l];
        if (layer->kind == PN_LAYER_LINEAR) continue;
        if (!layer->parameters || mixed_training(layer)) return unsupported("a layer has no vector parameters, or trains some of them");
        if (l > 0 && (layer->in != plan->width || layer->blocks != 1 || layer->parameters != plan->vectors || !layer->parameter[0].trained))
            return unsupported("the hidden layers differ");
    }
    if (plan->first_trained && (first->blocks != 1 || plan->first != plan->width)) return unsupported("the first layer is not like the hidden ones");
    if (larger(plan->first, plan->width) > COLUMNS_MOST) return pn_fail(PINN_UNSUPPORTED, "no streamed pass: layers are wider than %d", COLUMNS_MOST);
    plan->sum_vectors = (plan->first_trained ? plan->first_vectors : 0) + plan->hidden * plan->vectors + network->fields;
    plan->gradient_row = plan->sum_vectors * plan->width + network->fields;
    return PINN_OK;
}

static void size_weights(const pn_pass *pass, pn_stream_plan *plan) {
    plan->parts = pass->tf32 ? 1 : 2;
    plan->window_chunks = pass->tf32 ? TF32_WINDOW_CHUNKS : WINDOW_CHUNKS;
    plan->padded = round_up(plan->width, COLUMNS_STEP);
    plan->first_padded = round_up(plan->first, COLUMNS_STEP);
    plan->pitch = larger(plan->padded, plan->first_padded);
    plan->first_chunks = plan->first_padded / PN_STREAM_CHUNK_K;
    plan->next_chunks = plan->padded / PN_STREAM_CHUNK_K;
    const size_t parts = 2 * plan->hidden - 1 - !plan->first_trained; /* products of a tile but the first */
    plan->chunks = plan->first_chunks + parts * plan->next_chunks;
}

/* ---- tiles ------------------------------------------------------------------------------------------------------------------------ */

/* Reads of shared memory that a step of 16 values of k takes, in matrices of 16 x 16: rows again for each part of the columns (PART_N in
 * kernels/stream_products.cuh). */
static size_t count_reads(const pn_stream_plan *plan, size_t m, size_t n) {
    const size_t part = plan->parts == 1 || m * n <= 16 ? n : n % 4 == 0 && m <= 4 ? 4 : n % 2 == 0 ? 2 : 1;
    return m * (n / part) + (n + 1) / 2;
}

/* Units and warps for tiles of about `rows` rows: the most that are not more, and of those with the fewest reads. */
static bool size_group(const pn_stream_plan *plan, size_t channels, size_t rows, pn_stream_group *out) {
    const size_t tiles = channels % 2 ? channels : channels / 2;
    size_t best_rows = 0, best_reads = 0;
    for (unsigned row_warps = 1; row_warps <= ROW_WARPS_MOST; row_warps++)
        for (unsigned units = 1; units * tiles <= ROW_TILES_MOST; units++) {
            const size_t m = units * tiles, n = plan->padded / COLUMNS_STEP * row_warps, own = row_warps * m * 16;
            if (m * n > WARP_TILES_MOST || (own > rows && best_rows > 0 && own >= best_rows) || own < (best_rows > rows ? 0 : best_rows)) continue;
            const size_t reads = count_reads(plan, m, n);
            if (own == best_rows && reads >= best_reads) continue;
            best_rows = own;
            best_reads = reads;
            *out = (pn_stream_group){.units = units, .row_warps = row_warps, .points = row_warps * units * (channels % 2 ? 16 : 8), .rows = own};
        }
    return best_rows > 0;
}

static bool size_groups(const pn_pass *pass, pn_stream_plan *plan, size_t rows) {
    plan->rows = plan->points_most = plan->keep_tiles = plan->row_warps_most = plan->raw_most = plan->tiles = plan->all_rows = 0;
    for (size_t g = 0; g < pass->groups; g++) {
        pn_stream_group *group = &plan->group[g];
        if (!size_group(plan, pass->group[g].channels, rows, group)) return false;
        plan->rows = larger(plan->rows, group->rows);
        plan->points_most = larger(plan->points_most, group->points);
        plan->row_warps_most = larger(plan->row_warps_most, group->row_warps);
        plan->raw_most = larger(plan->raw_most, PN_STREAM_WARPS / group->row_warps * group->rows);
        plan->keep_tiles = larger(plan->keep_tiles, group->rows / 16 * (plan->padded / 8) / PN_STREAM_WARPS);
    }
    for (size_t i = 0; i < pass->members; i++) {
        const pn_stream_group *group = &plan->group[pass->member[i].group];
        const size_t tiles = (pass->member[i].points + group->points - 1) / group->points;
        plan->tiles += tiles;
        plan->all_rows += tiles * group->rows;
    }
    return plan->points_most <= PN_STREAM_THREADS;
}

static void order_members(const pn_pass *pass, pn_stream_plan *plan) {
    for (size_t i = 0; i < pass->members; i++) {
        size_t at = i;
        const pn_group *group = &pass->group[pass->member[i].group];
        /* sets of a group stand together */
        for (; at > 0; at--) {
            const pn_group *before = &pass->group[pass->member[plan->order[at - 1]].group];
            if (before->channels > group->channels || (before->channels == group->channels && before <= group)) break;
            plan->order[at] = plan->order[at - 1];
        }
        plan->order[at] = i;
    }
    for (size_t i = 0; i < pass->members; i++) plan->columns_most = larger(plan->columns_most, pass->member[i].point_columns);
}

/* ---- memory ---------------------------------------------------------------------------------------------------------------------- */

/* sizeof(shared_memory) in kernels/stream_pass.cuh, which checks it; with this many stages. */
static size_t shared_bytes(const pn_pass *pass, const pn_stream_plan *p, unsigned stages) {
    const size_t fields = pass->network->fields, vector_rows = p->first_vectors + p->hidden * p->vectors;
    const size_t vector = larger(p->padded, round_up(p->first_lanes, COLUMNS_STEP));
    const size_t halves = p->parts * (stages * p->padded * PN_STREAM_CHUNK_K + p->rows * p->pitch);
    const size_t doubles = PN_STREAM_WARPS * pass->terms;
    const size_t words = p->chunks + (vector_rows + fields + p->row_warps_most * p->sum_vectors) * vector + (p->raw_most + p->rows + 1) * fields +
                         pass->terms + p->points_most * p->columns_most + PN_STREAM_WARPS * (fields + 1);
    return round_up(2 * halves + 8 * doubles + 4 * words, 128);
}

static void size_shared(const pn_pass *pass, const pn_stream_limits *limits, pn_stream_plan *plan) {
    const size_t slab = 2 * plan->parts * SLAB_ROWS * PN_STREAM_SIDE * 2;
    plan->stages = STAGES_MOST;
    while (plan->stages > STAGES_LEAST && shared_bytes(pass, plan, plan->stages) > limits->shared_bytes) plan->stages--;
    plan->shared_bytes = shared_bytes(pass, plan, plan->stages);
    plan->slabs = limits->shared_bytes / slab < SLABS_MOST ? (unsigned)(limits->shared_bytes / slab) : SLABS_MOST;
    plan->gradient_shared_bytes = plan->slabs * slab;
}

/* ---- the choice ------------------------------------------------------------------------------------------------------------------- */

/* Time of a pass in units of a row's products at float32's accuracy. A tile lasts as long as its products, or, when it has few rows, as its
 * weights are on their way from the second-level cache; the pointwise part adds to that. From an H200's rates. */
static double estimate_time(const pn_stream_plan *plan, unsigned processors) {
    const double rows = (double)plan->rows, products = rows * (plan->parts == 2 ? 1.0 : 1.0 / 3), stream = 39.0 * plan->parts;
    return ceil((double)plan->tiles / processors) * (fmax(products, stream) + 0.35 * rows + 8.0);
}

/* Rows of a tile: as asked for, or by the estimate. */
static pinn_status choose_rows(const pn_pass *pass, const pn_stream_limits *limits, const char *tiles, pn_stream_plan *plan) {
    size_t least = ROWS_STEP, most = ROWS_MOST, best = 0;
    double best_time = INFINITY;
    if (!pn_tiles_auto(tiles)) {
        unsigned rows;
        if (!pn_tiles_rows(tiles, &rows)) return unsupported("its tiles are given in rows, as \"rows 128\"");
        if (rows < ROWS_STEP || rows > ROWS_MOST) return unsupported("a tile has 16 to 256 rows");
        least = most = rows;
    }
    for (size_t rows = least; rows <= most; rows += ROWS_STEP) {
        if (!size_groups(pass, plan, rows)) continue;
        size_shared(pass, limits, plan);
        const double time = estimate_time(plan, limits->processors);
        if (plan->shared_bytes > limits->shared_bytes || plan->slabs < 2 || time >= best_time) continue;
        best = rows;
        best_time = time;
    }
    if (!best) return unsupported("a tile does not fit: too many channels, or too little shared memory");
    size_groups(pass, plan, best);
    size_shared(pass, limits, plan);
    return PINN_OK;
}

/* Partials of a weight gradient: what fills the device best, fewer rather than more. */
static unsigned choose_splits(const pn_stream_plan *plan, unsigned processors) {
    unsigned best = 1;
    double best_share = 0;
    for (unsigned splits = 1; splits <= plan->tiles && splits * plan->items <= 2 * processors + plan->items; splits++) {
        const unsigned blocks = splits * plan->items, rounds = (blocks + processors - 1) / processors;
        const double share = (double)blocks / ((double)rounds * processors);
        if (share > 1.02 * best_share) {
            best = splits;
            best_share = share;
        }
    }
    return best;
}

static void place_work(pn_stream_plan *p) {
    const size_t arrays = 2 * p->hidden;
    p->weight_scale = round_up(p->chunks * p->parts * p->padded * PN_STREAM_CHUNK_K * 2, BYTES_ALIGNMENT);
    p->images = round_up(p->weight_scale + p->chunks * 4, BYTES_ALIGNMENT);
    p->image_scale = round_up(p->images + arrays * p->parts * p->all_rows * p->pitch * 2, BYTES_ALIGNMENT);
    p->keep = round_up(p->image_scale + arrays * p->tiles * 4, BYTES_ALIGNMENT);
    p->work_bytes = p->keep + p->blocks * (p->hidden - 1) * p->keep_tiles * PN_STREAM_THREADS * 16;
}

pinn_status pn_stream_plan_create(const pn_pass *pass, const pn_stream_limits *limits, const char *tiles, pn_stream_plan *out) {
    pinn_status status;
    pn_stream_plan plan = {.group = pn_allocate(pass->groups, sizeof *plan.group), .order = pn_allocate(pass->members, sizeof *plan.order)};
    if (!plan.group || !plan.order) {
        status = PN_NO_MEMORY("the network pass");
        goto fail;
    }
    PN_TRY(read_network(pass, &plan));
    size_weights(pass, &plan);
    order_members(pass, &plan);
    PN_TRY(choose_rows(pass, limits, tiles, &plan));
    const size_t sides = (plan.padded + PN_STREAM_SIDE - 1) / PN_STREAM_SIDE, first_sides = (plan.first_padded + PN_STREAM_SIDE - 1) / PN_STREAM_SIDE;
    plan.items = (unsigned)(first_sides * sides + (plan.hidden - 1) * sides * sides);
    plan.blocks = plan.tiles < limits->processors ? (unsigned)plan.tiles : limits->processors;
    plan.splits = choose_splits(&plan, limits->processors);
    place_work(&plan);
    plan.groups = pass->groups;
    *out = plan;
    return PINN_OK;
fail:
    pn_stream_plan_free(&plan);
    return status;
}

pinn_status pn_stream_describe(const pn_pass *pass, pn_stream_plan *plan) {
    pinn_status status = PINN_OK;
    for (size_t g = 0; status == PINN_OK && g < pass->groups; g++) status = pn_describe_kept(pass, &pass->group[g], 2, &plan->group[g].kept);
    return status;
}

void pn_stream_plan_free(pn_stream_plan *plan) {
    for (size_t g = 0; g < plan->groups; g++) pn_kept_free(&plan->group[g].kept);
    pn_free(plan->group);
    pn_free(plan->order);
    *plan = (pn_stream_plan){0};
}
