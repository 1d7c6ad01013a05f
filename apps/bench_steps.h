/* What the benches of training steps share: a training on an executor, its step's time, the device's product rate, the shares of the nodes. */
#ifndef BENCH_STEPS_H
#define BENCH_STEPS_H

#include "bench_arguments.h"
#include "pinn.h"

/* `directory` NULL: nothing is written. */
pinn_status bench_create(const char *config, const char *const *set, size_t sets, const char *executor, const char *directory, pinn_training **out);

typedef struct bench_time {
    double best, median, enqueue; /* microseconds a step; `enqueue` is INFINITY on the CPU */
    uint64_t steps;               /* of a repetition */
} bench_time;

/* Repetitions of `steps` steps; 0: of as many as take about `seconds`. */
pinn_status bench_time_steps(pinn_training *training, uint64_t steps, double seconds, int repeats, bench_time *out);

/* Operations a second of large products on the executor's device, measured once a device and precision. */
pinn_status bench_product_peak(const char *executor, const char *precision, double *out);

/* Prints what each node of the step takes, the pass as a whole and what is left of a step of `best` microseconds. `label` stands in each
 * row before the numbers. */
pinn_status bench_nodes(pinn_training *training, const char *label, double best, double peak, int repeats);

#endif
