/* fem_solve [--device WHERE]: a finite-element system solved on the device by a loop that ends by its own decision.
 *
 * Three meshes; prints iterations and error of each and checks that the error falls with the square of the mesh size. See
 * fem_solve.md.
 */
#include "fem_solve.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "fem_mesh.h"

enum {
    FIRST = 32,
    MESHES = 3,
    MOST = 2000
}; /* cells along a side of the first mesh, each next one has twice as many; iterations */
static const double tolerance = 1e-10;

/* ---- the operations: CPU forms here, CUDA forms in fem_solve.cu; planes in the order of fem_solve.h ---------------------- */

static pinn_status start_cpu(const pinn_run *run) {
    const fem_sizes *s = run->arguments;
    const double *b = run->read[0];
    double *u = run->write[0], *r = run->write[1], *p = run->write[2];
    for (uint64_t i = 0; i < s->unknowns; i++) {
        u[i] = 0;
        r[i] = b[i];
        p[i] = b[i];
    }
    fem_begin(run->write[3], run->write[4], s->tolerance, tutorial_dot(b, b, s->unknowns));
    return PINN_OK;
}

static pinn_status multiply_cpu(const pinn_run *run) {
    const fem_sizes *s = run->arguments;
    double *q = run->write[0];
    for (uint64_t i = 0; i < s->unknowns; i++) q[i] = fem_row(run->read[0], run->read[1], run->read[2], run->read[3], i);
    return PINN_OK;
}

static pinn_status length_cpu(const pinn_run *run) {
    const fem_sizes *s = run->arguments;
    fem_step(run->write[0], tutorial_dot(run->read[0], run->read[1], s->unknowns));
    return PINN_OK;
}

static pinn_status update_cpu(const pinn_run *run) {
    const fem_sizes *s = run->arguments;
    const double *p = run->read[0], *q = run->read[1];
    const fem_words *words = run->read[2];
    double *u = run->write[0], *r = run->write[1];
    for (uint64_t i = 0; i < s->unknowns; i++) {
        u[i] += words->alpha * p[i];
        r[i] -= words->alpha * q[i];
    }
    return PINN_OK;
}

static pinn_status residual_cpu(const pinn_run *run) {
    const fem_sizes *s = run->arguments;
    fem_decide(run->write[0], run->write[1], tutorial_dot(run->read[0], run->read[0], s->unknowns));
    return PINN_OK;
}

static pinn_status direction_cpu(const pinn_run *run) {
    const fem_sizes *s = run->arguments;
    const double *r = run->read[0];
    const fem_words *words = run->read[1];
    double *p = run->write[0];
    for (uint64_t i = 0; i < s->unknowns; i++) p[i] = r[i] + words->beta * p[i];
    return PINN_OK;
}

static const pinn_operation start = {"start", start_cpu, TUTORIAL_CUDA(fem_start_cuda)},
                            multiply = {"multiply", multiply_cpu, TUTORIAL_CUDA(fem_multiply_cuda)},
                            length = {"length", length_cpu, TUTORIAL_CUDA(fem_length_cuda)},
                            update = {"update", update_cpu, TUTORIAL_CUDA(fem_update_cuda)},
                            residual = {"residual", residual_cpu, TUTORIAL_CUDA(fem_residual_cuda)},
                            direction = {"direction", direction_cpu, TUTORIAL_CUDA(fem_direction_cuda)};

/* ---- the solver ---------------------------------------------------------------------------------------------------------- */

typedef enum name { OFFSET, COLUMN, VALUE, LOAD, U, R, P, Q, WORDS, GOING, TRIPS, PLANES } name;

typedef struct solver {
    fem_sizes sizes;
    pinn_graph *graph;
    pinn_plane *plane[PLANES]; /* all on the device */
} solver;

static void create(solver *s, pinn_context *context, const fem_system *system) {
    const size_t n = system->unknowns, entries = system->offset[n];
    const struct {
        const char *name;
        size_t bytes;
        const void *from;
    } table[PLANES] = {
        [OFFSET] = {"offset", (n + 1) * sizeof(uint32_t), system->offset},
        [COLUMN] = {"column", entries * sizeof(uint32_t), system->column},
        [VALUE] = {"value", entries * sizeof(double), system->value},
        [LOAD] = {"load", n * sizeof(double), system->load},
        [U] = {"u", n * sizeof(double), NULL},
        [R] = {"r", n * sizeof(double), NULL},
        [P] = {"p", n * sizeof(double), NULL},
        [Q] = {"q", n * sizeof(double), NULL},
        [WORDS] = {"words", sizeof(fem_words), NULL},
        [GOING] = {"going", sizeof(uint32_t), NULL},
        [TRIPS] = {"trips", sizeof(uint32_t), NULL},
    };
    *s = (solver){.sizes = {n, tolerance}};
    for (int k = 0; k < PLANES; k++) {
        s->plane[k] = tutorial_plane(context, table[k].name, PINN_DEVICE, table[k].bytes);
        if (table[k].from) tutorial_must(pinn_plane_write(s->plane[k], 0, table[k].from, table[k].bytes));
    }
    tutorial_must(pinn_graph_create(context, "conjugate gradients", &s->graph));
}

