/* Conjugate gradients for A u = b with a symmetric positive definite sparse A in compressed rows (CSR):
 *
 *     q = A p;  alpha = rho/(p.q);  u += alpha p;  r -= alpha q;  beta = (r.r)/rho;  rho = r.r;  p = r + beta p
 *
 * until r.r <= limit. (Hestenes and Stiefel 1952; Saad, Iterative Methods for Sparse Linear Systems, algorithm 6.18.)
 * The scalars live on the device, so the next iteration and the decision to make one need no host.
 */
#ifndef FEM_SOLVE_H
#define FEM_SOLVE_H

#include "tutorial.h"

typedef struct fem_sizes {
    uint64_t unknowns;
    double tolerance; /* relative to the norm of b */
} fem_sizes;

typedef struct fem_words {
    double rho;   /* r.r */
    double limit; /* (tolerance |b|)^2 */
    double alpha, beta;
} fem_words;

/* Entry i of A p. */
TUTORIAL_PORTABLE double fem_row(const uint32_t *offset, const uint32_t *column, const double *value, const double *p, uint64_t i) {
    double sum = 0;
    for (uint32_t k = offset[i]; k < offset[i + 1]; k++) sum += value[k] * p[column[k]];
    return sum;
}

/* The three decisions; each returns or sets what one thread may do alone. `going` is the loop's flag. */
TUTORIAL_PORTABLE void fem_begin(fem_words *w, uint32_t *going, double tolerance, double bb) {
    w->rho = bb;
    w->limit = tolerance * tolerance * bb;
    *going = bb > 0;
}

TUTORIAL_PORTABLE void fem_step(fem_words *w, double pq) { w->alpha = w->rho / pq; }

TUTORIAL_PORTABLE void fem_decide(fem_words *w, uint32_t *going, double rr) {
    w->beta = rr / w->rho;
    w->rho = rr;
    *going = rr > w->limit;
}

#ifdef __cplusplus
extern "C" {
#endif
pinn_status fem_start_cuda(const pinn_run *run);     /* b -> u = 0, r = b, p = b, words, going */
pinn_status fem_multiply_cuda(const pinn_run *run);  /* offset, column, value, p -> q = A p */
pinn_status fem_length_cuda(const pinn_run *run);    /* p, q, words -> words.alpha */
pinn_status fem_update_cuda(const pinn_run *run);    /* p, q, words, u, r -> u, r */
pinn_status fem_residual_cuda(const pinn_run *run);  /* r, words -> words.beta, words.rho, going */
pinn_status fem_direction_cuda(const pinn_run *run); /* r, words, p -> p */
#ifdef __cplusplus
}
#endif
#endif
