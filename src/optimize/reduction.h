/* Device tables that tell the kernels where the partial sums of a total lie. */
#ifndef PN_OPTIMIZE_REDUCTION_H
#define PN_OPTIMIZE_REDUCTION_H

#include "kernels/reduce.h"
#include "network/pass.h"

/* Partial sums and where they lie; see pn_partial. */
typedef struct pn_sums {
    pinn_plane *plane;         /* borrowed */
    const pn_partial *partial; /* borrowed */
    size_t partials;
    size_t entries; /* of the total */
} pn_sums;

/* Tiles that cover entries 0..entries-1 in order: each of at most PN_SUM_LANES entries of one partial, or of no rows where no
 * partial lies. `tile` is owned by the caller (pn_free). Errors: BAD_ARGUMENT when partials overlap or leave the total or the
 * plane, whose elements have `element_bytes`. A NULL `tile` only counts them. */
pinn_status pn_reduction_tiles(const pn_sums *sums, size_t element_bytes, pn_reduce_tile **tile, size_t *tiles);
/* The same for float64 sums of a few entries: one column an entry, [entries], owned by the caller (pn_free). */
pinn_status pn_reduction_columns(const pn_sums *sums, pn_reduce_column **column);

#endif
