/* Adam (D. P. Kingma, J. Ba, "Adam: a method for stochastic optimization", ICLR 2015, algorithm 1), in place.
 *
 *     g <- clip * g
 *     m <- beta1 m + (1 - beta1) g            v <- beta2 v + (1 - beta2) g^2
 *     p <- p - learning_rate * m^ / (sqrt(v^) + epsilon),   m^ = m / (1 - beta1^t),  v^ = v / (1 - beta2^t)
 *
 * The corrections depend on the step alone; `finish` leaves them in the words, so the last line becomes
 *     p <- p - rate * m / (sqrt(v) * root_correction + epsilon).
 * Scalars are float64 in the words and rounded to the parameters' precision here; elements are computed in that precision, without
 * fused operations: CPU and GPU give the same bits from the same words.
 */
#ifndef PN_KERNELS_ADAM_H
#define PN_KERNELS_ADAM_H

#include <math.h>

#include "kernels/portable.h"
#include "kernels/words.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pn_adam_arguments {
    uint64_t parameters;
    uint64_t real; /* pn_real */
} pn_adam_arguments;

/* reads: gradient [parameters] in `real`, words, hyper, loop, parameter, moments
 * writes: parameter [parameters], moments [2][parameters] (m, then v), in `real`; nothing unless loop.update */
extern const pinn_operation pn_adam_operation;
pinn_status pn_adam_cuda(const pinn_run *run);

#ifdef __cplusplus
}
#endif

/* One element, for both precisions. */
#define PN_ADAM_UPDATE(real, root)                                                                                            \
    PN_PORTABLE void pn_adam_update_##real(const pn_words *words, const pn_hyper *hyper, real g, real *p, real *m, real *v) { \
        const real beta1 = (real)hyper->beta1, beta2 = (real)hyper->beta2;                                                    \
        const real rest1 = (real)(1 - hyper->beta1), rest2 = (real)(1 - hyper->beta2);                                        \
        g *= (real)words->clip;                                                                                               \
        *m = beta1 * *m + rest1 * g;                                                                                          \
        *v = beta2 * *v + rest2 * (g * g);                                                                                    \
        *p -= (real)words->rate * *m / (root(*v) * (real)words->root_correction + (real)hyper->epsilon);                      \
    }
PN_ADAM_UPDATE(float, sqrtf)
PN_ADAM_UPDATE(double, sqrt)
#undef PN_ADAM_UPDATE

#endif
