/* Partial sums to gradient, squares, losses and rates on the GPU; see reduce.h. Blocks of 8 warps: the first for the rates, then a
 * warp for each term, then a block for each square, in whose tiles a thread is a column and a warp two of the 16 lanes of rows, or, in tiles
 * of few rows, all of them. */
#include "kernels/reduce.h"

#include "graph/overlap.h"

#define WARPS 8
#define THREADS (WARPS * PN_SUM_LANES)
#define TILE_BATCH 20 /* rows a warp loads at once: of eight warps 160, one of each of an H200's 132 blocks; registers for four blocks each */
#define TERM_BATCH 8  /* rows a lane loads at once */

static_assert(PN_REDUCE_LANES == 2 * WARPS, "a warp is two lanes of rows");

/* Logarithms and powers take longer than the loads of a tile: each has a warp to itself. */
static __device__ void step_rates(const pn_hyper *__restrict__ hyper, const pn_words *__restrict__ words,
                                  const pn_loop *__restrict__ loop, pn_finish_rates *rates) {
    __shared__ double bias1;
    double learning_rate = 0;
    switch (threadIdx.x) {
    case 0: learning_rate = pn_schedule(hyper, words->phase_step); break;
    case 1 * PN_SUM_LANES: bias1 = pn_finish_bias(hyper->beta1, words->optimizer_step + 1); break;
    case 2 * PN_SUM_LANES: rates->root_correction = pn_finish_root_correction(hyper->beta2, words->optimizer_step + 1); break;
    case 3 * PN_SUM_LANES:
        rates->open = pn_loop_open(loop, words);
        rates->due = pn_finish_due(hyper, words->step + 1);
        break;
    }
    __syncthreads();
    if (threadIdx.x > 0) return;
    rates->learning_rate = learning_rate;
    rates->rate = learning_rate / bias1;
}

static __device__ void term_loss(uint64_t k, uint64_t terms, const double *__restrict__ partial,
                                 const pn_reduce_column *__restrict__ columns, const double *__restrict__ weight, double *losses) {
    const unsigned lane = threadIdx.x % PN_SUM_LANES;
    if (k >= terms) return;
    const double factor = weight[k], points = weight[terms + k]; /* fetched beside the column */
    const pn_reduce_column column = columns[k];
    const double sum = pn_sum_fold(
        pn_sum_strided<PN_SUM_LANES, TERM_BATCH, 1>(partial + column.offset, column.stride, lane, (unsigned)column.rows));
    if (lane > 0) return;
    const double loss = sum / points;
    losses[k] = loss;
    losses[terms + k] = factor * loss;
}

/* Stores the sum of column x and returns its square. */
template <typename real>
static __device__ __forceinline__ double store_column(const pn_reduce_tile &tile, unsigned x, double sum, real *__restrict__ gradient) {
    if (x >= tile.count) return 0;
    const real g = (real)sum;
    gradient[tile.first + x] = g;
    return (double)g * (double)g;
}

/* A tile by all warps. A barrier; the first warp returns the tile's square, the others may go on to write other memory than `part`. */
template <typename real>
static __device__ __forceinline__ double tile_by_block(const pn_reduce_tile &tile, const real *__restrict__ partial, real *__restrict__ gradient,
                                                       double (&part)[WARPS][PN_SUM_LANES]) {
    const unsigned warp = threadIdx.x / PN_SUM_LANES, x = threadIdx.x % PN_SUM_LANES;
    part[warp][x] =
        pn_sum_strided<WARPS, TILE_BATCH, 2>(partial + tile.offset + x, tile.stride, warp, x < tile.count ? tile.rows : 0);
    __syncthreads();
    return warp > 0 ? 0 : pn_sum_fold(store_column(tile, x, pn_sum_fold_eight(&part[0][x], PN_SUM_LANES), gradient));
}

/* A tile of at most 16 rows by one warp: a row a lane of rows, all loads on their way at once. */
template <typename real>
static __device__ __forceinline__ double tile_by_warp(const pn_reduce_tile &tile, const real *__restrict__ partial, real *__restrict__ gradient) {
    const unsigned x = threadIdx.x % PN_SUM_LANES, rows = x < tile.count ? tile.rows : 0;
    real value[PN_REDUCE_LANES];
    double lane[PN_REDUCE_LANES];
#pragma unroll
    for (unsigned l = 0; l < PN_REDUCE_LANES; l++) value[l] = l < rows ? partial[tile.offset + l * tile.stride + x] : (real)0;
#pragma unroll
    for (unsigned l = 0; l < PN_REDUCE_LANES; l++) lane[l] = 0.0 + (double)value[l]; /* lanes begin as +0 */
    static_assert(PN_REDUCE_LANES == 16, "one fold and those of eight; a loop over all halves leaves the array in local memory");
#pragma unroll
    for (unsigned l = 0; l < 8; l++) lane[l] += lane[l + 8];
    return pn_sum_fold(store_column(tile, x, pn_sum_fold_eight(lane, 1), gradient));
}

