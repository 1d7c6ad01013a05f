/* The scalars of a training run that live on the device, shared by host code, C kernels and CUDA kernels.
 *
 * What a step does depends on these words alone, never on where a launch or a chunk began: that is what lets one recorded graph serve
 * a whole run. The host writes pn_hyper at the start of a phase and reads pn_words back after each chunk.
 */
#ifndef PN_KERNELS_WORDS_H
#define PN_KERNELS_WORDS_H

#include <stdint.h>

/* Why training has stopped. From then on no step changes parameters, moments, words or ring. */
enum {
    PN_STOP_NONE,
    PN_STOP_STEP, /* last_step is done */
    PN_STOP_LOSS,
    PN_STOP_GRADIENT_NORM,
    PN_STOP_RELATIVE_L2,
    PN_STOP_PLATEAU,
    PN_STOP_NAN, /* loss or gradient not finite: the only rule that stops before the step's update, `step` does not count it */
    PN_STOPS
};

typedef struct pn_words {
    uint64_t step;           /* steps done since the run began; first, because the sampler reads it alone */
    uint64_t phase_step;     /* steps done in this phase */
    uint64_t optimizer_step; /* steps this optimizer's moments have seen */
    uint64_t rows;           /* event rows written since the run began */
    uint64_t stop;           /* PN_STOP_* */
    double loss;             /* of the last step, before its update: sum of weight * term */
    double learning_rate;    /* used by the last step */
    double gradient_norm;    /* 2-norm before clipping */
    double rate;             /* what the optimizer multiplies: learning rate with Adam's bias corrections */
    double clip;             /* factor on the gradient: min(1, clip_norm / gradient_norm) */
    double root_correction;  /* 1 / sqrt(1 - beta2^t) */
    double best_loss;        /* the smallest loss of all steps, once best_step > 0 */
    uint64_t best_step;      /* the step that measured it; 0 = none yet */
    double plateau_loss;     /* the last loss that was an improvement by min_delta, once plateau_step > 0 */
    uint64_t plateau_step;   /* the step that measured it; 0 = none yet */
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
    /* event rows: written after step n when n is a multiple of event_every or evaluate_every, equals last_step or meets a stop rule */
    uint64_t event_every, evaluate_every, checkpoint_every; /* 0 = never */
    uint64_t last_step;
    /* stop rules, see finish.h and evaluate.h; 0 = absent. min_delta counts also when patience is 0. */
    double stop_loss, stop_gradient_norm, stop_relative_l2;
    uint64_t patience;
    double min_delta;
    /* chunks, see begin.h */
    uint64_t longest; /* most steps of a chunk */
    uint64_t plain;   /* 1: a chunk is `longest` steps whatever falls due, and no stop rule is looked at but NaN */
} pn_hyper;

/* Where the present chunk stands. Not part of the run's state: each launch begins it anew. */
typedef struct pn_loop {
    uint32_t unrolled; /* flag of the loop whose body holds `unroll` steps: so many are left; first, because the graph reads it alone */
    uint32_t single;   /* flag of the loop over the rest: a step is left; second, for the same reason */
    uint64_t unroll;   /* steps in the first loop's body */
    uint64_t until;    /* the step at which the chunk ends */
} pn_loop;

/* One event row, float64: step, learning rate, gradient norm, total loss, then one loss a term (mean of squares, unweighted), then
 * one relative L2 error a field (NaN until the evaluation of that row has run). */
enum { PN_ROW_STEP, PN_ROW_LEARNING_RATE, PN_ROW_GRADIENT_NORM, PN_ROW_LOSS, PN_ROW_TERMS };

#endif
