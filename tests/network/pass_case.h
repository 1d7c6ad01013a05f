/* Small problems for the tests of the network pass: built by hand from text, run once, reduced on the host. */
#ifndef PN_TESTS_NETWORK_PASS_CASE_H
#define PN_TESTS_NETWORK_PASS_CASE_H

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "network/pass.h"
#include "suite.h"

enum { CASE_SETS = 4, CASE_RESIDUALS = 4, CASE_TERMS = CASE_SETS * CASE_RESIDUALS };

typedef struct case_set {
    size_t points;
    bool normals;
    const char *residual[CASE_RESIDUALS]; /* NULL-terminated unless full */
} case_set;

typedef struct pass_case {
    const char *name;
    size_t coordinates;
    const char *coordinate[10];
    int time;
    size_t fields;
    const char *field[3];
    const char *activation;
    size_t width, depth, fourier;
    case_set set[CASE_SETS]; /* ended by points = 0 */
    bool tf32;               /* on a GPU */
    const char *tiles;       /* on a GPU; NULL = by the table */
    const double *lower, *upper; /* of the domain; NULL = the bounds below */
} pass_case;

typedef struct case_run { /* a case made ready */
    const pass_case *problem;
    pn_real real;
    pinn_context *context;
    pn_ir *ir;
    pn_scope *scope;
    pn_network *network;
    pn_layout layout[CASE_SETS];
    pn_value residual[CASE_SETS][CASE_RESIDUALS];
    pn_pass_set set[CASE_SETS];
    size_t sets, terms;
    double weight[CASE_TERMS], points_of_term[CASE_TERMS];
    double *points; /* as the points plane, float64 */
    size_t point_count;
    pinn_plane *parameter_plane, *point_plane, *scale_plane;
    pn_pass *pass;
    pinn_graph *graph;
} case_run;

#define MUST(call) ck_assert_msg((call) == PINN_OK, "%s: %s", #call, pinn_error_message())

/* Deterministic numbers in [-1, 1): the high bits of a 64-bit linear congruence (Knuth's multiplier). */
static inline double case_random(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 11) * 0x1p-52 - 1.0;
}

static const double case_lower[10] = {-1, 0, 0.5, -2, 0, 0, -1, -1, 0, 1}, case_upper[10] = {1, 2, 1.5, 1, 1, 3, 1, 2, 1, 2};

static inline double lower_bound(const pass_case *c, size_t i) { return c->lower ? c->lower[i] : case_lower[i]; }
static inline double upper_bound(const pass_case *c, size_t i) { return c->upper ? c->upper[i] : case_upper[i]; }

static inline pn_network_spec case_network_spec(const pass_case *c) {
    return (pn_network_spec){"mlp", c->activation, c->coordinates, c->fields, c->width, c->depth,
                             c->lower ? c->lower : case_lower, c->upper ? c->upper : case_upper, c->fourier, 0.6, 7};
}

static inline void case_compile(case_run *r) {
    const pass_case *c = r->problem;
    MUST(pn_ir_create(&r->ir));
    MUST(pn_scope_create(r->ir, c->coordinate, c->coordinates, c->time, c->field, c->fields, &r->scope));
    pn_diagnostics list;
    pn_diagnostics_init(&list, c->name, NULL);
    for (; r->sets < CASE_SETS && c->set[r->sets].points; r->sets++) {
        const case_set *s = &c->set[r->sets];
        pn_pass_set *set = &r->set[r->sets];
        const unsigned allow = PN_ALLOW_COORDINATES | PN_ALLOW_FIELDS | (s->normals ? PN_ALLOW_NORMAL : 0);
        set->first_term = r->terms;
        for (; set->residuals < CASE_RESIDUALS && s->residual[set->residuals]; set->residuals++)
            MUST(pn_expression_compile(r->scope, s->residual[set->residuals], (pn_position){1, 1}, allow, &list,
                                       &r->residual[r->sets][set->residuals]));
        MUST(pn_expression_closure(r->scope, r->residual[r->sets], set->residuals, &r->layout[r->sets]));
        set->layout = &r->layout[r->sets];
        set->residual = r->residual[r->sets];
        set->points = s->points;
        set->point_columns = c->coordinates * (s->normals ? 2 : 1);
        set->point_offset = r->point_count;
        r->point_count += set->point_columns * set->points;
        for (size_t k = 0; k < set->residuals; k++, r->terms++) {
            r->weight[r->terms] = 1.0 + 0.5 * (double)r->terms;
            r->points_of_term[r->terms] = (double)set->points;
        }
    }
    pn_diagnostics_free(&list);
}

