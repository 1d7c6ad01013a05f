/* Sizes of the tiled pass on a GPU: what fits, and the choice.
 *
 * The choice is a function of the problem and of the device's sizes alone, never of a timing, so that a run repeats its bits. Its model:
 * a step lasts as long as the multiprocessor with the most tiles; a tile costs its rows' products, slowed when few warps hide latencies,
 * and a constant for its barriers. */
#include "network/tile.h"

#include <stdio.h>

#include "core/memory.h"

enum {
    WARPS_MOST = 24,          /* 768 threads: 85 registers each */
    QUARTER_REGISTERS = 512,  /* a lane has, if it is the only warp on its quarter of a multiprocessor; in sm_80 and later */
    LANE_REGISTERS_MOST = 96, /* of a lane's accumulators, in float32 */
    THREAD_REGISTERS_MOST = 255,
    BARRIERS = 15,            /* of a block, for units of several warps */
    ELEMENT_ALIGNMENT = 64
};
_Static_assert(WARPS_MOST / 2 <= BARRIERS, "units of two warps and more have a barrier each");

static size_t padded(size_t columns) { return (columns + 7) / 8 * 8; }
static size_t round_up(size_t value, size_t step) { return (value + step - 1) / step * step; }
static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

static pinn_status unsupported(const char *reason) { return pn_fail(PINN_UNSUPPORTED, "no tiled pass: %s", reason); }

/* ---- rules --------------------------------------------------------------------------------------------------------------------- */

enum rule {
    FITS,
    RULE_WARPS, RULE_SPLITS, RULE_EVEN,
    RULE_ACCUMULATORS, RULE_THREAD, RULE_QUARTER,
    RULE_GROUP_ROWS, RULE_GROUP_REGISTERS,
    RULE_SHARED
};

/* The rule a choice breaks, or FITS, and the two numbers its text tells. */
typedef struct verdict {
    enum rule rule;
    size_t first, second;
} verdict;

static const char *const rule_text[] = {
    [RULE_WARPS] = "units times splits is at most %zu, not %zu",
    [RULE_SPLITS] = "this width has at most %zu splits, not %zu",
    [RULE_EVEN] = "the width's %zu tiles of 8 columns cannot be shared evenly by %zu splits",
    [RULE_ACCUMULATORS] = "a thread's sums have at most %zu registers, not %zu: use more splits",
    [RULE_THREAD] = "a thread has at most %zu registers, not %zu: use more splits",
    [RULE_QUARTER] = "the warps on a quarter of a multiprocessor have at most %zu registers a lane, not %zu: use fewer units or more splits",
    [RULE_GROUP_ROWS] = "a tile has %zu rows, and the smallest part of a point set with fewer channels has %zu: use more units",
    [RULE_GROUP_REGISTERS] = "for a point set with %zu channels no number of splits leaves a thread's sums at most %zu registers: use fewer splits",
    [RULE_SHARED] = "the device has %zu bytes of shared memory, they need %zu",
};

/* ---- sizes --------------------------------------------------------------------------------------------------------------------- */

static size_t unit_points(size_t channels) { return channels % 2 ? 16 : 8; }
static size_t lane_registers(const pn_tile_plan *plan, size_t channels, unsigned splits) {
    const size_t tiles = padded(plan->net.width) / 8;
    return channels * unit_points(channels) / 16 * ((tiles + splits - 1) / splits) * 4;
}

/* Units and splits of a group: the choice's for those with the most channels, for the others too if rows and registers allow (an odd
 * number of channels may need more splits and fewer units). */
static verdict size_group(const pn_tile_plan *plan, size_t channels, bool most, size_t rows, size_t registers, pn_tile_group *out) {
    const size_t points = unit_points(channels), tiles = padded(plan->net.width) / 8;
    unsigned splits = plan->choice.splits;
    for (; splits <= tiles && splits <= plan->warps; splits++) {
        if (tiles % splits) continue; /* the warps of a unit share its columns evenly */
        unsigned units = plan->warps / splits;
        if (units > plan->choice.units) units = plan->choice.units;
        if (!most && units * points * channels > rows) units = (unsigned)(rows / (points * channels));
        if (units == 0) return (verdict){RULE_GROUP_ROWS, rows, points * channels};
        out->units = units;
        out->splits = splits;
        out->points = units * points;
        out->rows = out->points * channels;
        if (most || lane_registers(plan, channels, splits) <= registers) return (verdict){.rule = FITS};
    }
    return (verdict){RULE_GROUP_REGISTERS, channels, registers};
}

