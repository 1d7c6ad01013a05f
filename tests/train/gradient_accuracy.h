/* The gradient of a config's whole loss against the float64 one of the CPU at the same points and parameters: the test's numbers are widened,
 * so that what differs is arithmetic alone. The gradient is the one the optimizer gets: all terms, all parts summed by `reduce`. */
#ifndef GRADIENT_ACCURACY_H
#define GRADIENT_ACCURACY_H

#include "gradient_tools.h"

typedef struct gradient_sample {
    double *point, *parameter, *gradient; /* [points], [parameters], [parameters] */
    size_t points, parameters;
    double loss;
    char lowering[16], tiles[96];
} gradient_sample;

static inline void gradient_sample_free(gradient_sample *s) {
    free(s->point);
    free(s->parameter);
    free(s->gradient);
}

/* Points of all sets, those of step 0. */
static inline void gradient_draw(pinn_training *training) {
    pinn_graph *graph = NULL;
    must(pinn_graph_create(training->context, "draw", &graph));
    must(pinn_graph_begin(graph));
    must(pn_sampler_record(training->machinery.sampler, graph, true));
    must(pinn_graph_launch(graph, 1));
    pinn_graph_destroy(graph);
}

/* The pass, `reduce` and `adam`, at the points that are there. */
static inline void gradient_launch(pinn_training *training) {
    const pn_begin_arguments begin = {.unroll = 1};
    pinn_graph *graph = NULL;
    must(pinn_graph_create(training->context, "gradient", &graph));
    must(pinn_graph_begin(graph));
    must(pinn_graph_operation(graph, &pn_begin_operation, &begin, sizeof begin, PINN_PLANES(training->words, training->hyper),
                              PINN_PLANES(training->loop)));
    must(pn_pass_record(training->machinery.pass, graph));
    must(pn_step_record(training->machinery.step, graph));
    must(pinn_graph_launch(graph, 1));
    pinn_graph_destroy(graph);
}

/* `same` NULL: the training's own points and moved parameters, in its precision. Else those of `same`. Destroys the training. */
static inline gradient_sample gradient_take(pinn_training *training, const gradient_sample *same) {
    const pn_real real = training->config->real;
    gradient_sample s = {.points = pinn_plane_bytes(training->machinery.points) / pn_real_bytes(real)};
    pn_words words;
    if (same) {
        ck_assert_uint_eq(same->points, s.points);
        ck_assert_uint_eq(same->parameters, training->network->parameters);
        s.parameters = same->parameters;
        gradient_write(training->machinery.points, real, same->point, s.points);
        gradient_write(training->parameter, real, same->parameter, s.parameters);
    } else {
        double *moved = gradient_parameters(training, &s.parameters);
        gradient_draw(training);
        gradient_write(training->parameter, real, moved, s.parameters);
        free(moved);
    }
    s.point = gradient_read(training->machinery.points, real, s.points);
    s.parameter = gradient_read(training->parameter, real, s.parameters);
    gradient_launch(training);
    s.gradient = gradient_read(pn_step_gradient(training->machinery.step), real, s.parameters);
    must(pinn_plane_read(training->words, 0, &words, sizeof words));
    s.loss = words.loss;
    snprintf(s.lowering, sizeof s.lowering, "%s", pn_pass_lowering_name(training->machinery.pass));
    snprintf(s.tiles, sizeof s.tiles, "%s", pn_pass_tiles(training->machinery.pass));
    pinn_training_destroy(training);
    return s;
}

/* ||a - b|| / ||b||; NaN, which is no success, if either has a number that is none. */
static inline double gradient_difference(const gradient_sample *a, const gradient_sample *b) {
    double difference = 0, square = 0;
    for (size_t i = 0; i < b->parameters; i++) {
        difference += (a->gradient[i] - b->gradient[i]) * (a->gradient[i] - b->gradient[i]);
        square += b->gradient[i] * b->gradient[i];
    }
    return sqrt(difference / square);
}

static inline gradient_sample gradient_exact(const char *path, size_t most, const gradient_sample *same) {
    const gradient_options o = {.device = "cpu", .lowering = "tiled", .precision = "float64", .most = most};
    return gradient_take(gradient_create(path, &o), same);
}

static inline const char *gradient_stem(const char *path) {
    static const char folder[] = PINN_SOURCE_DIR "/configs/";
    return path + sizeof folder - 1;
}

static size_t gradient_failures; /* of the present test: a failure must not hide the errors of the configs behind it */

/* Prints the errors of gradient and loss and holds them under `most`. */
static inline void gradient_check(const char *path, const char *what, const gradient_sample *s, const gradient_sample *exact, double most) {
    const double error = gradient_difference(s, exact), loss = fabs(s->loss - exact->loss) / exact->loss;
    const bool good = error < most && loss < most;
    printf("%-22s %-8s %-8s gradient %8.2e  loss %8.2e  %s%s\n", gradient_stem(path), what, s->lowering, error, loss, s->tiles,
           good ? "" : "  FAILED");
    fflush(stdout);
    gradient_failures += !good;
}

/* Checks every config; each is held under its own bound by `check`. */
static inline void gradient_check_every(void (*check)(const char *path)) {
    gradient_failures = 0;
    gradient_every_config(check);
    ck_assert_msg(gradient_failures == 0, "%zu errors are over their bound", gradient_failures);
}

#endif
