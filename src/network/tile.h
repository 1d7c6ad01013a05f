/* The tiled lowering on a GPU: one generated kernel for the whole network pass; kernels/tile_pass.cuh tells how it works.
 *
 *   tile_plan.c    which sizes fit a device, and which are chosen
 *   tile_source.c  the kernel's text: constants, lane functions, the files kernels/tile_*.cuh (as device_text.c, made by CMake), the entry
 *   tile_pass.c    the lowering: planes, partials, the node
 */
#ifndef PN_NETWORK_TILE_H
#define PN_NETWORK_TILE_H

#include "core/tiles.h"
#include "network/description.h"

typedef struct pn_tile_group {
    unsigned units, splits;
    size_t points, rows; /* of a tile */
    pn_kept kept;        /* owned: programs of the hidden layers */
} pn_tile_group;

typedef struct pn_tile_plan {
    pn_tile_choice choice;
    unsigned warps, units_most, splits_most, blocks; /* blocks: of the grid */
    pn_tile_group *group; size_t groups; /* owned, [groups] */
    size_t *order;        /* owned, [pass->members]: point sets as the tiles run through them, most channels first */
    size_t tiles;
    pn_uniform net;
    size_t rows, points_most, columns_most;   /* of a tile */
    size_t stride, weight_stride, weights, vector; /* elements, as in tile_layout.cuh */
    size_t operands;                          /* arrays of A, 1 to net.hidden */
    unsigned weight_slots;                    /* layers whose weights are there at a time, unless all are: 1, or 2 to fetch one meanwhile */
    size_t keep_stage, keep_block;            /* elements */
    size_t gradient_row;
    size_t shared_bytes;
    unsigned gradient_m, gradient_n;          /* tiles of a warp's part of a weight gradient */
    bool halves;      /* products of halves, kernels/tile_halves.cuh: float32 and tf32 */
    bool padded_rows; /* products read columns of A and dZ that no stage writes */
} pn_tile_plan;

/* `choice` NULL: by the table. Errors: UNSUPPORTED, with the reason, when the network, its point sets or the choice don't fit. */
pinn_status pn_tile_plan_create(const pn_pass *pass, const pn_device_limits *limits, const pn_tile_choice *choice, pn_tile_plan *out);
enum { PN_TILE_POINTERS = 7 };
/* 64-bit words of the kernel's parameter: pointers, weights, vectors, output, bias, members (`struct arguments` in kernels/tile_layout.cuh). */
size_t pn_tile_words(const pn_pass *pass, const pn_tile_plan *plan);
/* Makes the programs of the plan's groups; while the pass is made. */
pinn_status pn_tile_describe(const pn_pass *pass, pn_tile_plan *plan);
void pn_tile_plan_free(pn_tile_plan *plan);

typedef struct pn_tile_candidate {
    pn_tile_choice choice;
    double time; /* of a step, by the model: comparable, without unit */
} pn_tile_candidate;

/* The best choices by the model, at most `most`, the best first; returns how many. `plan`: one of pn_tile_plan_create for the pass, whose
 * sizes are overwritten. */
size_t pn_tile_candidates(const pn_pass *pass, const pn_device_limits *limits, pn_tile_plan *plan, pn_tile_candidate *best, size_t most);

#define PN_TILE_KERNEL "pn_network_pass"
/* Appends the kernel's text. It depends on programs, parameter offsets and the plan, not on numbers of points. */
pinn_status pn_tile_source(const pn_pass *pass, const pn_tile_plan *plan, pn_text *out);

extern const char pn_tile_products_text[], pn_tile_halves_text[]; /* of kernels/tile_*.cuh */
extern const char pn_tile_layout_text[], pn_tile_stages_text[], pn_tile_pass_text[];

#endif