static verdict size_groups(const pn_pass *pass, pn_tile_plan *plan) {
    const size_t most = pn_most_channels(pass), rows = plan->choice.units * unit_points(most) * most;
    const size_t registers = larger(lane_registers(plan, most, plan->choice.splits), 32);
    plan->rows = plan->points_most = plan->units_most = plan->splits_most = 0;
    size_t keep = 0;
    plan->tiles = 0;
    for (size_t g = 0; g < pass->groups; g++) {
        pn_tile_group *group = &plan->group[g];
        const size_t channels = pass->group[g].channels;
        const verdict found = size_group(plan, channels, channels == most, rows, registers, group);
        if (found.rule != FITS) return found;
        plan->rows = larger(plan->rows, group->rows);
        plan->points_most = larger(plan->points_most, group->points);
        plan->units_most = (unsigned)larger(plan->units_most, group->units);
        plan->splits_most = (unsigned)larger(plan->splits_most, group->splits);
        keep = larger(keep, lane_registers(plan, channels, group->splits));
    }
    for (size_t m = 0; m < pass->members; m++) {
        const size_t points = plan->group[pass->member[m].group].points;
        plan->tiles += (pass->member[m].points + points - 1) / points;
    }
    plan->keep_stage = keep * 32 * plan->warps;
    return (verdict){.rule = FITS};
}

/* Elements from row to row, so that a warp's reads touch each bank once: kernels/tile_halves.cuh, tile_products.cuh. */
static size_t operand_stride(const pn_tile_plan *plan, size_t columns) {
    if (!plan->halves) return round_up(columns, 32);
    return columns <= 16 ? 16 : columns <= 32 ? 32 : round_up(columns, 64);
}

static size_t element_bytes(const pn_pass *pass, const pn_tile_plan *plan) { /* one half, two, or a real */
    return plan->halves ? (pass->tf32 ? 2 : 4) : pn_real_bytes(pass->real);
}

static void size_memory(const pn_pass *pass, pn_tile_plan *plan) {
    const size_t fields = pass->network->fields, real = pn_real_bytes(pass->real), step = plan->halves ? 16 : 8; /* of a product's k */
    const size_t first = round_up(plan->net.first, step), width = round_up(plan->net.width, step);
    const size_t element = element_bytes(pass, plan);
    plan->stride = operand_stride(plan, larger(first, width));
    plan->weight_stride = operand_stride(plan, width);
    plan->padded_rows = first != plan->net.first || width != padded(plan->net.width);
    plan->weights = plan->weight_stride * (plan->choice.weights_all ? first + (plan->net.hidden - 1) * width
                                                                    : larger(first, plan->net.hidden > 1 ? width : 0));
    plan->vector = larger(padded(plan->net.first_lanes), padded(plan->net.width));
    plan->keep_block = (plan->net.hidden - 1) * plan->keep_stage;
    plan->gradient_row = round_up(plan->net.first * plan->net.width + (plan->net.hidden - 1) * plan->net.width * plan->net.width +
                                      plan->net.sum_vectors * plan->net.width + fields, ELEMENT_ALIGNMENT);
    const size_t vector_rows = plan->net.first_vectors + plan->net.hidden * plan->net.vectors;
    const size_t first_parts = plan->net.first_trained ? plan->net.first_vectors : 0;
    const size_t parts = larger(first_parts, plan->net.vectors) + 2 * plan->net.vectors + fields; /* of a unit, as the kernel's PART_VECTORS */
    const size_t elements = (plan->choice.keep_shared && plan->keep_block ? plan->keep_block : 4) +
                            (vector_rows + fields + plan->units_most * parts + plan->net.sum_vectors) * plan->vector +
                            (plan->splits_most + 1) * plan->rows * fields + fields + pass->terms +
                            2 * plan->points_most * plan->columns_most + plan->warps * fields + (plan->net.hidden + 1) * plan->units_most + plan->net.hidden;
    plan->shared_bytes = round_up((2 * plan->rows * plan->stride + plan->weights) * element + elements * real +
                                      plan->warps * pass->terms * sizeof(double) + (plan->units_most * plan->splits_most + plan->warps * plan->net.hidden) * real +
                                      256, 16); /* 256: gaps for alignment */
}

/* Room for another layer's weights, which come while the tile computes: those that need not be scaled. */
static void size_slots(const pn_pass *pass, const pn_device_limits *limits, pn_tile_plan *plan) {
    const size_t slot = plan->weights * element_bytes(pass, plan);
    const bool second = !plan->halves && !plan->choice.weights_all && plan->net.hidden > 1 && plan->shared_bytes + slot <= limits->shared_bytes;
    plan->weight_slots = second ? 2 : 1;
    if (second) plan->shared_bytes += slot;
}