/* Coordinates uniform in the box; normals of length 1 in general directions. */
static inline void case_make_points(case_run *r) {
    const size_t d = r->problem->coordinates;
    uint64_t state = 42;
    r->points = pn_allocate(r->point_count, sizeof *r->points);
    ck_assert_ptr_nonnull(r->points);
    for (size_t s = 0; s < r->sets; s++) {
        const pn_pass_set *set = &r->set[s];
        double *x = r->points + set->point_offset;
        for (size_t p = 0; p < set->points; p++) {
            double square = 0;
            for (size_t k = 0; k < set->point_columns; k++) {
                const double u = case_random(&state);
                const double lower = k < d ? lower_bound(r->problem, k) : -1, upper = k < d ? upper_bound(r->problem, k) : 1;
                x[k * set->points + p] = lower + 0.5 * (u + 1) * (upper - lower);
                if (k >= d) square += u * u;
            }
            for (size_t k = d; k < set->point_columns; k++) x[k * set->points + p] /= sqrt(square);
        }
    }
}

static inline void case_write(pinn_plane *plane, pn_real real, const double *value, size_t count) {
    void *rounded = pn_allocate(count, pn_real_bytes(real));
    ck_assert_ptr_nonnull(rounded);
    for (size_t i = 0; i < count; i++) pn_real_set(real, rounded, i, value[i]);
    MUST(pinn_plane_write(plane, 0, rounded, count * pn_real_bytes(real)));
    pn_free(rounded);
}

/* Up to the pass, whose kernels are then being compiled. */
static inline void case_create_on(case_run *r, const pass_case *c, pinn_executor executor, pn_real real, pn_lowering lowering, bool evaluate) {
    *r = (case_run){.problem = c, .real = real};
    const size_t bytes = pn_real_bytes(real);
    MUST(pinn_context_create(&(pinn_context_options){.executor = executor}, &r->context));
    case_compile(r);
    case_make_points(r);
    const pn_network_spec spec = case_network_spec(c);
    MUST(pn_network_create(&spec, &r->network));
    MUST(pinn_plane_create(r->context, "parameters", PINN_DEVICE, r->network->parameters * bytes, &r->parameter_plane));
    MUST(pinn_plane_create(r->context, "points", PINN_DEVICE, r->point_count * bytes, &r->point_plane));
    MUST(pinn_plane_create(r->context, "scale", PINN_DEVICE, r->terms * bytes, &r->scale_plane));
    case_write(r->point_plane, real, r->points, r->point_count);
    double scale[CASE_TERMS];
    for (size_t k = 0; k < r->terms; k++) scale[k] = 2.0 * r->weight[k] / r->points_of_term[k];
    case_write(r->scale_plane, real, scale, r->terms);
    MUST(pn_pass_create(&(pn_pass_spec){.context = r->context, .real = real, .lowering = lowering, .network = r->network,
                                        .scope = r->scope, .ir = r->ir, .set = r->set, .sets = r->sets, .terms = r->terms,
                                        .parameters = r->parameter_plane, .points = r->point_plane, .scale = r->scale_plane,
                                        .tf32 = c->tf32 && executor != PINN_EXECUTOR_CPU, .tiles = c->tiles, .evaluate = evaluate},
                        &r->pass));
}

static inline void case_open_on(case_run *r, const pass_case *c, pinn_executor executor, pn_real real, pn_lowering lowering, bool evaluate) {
    case_create_on(r, c, executor, real, lowering, evaluate);
    MUST(pinn_graph_create(r->context, "pass", &r->graph));
    MUST(pinn_graph_begin(r->graph));
    MUST(pn_pass_record(r->pass, r->graph));
}

static inline void case_open(case_run *r, const pass_case *c, pn_real real, pn_lowering lowering) {
    case_open_on(r, c, PINN_EXECUTOR_CPU, real, lowering, false);
}

static inline void case_close(case_run *r) {
    pinn_graph_destroy(r->graph);
    pn_pass_destroy(r->pass);
    pinn_plane_destroy(r->parameter_plane);
    pinn_plane_destroy(r->point_plane);
    pinn_plane_destroy(r->scale_plane);
    for (size_t s = 0; s < r->sets; s++) pn_layout_free(&r->layout[s]);
    pn_network_destroy(r->network);
    pn_scope_destroy(r->scope);
    pn_ir_destroy(r->ir);
    pn_free(r->points);
    pinn_context_destroy(r->context);
}

