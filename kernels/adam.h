/* The end of a step: its scalars (finish.h) from the sums that `reduce` left, and Adam (D. P. Kingma, J. Ba, "Adam: a method for
 * stochastic optimization", ICLR 2015, algorithm 1), in place.
 *
 *     g <- clip * g
 *     m <- beta1 m + (1 - beta1) g            v <- beta2 v + (1 - beta2) g^2
 *     p <- p - learning_rate * m^ / (sqrt(v^) + epsilon),   m^ = m / (1 - beta1^t),  v^ = v / (1 - beta2^t)
 *
 * The corrections depend on the step alone and stand in the rates, so the last line becomes
 *     p <- p - rate * m / (sqrt(v) * root_correction + epsilon).
 * The squares add up over 256 lanes (sum.h), the weighted losses in order. Scalars are float64 and rounded to the parameters'
 * precision before they meet them; elements are computed in that precision, without fused operations: CPU and GPU give the same
 * bits from the same rates.
 *
 * Cost on the GPU: every block computes the scalars it needs anew, from at most 1024 squares and the losses, which is quicker than
 * to wait for another block. No block looks at words or loop but the one that writes them: the rates hold what the others need.
 */
#ifndef PN_KERNELS_ADAM_H
#define PN_KERNELS_ADAM_H

#include "kernels/finish.h"
#include "kernels/sum.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PN_ADAM_GROUPS 8 /* of 32 lanes, over which the squares add up */
#define PN_ADAM_LANES (PN_ADAM_GROUPS * PN_SUM_LANES)

typedef struct pn_adam_arguments {
    uint64_t parameters;
    uint64_t real; /* pn_real */
    uint64_t squares, terms, fields, ring_rows;
} pn_adam_arguments;

/* reads: gradient [parameters] in `real`, squares float64 [squares], losses float64 [2][terms], rates, as `reduce` left them;
 * hyper, words, ring, loop, parameter, moments.
 * writes: parameter [parameters], moments [2][parameters] (m, then v), in `real`, if the step is done; words, ring float64
 * [ring_rows][PN_ROW_TERMS + terms + fields] (the row of words.rows, when one is due), loop
 */
extern const pinn_operation pn_adam_operation;
pinn_status pn_adam_cuda(const pinn_run *run);

#ifdef __cplusplus
}
#endif

/* What all elements share, and one element, for both precisions. */
#define PN_ADAM_FORMS(real, root)                                                                                                 \
    typedef struct pn_adam_factors_##real {                                                                                       \
        real beta1, beta2, rest1, rest2, rate, root_correction, epsilon, clip;                                                    \
    } pn_adam_factors_##real;                                                                                                     \
    PN_PORTABLE void pn_adam_factors_set_##real(pn_adam_factors_##real *f, const pn_hyper *hyper, const pn_finish_rates *rates) { \
        f->beta1 = (real)hyper->beta1;                                                                                            \
        f->beta2 = (real)hyper->beta2;                                                                                            \
        f->rest1 = (real)(1 - hyper->beta1);                                                                                      \
        f->rest2 = (real)(1 - hyper->beta2);                                                                                      \
        f->rate = (real)rates->rate;                                                                                              \
        f->root_correction = (real)rates->root_correction;                                                                        \
        f->epsilon = (real)hyper->epsilon;                                                                                        \
        f->clip = 1; /* known last */                                                                                             \
    }                                                                                                                             \
    PN_PORTABLE void pn_adam_update_##real(const pn_adam_factors_##real *f, real g, real *p, real *m, real *v) {                  \
        g *= f->clip;                                                                                                             \
        *m = f->beta1 * *m + f->rest1 * g;                                                                                        \
        *v = f->beta2 * *v + f->rest2 * (g * g);                                                                                  \
        *p -= f->rate * *m / (root(*v) * f->root_correction + f->epsilon);                                                        \
    }
PN_ADAM_FORMS(float, sqrtf)
PN_ADAM_FORMS(double, sqrt)
#undef PN_ADAM_FORMS

#endif