/* Arrays of A: as many of the first stages as there is room for keep theirs until the way back; the others share one. */
static void size_operands(const pn_pass *pass, const pn_device_limits *limits, pn_tile_plan *plan) {
    const size_t array = plan->rows * plan->stride * element_bytes(pass, plan);
    const bool in_registers = plan->halves && plan->choice.splits == 1; /* going forward A is in no array */
    plan->operands = 1;
    if (in_registers || plan->shared_bytes > limits->shared_bytes) return;
    while (plan->operands < plan->net.hidden && plan->shared_bytes + array <= limits->shared_bytes) {
        plan->operands++;
        plan->shared_bytes += array;
    }
}

/* A warp's part of a weight gradient: the largest that leaves work for half of the warps; the others go on meanwhile. */
static void size_gradient(pn_tile_plan *plan) {
    static const unsigned shape[][2] = {{2, 4}, {2, 2}, {1, 4}, {1, 2}, {1, 1}};
    const size_t in = padded(plan->net.width), out = padded(plan->net.width);
    const size_t shapes = sizeof shape / sizeof shape[0] - plan->halves; /* halves load two tiles of columns at a time */
    for (size_t i = 0; i < shapes; i++) {
        plan->gradient_m = shape[i][0];
        plan->gradient_n = shape[i][1];
        const size_t items = ((in + 16 * shape[i][0] - 1) / (16 * shape[i][0])) * ((out + 8 * shape[i][1] - 1) / (8 * shape[i][1]));
        if (2 * items >= plan->warps) break;
    }
}

/* What warps and their registers allow. */
static verdict check_warps(const pn_pass *pass, const pn_tile_plan *plan) {
    const size_t most = pn_most_channels(pass), real = pn_real_bytes(pass->real) / sizeof(float), tiles = padded(plan->net.width) / 8;
    const pn_tile_choice *choice = &plan->choice;
    if (plan->warps > WARPS_MOST) return (verdict){RULE_WARPS, WARPS_MOST, plan->warps};
    if (choice->splits > tiles) return (verdict){RULE_SPLITS, tiles, choice->splits};
    if (tiles % choice->splits) return (verdict){RULE_EVEN, tiles, choice->splits};
    const size_t registers = lane_registers(plan, most, choice->splits) * real;
    /* accumulators, the operand they come from, fragments, the lane functions' own */
    const size_t thread = 2 * registers + (2 * most + 44) * real;
    const size_t quarter = (plan->warps + 3) / 4; /* warps on the fullest quarter of a multiprocessor */
    if (registers > LANE_REGISTERS_MOST) return (verdict){RULE_ACCUMULATORS, LANE_REGISTERS_MOST, registers};
    if (thread > THREAD_REGISTERS_MOST) return (verdict){RULE_THREAD, THREAD_REGISTERS_MOST, thread};
    if (thread * quarter > QUARTER_REGISTERS) return (verdict){RULE_QUARTER, QUARTER_REGISTERS, thread * quarter};
    return (verdict){.rule = FITS};
}

static verdict size_plan(const pn_pass *pass, const pn_device_limits *limits, pn_tile_plan *plan) {
    plan->warps = plan->choice.units * plan->choice.splits;
    verdict found = check_warps(pass, plan);
    if (found.rule == FITS) found = size_groups(pass, plan);
    if (found.rule != FITS) return found;
    size_memory(pass, plan);
    size_slots(pass, limits, plan);
    size_operands(pass, limits, plan);
    size_gradient(plan);
    plan->blocks = (unsigned)(plan->tiles < limits->processors ? plan->tiles : limits->processors);
    if (plan->shared_bytes > limits->shared_bytes) return (verdict){RULE_SHARED, limits->shared_bytes, plan->shared_bytes};
    return found;
}

/* ---- the table ------------------------------------------------------------------------------------------------------------------ */

/* Relative time of a step, in multiply-adds of products at float32's accuracy. The constants were read off an H200: a warp's step of a product takes
 * 4.5 cycles of the tensor cores for each of its 16x8 tiles (three products), and the loads of its operands about as many instruction slots; the
 * others were fitted to measured steps of configs/bench. Only the order of the choices matters; --tune measures them. */
