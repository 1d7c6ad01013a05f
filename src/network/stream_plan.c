/* Sizes of the streamed pass: a function of the problem and of the device's sizes alone, so that a run repeats its bits. */
#include "network/stream.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "core/tiles.h"

enum {
    COLUMNS_STEP = PN_STREAM_COLUMNS_STEP,
    COLUMN_WARPS_MOST = COLUMNS_STEP / 8,
    COLUMNS_MOST = 256,
    ROW_TILES_MOST = 8,                 /* of 16 rows a warp */
    ROW_WARPS_MOST = 2,
    ROWS_STEP = 16, ROWS_MOST = 256,
    STAGES_MOST = 4,
    STAGES_LEAST = 2,
    SLABS_MOST = 7,
    WINDOW_CHUNKS = 2,                  /* 64 values of k: twelve truncated additions of float32's accuracy */
    TF32_WINDOW_CHUNKS = COLUMNS_MOST / PN_STREAM_CHUNK_K, /* all: truncation is far below tf32's rounding */
    BYTES_ALIGNMENT = 256,
    RESERVED_BYTES = 1024               /* of shared memory, by every block */
};

static size_t round_up(size_t value, size_t step) { return (value + step - 1) / step * step; }
static size_t larger(size_t a, size_t b) { return a > b ? a : b; }
static pinn_status unsupported(const char *reason) { return pn_fail(PINN_UNSUPPORTED, "no streamed pass: %s", reason); }

/* ---- the network ---------------------------------------------------------------------------------------------------------------- */

static pinn_status read_network(const pn_pass *pass, pn_stream_plan *plan) {
    if (pass->real != PN_FLOAT32) return unsupported("it multiplies in float32");
    pinn_status status = pn_describe_uniform(pass, "streamed", &plan->net);
    if (status != PINN_OK) return status;
    if (larger(plan->net.first, plan->net.width) > COLUMNS_MOST) return pn_fail(PINN_UNSUPPORTED, "no streamed pass: layers are wider than %d", COLUMNS_MOST);
    plan->gradient_row = plan->net.sum_vectors * plan->net.width + pass->network->fields;
    return PINN_OK;
}

static void size_weights(const pn_pass *pass, pn_stream_plan *plan) {
    plan->parts = pass->tf32 ? 1 : 2;
    plan->window_chunks = pass->tf32 ? TF32_WINDOW_CHUNKS : WINDOW_CHUNKS;
    plan->padded = round_up(plan->net.width, COLUMNS_STEP);
    plan->first_padded = round_up(plan->net.first, COLUMNS_STEP);
    plan->pitch = larger(plan->padded, plan->first_padded);
    plan->first_chunks = plan->first_padded / PN_STREAM_CHUNK_K;
    plan->next_chunks = plan->padded / PN_STREAM_CHUNK_K;
    const size_t parts = 2 * plan->net.hidden - 1 - !plan->net.first_trained; /* products of a tile but the first */
    plan->chunks = plan->first_chunks + parts * plan->next_chunks;
}

/* ---- tiles ------------------------------------------------------------------------------------------------------------------------ */

/* Tiles of 16 x 8 of a warp's part of a product, and of the warp's sum: what its registers hold, with what is multiplied beside them. */
static bool half_registers(const pn_stream_plan *plan) { return plan->warps * plan->residents > 8; }
static size_t part_most(const pn_stream_plan *plan) { return half_registers(plan) ? 8 : 16; }
static size_t sum_most(const pn_stream_plan *plan) { return half_registers(plan) ? (plan->parts == 1 ? 16 : 12) : 32; }

/* Reads of shared memory that a step of 16 values of k takes, in matrices of 16 x 16: rows again for each part of the columns (PART_N in
 * kernels/stream_products.cuh). */
static size_t count_reads(const pn_stream_plan *plan, size_t m, size_t n) {
    const size_t most = part_most(plan);
    const size_t part = plan->parts == 1 || m * n <= most ? n : n % 4 == 0 && m <= most / 4 ? 4 : n % 2 == 0 && m <= most / 2 ? 2 : 1;
    return m * (n / part) + (n + 1) / 2;
}

/* Units and warps for tiles of about `rows` rows: the most that are not more, and of those with the fewest reads. */
static bool size_group(const pn_stream_plan *plan, size_t channels, size_t rows, pn_stream_group *out) {
    const size_t tiles = channels % 2 ? channels : channels / 2;
    size_t best_rows = 0, best_reads = 0;
    const unsigned least = plan->warps / COLUMN_WARPS_MOST;
    for (unsigned row_warps = least; row_warps <= ROW_WARPS_MOST * least; row_warps *= 2)
        for (unsigned units = 1; units * tiles <= ROW_TILES_MOST; units++) {
            const size_t m = units * tiles, n = plan->padded / 8 * row_warps / plan->warps, own = row_warps * m * 16;
            if (m * n > sum_most(plan) || (own > rows && best_rows > 0 && own >= best_rows) || own < (best_rows > rows ? 0 : best_rows)) continue;
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
        plan->raw_most = larger(plan->raw_most, plan->warps / group->row_warps * group->rows);
        plan->keep_tiles = larger(plan->keep_tiles, group->rows / 16 * (plan->padded / 8) / plan->warps);
    }
    for (size_t i = 0; i < pass->members; i++) {
        const pn_stream_group *group = &plan->group[pass->member[i].group];
        const size_t tiles = (pass->member[i].points + group->points - 1) / group->points;
        plan->tiles += tiles;
        plan->all_rows += tiles * group->rows;
    }
    return plan->points_most <= 32 * plan->warps;
}

