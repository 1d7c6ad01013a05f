/* The scalars of a training run that live on the device, shared by host code, C kernels and CUDA kernels.
 *
 * What a step does depends on these words alone, never on where a launch began: that is what lets one recorded graph serve a whole
 * run. The host writes pn_hyper at the start of a phase and reads pn_words back with each event.
 */
#ifndef PN_KERNELS_WORDS_H
#define PN_KERNELS_WORDS_H

#include <stdint.h>

typedef struct pn_words {
    uint64_t step;           /* steps done since the run began; first, because the sampler reads it alone */
    uint64_t phase_step;     /* steps done in this phase */
    uint64_t optimizer_step; /* steps this optimizer's moments have seen */
    uint64_t rows;           /* event rows written since the run began */
    double loss;             /* of the last step, before its update: sum of weight * term */
    double learning_rate;    /* used by the last step */
    double gradient_norm;    /* 2-norm before clipping */
    double rate;             /* what the optimizer multiplies: learning rate with Adam's bias corrections */
    double clip;             /* factor on the gradient: min(1, clip_norm / gradient_norm) */
    double root_correction;  /* 1 / sqrt(1 - beta2^t) */
} pn_words;

enum { PN_HYPER_CONSTANT, PN_HYPER_EXPONENTIAL, PN_HYPER_COSINE };

typedef struct pn_hyper {
    /* schedule, see pn_config_schedule */
    uint64_t decay;       /* PN_HYPER_*, the values of pn_decay */
    uint64_t phase_steps; /* S */
    uint64_t warmup, every;
    double initial, final, decay_rate;
    /* Adam (Kingma & Ba 2015) and clipping (Pascanu et al. 2013); clip_norm 0 = none */
    double beta1, beta2, epsilon, clip_norm;
    /* event rows: written after step n when n is a multiple of event_every or evaluate_every, or equals last_step */
    uint64_t event_every, evaluate_every; /* 0 = never */
    uint64_t last_step;
} pn_hyper;

/* One event row, float64: step, learning rate, gradient norm, total loss, then one loss a term (mean of squares, unweighted), then
 * one relative L2 error a field (NaN until the evaluation of that row has run). */
enum { PN_ROW_STEP, PN_ROW_LEARNING_RATE, PN_ROW_GRADIENT_NORM, PN_ROW_LOSS, PN_ROW_TERMS };

#endif
