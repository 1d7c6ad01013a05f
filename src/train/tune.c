/* Which tiles of a GPU's network pass are the fastest: measured, not modelled. A run never does this by itself, as its bits would then depend
 * on a timing: the outcome is a line for the problem file. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "train/training.h"

enum { MOST_TILINGS = 12, REPETITIONS = 3, WARM_UP = 20, LEAST_STEPS = 10, MOST_STEPS = 20000 };
#define REPETITION_SECONDS 0.2

typedef struct measured {
    pn_pass_tiling tiling; /* "layered": time NaN */
    double seconds;        /* a step; infinite: it could not run here */
    bool chosen;           /* what "auto" takes */
} measured;

static pinn_status check_tunable(const pinn_training *training) {
    if (pinn_context_executor(training->context) == PINN_EXECUTOR_CPU)
        return pn_fail(PINN_CONFIG, "tuning measures the tiles of a GPU's network pass, and this would run on a CPU (%s): tune on the machine that is to train",
                       pinn_context_device_name(training->context));
    if (training->run) return pn_fail(PINN_BAD_ARGUMENT, "a training that is tuned writes no run");
    return PINN_OK;
}

static size_t longest_phase(const pn_config *config) {
    size_t longest = 0;
    for (size_t i = 1; i < config->phase_count; i++)
        if (config->phase[i].steps > config->phase[longest].steps) longest = i;
    return longest;
}

/* A pass with each, so that their kernels are compiled at once; afterwards they are in the cache. */
static pinn_status compile_all(pinn_training *training, measured *list, size_t count) {
    pn_pass *pass[MOST_TILINGS] = {NULL};
    char *const own = training->tiles;
    pinn_status status = PINN_OK;
    for (size_t i = 0; i < count && status == PINN_OK; i++) {
        training->tiles = list[i].tiling.tiles;
        status = pn_candidate_create(training, &pass[i]);
        if (status == PINN_REFUSED || status == PINN_UNSUPPORTED) status = PINN_OK; /* measuring will tell */
    }
    training->tiles = own;
    for (size_t i = 0; i < count; i++) {
        if (status == PINN_OK && pass[i]) status = pn_pass_finish(pass[i]);
        pn_pass_destroy(pass[i]);
    }
    return status;
}

static pinn_status use_tiles(pinn_training *training, const char *tiles) {
    pinn_status status;
    char *copy = pn_duplicate(tiles, strlen(tiles));
    if (!copy) return PN_NO_MEMORY("the choice of tiles");
    pn_free(training->tiles);
    training->tiles = copy;
    pn_machinery_destroy(&training->machinery);
    PN_TRY(pn_machinery_create(training));
    PN_TRY(pn_machinery_record(training));
fail:
    return status;
}

/* Every repetition begins with the same state. */
static pinn_status run_steps(pinn_training *training, const void *state, uint64_t steps, double *seconds) {
    pinn_status status = pinn_plane_write(training->state, 0, state, training->state_bytes);
    return status == PINN_OK ? pinn_training_steps(training, steps, NULL, seconds) : status;
}

static pinn_status measure(pinn_training *training, const void *state, measured *m) {
    double seconds;
    pinn_status status;
    m->seconds = INFINITY;
    status = use_tiles(training, m->tiling.tiles);
    if (status == PINN_REFUSED || status == PINN_UNSUPPORTED) return PINN_OK; /* too large for this device */
    if (status != PINN_OK) return status;
    PN_TRY(run_steps(training, state, WARM_UP, &seconds));
    PN_TRY(run_steps(training, state, WARM_UP, &seconds));
    const double wanted = REPETITION_SECONDS * WARM_UP / fmax(seconds, 1e-9);
    const uint64_t steps = (uint64_t)fmin(fmax(wanted, LEAST_STEPS), MOST_STEPS);
    for (int i = 0; i < REPETITIONS; i++) {
        PN_TRY(run_steps(training, state, steps, &seconds));
        m->seconds = fmin(m->seconds, seconds / (double)steps);
    }
fail:
    return status;
}

static int by_time(const void *a, const void *b) {
    const double x = ((const measured *)a)->seconds, y = ((const measured *)b)->seconds;
    return (x > y) - (x < y);
}

/* `list` sorted, the fastest first. */
static void print_table(const measured *list, size_t count, pn_text *out) {
    pn_text_printf(out, "%-52s %11s %11s\n", "tiles", "us a step", "model");
    for (size_t i = 0; i < count; i++) {
        pn_text_printf(out, "%-52s ", list[i].tiling.tiles);
        if (isfinite(list[i].seconds))
            pn_text_printf(out, "%11.2f ", 1e6 * list[i].seconds);
        else
            pn_text_printf(out, "%11s ", "too large");
        if (isfinite(list[i].tiling.time))
            pn_text_printf(out, "%11.2f", list[i].tiling.time);
        else
            pn_text_printf(out, "%11s", "-");
        pn_text_printf(out, "%s\n", list[i].chosen ? "  auto" : "");
    }
}

