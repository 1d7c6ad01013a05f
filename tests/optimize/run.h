/* The optimizer's nodes on given partial sums, on any executor, for tests: the sums stay the same at every step, so what
 * moves is the optimizer's alone. */
#ifndef TEST_OPTIMIZE_RUN_H
#define TEST_OPTIMIZE_RUN_H

#include <math.h>

#include "../kernels/operation.h"
#include "optimize/adam.h"

enum { RUN_PARAMETERS = 13000, RUN_TERMS = 5, RUN_FIELDS = 2, RUN_ROW = PN_ROW_TERMS + RUN_TERMS + RUN_FIELDS, RUN_RING = 8 };

/* The shapes a pass leaves: weights in few rows, biases in many, out of order, entries that nothing covers in between and at the
 * end; losses in many rows, and a term without any. */
static const pn_partial run_gradient[] = {
    {.first = 64, .count = 4096, .rows = 64, .stride = 4096, .offset = 64000},
    {.first = 0, .count = 64, .rows = 1000, .stride = 64, .offset = 0},
    {.first = 4200, .count = 8000, .rows = 16, .stride = 8100, .offset = 326144},
    {.first = 12200, .count = 33, .rows = 1, .stride = 0, .offset = 455744},
};
static const pn_partial run_loss[] = {{.first = 3, .count = 2, .rows = 70, .stride = 3, .offset = 3000},
                                      {.first = 0, .count = 2, .rows = 1000, .stride = 3, .offset = 0}};
enum { RUN_GRADIENT_ELEMENTS = 455777, RUN_LOSS_ELEMENTS = 3209 };

typedef struct run_result {
    void *gradient, *parameter, *moments; /* in the run's precision; malloc */
    pn_words words;
    pn_loop loop;
    double ring[RUN_RING * RUN_ROW];
} run_result;

static inline pinn_plane *run_plane(pinn_context *context, const char *name, size_t bytes, const void *from) {
    pinn_plane *plane;
    ck_ok(pinn_plane_create(context, name, PINN_DEVICE, bytes, &plane));
    if (from) ck_ok(pinn_plane_write(plane, 0, from, bytes));
    return plane;
}

static inline void *run_numbers(pn_real real, size_t count, uint64_t state, double size) {
    void *p = malloc(count * pn_real_bytes(real));
    for (size_t i = 0; i < count; i++) pn_real_set(real, p, i, size * test_number(&state));
    return p;
}

static inline void *run_read(pinn_plane *plane) {
    void *p = malloc(pinn_plane_bytes(plane));
    ck_ok(pinn_plane_read(plane, 0, p, pinn_plane_bytes(plane)));
    return p;
}

typedef struct run_settings {
    pn_hyper hyper;
    uint64_t until;                /* the chunk's end */
    double bad_gradient, bad_loss; /* one partial sum of each is so much larger */
} run_settings;

static inline run_settings run_default(uint64_t steps) {
    return (run_settings){.hyper = {.decay = PN_HYPER_COSINE,
                                    .initial = 2e-3,
                                    .final = 1e-5,
                                    .decay_rate = 0.7,
                                    .every = 5,
                                    .phase_steps = 40,
                                    .warmup = 3,
                                    .beta1 = 0.9,
                                    .beta2 = 0.999,
                                    .epsilon = 1e-8,
                                    .clip_norm = 1,
                                    .event_every = 2,
                                    .evaluate_every = 7,
                                    .last_step = 19,
                                    .plain = 1}, /* goes on behind the last step */
                          .until = steps};
}