static void destroy(solver *s) {
    pinn_graph_destroy(s->graph);
    for (int k = 0; k < PLANES; k++) pinn_plane_destroy(s->plane[k]);
}

static void put(solver *s, const pinn_operation *operation, pinn_planes reads, pinn_planes writes) {
    tutorial_must(pinn_graph_operation(s->graph, operation, &s->sizes, sizeof s->sizes, reads, writes));
}

/* The whole solve: one replay is one solution. A scalar plane that keeps part of its words is read and written. */
static void record(solver *s) {
    pinn_plane **x = s->plane;
    tutorial_must(pinn_graph_begin(s->graph));
    put(s, &start, PINN_PLANES(x[LOAD]), PINN_PLANES(x[U], x[R], x[P], x[WORDS], x[GOING]));
    tutorial_must(pinn_graph_while(s->graph, "until solved", x[GOING], MOST, x[TRIPS]));
    put(s, &multiply, PINN_PLANES(x[OFFSET], x[COLUMN], x[VALUE], x[P]), PINN_PLANES(x[Q]));
    put(s, &length, PINN_PLANES(x[P], x[Q], x[WORDS]), PINN_PLANES(x[WORDS]));
    put(s, &update, PINN_PLANES(x[P], x[Q], x[WORDS], x[U], x[R]), PINN_PLANES(x[U], x[R]));
    put(s, &residual, PINN_PLANES(x[R], x[WORDS]), PINN_PLANES(x[WORDS], x[GOING]));
    put(s, &direction, PINN_PLANES(x[R], x[WORDS], x[P]), PINN_PLANES(x[P]));
    tutorial_must(pinn_graph_end(s->graph));
}

/* |b - A u| / |b|, computed by the host from what the device found. */
static double true_residual(const fem_system *system, const double *u) {
    double rr = 0, bb = 0;
    for (uint32_t i = 0; i < system->unknowns; i++) {
        const double r = system->load[i] - fem_row(system->offset, system->column, system->value, u, i);
        rr += r * r;
        bb += system->load[i] * system->load[i];
    }
    return sqrt(rr / bb);
}

/* Solves on an n x n mesh; returns the L2 error. */
static double solve(pinn_context *context, uint32_t n) {
    fem_system system;
    solver s;
    uint32_t trips;
    tutorial_check(fem_system_create(n, &system), "out of memory");
    create(&s, context, &system);
    record(&s);
    tutorial_must(pinn_graph_launch(s.graph, 1));
    if (n == FIRST) tutorial_explain(s.graph);

    double *u = calloc(system.unknowns, sizeof *u);
    if (!u) exit(1);
    tutorial_must(pinn_plane_read(s.plane[U], 0, u, system.unknowns * sizeof *u));
    tutorial_must(pinn_plane_read(s.plane[TRIPS], 0, &trips, sizeof trips));
    const double left = true_residual(&system, u), error = fem_system_error(&system, u);
    printf("%4u %8u %10u %14.4e %14.6e", n, system.unknowns, trips, left, error);
    tutorial_check(trips > 0 && trips < MOST, "%u iterations: not solved", trips);
    /* The recursion's residual met the tolerance; the true one drifts from it by rounding times the condition number only. */
    tutorial_check(left < 2 * tolerance, "residual %.3g", left);
    free(u);
    destroy(&s);
    fem_system_destroy(&system);
    return error;
}

int main(int count, char **argument) {
    pinn_context *context = tutorial_context(&count, argument);
    if (count > 1) tutorial_usage("fem_solve [--device WHERE]");
    double before = 0;
    printf("%4s %8s %10s %14s %14s %8s\n", "n", "unknowns", "iterations", "residual", "L2 error", "order");
    for (uint32_t n = FIRST; n < FIRST << MESHES; n *= 2) {
        const double error = solve(context, n), order = log2(before / error);
        if (before == 0)
            printf("\n");
        else {
            printf(" %8.3f\n", order);
            tutorial_check(fabs(order - 2) < 0.1, "order %.3f instead of 2", order); /* P1 in L2 (Aubin, Nitsche) */
        }
        before = error;
    }
    pinn_context_destroy(context);
    return 0;
}