/* ---- memory ---------------------------------------------------------------------------------------------------------------------- */

/* sizeof(shared_memory) in kernels/stream_layout.cuh, which checks it; with this many stages. */
static size_t shared_bytes(const pn_pass *pass, const pn_stream_plan *p, unsigned stages) {
    const size_t fields = pass->network->fields, vector_rows = p->net.first_vectors + p->net.hidden * p->net.vectors;
    const size_t vector = larger(p->padded, round_up(p->net.first_lanes, COLUMNS_STEP));
    const size_t halves = p->parts * (stages * p->padded * PN_STREAM_CHUNK_K + p->rows * p->pitch);
    const size_t doubles = p->warps * pass->terms;
    const size_t words = p->chunks + (vector_rows + fields + p->row_warps_most * p->net.sum_vectors) * vector + (p->raw_most + p->rows + 1) * fields +
                         pass->terms + p->points_most * p->columns_most + p->warps * (fields + 1);
    return round_up(2 * halves + 8 * doubles + 4 * words, 128);
}

/* Of one of the blocks of a multiprocessor, each of which costs RESERVED_BYTES beside. */
static size_t shared_limit(const pn_device_limits *limits, const pn_stream_plan *plan) {
    return (limits->shared_bytes + RESERVED_BYTES) / plan->residents / BYTES_ALIGNMENT * BYTES_ALIGNMENT - RESERVED_BYTES;
}

static void size_shared(const pn_pass *pass, const pn_device_limits *limits, pn_stream_plan *plan) {
    const size_t slab = 2 * plan->parts * PN_STREAM_SLAB_ROWS * PN_STREAM_SIDE * 2;
    plan->stages = STAGES_MOST;
    while (plan->stages > STAGES_LEAST && shared_bytes(pass, plan, plan->stages) > shared_limit(limits, plan)) plan->stages--;
    plan->shared_bytes = shared_bytes(pass, plan, plan->stages);
    plan->slabs = limits->shared_bytes / slab < SLABS_MOST ? (unsigned)(limits->shared_bytes / slab) : SLABS_MOST;
    plan->gradient_shared_bytes = plan->slabs * slab;
}

/* ---- the choice ------------------------------------------------------------------------------------------------------------------- */

/* Time of a pass in units of a row's products at float32's accuracy, 256 wide (0.53 us on an H200, from which all numbers are). Products last as
 * long as their multiplications or as their weights are on their way from the second-level cache. The pointwise part waits for its own
 * results: twice as many warps take little more than half the time. Blocks that share a multiprocessor also fill each other's pauses. Sums that take
 * more registers than a half slow down all. */
static double estimate_time(const pn_stream_plan *plan, unsigned processors) {
    const double rows = (double)plan->rows, products = rows * (plan->parts == 2 ? 1.0 : 1.0 / 3), stream = 30.0 * plan->parts;
    const double waits = half_registers(plan) ? 0.6 : 1.0, pauses = 12.0 / plan->residents;
    const double pointwise = (plan->parts == 2 ? 1.55 : 1.2) * COLUMNS_MOST / (double)plan->padded * rows * waits;
    const double excess = fmax(0, (double)plan->keep_tiles / (double)part_most(plan) - 1);
    const double share = (double)plan->tiles / processors, rounds = ceil(share / plan->residents) * plan->residents;
    return (rounds + 0.01 * share) * (fmax(products, stream) + pointwise + pauses) * (1 + 0.4 * excess * excess);
}

static bool size_tiles(const pn_pass *pass, const pn_device_limits *limits, const pn_tile_rows *tile, pn_stream_plan *plan) {
    plan->warps = tile->warps;
    plan->residents = tile->blocks;
    plan->about = tile->rows;
    if (!size_groups(pass, plan, tile->rows)) return false;
    size_shared(pass, limits, plan);
    return plan->shared_bytes <= shared_limit(limits, plan) && plan->slabs >= 2;
}

static size_t distance(size_t a, size_t b) { return a > b ? a - b : b - a; }

static pinn_status unknown_shape(const pn_tile_rows *asked) {
    char text[PN_TILE_CHOICE_BYTES];
    pn_tile_rows_print(asked, text);
    return pn_fail(PINN_UNSUPPORTED, "no streamed pass: tiles of %s: there is no such combination of warps and blocks; there are \"warps 8, blocks 1\", "
                                     "\"warps 16, blocks 1\" and \"warps 8, blocks 2\"", text);
}