static double expected_time(const pn_pass *pass, const pn_tile_plan *plan) {
    const size_t most = pn_most_channels(pass), tiles = padded(plan->net.width) / 8;
    const double rounds = (double)((plan->tiles + plan->blocks - 1) / plan->blocks), warps = plan->warps;
    const double rows = (double)plan->rows, width = (double)padded(plan->net.width), stages = (double)plan->net.hidden;
    const double m = (double)(most * unit_points(most) / 16), n = (double)((tiles + plan->choice.splits - 1) / plan->choice.splits);
    const double operands = 1.0 + 1.45 * (4.0 * m + 2.0 * n) / (4.5 * m * n);
    const double busy = warps / (warps + 2.5);                                       /* latencies hidden */
    const double products = 3.0 * stages * rows * width * width * operands;          /* multiply-adds */
    const double pointwise = 120.0 * (stages + 1.0) * rows * width;                  /* as many multiply-adds' worth */
    const double barriers = 12.0e4 * stages;
    double traffic = 2.0 * stages * width * width * 12.0;                            /* partial gradients */
    if (!plan->choice.keep_shared) traffic += 86.0 * (stages - 1.0) * rows * width;
    traffic += 112.0 * (stages - (double)plan->operands) * rows * width;             /* A computed again */
    if (!plan->choice.weights_all) traffic += (plan->weight_slots == 2 ? 4.0e5 : 1.0e6) * stages; /* waits for each layer's weights, twice */
    return rounds * ((products + pointwise) / busy + barriers + traffic);
}

size_t pn_tile_candidates(const pn_pass *pass, const pn_device_limits *limits, pn_tile_plan *plan, pn_tile_candidate *best, size_t most) {
    const size_t tiles = padded(plan->net.width) / 8;
    size_t count = 0;
    for (unsigned units = 1; units <= WARPS_MOST; units++)
        for (unsigned splits = 1; units * splits <= WARPS_MOST; splits++)
            for (int memory = 0; memory < 4; memory++) {
                plan->choice = (pn_tile_choice){units, splits, memory < 2, memory % 2 == 0};
                if (tiles % splits || units * splits < 4 || size_plan(pass, limits, plan).rule != FITS) continue; /* no warp with fewer columns */
                const pn_tile_candidate new = {plan->choice, expected_time(pass, plan)};
                size_t at = count < most ? count++ : most;
                for (; at > 0 && best[at - 1].time > new.time; at--)
                    if (at < most) best[at] = best[at - 1];
                if (at < most) best[at] = new;
            }
    return count;
}

static pinn_status refuse(const pn_tile_choice *choice, verdict found) {
    char text[PN_TILE_CHOICE_BYTES], reason[192];
    pn_tile_choice_print(choice, text);
    snprintf(reason, sizeof reason, rule_text[found.rule], found.first, found.second);
    return pn_fail(PINN_UNSUPPORTED, "tiles of %s don't fit: %s", text, reason);
}

pinn_status pn_tile_plan_create(const pn_pass *pass, const pn_device_limits *limits, const pn_tile_choice *choice, pn_tile_plan *out) {
    pinn_status status;
    pn_tile_plan plan = {.group = pn_allocate(pass->groups, sizeof *plan.group), .order = pn_allocate(pass->members, sizeof *plan.order)};
    if (!plan.group || !plan.order) {
        status = PN_NO_MEMORY("the network pass");
        goto fail;
    }
    PN_TRY(pn_describe_uniform(pass, "tiled", &plan.net));
    plan.halves = pass->real == PN_FLOAT32 && !pass->products_fma;
    pn_describe_order(pass, plan.order);
    for (size_t m = 0; m < pass->members; m++) plan.columns_most = larger(plan.columns_most, pass->member[m].point_columns);
    if (choice) {
        plan.choice = *choice;
        const verdict found = size_plan(pass, limits, &plan);
        if (found.rule != FITS) PN_TRY(refuse(choice, found));
    } else {
        pn_tile_candidate best;
        if (pn_tile_candidates(pass, limits, &plan, &best, 1) == 0)
            PN_TRY(unsupported("a tile of eight points needs more shared memory or registers than there are"));
        plan.choice = best.choice;
        size_plan(pass, limits, &plan); /* as it was when it was found to fit */
    }
    plan.groups = pass->groups;
    *out = plan;
    return PINN_OK;
fail:
    plan.groups = plan.group ? pass->groups : 0;
    pn_tile_plan_free(&plan);
    return status;
}

size_t pn_tile_words(const pn_pass *pass, const pn_tile_plan *plan) {
    return PN_TILE_POINTERS + plan->net.hidden + plan->net.first_vectors + plan->net.hidden * plan->net.vectors + 2 + 4 * pass->members;
}

pinn_status pn_tile_describe(const pn_pass *pass, pn_tile_plan *plan) {
    pinn_status status = PINN_OK;
    for (size_t g = 0; status == PINN_OK && g < pass->groups; g++) status = pn_describe_kept(pass, &pass->group[g], 2, &plan->group[g].kept);
    return status;
}

void pn_tile_plan_free(pn_tile_plan *plan) {
    for (size_t g = 0; g < plan->groups; g++) pn_kept_free(&plan->group[g].kept);
    pn_free(plan->group);
    pn_free(plan->order);
    *plan = (pn_tile_plan){0};
}
