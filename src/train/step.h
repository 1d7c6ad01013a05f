/* The part of a training step after the network pass, as two recorded nodes:
 *
 *   reduce   gradient[i] = sum of its partials in fixed order; the squares of its norm and each term's loss (float64); learning rate
 *            and Adam's corrections, which the step words alone decide
 *   adam     losses, norm, clip factor, stop rules, the event row when due, step words, the flags of the loops around the step; m, v,
 *            parameters in place (Kingma & Ba 2015, algorithm 1, with epsilon outside the root as there)
 *
 * Kernels and their CPU twins: kernels/reduce.*, kernels/adam.*, kernels/evaluate.*; the rules: kernels/finish.h.
 */
#ifndef PN_TRAIN_STEP_H
#define PN_TRAIN_STEP_H

#include "kernels/words.h"
#include "network/pass.h"

#define PN_RING_ROWS 256

typedef struct pn_step_spec {
    pinn_context *context;
    pn_real real;
    size_t parameters, terms, fields;
    const pn_pass *pass;   /* the training pass: partials */
    pinn_plane *parameter; /* device, [parameters] in `real` */
    pinn_plane *moments;   /* device, [2][parameters] in `real`: m, then v */
    pinn_plane *words;     /* device, pn_words */
    pinn_plane *hyper;     /* device, pn_hyper */
    pinn_plane *loop;      /* device, pn_loop */
    pinn_plane *weight;    /* device, float64 [2][terms]: weight of each term, then its number of points */
    pinn_plane *ring;      /* device, float64 [PN_RING_ROWS][pn_row_length(terms, fields)] */
} pn_step_spec;

typedef struct pn_step pn_step;

static inline size_t pn_row_length(size_t terms, size_t fields) { return PN_ROW_TERMS + terms + fields; }

/* Allocates its own planes (gradient, squares, losses, rates, partial tables). */
pinn_status pn_step_create(const pn_step_spec *spec, pn_step **out);
void pn_step_destroy(pn_step *step);
/* Appends the nodes; any number of times. */
pinn_status pn_step_record(pn_step *step, pinn_graph *graph);
/* Device plane of the reduced gradient before clipping, [parameters] in `real`. */
pinn_plane *pn_step_gradient(const pn_step *step);

typedef struct pn_evaluation_spec {
    pn_real real;
    size_t fields, points, terms;
    pinn_plane *field;     /* device, [fields][points] in `real` (pn_pass_fields) */
    pinn_plane *reference; /* device, float64 [fields][points], NaN for fields without reference */
    pinn_plane *hyper, *words, *ring; /* as of the step */
} pn_evaluation_spec;

/* Appends the node that writes the relative L2 errors into the newest event row, ||u - ref|| / ||ref|| over the evaluation points for
 * each field, and looks at the stop rule on them. Does nothing at steps without evaluation. */
pinn_status pn_evaluation_record(pinn_graph *graph, const pn_evaluation_spec *spec);

#endif
