/* The heat equation u_t = u_xx + u_yy on the unit square, u = 0 on its edge, by the explicit scheme
 *
 *     u'[i][j] = u[i][j] + ratio*(u[i-1][j] + u[i+1][j] + u[i][j-1] + u[i][j+1] - 4 u[i][j]),   ratio = dt/h^2.
 *
 * It is stable for ratio <= 1/4 (von Neumann's analysis: LeVeque, Finite Difference Methods for ODEs and PDEs, section 9.6).
 */
#ifndef HEAT_STEPPER_H
#define HEAT_STEPPER_H

#include "tutorial.h"

/* Sizes only: frozen into the graph when a node is recorded. 64 bits each, so that the struct has no padding. */
typedef struct heat_sizes {
    uint64_t side; /* points along a side, with the edge's two; a field has the shape [side][side] */
    double ratio;
} heat_sizes;

/* The new value at point (i, j): a step writes the edge too, so that all it leaves is its own. */
TUTORIAL_PORTABLE double heat_next(const heat_sizes *s, const double *u, uint64_t i, uint64_t j) {
    if (i == 0 || j == 0 || i == s->side - 1 || j == s->side - 1) return 0;
    const double *at = u + i * s->side + j;
    const double around = (at[-(int64_t)s->side] + at[s->side]) + (at[-1] + at[1]);
    return at[0] + s->ratio * (around - 4 * at[0]);
}

#ifdef __cplusplus
extern "C" {
#endif
pinn_status heat_step_cuda(const pinn_run *run);   /* reads u, writes the next u */
pinn_status heat_energy_cuda(const pinn_run *run); /* reads u, writes the sum of u^2: one double */
#ifdef __cplusplus
}
#endif
#endif