/* Rows of a tile, warps and blocks: as asked for, or by the estimate. What is asked for comes first, where shapes differ in it. */
static pinn_status choose_tiles(const pn_pass *pass, const pn_device_limits *limits, const char *tiles, pn_stream_plan *plan) {
    static const pn_tile_rows shape[] = {{0, 8, 1}, {0, 16, 1}, {0, 8, 2}}; /* as unknown_shape tells */
    bool known = false;
    pn_tile_rows asked = {0}, best = {0};
    double best_time = INFINITY;
    size_t best_off = SIZE_MAX;
    if (!pn_tiles_auto(tiles)) {
        if (!pn_tiles_rows(tiles, &asked)) return pn_fail(PINN_UNSUPPORTED, "no streamed pass: its tiles are given in rows, as \"rows 128\", not as \"%s\"", tiles);
        if (asked.rows < ROWS_STEP || asked.rows > ROWS_MOST) return pn_fail(PINN_UNSUPPORTED, "tiles of %s don't fit: a tile has 16 to 256 rows", tiles);
    }
    for (size_t k = 0; k < sizeof shape / sizeof shape[0]; k++) {
        pn_tile_rows tile = shape[k];
        if (asked.warps && (tile.warps != asked.warps || tile.blocks != asked.blocks)) continue;
        known = true;
        for (tile.rows = asked.rows ? asked.rows : ROWS_STEP; tile.rows <= (asked.rows ? asked.rows : ROWS_MOST); tile.rows += ROWS_STEP) {
            if (!size_tiles(pass, limits, &tile, plan)) continue;
            const double time = estimate_time(plan, limits->processors);
            const size_t off = asked.rows ? distance(plan->rows, asked.rows) : 0;
            if (off > best_off || (off == best_off && time >= best_time)) continue;
            best = tile;
            best_off = off;
            best_time = time;
        }
    }
    if (!known) return unknown_shape(&asked);
    if (!best.rows && asked.rows) return pn_fail(PINN_UNSUPPORTED, "tiles of %s don't fit: too many channels, or too little shared memory", tiles);
    if (!best.rows) return unsupported("a tile does not fit: too many channels, or too little shared memory");
    size_tiles(pass, limits, &best, plan);
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
    const size_t arrays = 2 * p->net.hidden;
    p->weight_scale = round_up(p->chunks * p->parts * p->padded * PN_STREAM_CHUNK_K * 2, BYTES_ALIGNMENT);
    p->images = round_up(p->weight_scale + p->chunks * 4, BYTES_ALIGNMENT);
    p->image_scale = round_up(p->images + arrays * p->parts * p->all_rows * p->pitch * 2, BYTES_ALIGNMENT);
    p->keep = round_up(p->image_scale + arrays * p->tiles * 4, BYTES_ALIGNMENT);
    p->work_bytes = p->keep + p->blocks * (p->net.hidden - 1) * p->keep_tiles * 32 * p->warps * 16;
}

pinn_status pn_stream_plan_create(const pn_pass *pass, const pn_device_limits *limits, const char *tiles, pn_stream_plan *out) {
    pinn_status status;
    pn_stream_plan plan = {.group = pn_allocate(pass->groups, sizeof *plan.group), .order = pn_allocate(pass->members, sizeof *plan.order)};
    if (!plan.group || !plan.order) {
        status = PN_NO_MEMORY("the network pass");
        goto fail;
    }
    PN_TRY(read_network(pass, &plan));
    size_weights(pass, &plan);
    pn_describe_order(pass, plan.order);
    for (size_t i = 0; i < pass->members; i++) plan.columns_most = larger(plan.columns_most, pass->member[i].point_columns);
    PN_TRY(choose_tiles(pass, limits, tiles, &plan));
    const size_t sides = (plan.padded + PN_STREAM_SIDE - 1) / PN_STREAM_SIDE, first_sides = (plan.first_padded + PN_STREAM_SIDE - 1) / PN_STREAM_SIDE;
    plan.items = (unsigned)(first_sides * sides + (plan.net.hidden - 1) * sides * sides);
    const unsigned residents = plan.residents * limits->processors;
    plan.blocks = plan.tiles < residents ? (unsigned)plan.tiles : residents;
    plan.splits = choose_splits(&plan, limits->processors);
    place_work(&plan);
    if (limits->memory && plan.work_bytes > limits->memory) { /* the weight gradients want A and dZ of all layers and points at once */
        status = pn_fail(PINN_UNSUPPORTED, "no streamed pass: its activations of all points take %.1f GiB, and the device has %.1f",
                         (double)plan.work_bytes / 0x1p30, (double)limits->memory / 0x1p30);
        goto fail;
    }
    plan.groups = pass->groups;
    *out = plan;
    return PINN_OK;
fail:
    pn_stream_plan_free(&plan);
    return status;
}

size_t pn_stream_words(const pn_pass *pass, const pn_stream_plan *plan) {
    const size_t vectors = plan->net.first_vectors + plan->net.hidden * plan->net.vectors;
    return PN_STREAM_POINTERS + PN_STREAM_OFFSETS + 2 * plan->net.hidden + vectors + 2 + plan->splits + 1 + 6 * pass->members;
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