/* Square b of many tiles: eight of them at once, those of few rows a warp each. */
template <typename real>
static __device__ void square_of_many(uint64_t b, uint64_t tiles, const real *__restrict__ partial, const pn_reduce_tile *__restrict__ table,
                                      real *__restrict__ gradient, double *__restrict__ squares) {
    __shared__ double part[2][WARPS][PN_SUM_LANES], square[WARPS];
    __shared__ bool tall[WARPS];
    const unsigned warp = threadIdx.x / PN_SUM_LANES, x = threadIdx.x % PN_SUM_LANES;
    double total = 0;
    unsigned turn = 0;
    for (uint64_t first = b; first < tiles; first += WARPS * PN_REDUCE_SQUARES) {
        const uint64_t own = first + warp * PN_REDUCE_SQUARES;
        const pn_reduce_tile tile = own < tiles ? table[own] : pn_reduce_tile{};
        const bool alone = tile.rows <= PN_REDUCE_LANES;
        const double mine = alone ? tile_by_warp(tile, partial, gradient) : 0;
        if (x == 0) {
            square[warp] = mine;
            tall[warp] = !alone;
        }
        __syncthreads();
        for (unsigned k = 0; k < WARPS; k++) {
            double next = square[k];
            if (tall[k]) {
                next = tile_by_block(table[first + k * PN_REDUCE_SQUARES], partial, gradient, part[turn]);
                turn ^= 1;
            }
            total += next;
        }
        __syncthreads(); /* before the next squares are written */
    }
    if (threadIdx.x == 0) squares[b] = total;
}

template <typename real>
static __device__ void square_of_one(uint64_t b, const pn_reduce_tile &tile, const real *__restrict__ partial, real *__restrict__ gradient,
                                     double *__restrict__ squares) {
    __shared__ double part[WARPS][PN_SUM_LANES];
    const double square = tile_by_block(tile, partial, gradient, part);
    if (threadIdx.x == 0) squares[b] = square;
}

/* What the kernel reads and writes, as declared in reduce.h. */
template <typename real>
struct planes {
    const real *partial;
    const pn_reduce_tile *tiles;
    const double *loss_partial;
    const pn_reduce_column *columns;
    const double *weight;
    const pn_hyper *hyper;
    const pn_words *words;
    const pn_loop *loop;
    real *gradient;
    double *squares, *losses;
    pn_finish_rates *rates;
};

/* many: more tiles than squares. */
template <typename real, bool many>
static __global__ void __launch_bounds__(THREADS, 4) reduce_kernel(pn_reduce_arguments a, unsigned term_blocks, planes<real> p) {
    const bool squares = blockIdx.x > term_blocks;
    const uint64_t b = squares ? blockIdx.x - term_blocks - 1 : 0;
    const pn_reduce_tile tile = !many && squares ? p.tiles[b] : pn_reduce_tile{}; /* no kernel writes the table: no need to wait */
    pn_await_last();
    if (many && squares)
        square_of_many<real>(b, a.tiles, p.partial, p.tiles, p.gradient, p.squares);
    else if (squares)
        square_of_one<real>(b, tile, p.partial, p.gradient, p.squares);
    else if (blockIdx.x > 0)
        term_loss((blockIdx.x - 1) * WARPS + threadIdx.x / PN_SUM_LANES, a.terms, p.loss_partial, p.columns, p.weight, p.losses);
    else
        step_rates(p.hyper, p.words, p.loop, p.rates);
}

template <typename real>
static pinn_status launch(const pinn_run *run, const pn_reduce_arguments *arguments) {
    pn_reduce_arguments a = *arguments;
    planes<real> p = {(const real *)run->read[0],     (const pn_reduce_tile *)run->read[1],
                            (const double *)run->read[2],   (const pn_reduce_column *)run->read[3],
                            (const double *)run->read[4],   (const pn_hyper *)run->read[5],
                            (const pn_words *)run->read[6], (const pn_loop *)run->read[7],
                            (real *)run->write[0],          (double *)run->write[1],
                            (double *)run->write[2],        (pn_finish_rates *)run->write[3]};
    unsigned term_blocks = (unsigned)((a.terms + WARPS - 1) / WARPS);
    const unsigned blocks = 1 + term_blocks + (unsigned)pn_reduce_squares(a.tiles);
    const void *const kernel = a.tiles > PN_REDUCE_SQUARES ? (const void *)reduce_kernel<real, true> : (const void *)reduce_kernel<real, false>;
    void *argument[] = {&a, &term_blocks, &p};
    return pn_launch_overlapping(kernel, blocks, THREADS, 0, run->stream, argument);
}

extern "C" pinn_status pn_reduce_cuda(const pinn_run *run) {
    const pn_reduce_arguments *a = (const pn_reduce_arguments *)run->arguments;
    return a->real == PN_FLOAT32 ? launch<float>(run, a) : launch<double>(run, a);
}
