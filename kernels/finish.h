/* The scalars of a step: losses, gradient norm, clipping, learning rate, Adam's corrections, stop rules, the event row, the step
 * words, the flags of the loops around the step. Arithmetic alone: `reduce` does what waits for no other block, and leaves it in
 * pn_finish_rates and the losses; the optimizer's kernel (adam.h) does the rest.
 *
 *     loss_k = (sum of term k's partial sums) / points_k          loss = sum over k, in order, of weight_k * loss_k
 *     gradient_norm = sqrt(sum of squares)                        clip = min(1, clip_norm / gradient_norm), 1 when clip_norm = 0
 *     rate = learning_rate / (1 - beta1^t)                        root_correction = 1 / sqrt(1 - beta2^t)
 * with t = optimizer steps including this one and the learning rate of schedule.h at phase_step. All float64.
 * Clipping: R. Pascanu, T. Mikolov, Y. Bengio, ICML 2013, algorithm 1.
 *
 * Stop rules. Loss and gradient are those of the step's parameters before its update. In this order, the first one met counts:
 *     NaN             loss or gradient_norm is not finite: the step is not done. Its row is written, the words keep the step before
 *     loss            loss <= stop_loss                            the step is done whole, update included, and is the last one
 *     gradient_norm   gradient_norm <= stop_gradient_norm          the same
 *     plateau         for `patience` steps no loss was under (1 - min_delta) times the last one that was        the same
 *     step            the step is last_step                        the same
 * When the chunk is at its end or a rule was met before, everything stays as it is: that is how the steps behind a rule in one loop
 * body do nothing.
 */
#ifndef PN_KERNELS_FINISH_H
#define PN_KERNELS_FINISH_H

#include <math.h>
#include <stdbool.h>

#include "kernels/begin.h"
#include "kernels/schedule.h"
#include "kernels/words.h"

#define PN_FINISH_TERMS 1024 /* most terms: one thread adds their losses */

/* Scalars of a step that follow from the words before it. */
typedef struct pn_finish_rates {
    double learning_rate, rate, root_correction;
    uint64_t open; /* the step is to be done */
    uint64_t due;  /* an event row, unless the step is not done */
} pn_finish_rates;

/* Whether an event row is written after step n (n = 1 for the first step), whatever the stop rules say. */
PN_PORTABLE bool pn_finish_due(const pn_hyper *hyper, uint64_t n) {
    return pn_due(n, hyper->event_every) || pn_due(n, hyper->evaluate_every) || n == hyper->last_step;
}

/* 1 - beta^t without the cancellation of small t. */
PN_PORTABLE double pn_finish_bias(double beta, uint64_t t) { return -expm1((double)t * log(beta)); }

PN_PORTABLE double pn_finish_root_correction(double beta2, uint64_t t) { return 1 / sqrt(pn_finish_bias(beta2, t)); }

/* Whether the step is done: its loss and its gradient's norm are numbers. A sum of squares is finite exactly when its root is. */
PN_PORTABLE bool pn_finish_accepted(double loss, double squares) { return isfinite(loss) && isfinite(squares); }

PN_PORTABLE double pn_finish_clip(const pn_hyper *hyper, double squares) {
    if (!(hyper->clip_norm > 0)) return 1;
    const double norm = sqrt(squares);
    return norm > hyper->clip_norm ? hyper->clip_norm / norm : 1;
}

/* What a step measured, before its update. */
typedef struct pn_finish_measure {
    uint64_t step; /* its number: 1 for the first */
    double learning_rate, gradient_norm, loss;
} pn_finish_measure;

/* The words of a step that is done, but for its rows and stop rules. */
PN_PORTABLE void pn_finish_advance(pn_words *words, const pn_hyper *hyper, const pn_finish_rates *rates, double squares,
                                   const pn_finish_measure *m) {
    words->step = m->step;
    words->phase_step += 1;
    words->optimizer_step += 1;
    words->loss = m->loss;
    words->learning_rate = m->learning_rate;
    words->gradient_norm = m->gradient_norm;
    words->clip = pn_finish_clip(hyper, squares);
    words->rate = rates->rate;
    words->root_correction = rates->root_correction;
    if (words->best_step == 0 || m->loss < words->best_loss) {
        words->best_loss = m->loss;
        words->best_step = m->step;
    }
    if (words->plateau_step == 0 || m->loss < words->plateau_loss * (1 - hyper->min_delta)) {
        words->plateau_loss = m->loss;
        words->plateau_step = m->step;
    }
}

/* The rule met by the step that the words, moved on, describe. */
PN_PORTABLE uint64_t pn_finish_rule(const pn_words *words, const pn_hyper *hyper) {
    if (hyper->plain) return PN_STOP_NONE;
    if (hyper->stop_loss > 0 && words->loss <= hyper->stop_loss) return PN_STOP_LOSS;
    if (hyper->stop_gradient_norm > 0 && words->gradient_norm <= hyper->stop_gradient_norm) return PN_STOP_GRADIENT_NORM;
    if (hyper->patience && words->step - words->plateau_step >= hyper->patience) return PN_STOP_PLATEAU;
    return words->step == hyper->last_step ? PN_STOP_STEP : PN_STOP_NONE;
}

/* Ends a step: words, loop, measure. True when a row is due (words.rows then counts it already). */
PN_PORTABLE bool pn_finish_words(pn_words *words, pn_loop *loop, const pn_hyper *hyper, const pn_finish_rates *rates, double loss,
                                 double squares, pn_finish_measure *m) {
    bool row = false;
    if (rates->open) {
        m->step = words->step + 1;
        m->learning_rate = rates->learning_rate;
        m->gradient_norm = sqrt(squares);
        m->loss = loss;
        if (pn_finish_accepted(loss, squares)) {
            pn_finish_advance(words, hyper, rates, squares, m);
            words->stop = pn_finish_rule(words, hyper);
        } else
            words->stop = PN_STOP_NAN;
        row = rates->due || words->stop != PN_STOP_NONE;
        words->rows += row;
    }
    pn_loop_mark(loop, words);
    return row;
}

/* Entry i of a step's event row. loss[k]: of term k, unweighted. */
PN_PORTABLE double pn_finish_row(const pn_finish_measure *m, const double *loss, uint64_t terms, uint64_t i) {
    switch (i) {
    case PN_ROW_STEP: return (double)m->step;
    case PN_ROW_LEARNING_RATE: return m->learning_rate;
    case PN_ROW_GRADIENT_NORM: return m->gradient_norm;
    case PN_ROW_LOSS: return m->loss;
    default: return i < PN_ROW_TERMS + terms ? loss[i - PN_ROW_TERMS] : (double)NAN;
    }
}

#endif
