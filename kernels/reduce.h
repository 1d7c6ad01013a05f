/* The gradient from its partial sums, and the squares its norm is made of.
 *
 * The parameters are cut into tiles of up to 32 neighbouring entries that lie in one partial sum; a tile is one thread block.
 *     gradient[i] = sum over r < rows of partial[offset + r*stride + i - first]
 * in float64 whatever the precision, 16 lanes of rows folded in halves (the order of sum.h), then rounded once. Tiles of no rows
 * stand for entries that nothing covers: 0. Each tile also leaves the sum of its 32 rounded entries' squares in float64.
 * CPU and GPU give the same bits.
 *
 * Cost on the GPU: the partials are read once, 32 entries a row and warp, so the time is that of reading them: 1000 rows keep a
 * thread busy for 63 loads that do not wait for each other.
 */
#ifndef PN_KERNELS_REDUCE_H
#define PN_KERNELS_REDUCE_H

#include "kernels/sum.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PN_REDUCE_LANES 16

typedef struct pn_reduce_tile {
    uint64_t offset, stride; /* elements of the partials plane: entry `first` of row 0; from row to row */
    uint32_t first, count;   /* entries [first, first + count), count <= PN_SUM_LANES */
    uint32_t rows;
    uint32_t unused; /* keeps tiles 8-byte aligned */
} pn_reduce_tile;

typedef struct pn_reduce_arguments {
    uint64_t tiles;
    uint64_t real; /* pn_real */
} pn_reduce_arguments;

/* reads: partials in `real`, tiles pn_reduce_tile[tiles]
 * writes: gradient [parameters] in `real`, squares float64 [tiles] */
extern const pinn_operation pn_reduce_operation;
pinn_status pn_reduce_cuda(const pinn_run *run);

#ifdef __cplusplus
}
#endif
#endif
