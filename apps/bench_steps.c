/* Timing training steps; see bench_steps.h. */
#include "bench_steps.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "network/peak.h"
#include "pinn_graph.h"

enum { WARM_UP = 10, FEW = 100, MOST_STEPS = 20000 };
static const double slow = 0.1; /* seconds a step: warm after one */

static bool is_cpu(const char *executor) { return strcmp(executor, "cpu") == 0; }

pinn_status bench_create(const char *config, const char *const *set, size_t sets, const char *executor, const char *directory, pinn_training **out) {
    const pinn_options o = {.config = config,
                            .set = set,
                            .set_count = sets,
                            .device = is_cpu(executor) ? "cpu" : "cuda",
                            .executor = is_cpu(executor) ? NULL : executor,
                            .directory = directory,
                            .no_directory = directory == NULL,
                            .force = directory != NULL};
    return pinn_training_create(&o, out);
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Seconds a step, once warm. */
static pinn_status warm_up(pinn_training *training, double *seconds) {
    pinn_status status = pinn_training_steps(training, 1, NULL, seconds);
    for (int i = 0; status == PINN_OK && i < 2 && *seconds < slow; i++) {
        status = pinn_training_steps(training, WARM_UP, NULL, seconds);
        *seconds /= WARM_UP;
    }
    return status;
}

pinn_status bench_time_steps(pinn_training *training, uint64_t steps, double seconds, int repeats, bench_time *out) {
    double each[BENCH_REPEATS], took, enqueued;
    pinn_result r;
    pinn_training_result(training, &r);
    const bool cpu = is_cpu(r.executor);
    bench_time time = {.enqueue = INFINITY};
    pinn_status status = warm_up(training, &took);
    if (status != PINN_OK) return status;
    time.steps = steps ? steps : (uint64_t)fmin(fmax(seconds / took, 1), MOST_STEPS);
    for (int i = 0; i < repeats; i++) {
        status = pinn_training_steps(training, time.steps, NULL, &took);
        if (status != PINN_OK) return status;
        each[i] = 1e6 * took / (double)time.steps;
        if (cpu) continue; /* enqueueing is running there */
        /* Few enough not to fill the driver's queue, where the thread would wait for the device. */
        const uint64_t few = time.steps < FEW ? time.steps : FEW;
        status = pinn_training_steps(training, few, &enqueued, NULL);
        if (status != PINN_OK) return status;
        time.enqueue = fmin(time.enqueue, 1e6 * enqueued / (double)few);
    }
    qsort(each, (size_t)repeats, sizeof *each, ascending);
    time.best = each[0];
    time.median = each[repeats / 2];
    *out = time;
    return PINN_OK;
}

/* The best rates of large products so far. A CPU's is measured anew each time, near the steps it is compared with: other programs take part
 * of a CPU, and what they leave changes. */
pinn_status bench_product_peak(const char *executor, const char *precision, double *out) {
    static double known[2][3]; /* operations/s, [cpu][float32, tf32, float64] */
    const bool cpu = is_cpu(executor), wide = strcmp(precision, "float64") == 0, tf32 = strcmp(precision, "tf32") == 0;
    double *best = &known[cpu][wide ? 2 : tf32], rate;
    if (cpu || *best == 0) {
        const pinn_context_options where = {.executor = cpu ? PINN_EXECUTOR_CPU : PINN_EXECUTOR_EAGER};
        pinn_context *context = NULL;
        pinn_status status = pinn_context_create(&where, &context);
        if (status == PINN_OK) status = pn_product_peak(context, wide ? PN_FLOAT64 : PN_FLOAT32, tf32, &rate);
        pinn_context_destroy(context);
        if (status != PINN_OK) return status;
        *best = fmax(*best, rate);
    }
    *out = *best;
    return PINN_OK;
}