static inline void run_optimizer_with(pinn_executor executor, pn_real real, const run_settings *settings, uint64_t steps,
                                      run_result *out) {
    pinn_context *context = operation_context(executor);
    const size_t bytes = pn_real_bytes(real);
    const pn_loop loop = {.unroll = 3, .until = settings->until};
    double weight[2 * RUN_TERMS] = {1, 10, 1, 0.5, 3, 2000, 200, 1, 50, 70};
    void *gradient = run_numbers(real, RUN_GRADIENT_ELEMENTS, 1, 5e-3), *parameter = run_numbers(real, RUN_PARAMETERS, 2, 1);
    double *loss = run_numbers(PN_FLOAT64, RUN_LOSS_ELEMENTS, 3, 1);
    for (size_t i = 0; i < RUN_LOSS_ELEMENTS; i++) loss[i] = fabs(loss[i]);
    loss[300] += settings->bad_loss;
    pn_real_set(real, gradient, 70000, pn_real_get(real, gradient, 70000) + settings->bad_gradient);
    pn_adam_spec spec = {
        .context = context,
        .real = real,
        .gradient = {run_plane(context, "gradient partials", RUN_GRADIENT_ELEMENTS * bytes, gradient), run_gradient, 4,
                     RUN_PARAMETERS},
        .loss = {run_plane(context, "loss partials", RUN_LOSS_ELEMENTS * sizeof(double), loss), run_loss, 2, RUN_TERMS},
        .fields = RUN_FIELDS,
        .ring_rows = RUN_RING,
        .parameter = run_plane(context, "parameters", RUN_PARAMETERS * bytes, parameter),
        .moments = run_plane(context, "moments", 2 * RUN_PARAMETERS * bytes, NULL),
        .words = run_plane(context, "words", sizeof(pn_words), NULL),
        .hyper = run_plane(context, "hyper", sizeof settings->hyper, &settings->hyper),
        .loop = run_plane(context, "loop", sizeof loop, &loop),
        .weight = run_plane(context, "weight", sizeof weight, weight),
        .ring = run_plane(context, "ring", sizeof out->ring, NULL)};
    pn_adam *adam;
    pinn_graph *graph;
    ck_ok(pn_adam_create(&spec, &adam));
    ck_ok(pinn_graph_create(context, "step", &graph));
    ck_ok(pinn_graph_begin(graph));
    ck_ok(pn_adam_record(adam, graph));
    ck_ok(pinn_graph_launch(graph, steps));
    out->gradient = run_read(pn_adam_gradient(adam));
    out->parameter = run_read(spec.parameter);
    out->moments = run_read(spec.moments);
    ck_ok(pinn_plane_read(spec.words, 0, &out->words, sizeof out->words));
    ck_ok(pinn_plane_read(spec.ring, 0, out->ring, sizeof out->ring));
    ck_ok(pinn_plane_read(spec.loop, 0, &out->loop, sizeof out->loop));
    pinn_graph_destroy(graph);
    pn_adam_destroy(adam);
    pinn_plane *plane[] = {spec.gradient.plane, spec.loss.plane, spec.parameter, spec.moments,
                           spec.words,          spec.hyper,      spec.loop,      spec.weight,  spec.ring};
    for (size_t i = 0; i < sizeof plane / sizeof plane[0]; i++) pinn_plane_destroy(plane[i]);
    pinn_context_destroy(context);
    free(gradient);
    free(parameter);
    free(loss);
}

static inline void run_optimizer(pinn_executor executor, pn_real real, uint64_t steps, run_result *out) {
    const run_settings settings = run_default(steps);
    run_optimizer_with(executor, real, &settings, steps, out);
}

/* Settings under which steps come to an end, and how far 20 steps then get. */
typedef struct run_end {
    run_settings settings;
    uint64_t step, stop, rows;
} run_end;

enum { RUN_ENDS = 10 };

static inline run_end run_ending(int i) {
    run_end e = {.settings = run_default(100)};
    pn_hyper *hyper = &e.settings.hyper;
    hyper->plain = 0;
    hyper->decay = (uint64_t)i % 3;
    switch (i) {
    case 0:
    case 1:
    case 2: e.step = 19, e.stop = PN_STOP_STEP, e.rows = 11; break; /* 2 4 6 7 8 10 12 14 16 18 19 */
    case 3: e.settings.until = 13, e.step = 13, e.rows = 7; break;
    case 4: hyper->patience = 5, e.step = 6, e.stop = PN_STOP_PLATEAU, e.rows = 3; break; /* the same loss in every step */
    case 5: hyper->stop_loss = 1e9, e.step = 1, e.stop = PN_STOP_LOSS, e.rows = 1; break;
    case 6: hyper->stop_gradient_norm = 1e9, e.step = 1, e.stop = PN_STOP_GRADIENT_NORM, e.rows = 1; break;
    case 7: e.settings.bad_gradient = NAN, e.stop = PN_STOP_NAN, e.rows = 1; break;
    case 8: e.settings.bad_loss = INFINITY, e.stop = PN_STOP_NAN, e.rows = 1; break;
    default: e.settings.until = 0; break;
    }
    return e;
}

static inline void run_free(run_result *r) {
    free(r->gradient);
    free(r->parameter);
    free(r->moments);
}

#endif
