/* What the tests of the pass on the CPU and on a GPU share: the outcome of a problem, two outcomes beside each other, evaluation against
 * the network written down plainly. */
#ifndef PN_TESTS_NETWORK_PASS_OUTCOME_H
#define PN_TESTS_NETWORK_PASS_OUTCOME_H

#include "pass_problems.h"

typedef struct case_outcome {
    double loss, *gradient; /* [parameters] */
    size_t parameters;
    const char *lowering;
    pn_pass_cost cost;
} case_outcome;

/* Of the last of `repeats` runs at the same parameters. The caller frees the gradient. */
static inline case_outcome case_outcome_of(const pass_case *problem, pinn_executor executor, pn_real real, pn_lowering lowering, int repeats) {
    case_outcome o;
    case_run r;
    case_open_on(&r, problem, executor, real, lowering, false);
    pn_pass_get_cost(r.pass, &o.cost);
    o.lowering = pn_pass_lowering_name(r.pass);
    o.parameters = r.network->parameters;
    o.gradient = pn_allocate(o.parameters, sizeof *o.gradient);
    double *theta = case_parameters(r.network);
    for (int k = 0; k < repeats; k++) o.loss = case_evaluate(&r, theta, o.gradient);
    pn_free(theta);
    case_close(&r);
    return o;
}

static inline double case_norm(const double *v, size_t count) {
    double square = 0;
    for (size_t i = 0; i < count; i++) square += v[i] * v[i];
    return sqrt(square);
}

/* Losses and gradients agree to `tolerance`, relative to a's; frees both gradients. */
static inline void case_check_agreement(const pass_case *problem, case_outcome *a, case_outcome *b, double tolerance) {
    const double scale = case_norm(a->gradient, a->parameters);
    for (size_t i = 0; i < a->parameters; i++) b->gradient[i] -= a->gradient[i];
    const double difference = case_norm(b->gradient, a->parameters);
    ck_assert_msg(fabs(b->loss - a->loss) <= tolerance * a->loss, "%s: losses %.17g (%s) and %.17g (%s)", problem->name, a->loss, a->lowering,
                  b->loss, b->lowering);
    ck_assert_msg(difference <= tolerance * scale, "%s: gradients differ by %g of %g", problem->name, difference, scale);
    pn_free(a->gradient);
    pn_free(b->gradient);
}

/* The same bits; frees both gradients. */
static inline void case_check_equal(case_outcome *a, case_outcome *b) {
    ck_assert(a->loss == b->loss);
    ck_assert_mem_eq(a->gradient, b->gradient, a->parameters * sizeof *a->gradient);
    pn_free(a->gradient);
    pn_free(b->gradient);
}

/* Evaluation stores the fields of every set, field by field. */
static inline void case_check_evaluation(const pass_case *problem, pinn_executor executor, pn_lowering lowering, double tolerance) {
    case_run r;
    case_open_on(&r, problem, executor, PN_FLOAT64, lowering, true);
    double *theta = case_parameters(r.network);
    case_write(r.parameter_plane, PN_FLOAT64, theta, r.network->parameters);
    MUST(pinn_graph_launch(r.graph, 1));
    ck_assert_ptr_null(pn_pass_gradient_partials(r.pass));
    const size_t bytes = pinn_plane_bytes(pn_pass_fields(r.pass));
    double *fields = pn_allocate(bytes, 1), *field = fields;
    MUST(pinn_plane_read(pn_pass_fields(r.pass), 0, fields, bytes));
    for (size_t s = 0; s < r.sets; s++) {
        const size_t points = r.set[s].points;
        for (size_t p = 0; p < points; p++) {
            double x[10], u[3];
            for (size_t i = 0; i < problem->coordinates; i++) x[i] = r.points[r.set[s].point_offset + i * points + p];
            case_network(problem, r.network, theta, x, u);
            for (size_t f = 0; f < problem->fields; f++) ck_assert_double_eq_tol(field[f * points + p], u[f], tolerance);
        }
        field += points * problem->fields;
    }
    ck_assert_uint_eq((size_t)(field - fields) * sizeof *field, bytes);
    pn_free(fields);
    pn_free(theta);
    case_close(&r);
}

#endif
