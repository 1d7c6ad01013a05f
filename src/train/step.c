/* The step after the network pass; see step.h. The nodes are the optimizer's; this file hands it the pass's partial sums. */
#include "train/step.h"

#include "core/memory.h"
#include "core/status.h"
#include "kernels/evaluate.h"
#include "optimize/adam.h"

struct pn_step {
    pn_adam *adam; /* owned */
};

pinn_status pn_step_create(const pn_step_spec *spec, pn_step **out) {
    pinn_status status = PINN_OK;
    pn_adam_spec adam = {.context = spec->context,
                         .real = spec->real,
                         .gradient = {.plane = pn_pass_gradient_partials(spec->pass), .entries = spec->parameters},
                         .loss = {.plane = pn_pass_loss_partials(spec->pass), .entries = spec->terms},
                         .fields = spec->fields,
                         .ring_rows = PN_RING_ROWS,
                         .parameter = spec->parameter,
                         .moments = spec->moments,
                         .words = spec->words,
                         .hyper = spec->hyper,
                         .weight = spec->weight,
                         .ring = spec->ring};
    adam.gradient.partial = pn_pass_gradient_partial(spec->pass, &adam.gradient.partials);
    adam.loss.partial = pn_pass_loss_partial(spec->pass, &adam.loss.partials);
    pn_step *step = pn_allocate(1, sizeof *step);
    if (!step) return PN_NO_MEMORY("a training step");
    PN_TRY(pn_adam_create(&adam, &step->adam));
    *out = step;
    return PINN_OK;
fail:
    pn_free(step);
    return status;
}

void pn_step_destroy(pn_step *step) {
    if (!step) return;
    pn_adam_destroy(step->adam);
    pn_free(step);
}

pinn_status pn_step_record(pn_step *step, pinn_graph *graph) { return pn_adam_record(step->adam, graph); }

pinn_plane *pn_step_gradient(const pn_step *step) { return pn_adam_gradient(step->adam); }

pinn_status pn_evaluation_record(pinn_graph *graph, pn_real real, size_t fields, size_t points, size_t terms,
                                 pinn_plane *fields_plane, pinn_plane *reference, pinn_plane *words, pinn_plane *ring) {
    const pn_evaluate_arguments arguments = {
        .fields = fields, .points = points, .terms = terms, .ring_rows = PN_RING_ROWS, .real = real};
    const size_t values = fields * points;
    if (values == 0 || pinn_plane_bytes(fields_plane) < values * pn_real_bytes(real) ||
        pinn_plane_bytes(reference) < values * sizeof(double) || pinn_plane_bytes(words) < sizeof(pn_words) ||
        pinn_plane_bytes(ring) < PN_RING_ROWS * pn_row_length(terms, fields) * sizeof(double))
        return pn_fail(PINN_BAD_ARGUMENT,
                       "evaluation of %zu fields at %zu points: planes \"%s\", \"%s\", \"%s\", \"%s\" are too small", fields,
                       points, pinn_plane_name(fields_plane), pinn_plane_name(reference), pinn_plane_name(words),
                       pinn_plane_name(ring));
    return pinn_graph_operation(graph, &pn_evaluate_operation, &arguments, sizeof arguments,
                                PINN_PLANES(fields_plane, reference, words, ring), PINN_PLANES(ring));
}
