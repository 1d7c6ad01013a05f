/* Partial sums to gradient, squares, losses and rates on the CPU; see reduce.h. Squares are independent of each other: any number
 * of threads gives the same bits. */
#include "kernels/reduce.h"

/* lane[l][c] += row r of column c, for r = l, l+16, ...; all columns of a row at once, so that rows are read as they lie. */
#define ADD_ROWS(type)                                                             \
    for (uint64_t r = 0; r < tile->rows; r++) {                                    \
        const type *row = (const type *)partial + tile->offset + r * tile->stride; \
        double *to = lane[r % PN_REDUCE_LANES];                                    \
        for (uint32_t c = 0; c < tile->count; c++) to[c] += (double)row[c];        \
    }

static double reduce_tile(uint64_t real, const pn_reduce_tile *tile, const void *partial, void *gradient) {
    double lane[PN_REDUCE_LANES][PN_SUM_LANES] = {{0}}, square[PN_SUM_LANES] = {0};
    if (real == PN_FLOAT32) {
        ADD_ROWS(float)
    } else {
        ADD_ROWS(double)
    }
    for (int half = PN_REDUCE_LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            for (int c = 0; c < PN_SUM_LANES; c++) lane[l][c] += lane[l + half][c];
    for (uint32_t c = 0; c < tile->count; c++) {
        pn_real_set((pn_real)real, gradient, tile->first + c, lane[0][c]);
        double g = pn_real_get((pn_real)real, gradient, tile->first + c);
        square[c] = g * g;
    }
    return pn_sum_fold(square);
}

static double column_sum(const double *partial, const pn_reduce_column *column) {
    double lane[PN_SUM_LANES] = {0};
    for (uint64_t r = 0; r < column->rows; r++) lane[r % PN_SUM_LANES] += partial[column->offset + r * column->stride];
    return pn_sum_fold(lane);
}

static pn_finish_rates step_rates(const pn_hyper *hyper, const pn_words *words, const pn_loop *loop) {
    const uint64_t t = words->optimizer_step + 1;
    const double learning_rate = pn_schedule(hyper, words->phase_step);
    return (pn_finish_rates){.learning_rate = learning_rate,
                             .rate = learning_rate / pn_finish_bias(hyper->beta1, t),
                             .root_correction = pn_finish_root_correction(hyper->beta2, t),
                             .open = pn_loop_open(loop, words),
                             .due = pn_finish_due(hyper, words->step + 1)};
}

static pinn_status reduce_cpu(const pinn_run *run) {
    const pn_reduce_arguments *a = run->arguments;
    const void *partial = run->read[0];
    const pn_reduce_tile *tile = run->read[1];
    const double *loss_partial = run->read[2];
    const pn_reduce_column *column = run->read[3];
    const double *weight = run->read[4], *points = weight + a->terms;
    void *gradient = run->write[0];
    double *squares = run->write[1], *loss = run->write[2], *weighted = loss + a->terms;
    pn_finish_rates *rates = run->write[3];
    const uint64_t count = pn_reduce_squares(a->tiles);
#pragma omp parallel for schedule(static) if (a->tiles * PN_SUM_LANES >= PN_PARALLEL)
    for (uint64_t b = 0; b < count; b++) {
        squares[b] = 0;
        for (uint64_t t = b; t < a->tiles; t += PN_REDUCE_SQUARES) squares[b] += reduce_tile(a->real, &tile[t], partial, gradient);
    }
    for (uint64_t k = 0; k < a->terms; k++) {
        loss[k] = column_sum(loss_partial, &column[k]) / points[k];
        weighted[k] = weight[k] * loss[k];
    }
    *rates = step_rates(run->read[5], run->read[6], run->read[7]);
    return PINN_OK;
}

const pinn_operation pn_reduce_operation = {"reduce", reduce_cpu, PN_CUDA_FORM(pn_reduce_cuda)};
