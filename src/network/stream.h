/* The streamed lowering on a GPU, in float32 and tf32, for layers too wide to keep their weights beside a tile: a kernel that makes weights
 * ready, one for the whole pass of a tile while they stream through shared memory (kernels/stream_pass.cuh tells how), and one for all weight
 * gradients (kernels/stream_gradient.cuh).
 *
 *   stream_plan.c    sizes, and whether network and point sets fit
 *   stream_source.c  the kernels' text: constants, lane functions, the files of kernels/ (as device_text.c, made by CMake), the entries
 *   stream_pass.c    the lowering: planes, partials, nodes
 */
#ifndef PN_NETWORK_STREAM_H
#define PN_NETWORK_STREAM_H

#include "network/description.h"

typedef struct pn_stream_group {
    unsigned units, row_warps; /* units of points a warp, warps one below the other */
    size_t points, rows;       /* of a tile */
    pn_kept kept;              /* owned: programs of the hidden layers */
} pn_stream_group;

enum { /* the kernels' text is given them */
    PN_STREAM_CHUNK_K = 32,
    PN_STREAM_COLUMNS_STEP = 64, /* eight warps side by side have as many tiles of 8 columns each */
    PN_STREAM_GRADIENT_THREADS = 512,
    PN_STREAM_PREPARE_THREADS = 1024,
    PN_STREAM_SIDE = 128,     /* of a block's part of a weight gradient */
    PN_STREAM_SLAB_ROWS = 32, /* of A and dZ that it takes at a time */
    PN_STREAM_POINTERS = 7,   /* of the kernels' parameter, see pn_stream_words */
    PN_STREAM_OFFSETS = 7
};

typedef struct pn_stream_plan {
    unsigned parts;            /* fp16 numbers an element is split into: 2, or 1 at tf32's accuracy */
    unsigned warps, residents; /* of a block of the pass; blocks a multiprocessor */
    unsigned stages, slabs;    /* of the rings of weights, and of rows for weight gradients */
    unsigned window_chunks;    /* of weights that share a scale, and are added up in the tensor cores */
    unsigned blocks;           /* of the pass's grid */
    unsigned splits;           /* partials of a weight gradient */
    unsigned items;            /* blocks of the weight gradients' grid for each split */
    pn_stream_group *group; size_t groups; /* owned, [pass->groups] */
    size_t *order;             /* owned, [pass->members]: point sets as the tiles run through them, most channels first */
    pn_uniform net;
    size_t first_padded, padded, pitch; /* columns */
    size_t first_chunks, next_chunks, chunks;                      /* of weights: of stage 1, of a later one, of a tile's whole pass */
    unsigned about;            /* rows of a tile that were asked for: a group's may be fewer, or more for one unit */
    size_t rows, points_most, columns_most; /* of a tile */
    size_t row_warps_most, raw_most;        /* raw_most: rows of partial fields */
    size_t tiles, all_rows;    /* of all point sets */
    size_t keep_tiles;         /* of 16 x 8 a warp, for each stage kept */
    size_t gradient_row;       /* elements */
    size_t shared_bytes, gradient_shared_bytes;
    size_t weights, weight_scale, images, image_scale, keep, work_bytes; /* where they start in the workspace, bytes */
} pn_stream_plan;

/* `tiles`: rows (core/tiles.h), or NULL or "auto" = by an estimate. Errors: CONFIG for other texts; UNSUPPORTED, with the reason, when the network, its
 * point sets or the device don't fit. */
pinn_status pn_stream_plan_create(const pn_pass *pass, const pn_device_limits *limits, const char *tiles, pn_stream_plan *out);
/* 64-bit words of the kernels' parameter: pointers, offsets, weights, vectors, output, bias, partials, splits, members (`struct arguments` in
 * kernels/stream_layout.cuh). */
size_t pn_stream_words(const pn_pass *pass, const pn_stream_plan *plan);
/* Makes the groups' programs: the kernels' text needs them, a plan's sizes don't. */
pinn_status pn_stream_describe(const pn_pass *pass, pn_stream_plan *plan);
void pn_stream_plan_free(pn_stream_plan *plan);

#define PN_STREAM_PREPARE "pn_stream_weights"
#define PN_STREAM_PASS "pn_stream_pass"
#define PN_STREAM_GRADIENT "pn_stream_gradients"
/* Appends the kernels' text. */
pinn_status pn_stream_source(const pn_pass *pass, const pn_stream_plan *plan, pn_text *out);

extern const char pn_stream_instructions_text[], pn_stream_products_text[], pn_stream_layout_text[]; /* of kernels/stream_*.cuh */
extern const char pn_stream_pass_text[], pn_stream_gradient_text[];

#endif
