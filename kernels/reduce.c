/* Partial sums to gradient on the CPU; see reduce.h. Tiles are independent: any number of threads gives the same bits. */
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

static pinn_status reduce_cpu(const pinn_run *run) {
    const pn_reduce_arguments *a = run->arguments;
    const void *partial = run->read[0];
    const pn_reduce_tile *tile = run->read[1];
    void *gradient = run->write[0];
    double *squares = run->write[1];
#pragma omp parallel for schedule(static) if (a->tiles * PN_SUM_LANES >= PN_PARALLEL)
    for (uint64_t t = 0; t < a->tiles; t++) squares[t] = reduce_tile(a->real, &tile[t], partial, gradient);
    return PINN_OK;
}

const pinn_operation pn_reduce_operation = {"reduce", reduce_cpu, PN_CUDA_FORM(pn_reduce_cuda)};