/* The candidates, "layered" the last of them. */
static pinn_status list_candidates(const pinn_training *training, measured *list, size_t *count) {
    pn_pass_tiling tiling[MOST_TILINGS];
    pinn_status status = pn_pass_tilings(training->machinery.pass, tiling, MOST_TILINGS, count);
    if (status != PINN_OK) return status;
    if (*count == 0 && *pn_pass_tiles(training->machinery.pass)) { /* what has tiles but no choice */
        snprintf(tiling[0].tiles, sizeof tiling[0].tiles, "%s", pn_pass_tiles(training->machinery.pass));
        tiling[0].time = 1;
        *count = 1;
    }
    for (size_t i = 0; i < *count; i++) list[i] = (measured){.tiling = tiling[i], .chosen = i == 0};
    list[*count] = (measured){.tiling = {.tiles = "layered", .time = NAN}, .chosen = *count == 0};
    return PINN_OK;
}

pinn_status pinn_training_tune(pinn_training *training, char **table, char **tiles) {
    measured list[MOST_TILINGS + 1];
    pn_text text = {0};
    char *best = NULL;
    void *state = NULL;
    size_t count = 0;
    pinn_status status;
    PN_TRY(check_tunable(training));
    const size_t phase = longest_phase(training->config);
    if (phase != training->phase) PN_TRY(pn_phase_begin(training, phase));
    state = pn_allocate(training->state_bytes, 1);
    if (!state) PN_TRY(PN_NO_MEMORY("the state"));
    PN_TRY(pinn_plane_read(training->state, 0, state, training->state_bytes));
    PN_TRY(list_candidates(training, list, &count));
    pn_note(training, "compiling and measuring %zu tilings and the layered pass", count);
    PN_TRY(compile_all(training, list, count));
    for (size_t i = 0; i <= count; i++) PN_TRY(measure(training, state, &list[i]));
    qsort(list, count + 1, sizeof *list, by_time);
    print_table(list, count + 1, &text);
    PN_TRY(pn_text_check(&text));
    best = strdup(list[0].tiling.tiles);
    if (!best) PN_TRY(PN_NO_MEMORY("the choice of tiles"));
    *table = text.data;
    *tiles = best;
    text.data = NULL;
fail:
    pn_free(state);
    pn_free(text.data);
    return status;
}

/* Renaming would replace a file that nobody may write. Root may write any, but a file without any such permission is meant to stay. */
static pinn_status check_writable(const char *config, const char *file, struct stat *info) {
    char folder[PATH_MAX];
    if (stat(file, info) != 0) return pn_fail(PINN_IO, "%s: %s", config, strerror(errno));
    if (!(info->st_mode & (S_IWUSR | S_IWGRP | S_IWOTH)) || access(file, W_OK) != 0)
        return pn_fail(PINN_CONFIG, "%s: is read-only: the tiles can't be written into it; make it writable, or tune a copy", config);
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(file, '/') - file) + 1, file); /* `file` is absolute */
    if (access(folder, W_OK) != 0)
        return pn_fail(PINN_CONFIG, "%s: its folder is read-only: the tiles can't be written into the file; tune a copy elsewhere", config);
    return PINN_OK;
}

pinn_status pinn_config_set_tiles(const char *config, const char *tiles) {
    pn_config *problem = NULL;
    pn_text text = {0};
    char *file = NULL, canonical[PN_TILE_CHOICE_BYTES];
    struct stat before;
    pinn_status status;
    status = pn_tiles_read(tiles ? tiles : "auto", canonical);
    if (status != PINN_OK) PN_TRY(pn_fail(status, "%s; " PN_TILES_REMEDY, pinn_error_message()));
    PN_TRY(pn_config_read(config, NULL, 0, &problem));
    PN_TRY(pn_config_edit_tiles(problem, canonical, &text));
    file = realpath(config, NULL); /* a link stays one */
    if (!file) PN_TRY(pn_fail(PINN_IO, "%s: %s", config, strerror(errno)));
    PN_TRY(check_writable(config, file, &before));
    if (!tiles) goto fail;
    PN_TRY(pn_text_write_file(&text, file));
    chmod(file, before.st_mode & 07777); /* a file that is writable and has other permissions than before is no failure */
fail:
    free(file);
    pn_text_free(&text);
    pn_config_destroy(problem);
    return status;
}
