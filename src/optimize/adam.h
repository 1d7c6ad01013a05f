/* One step of Adam from partial sums, as two recorded nodes: reduce, adam (see the kernels of those names).
 * src/train/step.c gives it a network pass's sums. */
#ifndef PN_OPTIMIZE_ADAM_H
#define PN_OPTIMIZE_ADAM_H

#include "optimize/reduction.h"

typedef struct pn_adam_spec {
    pinn_context *context;
    pn_real real;
    pn_sums gradient; /* entries = parameters; partial sums in `real` */
    pn_sums loss;     /* entries = terms; partial sums of squares, float64 */
    size_t fields, ring_rows;
    pinn_plane *parameter; /* device, [parameters] in `real` */
    pinn_plane *moments;   /* device, [2][parameters] in `real`: m, then v */
    pinn_plane *words;     /* device, pn_words */
    pinn_plane *hyper;     /* device, pn_hyper */
    pinn_plane *loop;      /* device, pn_loop */
    pinn_plane *weight;    /* device, float64 [2][terms]: weight of each term, then its number of points */
    pinn_plane *ring;      /* device, float64 [ring_rows][PN_ROW_TERMS + terms + fields] */
} pn_adam_spec;

typedef struct pn_adam pn_adam;

/* Planes are borrowed; the partial lists are read during creation only. */
pinn_status pn_adam_create(const pn_adam_spec *spec, pn_adam **out);
void pn_adam_destroy(pn_adam *adam);
/* Appends the nodes; any number of times. */
pinn_status pn_adam_record(pn_adam *adam, pinn_graph *graph);
/* Device plane of the gradient before clipping, [parameters] in `real`. */
pinn_plane *pn_adam_gradient(const pn_adam *adam);

#endif
