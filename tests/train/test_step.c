/* The step after the pass, with a pass that has partial sums and nothing else: its accessors are defined here, so the linker takes
 * these and not the network's. */
#include <math.h>

#include "../kernels/operation.h"
#include "train/step.h"

struct pn_pass {
    pinn_plane *gradient, *loss;
    pn_partial gradient_partial[2], loss_partial[1];
};

pinn_plane *pn_pass_gradient_partials(const pn_pass *pass) { return pass->gradient; }
pinn_plane *pn_pass_loss_partials(const pn_pass *pass) { return pass->loss; }
const pn_partial *pn_pass_gradient_partial(const pn_pass *pass, size_t *count) {
    *count = 2;
    return pass->gradient_partial;
}
const pn_partial *pn_pass_loss_partial(const pn_pass *pass, size_t *count) {
    *count = 1;
    return pass->loss_partial;
}

enum { PARAMETERS = 5, TERMS = 2, FIELDS = 2, POINTS = 3 };

static pinn_plane *plane(pinn_context *context, const char *name, size_t bytes, const void *from) {
    pinn_plane *p;
    ck_ok(pinn_plane_create(context, name, PINN_DEVICE, bytes, &p));
    if (from) ck_ok(pinn_plane_write(p, 0, from, bytes));
    return p;
}

START_TEST(step_and_evaluation) {
    pinn_context *context = operation_context(PINN_EXECUTOR_CPU);
    const double partials[] = {1, 2, 3, 4, 10, 20, 30, 40, 0.5}, losses[] = {3, 8, 5, 8}, weight[] = {1, 10, 4, 2};
    const double fields[] = {1, 2, 3, 0, 0, 0}, reference[] = {1, 2, 2, NAN, NAN, NAN}, ones[] = {1, 1, 1, 1, 1};
    const pn_hyper hyper = {.initial = 0.1, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .evaluate_every = 1};
    const pn_loop loop = {.until = 1};
    const pn_pass pass = {
        plane(context, "partials", sizeof partials, partials),
        plane(context, "losses", sizeof losses, losses),
        {{.first = 1, .count = 4, .rows = 2, .stride = 4, .offset = 0}, {.first = 0, .count = 1, .rows = 1, .offset = 8}},
        {{.first = 0, .count = 2, .rows = 2, .stride = 2}}};
    const pn_step_spec spec = {.context = context,
                               .real = PN_FLOAT64,
                               .parameters = PARAMETERS,
                               .terms = TERMS,
                               .fields = FIELDS,
                               .pass = &pass,
                               .parameter = plane(context, "parameters", sizeof ones, ones),
                               .moments = plane(context, "moments", 2 * sizeof ones, NULL),
                               .words = plane(context, "words", sizeof(pn_words), NULL),
                               .hyper = plane(context, "hyper", sizeof hyper, &hyper),
                               .loop = plane(context, "loop", sizeof loop, &loop),
                               .weight = plane(context, "weight", sizeof weight, weight),
                               .ring = plane(context, "ring", PN_RING_ROWS * pn_row_length(TERMS, FIELDS) * sizeof(double), NULL)};
    pinn_plane *u = plane(context, "fields", sizeof fields, fields),
               *exact = plane(context, "reference", sizeof reference, reference);
    pn_step *step;
    pinn_graph *graph;
    ck_ok(pn_step_create(&spec, &step));
    ck_ok(pinn_graph_create(context, "step", &graph));
    ck_ok(pinn_graph_begin(graph));
    ck_ok(pn_step_record(step, graph));
    pn_evaluation_spec evaluation = {PN_FLOAT64, FIELDS, POINTS, TERMS, u, exact, spec.hyper, spec.words, spec.ring};
    ck_ok(pn_evaluation_record(graph, &evaluation));
    evaluation.points++;
    ck_assert(pn_evaluation_record(graph, &evaluation) == PINN_BAD_ARGUMENT);
    ck_ok(pinn_graph_launch(graph, 1));

    double gradient[PARAMETERS], parameter[PARAMETERS], row[PN_ROW_TERMS + TERMS + FIELDS];
    ck_ok(pinn_plane_read(pn_step_gradient(step), 0, gradient, sizeof gradient));
    ck_ok(pinn_plane_read(spec.parameter, 0, parameter, sizeof parameter));
    ck_ok(pinn_plane_read(spec.ring, 0, row, sizeof row));
    ck_assert_mem_eq(gradient, ((double[]){0.5, 11, 22, 33, 44}), sizeof gradient);
    for (int i = 0; i < PARAMETERS; i++) ck_assert(fabs(parameter[i] - 0.9) < 1e-8); /* the first step moves by the rate */
    ck_assert(row[PN_ROW_STEP] == 1 && row[PN_ROW_LEARNING_RATE] == 0.1);
    ck_assert(row[PN_ROW_TERMS] == 2 && row[PN_ROW_TERMS + 1] == 8 && row[PN_ROW_LOSS] == 82);
    ck_assert(fabs(row[PN_ROW_TERMS + TERMS] - 1.0 / 3) < 1e-15 && isnan(row[PN_ROW_TERMS + TERMS + 1]));

    pinn_graph_destroy(graph);
    pn_step_destroy(step);
    pinn_plane *all[] = {pass.gradient, pass.loss, spec.parameter, spec.moments, spec.words, spec.hyper, spec.loop,
                         spec.weight,   spec.ring, u,              exact};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) pinn_plane_destroy(all[i]);
    pinn_context_destroy(context);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("step");
    TCase *tests = tcase_create("step");
    tcase_add_test(tests, step_and_evaluation);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
