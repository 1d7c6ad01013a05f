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
                         .loop = spec->loop,
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

pinn_status pn_evaluation_record(pinn_graph *graph, const pn_evaluation_spec *spec) {
    const size_t values = spec->fields * spec->points;
    const pn_evaluate_arguments arguments = {
        .fields = spec->fields, .points = spec->points, .terms = spec->terms, .ring_rows = PN_RING_ROWS, .real = spec->real};
    const struct {
        const pinn_plane *plane;
        size_t bytes;
    } need[] = {{spec->field, values * pn_real_bytes(spec->real)},
                {spec->reference, values * sizeof(double)},
                {spec->hyper, sizeof(pn_hyper)},
                {spec->words, sizeof(pn_words)},
                {spec->ring, PN_RING_ROWS * pn_row_length(spec->terms, spec->fields) * sizeof(double)}};
    if (values == 0) return pn_fail(PINN_BAD_ARGUMENT, "an evaluation needs at least one field and one point");
    for (size_t i = 0; i < sizeof need / sizeof need[0]; i++)
        if (pinn_plane_bytes(need[i].plane) < need[i].bytes)
            return pn_fail(PINN_BAD_ARGUMENT, "plane \"%s\" has %zu bytes, the evaluation of %zu fields at %zu points needs %zu",
                           pinn_plane_name(need[i].plane), pinn_plane_bytes(need[i].plane), spec->fields, spec->points,
                           need[i].bytes);
    return pinn_graph_operation(graph, &pn_evaluate_operation, &arguments, sizeof arguments,
                                PINN_PLANES(spec->field, spec->reference, spec->hyper, spec->words, spec->ring),
                                PINN_PLANES(spec->ring, spec->words));
}
