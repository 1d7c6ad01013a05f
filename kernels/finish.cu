/* The step's scalars on the GPU; see finish.h. One block of 32 warps: all threads share the sum of squares, a warp sums a term's
 * rows, and the corrections, the schedule and whether a row is due, which wait for no sum, run meanwhile in one thread of the last
 * warps. */
#include "kernels/finish.h"

static __device__ double column_sum(const double *__restrict__ partial, const pn_finish_column column, unsigned lane) {
    double sum = 0;
#pragma unroll 8
    for (uint64_t r = lane; r < column.rows; r += PN_SUM_LANES) sum += partial[column.offset + r * column.stride];
    return pn_sum_fold(sum);
}

static __global__ void __launch_bounds__(PN_SUM_WIDE, 1)
    finish_kernel(pn_finish_arguments a, const double *__restrict__ partial, const pn_finish_column *__restrict__ columns,
                  const double *__restrict__ squares, const double *__restrict__ weight, const pn_hyper *__restrict__ hyper,
                  pn_words *words, double *ring, pn_loop *loop) {
    __shared__ double group[PN_SUM_LANES], loss[PN_FINISH_TERMS], weighted[PN_FINISH_TERMS];
    __shared__ pn_finish_rates rates;
    __shared__ pn_words moved;
    __shared__ pn_hyper settings;
    __shared__ pn_loop chunk;
    __shared__ pn_finish_measure measure;
    __shared__ bool row_due;
    const unsigned thread = threadIdx.x, warp = thread / PN_SUM_LANES, lane = thread % PN_SUM_LANES;

    double sum = 0;
#pragma unroll 4
    for (uint64_t i = thread; i < a.squares; i += PN_SUM_WIDE) sum += squares[i];
    sum = pn_sum_fold(sum);
    if (lane == 0) group[warp] = sum;
    for (uint64_t k = warp; k < a.terms; k += PN_SUM_LANES) {
        const double term = column_sum(partial, columns[k], lane);
        if (lane == 0) {
            loss[k] = term / weight[a.terms + k];
            weighted[k] = weight[k] * loss[k];
        }
    }
    if (lane == 0 && warp == PN_SUM_LANES - 4) { /* fetched while the sums run */
        moved = *words;
        chunk = *loop;
    }
    if (lane == 0 && warp == PN_SUM_LANES - 5) settings = *hyper;
    if (lane == 0 && warp == PN_SUM_LANES - 6) rates.due = pn_finish_due(hyper, words->step + 1);
    if (lane == 0 && warp == PN_SUM_LANES - 1) rates.learning_rate = pn_schedule(hyper, words->phase_step);
    if (lane == 0 && warp == PN_SUM_LANES - 2) rates.bias1 = pn_finish_bias(hyper->beta1, words->optimizer_step + 1);
    if (lane == 0 && warp == PN_SUM_LANES - 3) rates.bias2 = pn_finish_bias(hyper->beta2, words->optimizer_step + 1);
    __syncthreads();

    if (warp == 0) {
        sum = pn_sum_fold(group[lane]);
        if (lane == 0) {
            double total = 0;
            for (uint64_t k = 0; k < a.terms; k++) total += weighted[k];
            row_due = pn_finish_words(&moved, &chunk, &settings, &rates, total, sum, &measure);
            *words = moved;
            *loop = chunk;
        }
    }
    __syncthreads();

    if (!row_due) return;
    const uint64_t length = PN_ROW_TERMS + a.terms + a.fields;
    double *row = ring + (moved.rows - 1) % a.ring_rows * length;
    for (uint64_t i = thread; i < length; i += PN_SUM_WIDE) row[i] = pn_finish_row(&measure, loss, a.terms, i);
}

extern "C" pinn_status pn_finish_cuda(const pinn_run *run) {
    const pn_finish_arguments *a = (const pn_finish_arguments *)run->arguments;
    finish_kernel<<<1, PN_SUM_WIDE, 0, (cudaStream_t)run->stream>>>(
        *a, (const double *)run->read[0], (const pn_finish_column *)run->read[1], (const double *)run->read[2],
        (const double *)run->read[3], (const pn_hyper *)run->read[4], (pn_words *)run->write[0], (double *)run->write[1],
        (pn_loop *)run->write[2]);
    return pn_launch_check("finish");
}
