/* The scalars at the end of a step, by one thread block: losses, gradient norm, clipping, learning rate, Adam's corrections, the
 * event row, the step words.
 *
 *     loss_k = (sum of term k's partial sums) / points_k          loss = sum over k, in order, of weight_k * loss_k
 *     gradient_norm = sqrt(sum of squares)                        clip = min(1, clip_norm / gradient_norm), 1 when clip_norm = 0
 *     rate = learning_rate / (1 - beta1^t)                        root_correction = 1 / sqrt(1 - beta2^t)
 * with t = optimizer steps including this one and the learning rate of schedule.h at phase_step. All float64, in the orders of
 * sum.h: 32 lanes for a term's rows, 1024 for the squares. A gradient that is not a number gives clip = 1, so that it spreads to
 * the parameters and the next loss and is seen.
 * Clipping: R. Pascanu, T. Mikolov, Y. Bengio, ICML 2013, algorithm 1.
 */
#ifndef PN_KERNELS_FINISH_H
#define PN_KERNELS_FINISH_H

#include <math.h>
#include <stdbool.h>

#include "kernels/schedule.h"
#include "kernels/sum.h"
#include "kernels/words.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PN_FINISH_TERMS 1024 /* most terms: two numbers a term stand in shared memory */

typedef struct pn_finish_column { /* a term's partial sums: row r at offset + r*stride, elements of the loss partials */
    uint64_t offset, stride, rows;
} pn_finish_column;

typedef struct pn_finish_arguments {
    uint64_t terms, fields, squares, ring_rows;
} pn_finish_arguments;

/* reads: loss partials float64, columns pn_finish_column[terms], squares float64 [squares], weight float64 [2][terms] (weights,
 * then points), hyper, words, ring writes: words, ring float64 [ring_rows][PN_ROW_TERMS + terms + fields] (the row of words.rows,
 * when one is due) */
extern const pinn_operation pn_finish_operation;
pinn_status pn_finish_cuda(const pinn_run *run);

#ifdef __cplusplus
}
#endif

/* Whether an event row is written after step n (n = 1 for the first step). */
PN_PORTABLE bool pn_finish_due(const pn_hyper *hyper, uint64_t n) {
    return (hyper->event_every && n % hyper->event_every == 0) || (hyper->evaluate_every && n % hyper->evaluate_every == 0) ||
           n == hyper->last_step;
}

/* Scalars that do not wait for any sum. */
typedef struct pn_finish_rates {
    double learning_rate, bias1, bias2; /* 1 - beta^t */
} pn_finish_rates;

/* 1 - beta^t without the cancellation of small t. */
PN_PORTABLE double pn_finish_bias(double beta, uint64_t t) { return -expm1((double)t * log(beta)); }

/* Moves the words on by one step; true when a row is due (words.rows then counts it already). */
PN_PORTABLE bool pn_finish_words(pn_words *words, const pn_hyper *hyper, const pn_finish_rates *rates, double loss,
                                 double squares) {
    const double norm = sqrt(squares);
    const bool due = pn_finish_due(hyper, words->step + 1);
    words->step += 1;
    words->phase_step += 1;
    words->optimizer_step += 1;
    words->rows += due;
    words->loss = loss;
    words->learning_rate = rates->learning_rate;
    words->gradient_norm = norm;
    words->clip = hyper->clip_norm > 0 && norm > hyper->clip_norm ? hyper->clip_norm / norm : 1;
    words->rate = rates->learning_rate / rates->bias1;
    words->root_correction = 1 / sqrt(rates->bias2);
    return due;
}

/* Entry i of the event row of the step that the words, moved on, describe. loss[k]: of term k, unweighted. */
PN_PORTABLE double pn_finish_row(const pn_words *words, const double *loss, uint64_t terms, uint64_t i) {
    switch (i) {
    case PN_ROW_STEP: return (double)words->step;
    case PN_ROW_LEARNING_RATE: return words->learning_rate;
    case PN_ROW_GRADIENT_NORM: return words->gradient_norm;
    case PN_ROW_LOSS: return words->loss;
    default: return i < PN_ROW_TERMS + terms ? loss[i - PN_ROW_TERMS] : (double)NAN;
    }
}

#endif
