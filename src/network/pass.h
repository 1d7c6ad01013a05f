/* The network pass: points in, loss sums and the gradient's partial sums out; or, for evaluation, points in, fields out.
 *
 * One description, three lowerings. Tiled: each tile of points goes through forward, residual, adjoint and backward while it
 * sits in cache, or in a multiprocessor's shared memory; groups of tiles add into their own partial gradient. Streamed (GPU, float32 and tf32): likewise, while the weights of wide
 * layers stream past the tile; weight gradients are one product over all rows. Layered (CPU and GPU): one GEMM a layer over all rows and one
 * pointwise kernel a layer for all point sets.
 */
#ifndef PN_NETWORK_PASS_H
#define PN_NETWORK_PASS_H

#include "core/tiles.h"
#include "expression/expression.h"
#include "network/network.h"
#include "pinn_graph.h"

/* Points with one layout and one residual program. */
typedef struct pn_pass_set {
    const pn_layout *layout;
    size_t points;
    size_t point_columns;  /* coordinates, then `coordinates` normals if the set has them, then extra columns (reference values) */
    size_t point_offset;   /* elements: column k starts at point_offset + k*points in the points plane */
    const pn_value *residual; size_t residuals; /* training: nodes of `ir` over the scope's slots */
    size_t first_term;     /* residual k is term first_term + k */
} pn_pass_set;

/* Where the parts of a sum lie: entry i in [first, first+count) of the total is the sum over r < rows, in that order, of
 * base[r*stride + i - first]. */
typedef struct pn_partial {
    size_t first, count, rows, stride;
    size_t offset; /* elements into the partials plane */
} pn_partial;

typedef enum pn_lowering { PN_LOWERING_AUTO, PN_LOWERING_TILED, PN_LOWERING_STREAMED, PN_LOWERING_LAYERED } pn_lowering;

typedef struct pn_pass_spec {
    pinn_context *context;
    pn_real real;
    bool tf32;             /* products of 11-bit operands, as tf32 has them (GPU only) */
    pn_lowering lowering;  /* AUTO: tiled; on a GPU streamed if wide, layered where neither fits, with a note why in pn_pass_note */
    const pn_network *network;
    pn_scope *scope;
    pn_ir *ir;             /* adjoints are built in it */
    const pn_pass_set *set; size_t sets;
    size_t terms;
    pinn_plane *parameters; /* device, [network->parameters] */
    pinn_plane *points;     /* device */
    pinn_plane *scale;      /* training: device, [terms] in `real`: 2*weight/points, so that d loss/d r = scale*r */
    const char *tiles;      /* on a GPU: NULL or "auto" = by the table; "layered"; or a choice as pn_pass_tiles gives it: UNSUPPORTED, with the
                               reason, when it does not fit the network or the device */
    bool products_fma;      /* tiled on a GPU: products by scalar multiply-adds, the slow oracle of those on tensor cores */
    const char *compile_for; /* on the CPU: also compile the kernels that a GPU of this architecture ("sm_90") would run, with AUTO those of the
                                layered pass too, and throw them away: a check that needs no GPU. NULL = don't */
    bool evaluate;          /* forward only: fields are stored, no loss, no gradient */
    bool residuals;         /* with `evaluate`: residuals are stored in the fields' stead */
} pn_pass_spec;

typedef struct pn_pass pn_pass;

/* Whether the sizes of a usual GPU of the architecture are known; for others compile_for plans for the smallest. */
bool pn_limits_known(const char *architecture);

/* Allocates all planes (workspace, partials), compiles programs, and lets kernels be compiled in the background. Errors also:
 * UNSUPPORTED (tf32 on a CPU), REFUSED with the bytes needed when memory is short. */
pinn_status pn_pass_create(const pn_pass_spec *spec, pn_pass **out);
void pn_pass_destroy(pn_pass *pass);
/* Waits for the kernels and loads them; errors as of pn_kernel_compile. Recording does it too: call it to have several passes' kernels
 * compiled at once, and where loading must not happen in between. */
pinn_status pn_pass_finish(pn_pass *pass);
/* Appends the pass's nodes; any number of times. */
pinn_status pn_pass_record(pn_pass *pass, pinn_graph *graph);

/* Training results. Gradient: entries are parameters; `partials` in `real`. Losses: entries are terms (sums of squares, not yet
 * divided by points), float64. Partials cover every entry; entries no partial covers are 0. Several partials never overlap. */
pinn_plane *pn_pass_gradient_partials(const pn_pass *pass);
const pn_partial *pn_pass_gradient_partial(const pn_pass *pass, size_t *count);
pinn_plane *pn_pass_loss_partials(const pn_pass *pass);
const pn_partial *pn_pass_loss_partial(const pn_pass *pass, size_t *count);
/* Evaluation result: device plane, [set][fields][points] (or [set][residuals][points]) in `real`, sets one after another. */
pinn_plane *pn_pass_fields(const pn_pass *pass);

/* For tuning: tiles that the pass, a tiled one on a GPU, could have. Best first by the model, at most `most`, none slower than twice the best;
 * none for a pass of another kind. */
typedef struct pn_pass_tiling {
    char tiles[PN_TILE_CHOICE_BYTES];
    double time; /* by the model, the best is 1 */
} pn_pass_tiling;
pinn_status pn_pass_tilings(const pn_pass *pass, pn_pass_tiling *out, size_t most, size_t *count);

/* For plans and benches. */
typedef struct pn_pass_cost {
    size_t rows;                 /* of the stacked activation matrix */
    double product_operations;   /* floating-point operations in GEMMs, one pass */
    double pointwise_operations; /* arithmetic + special */
    double bytes;                /* moved between memory and kernels by the layered pass (each operand once) */
    size_t workspace_bytes, partial_bytes;
    size_t beside_bytes;         /* memory that is no plane's, of which the workspace is part or none */
    size_t tile_points, tile_groups; /* tiled, streamed: points a tile, partial gradients; 0 otherwise */
} pn_pass_cost;
void pn_pass_get_cost(const pn_pass *pass, pn_pass_cost *out);
/* With compile_for: of the GPU. */
const char *pn_pass_lowering_name(const pn_pass *pass); /* "tiled", "streamed", "layered" */
const char *pn_pass_tiles(const pn_pass *pass);         /* the choice of tiles in use; "" where there is none */
const char *pn_pass_note(const pn_pass *pass);          /* why a GPU's pass is layered though it was not asked for; "" otherwise */

#endif