/* Adds up partial sums into total[count]; every entry may be covered once only. */
static inline void case_reduce(pinn_plane *plane, pn_real real, const pn_partial *partial, size_t partials, double *total, size_t count) {
    const size_t bytes = pinn_plane_bytes(plane), elements = bytes / pn_real_bytes(real);
    void *data = pn_allocate(bytes, 1);
    bool *covered = pn_allocate(count, sizeof *covered);
    ck_assert(data && covered);
    MUST(pinn_plane_read(plane, 0, data, bytes));
    for (size_t i = 0; i < count; i++) total[i] = 0;
    for (size_t k = 0; k < partials; k++)
        for (size_t i = 0; i < partial[k].count; i++) {
            ck_assert_uint_lt(partial[k].first + i, count);
            ck_assert_msg(!covered[partial[k].first + i], "entry %zu is covered twice", partial[k].first + i);
            covered[partial[k].first + i] = true;
            for (size_t row = 0; row < partial[k].rows; row++) {
                const size_t at = partial[k].offset + row * partial[k].stride + i;
                ck_assert_uint_lt(at, elements);
                total[partial[k].first + i] += pn_real_get(real, data, at);
            }
        }
    pn_free(data);
    pn_free(covered);
}

/* Runs the pass at `parameters`; gradient may be NULL. Returns the loss: sum of weight times mean square. */
static inline double case_evaluate(case_run *r, const double *parameters, double *gradient) {
    size_t partials;
    double sum[CASE_TERMS], loss = 0;
    case_write(r->parameter_plane, r->real, parameters, r->network->parameters);
    MUST(pinn_graph_launch(r->graph, 1));
    const pn_partial *partial = pn_pass_loss_partial(r->pass, &partials);
    case_reduce(pn_pass_loss_partials(r->pass), PN_FLOAT64, partial, partials, sum, r->terms);
    for (size_t k = 0; k < r->terms; k++) loss += r->weight[k] * sum[k] / r->points_of_term[k];
    if (gradient) {
        partial = pn_pass_gradient_partial(r->pass, &partials);
        case_reduce(pn_pass_gradient_partials(r->pass), r->real, partial, partials, gradient, r->network->parameters);
    }
    return loss;
}

/* Parameters for a test: the initial ones, biases too away from zero. Caller frees. */
static inline double *case_parameters(const pn_network *network) {
    double *parameters = pn_allocate(network->parameters, sizeof *parameters);
    ck_assert_ptr_nonnull(parameters);
    pn_network_initialise(network, 5, parameters);
    uint64_t state = 11;
    for (size_t i = 0; i < network->parameters; i++) parameters[i] += 0.1 * case_random(&state);
    return parameters;
}

static inline double case_activation(const char *name, double z) {
    if (!strcmp(name, "tanh")) return tanh(z);
    if (!strcmp(name, "sin")) return sin(z);
    if (!strcmp(name, "silu")) return z / (1 + exp(-z));
    if (!strcmp(name, "gelu")) return 0.5 * z * (1 + erf(z / sqrt(2.0)));
    ck_assert_str_eq(name, "softplus");
    return log1p(exp(z));
}

/* The network written down once more, plainly: fields at one point. Parameters are found by their names. */
static inline void case_network(const pass_case *c, const pn_network *network, const double *parameters, const double *x, double *u) {
    enum { WIDEST = 64 };
    double a[WIDEST], z[WIDEST];
    size_t columns = c->coordinates;
    for (size_t i = 0; i < columns; i++) {
        const double lower = lower_bound(c, i), upper = upper_bound(c, i);
        a[i] = (x[i] - (lower + upper) / 2) * 2 / (upper - lower);
    }
    if (c->fourier) {
        for (size_t j = 0; j < c->fourier; j++) {
            double phase = 0;
            for (size_t i = 0; i < columns; i++) phase += network->fixed[i * c->fourier + j] * a[i];
            z[j] = cos(2 * M_PI * phase);
            z[c->fourier + j] = sin(2 * M_PI * phase);
        }
        columns = 2 * c->fourier;
        memcpy(a, z, columns * sizeof *a);
    }
    for (size_t l = 1; l <= c->depth + 1; l++) {
        char weight[40], bias[40];
        const double *w = NULL, *b = NULL;
        snprintf(weight, sizeof weight, "layer%zu/weight", l);
        snprintf(bias, sizeof bias, "layer%zu/bias", l);
        for (size_t k = 0; k < network->parameter_blocks; k++) {
            if (!strcmp(network->parameter[k].name, weight)) w = parameters + network->parameter[k].offset;
            if (!strcmp(network->parameter[k].name, bias)) b = parameters + network->parameter[k].offset;
        }
        ck_assert(w && b);
        const size_t out = l <= c->depth ? c->width : c->fields;
        for (size_t j = 0; j < out; j++) {
            z[j] = b[j];
            for (size_t i = 0; i < columns; i++) z[j] += a[i] * w[i * out + j];
        }
        for (size_t j = 0; j < out; j++) a[j] = l <= c->depth ? case_activation(c->activation, z[j]) : z[j];
        columns = out;
    }
    memcpy(u, a, c->fields * sizeof *u);
}

#endif
