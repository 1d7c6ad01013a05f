/* Partial sums to gradient, squares, losses and rates on the GPU; see reduce.h. Blocks of 8 warps: the first for the rates, then a
 * warp for each term, then a block for each square, in whose tiles a thread is a column and a warp two of the 16 lanes of rows. */
#include "kernels/reduce.h"

#define WARPS 8
#define THREADS (WARPS * PN_SUM_LANES)
#define TILE_BATCH 32 /* rows a warp loads at once */
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

/* A barrier a tile: a warp may write its sums of the next tile while the first warp still adds up those of this one. */
template <typename real>
static __device__ void tile_sums(uint64_t b, uint64_t tiles, const real *__restrict__ partial,
                                 const pn_reduce_tile *__restrict__ table, real *__restrict__ gradient,
                                 double *__restrict__ squares) {
    __shared__ double part[2][WARPS][PN_SUM_LANES];
    const unsigned warp = threadIdx.x / PN_SUM_LANES, x = threadIdx.x % PN_SUM_LANES;
    double total = 0;
    unsigned turn = 0;
    for (uint64_t t = b; t < tiles; t += PN_REDUCE_SQUARES, turn ^= 1) {
        const pn_reduce_tile tile = table[t];
        part[turn][warp][x] =
            pn_sum_strided<WARPS, TILE_BATCH, 2>(partial + tile.offset + x, tile.stride, warp, x < tile.count ? tile.rows : 0);
        __syncthreads();
        if (warp > 0) continue;
        double square = 0;
        if (x < tile.count) {
            const real g = (real)pn_sum_fold_eight(&part[turn][0][x], PN_SUM_LANES);
            gradient[tile.first + x] = g;
            square = (double)g * (double)g;
        }
        total += pn_sum_fold(square);
    }
    if (threadIdx.x == 0) squares[b] = total;
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

template <typename real>
static __global__ void __launch_bounds__(THREADS) reduce_kernel(pn_reduce_arguments a, unsigned term_blocks, planes<real> p) {
    if (blockIdx.x > term_blocks)
        tile_sums<real>(blockIdx.x - term_blocks - 1, a.tiles, p.partial, p.tiles, p.gradient, p.squares);
    else if (blockIdx.x > 0)
        term_loss((blockIdx.x - 1) * WARPS + threadIdx.x / PN_SUM_LANES, a.terms, p.loss_partial, p.columns, p.weight, p.losses);
    else
        step_rates(p.hyper, p.words, p.loop, p.rates);
}

template <typename real>
static void launch(const pinn_run *run, const pn_reduce_arguments *a) {
    const planes<real> p = {(const real *)run->read[0],     (const pn_reduce_tile *)run->read[1],
                            (const double *)run->read[2],   (const pn_reduce_column *)run->read[3],
                            (const double *)run->read[4],   (const pn_hyper *)run->read[5],
                            (const pn_words *)run->read[6], (const pn_loop *)run->read[7],
                            (real *)run->write[0],          (double *)run->write[1],
                            (double *)run->write[2],        (pn_finish_rates *)run->write[3]};
    const unsigned term_blocks = (unsigned)((a->terms + WARPS - 1) / WARPS);
    const unsigned blocks = 1 + term_blocks + (unsigned)pn_reduce_squares(a->tiles);
    reduce_kernel<real><<<blocks, THREADS, 0, (cudaStream_t)run->stream>>>(*a, term_blocks, p);
}

extern "C" pinn_status pn_reduce_cuda(const pinn_run *run) {
    const pn_reduce_arguments *a = (const pn_reduce_arguments *)run->arguments;
    if (a->real == PN_FLOAT32)
        launch<float>(run, a);
    else
        launch<double>(run, a);
    return pn_launch_check("reduce");
}
