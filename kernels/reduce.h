/* What a step needs of the network pass's partial sums, and what its words alone decide: the gradient, the squares its norm is made
 * of, the losses, the step's rates.
 *
 * The parameters are cut into tiles of up to 32 neighbouring entries that lie in one partial sum.
 *     gradient[i] = sum over r < rows of partial[offset + r*stride + i - first]
 * in float64 whatever the precision, 16 lanes of rows folded in halves (the order of sum.h), then rounded once. Tiles of no rows
 * stand for entries that nothing covers: 0. The squares of a tile's rounded entries add up over 32 lanes; square b is the sum of
 * those of tiles b, b + 1024, ... in order. A term's rows add up over 32 lanes; losses and rates are those of finish.h.
 * CPU and GPU give the same bits, but for the rates (portable.h).
 *
 * Cost on the GPU: the partials are read once, a tile's 32 entries of a row by one warp, so a load is one whole line in float32.
 * Each of a tile's 8 warps has the loads of 20 rows on their way at once: up to 160 rows cost one trip to memory.
 * Of more tiles than squares those of up to 16 rows have a warp each.
 */
#ifndef PN_KERNELS_REDUCE_H
#define PN_KERNELS_REDUCE_H

#include "kernels/finish.h"
#include "kernels/sum.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PN_REDUCE_LANES 16
#define PN_REDUCE_SQUARES \
    1024u /* most squares: blocks that fill a GPU, and few enough for every block of the optimizer to add up */

typedef struct pn_reduce_tile {
    uint64_t offset, stride; /* elements of the partials plane: entry `first` of row 0; from row to row */
    uint32_t first, count;   /* entries [first, first + count), count <= PN_SUM_LANES */
    uint32_t rows;           /* < 2^31 */
    uint32_t unused;         /* keeps tiles 8-byte aligned */
} pn_reduce_tile;

typedef struct pn_reduce_column {  /* a term's partial sums: row r at offset + r*stride, elements of the loss partials */
    uint64_t offset, stride, rows; /* rows < 2^31 */
} pn_reduce_column;

typedef struct pn_reduce_arguments {
    uint64_t tiles, terms;
    uint64_t real; /* pn_real */
} pn_reduce_arguments;

/* reads: partials in `real`, tiles pn_reduce_tile[tiles], loss partials float64, columns pn_reduce_column[terms], weight float64
 *        [2][terms] (weights, then points), hyper, words, loop
 * writes: gradient [parameters] in `real`, squares float64 [pn_reduce_squares(tiles)], losses float64 [2][terms] (loss_k, then
 *         weight_k * loss_k), rates pn_finish_rates */
extern const pinn_operation pn_reduce_operation;
pinn_status pn_reduce_cuda(const pinn_run *run);

#ifdef __cplusplus
}
#endif

PN_PORTABLE uint64_t pn_reduce_squares(uint64_t tiles) { return tiles < PN_REDUCE_SQUARES ? tiles : PN_REDUCE_SQUARES; }

#endif
