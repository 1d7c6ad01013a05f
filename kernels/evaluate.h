/* Relative L2 errors of the newest event row, and the stop rule on them.
 *
 *     relative_l2 = sqrt(sum (u - reference)^2) / sqrt(sum reference^2)      over the evaluation points, float64
 * in the order of sum.h with 1024 lanes; CPU and GPU give the same bits. A field without reference has NaN for reference and gets
 * NaN. Nothing happens unless the newest row is of the last step done and an evaluation is due there (a multiple of evaluate_every,
 * or last_step): so it does not matter where a chunk ended.
 * Stop rule: the errors of all fields are at most stop_relative_l2. A rule met earlier stays, but for the last step's.
 */
#ifndef PN_KERNELS_EVALUATE_H
#define PN_KERNELS_EVALUATE_H

#include <math.h>

#include "kernels/begin.h"
#include "kernels/sum.h"
#include "kernels/words.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pn_evaluate_arguments {
    uint64_t fields, points, terms, ring_rows;
    uint64_t real; /* pn_real of the fields */
} pn_evaluate_arguments;

/* reads: fields [fields][points] in `real`, reference float64 [fields][points], hyper, words, ring
 * writes: ring (see finish.h), the relative_l2 entries of the row before words.rows; words.stop */
extern const pinn_operation pn_evaluate_operation;
pinn_status pn_evaluate_cuda(const pinn_run *run);

#ifdef __cplusplus
}
#endif

/* Whether the errors of the state after `step` steps belong into its row. */
PN_PORTABLE bool pn_evaluate_due(const pn_hyper *hyper, uint64_t step) {
    return pn_due(step, hyper->evaluate_every) || step == hyper->last_step;
}

/* The newest row, rows > 0. */
PN_PORTABLE double *pn_evaluate_row(const pn_evaluate_arguments *a, const pn_words *words, double *ring) {
    return ring + (words->rows - 1) % a->ring_rows * (PN_ROW_TERMS + a->terms + a->fields);
}

/* Where the errors go, [fields]; NULL when none is due. */
PN_PORTABLE double *pn_evaluate_errors(const pn_evaluate_arguments *a, const pn_hyper *hyper, const pn_words *words, double *ring) {
    if (words->rows == 0 || !pn_evaluate_due(hyper, words->step)) return NULL;
    double *row = pn_evaluate_row(a, words, ring);
    return row[PN_ROW_STEP] == (double)words->step ? row + PN_ROW_TERMS + a->terms : NULL;
}

PN_PORTABLE void pn_evaluate_rule(const pn_evaluate_arguments *a, const pn_hyper *hyper, const double *error, pn_words *words) {
    if (hyper->stop_relative_l2 <= 0 || (words->stop != PN_STOP_NONE && words->stop != PN_STOP_STEP)) return;
    for (uint64_t f = 0; f < a->fields; f++)
        if (!(error[f] <= hyper->stop_relative_l2)) return;
    words->stop = PN_STOP_RELATIVE_L2;
}

#endif
