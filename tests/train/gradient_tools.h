/* The gradient of a config's whole loss, for the tests that compare it: trainings with few points, parameters away from the start, one step's
 * pass and reduction. */
#ifndef GRADIENT_TOOLS_H
#define GRADIENT_TOOLS_H

#include <glob.h>
#include <math.h>

#include "training_tools.h"

enum { GRADIENT_SETS = 64 };

static inline char *gradient_keep(char *list[], size_t *count, const char *format, size_t number, size_t value) {
    char text[96];
    snprintf(text, sizeof text, format, number, value);
    return list[(*count)++] = strdup(text);
}

/* What a training is made with beside its config: `most` points a set. */
typedef struct gradient_options {
    const char *device, *executor, *lowering, *precision;
    size_t most;
} gradient_options;

/* No set has a number of points that is even, if it has several: whatever the tile, its last one is ragged. */
static inline size_t gradient_points(size_t points, size_t most) {
    if (points > most) points = most;
    return points > 2 && points % 2 == 0 ? points - 1 : points;
}

static inline pinn_status gradient_try_create(const char *path, const gradient_options *o, pinn_training **out) {
    char *set[GRADIENT_SETS];
    size_t count = 0, equations = 0, conditions = 0;
    pn_config *config = NULL;
    must(pn_config_read(path, NULL, 0, &config));
    for (size_t i = 0; i < config->set_count; i++) {
        const size_t points = gradient_points(config->set[i].points, o->most);
        ck_assert_uint_lt(count, GRADIENT_SETS - 1);
        if (config->set[i].condition)
            gradient_keep(set, &count, "condition.%zu.points=%zu", conditions++, points);
        else
            gradient_keep(set, &count, "equation.%zu.points=%zu", equations++, points);
    }
    pn_config_destroy(config);
    char precision[32];
    snprintf(precision, sizeof precision, "precision=%s", o->precision);
    set[count++] = strdup(precision);
    const pinn_options options = {.config = path, .device = o->device, .executor = o->executor, .lowering = o->lowering,
                                  .set = (const char *const *)set, .set_count = count, .no_directory = true};
    pinn_status status = pinn_training_create(&options, out);
    for (size_t i = 0; i < count; i++) free(set[i]);
    return status;
}

static inline pinn_training *gradient_create(const char *path, const gradient_options *o) {
    pinn_training *training = NULL;
    must(gradient_try_create(path, o, &training));
    return training;
}

/* Uniform in [-1, 1), the same on every machine. */
static inline double gradient_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(*state >> 11) / (double)(1ll << 52) - 1;
}

/* The initial parameters, moved: biases are zero there and hide their gradient's errors. The caller frees. */
static inline double *gradient_parameters(pinn_training *training, size_t *count) {
    double *parameter = read_parameters(training, count);
    uint64_t random = 12345;
    for (size_t i = 0; i < *count; i++) parameter[i] += 0.1 * gradient_random(&random);
    return parameter;
}

static inline void *gradient_real(size_t elements, pn_real real) {
    void *memory = calloc(elements, pn_real_bytes(real));
    ck_assert_ptr_nonnull(memory);
    return memory;
}

static inline void gradient_write(pinn_plane *plane, pn_real real, const double *value, size_t count) {
    void *rounded = gradient_real(count, real);
    for (size_t i = 0; i < count; i++) pn_real_set(real, rounded, i, value[i]);
    must(pinn_plane_write(plane, 0, rounded, count * pn_real_bytes(real)));
    free(rounded);
}

static inline double *gradient_read(const pinn_plane *plane, pn_real real, size_t count) {
    void *raw = gradient_real(count, real);
    double *value = gradient_real(count, PN_FLOAT64);
    must(pinn_plane_read(plane, 0, raw, count * pn_real_bytes(real)));
    for (size_t i = 0; i < count; i++) value[i] = pn_real_get(real, raw, i);
    free(raw);
    return value;
}

/* Runs `f` for the path of every config of configs/ and configs/bench/; PINN_TEST_CONFIG=bench/burgers. leaves those whose path holds it. */
static inline void gradient_every_config(void (*f)(const char *path)) {
    glob_t found;
    ck_assert_int_eq(glob(PINN_SOURCE_DIR "/configs/*.toml", 0, NULL, &found), 0);
    ck_assert_int_eq(glob(PINN_SOURCE_DIR "/configs/bench/*.toml", GLOB_APPEND, NULL, &found), 0);
    ck_assert_uint_ge(found.gl_pathc, 13);
    const char *only = getenv("PINN_TEST_CONFIG");
    for (size_t i = 0; i < found.gl_pathc; i++)
        if (!only || strstr(found.gl_pathv[i], only)) f(found.gl_pathv[i]);
    globfree(&found);
}

#endif
