/* The step's scalars on the CPU; see finish.h. */
#include "kernels/finish.h"

static double column_sum(const double *partial, const pn_finish_column *column) {
    double lane[PN_SUM_LANES] = {0};
    for (uint64_t r = 0; r < column->rows; r++) lane[r % PN_SUM_LANES] += partial[column->offset + r * column->stride];
    return pn_sum_fold(lane);
}

static double wide_sum(const double *value, uint64_t count) {
    double lane[PN_SUM_WIDE] = {0};
    for (uint64_t i = 0; i < count; i++) lane[i % PN_SUM_WIDE] += value[i];
    return pn_sum_fold_wide(lane);
}

static pinn_status finish_cpu(const pinn_run *run) {
    const pn_finish_arguments *a = run->arguments;
    const double *partial = run->read[0];
    const pn_finish_column *column = run->read[1];
    const double *squares = run->read[2], *weight = run->read[3], *points = weight + a->terms;
    const pn_hyper *hyper = run->read[4];
    pn_words *words = run->write[0];
    double *ring = run->write[1];
    pn_loop *loop = run->write[2];
    pn_finish_measure measure = {0};
    double loss[PN_FINISH_TERMS], total = 0;

    for (uint64_t k = 0; k < a->terms; k++) {
        loss[k] = column_sum(partial, &column[k]) / points[k];
        total += weight[k] * loss[k];
    }
    const uint64_t t = words->optimizer_step + 1;
    const pn_finish_rates rates = {pn_schedule(hyper, words->phase_step), pn_finish_bias(hyper->beta1, t),
                                   pn_finish_bias(hyper->beta2, t), pn_finish_due(hyper, words->step + 1)};
    if (pn_finish_words(words, loop, hyper, &rates, total, wide_sum(squares, a->squares), &measure)) {
        const uint64_t length = PN_ROW_TERMS + a->terms + a->fields;
        double *row = ring + (words->rows - 1) % a->ring_rows * length;
        for (uint64_t i = 0; i < length; i++) row[i] = pn_finish_row(&measure, loss, a->terms, i);
    }
    return PINN_OK;
}

const pinn_operation pn_finish_operation = {"finish", finish_cpu, PN_CUDA_FORM(pn_finish_cuda)};
