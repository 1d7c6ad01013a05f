/* heat_stepper [--device WHERE]: a heat equation stepped on the device, its energy looked at on the host every STEPS steps.
 *
 * Run twice: with a stable step, where the energy falls by the factor that theory gives, and with an unstable one, where the run
 * ends by the failure of the node that looks. See heat_stepper.md.
 */
#include "heat_stepper.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 129, STEPS = 50, UNROLLED = 10, ROUNDS = 20, SHOWN = 5 };
static const double stable = 0.2, unstable = 0.3, pi = 3.14159265358979323846;

/* ---- the operations: CPU forms here, CUDA forms in heat_stepper.cu ------------------------------------------------------------
 */

static pinn_status step_cpu(const pinn_run *run) {
    const heat_sizes *s = run->arguments;
    const double *u = run->read[0];
    double *next = run->write[0];
    for (uint64_t i = 0; i < s->side; i++)
        for (uint64_t j = 0; j < s->side; j++) next[i * s->side + j] = heat_next(s, u, i, j);
    return PINN_OK;
}

static pinn_status energy_cpu(const pinn_run *run) {
    const heat_sizes *s = run->arguments;
    *(double *)run->write[0] = tutorial_dot(run->read[0], run->read[0], s->side * s->side);
    return PINN_OK;
}

static const pinn_operation step = {"step", step_cpu, TUTORIAL_CUDA(heat_step_cuda)};
static const pinn_operation energy = {"energy", energy_cpu, TUTORIAL_CUDA(heat_energy_cuda)};

/* ---- the look at the energy: a host function -----------------------------------------------------------------------------------
 */

typedef struct check {
    const double *energy; /* in pinned memory: what the copy brought home */
    double last;          /* energy at the look before */
    int looks;
} check;

static pinn_status check_energy(void *user) {
    check *c = user;
    const double now = *c->energy;
    if (!(now <= c->last)) return PINN_NUMERIC; /* it may only fall; false for NaN too */
    c->last = now;
    c->looks++;
    return PINN_OK;
}

/* ---- one run -------------------------------------------------------------------------------------------------------------------
 */

typedef struct solver {
    pinn_graph *graph;
    pinn_plane *u, *next; /* device, [SIDE][SIDE], double */
    pinn_plane *sum;      /* device, one double */
    pinn_plane *home;     /* pinned, one double */
    check check;
} solver;

/* STEPS steps, their energy, the copy home, the look. Two steps swap u and next and swap them back. The C loop unrolls some into
 * the body of the recorded loop, so that a trip of that one costs little beside its steps. */
static void record(solver *s, double ratio) {
    const heat_sizes sizes = {SIDE, ratio};
    tutorial_must(pinn_graph_begin(s->graph));
    tutorial_must(pinn_graph_for(s->graph, "steps", STEPS / UNROLLED, NULL));
    for (int k = 0; k < UNROLLED / 2; k++) {
        tutorial_must(pinn_graph_operation(s->graph, &step, &sizes, sizeof sizes, PINN_PLANES(s->u), PINN_PLANES(s->next)));
        tutorial_must(pinn_graph_operation(s->graph, &step, &sizes, sizeof sizes, PINN_PLANES(s->next), PINN_PLANES(s->u)));
    }
    tutorial_must(pinn_graph_end(s->graph));
    tutorial_must(pinn_graph_operation(s->graph, &energy, &sizes, sizeof sizes, PINN_PLANES(s->u), PINN_PLANES(s->sum)));
    tutorial_must(pinn_graph_copy(s->graph, s->sum, s->home));
    tutorial_must(pinn_graph_host(s->graph, "check energy", check_energy, &s->check, PINN_PLANES(s->home), PINN_NO_PLANES));
}

/* u = sin(pi x) sin(pi y): an eigenvector of the scheme. Returns its energy. */
static double start(solver *s) {
    const size_t count = (size_t)SIDE * SIDE;
    double *u = calloc(count, sizeof *u);
    if (!u) exit(1);
    for (int i = 1; i < SIDE - 1; i++)
        for (int j = 1; j < SIDE - 1; j++) u[i * SIDE + j] = sin(pi * i / (SIDE - 1)) * sin(pi * j / (SIDE - 1));
    const double sum = tutorial_dot(u, u, count);
    tutorial_must(pinn_plane_write(s->u, 0, u, count * sizeof *u));
    s->check = (check){.energy = pinn_plane_address(s->home), .last = sum};
    free(u);
    return sum;
}

static void run_stable(solver *s) {
    const double first = start(s), half = sin(pi / (SIDE - 1) / 2), factor = 1 - 8 * stable * half * half;
    record(s, stable);
    printf("ratio %.2f\n%8s %22s %22s\n", stable, "step", "energy", "exact");
    for (int round = SHOWN; round <= ROUNDS; round += SHOWN) {
        tutorial_must(pinn_graph_launch(s->graph, SHOWN)); /* builds at the first; waits, so the host may read */
        const double exact = first * pow(factor, 2.0 * STEPS * round);
        printf("%8d %22.12f %22.12f\n", STEPS * round, s->check.last, exact);
        /* The scheme multiplies the eigenvector by `factor` exactly; what is left is rounding, 1e-16 a step. */
        tutorial_check(fabs(s->check.last / exact - 1) < 1e-11, "energy %.17g instead of %.17g", s->check.last, exact);
    }
    tutorial_check(s->check.looks == ROUNDS, "%d looks instead of %d", s->check.looks, ROUNDS);
    tutorial_explain(s->graph);
}

static void run_unstable(solver *s) {
    start(s);
    record(s, unstable);
    const pinn_status status = pinn_graph_launch(s->graph, ROUNDS);
    printf("ratio %.2f\n%s after %d good looks\n", unstable, pinn_status_name(status), s->check.looks);
    printf("# %s\n", pinn_error_message());
    tutorial_check(status == PINN_HOST_FAILED, "the unstable step was not noticed");
    tutorial_check(strstr(pinn_error_message(), "check energy") != NULL, "the message does not name the node");
}

int main(int count, char **argument) {
    const size_t bytes = sizeof(double) * SIDE * SIDE;
    pinn_context *context = tutorial_context(&count, argument);
    if (count > 1) tutorial_usage("heat_stepper [--device WHERE]");
    solver s = {.u = tutorial_plane(context, "u", PINN_DEVICE, bytes),
                .next = tutorial_plane(context, "next", PINN_DEVICE, bytes),
                .sum = tutorial_plane(context, "sum", PINN_DEVICE, sizeof(double)),
                .home = tutorial_plane(context, "home", PINN_PINNED, sizeof(double))};
    tutorial_must(pinn_graph_create(context, "heat", &s.graph));
    run_stable(&s);
    run_unstable(&s);
    pinn_graph_destroy(s.graph);
    pinn_plane_destroy(s.u);
    pinn_plane_destroy(s.next);
    pinn_plane_destroy(s.sum);
    pinn_plane_destroy(s.home);
    pinn_context_destroy(context);
    return 0;
}
