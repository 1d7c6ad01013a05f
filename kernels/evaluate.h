/* Relative L2 errors of the newest event row.
 *
 *     relative_l2 = sqrt(sum (u - reference)^2) / sqrt(sum reference^2)      over the evaluation points, float64
 * in the order of sum.h with 1024 lanes; CPU and GPU give the same bits. A field without reference has NaN for reference and gets
 * NaN. Before the first row nothing is written.
 */
#ifndef PN_KERNELS_EVALUATE_H
#define PN_KERNELS_EVALUATE_H

#include <math.h>

#include "kernels/sum.h"
#include "kernels/words.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pn_evaluate_arguments {
    uint64_t fields, points, terms, ring_rows;
    uint64_t real; /* pn_real of the fields */
} pn_evaluate_arguments;

/* reads: fields [fields][points] in `real`, reference float64 [fields][points], words, ring
 * writes: ring (see finish.h), the relative_l2 entries of the row before words.rows */
extern const pinn_operation pn_evaluate_operation;
pinn_status pn_evaluate_cuda(const pinn_run *run);

#ifdef __cplusplus
}
#endif

/* Element of the ring that holds the error of `field` in the newest row; rows > 0. */
PN_PORTABLE uint64_t pn_evaluate_element(const pn_evaluate_arguments *a, uint64_t rows, uint64_t field) {
    return (rows - 1) % a->ring_rows * (PN_ROW_TERMS + a->terms + a->fields) + PN_ROW_TERMS + a->terms + field;
}

#endif
