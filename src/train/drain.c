/* How rows and snapshots leave the device: copies into pinned planes, then a host function that hands them to the writer thread.
 * And the way back: resuming from a checkpoint. */
#include <string.h>

#include "io/events.h"
#include "train/training.h"

/* Columns of a row as the writer gets it: the ring's row with the host's clock put in after the step. */
enum { WRITTEN_STEP, WRITTEN_SECONDS, WRITTEN_REST };

static size_t written_columns(const pinn_training *training) {
    const pn_problem *problem = training->problem;
    return PN_ROW_TERMS + 1 + problem->terms + (training->has_evaluation ? problem->fields : 0);
}

pinn_status pn_event_names(const pinn_training *training, char ***out, size_t *count) {
    static const char *const fixed[] = {"step", "seconds", "learning_rate", "gradient_norm", "loss/total"};
    const size_t first = sizeof fixed / sizeof fixed[0];
    const pn_problem *problem = training->problem;
    size_t n = written_columns(training);
    char **name = pn_allocate(n, sizeof *name);
    if (!name) return PN_NO_MEMORY("the event names");
    for (size_t i = 0; i < n; i++) {
        pn_text text = {0};
        if (i < first)
            pn_text_string(&text, fixed[i]);
        else if (i < first + problem->terms)
            pn_text_printf(&text, "loss/%s", problem->term[i - first].name);
        else
            pn_text_printf(&text, "relative_l2/%s", problem->field_name[i - first - problem->terms]);
        name[i] = text.data;
        if (pn_text_check(&text) != PINN_OK) {
            pn_text_free(&text);
            pn_event_names_free(name, i);
            return PINN_NO_MEMORY;
        }
    }
    *out = name;
    *count = n;
    return PINN_OK;
}

void pn_event_names_free(char **names, size_t count) {
    for (size_t i = 0; names && i < count; i++) pn_free(names[i]);
    pn_free(names);
}

/* Of training so far, in all: what comes after the last chunk is none. */
static double seconds_in_all(const pinn_training *training) {
    return training->seconds_before + (training->trains ? pn_clock() - training->start : training->seconds);
}

/* Only what the writer needs of the state that has landed; step words without the ring's row count and the rule that stopped, so
 * that a checkpoint does not depend on how many rows were written on the way nor on why it was taken. */
static pn_checkpoint landed_checkpoint(const pinn_training *training) {
    pn_checkpoint checkpoint = {.real = training->config->real,
                                .network = training->network,
                                .parameters = (void *)training->landed_state,
                                .moments = (void *)(training->landed_state + training->state_moments),
                                .phase = training->phase,
                                .seed = training->seed,
                                .seconds = seconds_in_all(training),
                                .config = pn_text_get(&training->resolved),
                                .machine = pn_text_get(&training->machine),
                                .executor = pinn_executor_name(pinn_context_executor(training->context))};
    memcpy(&checkpoint.words, training->landed_state + training->state_words, sizeof checkpoint.words);
    checkpoint.words.rows = 0;
    checkpoint.words.stop = PN_STOP_NONE;
    return checkpoint;
}

static pinn_status hand_over(pinn_training *training) {
    size_t length = pn_row_length(training->problem->terms, training->problem->fields);
    const double now = seconds_in_all(training);
    for (; training->drained < training->landed_words->rows; training->drained++) {
        const double *row = training->landed_ring + training->drained % PN_RING_ROWS * length;
        training->row[WRITTEN_STEP] = row[PN_ROW_STEP];
        training->row[WRITTEN_SECONDS] = now;
        memcpy(training->row + WRITTEN_REST, row + 1, (length - 1) * sizeof *row);
        pinn_status status = training->run ? pn_run_rows(training->run, training->row, 1) : PINN_OK;
        if (status != PINN_OK) return status;
    }
    return PINN_OK;
}

static pinn_status rows_landed(void *user) { return hand_over(user); }

static pinn_status rows_and_snapshot_landed(void *user) {
    pinn_training *training = user;
    pinn_status status = hand_over(training);
    pn_checkpoint checkpoint = landed_checkpoint(training);
    bool taken;
    if (status == PINN_OK && training->run) status = pn_run_snapshot(training->run, &checkpoint, false, &taken);
    return status;
}

pinn_status pn_drain_create(pinn_training *training) {
    pinn_status status;
    training->landed_words = pinn_plane_address(training->home_words);
    training->landed_ring = pinn_plane_address(training->home_ring);
    training->landed_state = pinn_plane_address(training->home_state);
    for (int snapshot = 0; snapshot < 2; snapshot++) {
        pinn_graph *graph = training->drain[snapshot];
        PN_TRY(pinn_graph_begin(graph));
        PN_TRY(pinn_graph_copy(graph, training->words, training->home_words));
        PN_TRY(pinn_graph_copy(graph, training->ring, training->home_ring));
        if (snapshot) {
            PN_TRY(pinn_graph_copy(graph, training->state, training->home_state));
            PN_TRY(pinn_graph_host(graph, "hand rows and snapshot to the writer", rows_and_snapshot_landed, training,
                                   PINN_PLANES(training->home_words, training->home_ring, training->home_state), PINN_NO_PLANES));
        } else
            PN_TRY(pinn_graph_host(graph, "hand rows to the writer", rows_landed, training,
                                   PINN_PLANES(training->home_words, training->home_ring), PINN_NO_PLANES));
    }
fail:
    return status;
}

pinn_status pn_drain_enqueue(pinn_training *training, bool snapshot) { return pinn_graph_enqueue(training->drain[snapshot], 1); }

pinn_status pn_checkpoint_now(pinn_training *training) {
    pinn_status status;
    if (!training->run) return PINN_OK;
    PN_TRY(pn_run_flush(training->run)); /* frees the snapshot's slot */
    PN_TRY(pn_drain_enqueue(training, true));
    PN_TRY(pinn_context_synchronize(training->context));
    PN_TRY(pn_run_flush(training->run));
fail:
    if (status == PINN_NUMERIC) training->stop_reason = "nan";
    return status;
}

static pinn_status compare_configs(const pinn_training *training, const char *path, const char *stored, uint64_t phase) {
    pn_text differences = {0};
    pinn_status status;
    PN_TRY(pn_config_compare(stored, pn_text_get(&training->resolved), phase, &differences));
    PN_TRY(pn_text_check(&differences));
    if (differences.length)
        status = pn_fail(PINN_CONFIG,
                         "%s was trained under another configuration; only title, tiles, [stop], [output], [reference], more steps and points of later phases may "
                         "change on --resume. These keys differ:\n%sGive the same --set and --seed again, or resume from %s/config.toml",
                         path, differences.data, training->directory);
fail:
    pn_text_free(&differences);
    return status;
}

/* Step, phase and step in the phase must fit each other and the config, whose earlier phases are those of the checkpoint. */
static pinn_status check_progress(const pinn_training *t, const char *path, const pn_checkpoint *c) {
    const pn_config *config = t->config;
    uint64_t before = 0;
    if (c->phase >= config->phase_count)
        return pn_fail(PINN_CONFIG, "%s: stands in [[train]] number %llu, but the config has %zu", path, (unsigned long long)c->phase + 1,
                       config->phase_count);
    for (size_t i = 0; i < c->phase; i++) before += config->phase[i].steps;
    const uint64_t steps = config->phase[c->phase].steps;
    if (c->words.phase_step > steps || c->words.step != before + c->words.phase_step || c->words.optimizer_step > c->words.step)
        return pn_fail(PINN_CONFIG,
                       "%s: stands at step %llu, step %llu of [[train]] number %llu: the config has %llu steps there, after %llu others",
                       path, (unsigned long long)c->words.step, (unsigned long long)c->words.phase_step,
                       (unsigned long long)c->phase + 1, (unsigned long long)steps, (unsigned long long)before);
    return PINN_OK;
}

void pn_mirror_words(pinn_training *training, const pn_words *words) {
    training->step = words->step;
    training->phase_step = words->phase_step;
    training->stop = words->stop;
    training->loss = words->loss;
    training->learning_rate = words->learning_rate;
    training->best_loss = words->best_loss;
    training->best_step = words->best_step;
}

static pinn_status restore_state(pinn_training *t, const pn_checkpoint *checkpoint) {
    size_t parameters = t->network->parameters * pn_real_bytes(t->config->real);
    pinn_status status;
    PN_TRY(pinn_plane_write(t->parameter, 0, checkpoint->parameters, parameters));
    PN_TRY(pinn_plane_write(t->moments, 0, checkpoint->moments, 2 * parameters));
    PN_TRY(pinn_plane_write(t->words, 0, &checkpoint->words, sizeof checkpoint->words));
    pn_mirror_words(t, &checkpoint->words);
    t->first_step = t->step;
    t->phase = (size_t)checkpoint->phase;
    t->seconds_before = checkpoint->seconds;
fail:
    return status;
}

/* The last event, until there is a newer one. A record that is gone or damaged has none: what becomes of it is told elsewhere. */
static pinn_status restore_row(pinn_training *training) {
    char **name = NULL;
    size_t count = 0;
    bool found;
    pn_text path = {0};
    pinn_status status;
    pn_text_printf(&path, "%s/events.h5", training->directory);
    PN_TRY(pn_text_check(&path));
    PN_TRY(pn_event_names(training, &name, &count));
    status = pn_events_last(path.data, (const char *const *)name, count, (int64_t)training->step, training->row, &found);
    if (status == PINN_IO) status = PINN_OK;
fail:
    pn_event_names_free(name, count);
    pn_text_free(&path);
    return status;
}

/* Nothing to train, and a solution that would show the same. */
static pinn_status find_idle(pinn_training *training, const char *stored) {
    bool same = false;
    const pinn_status status = pn_config_same_solution(stored, pn_text_get(&training->resolved), &same);
    training->idle = same && pn_end_reached(training);
    return status;
}

pinn_status pn_training_resume(pinn_training *training) {
    size_t bytes = pn_real_bytes(training->config->real), count = training->network->parameters;
    pn_text path = {0};
    char *stored = NULL;
    uint64_t phase = 0;
    pn_checkpoint checkpoint = {.real = training->config->real, .network = training->network};
    pinn_status status;
    pn_text_printf(&path, "%s/checkpoint.h5", training->directory);
    PN_TRY(pn_text_check(&path));
    PN_TRY(pn_checkpoint_read_config(path.data, &stored, &phase));
    PN_TRY(compare_configs(training, path.data, stored, phase));
    PN_TRY(pn_tiles_resume(training, stored));
    checkpoint.parameters = pn_allocate(count, bytes);
    checkpoint.moments = pn_allocate(2 * count, bytes);
    if (!checkpoint.parameters || !checkpoint.moments) {
        status = PN_NO_MEMORY("the checkpoint");
        goto fail;
    }
    PN_TRY(pn_checkpoint_read(path.data, &checkpoint, NULL, &training->stored_machine));
    PN_TRY(check_progress(training, path.data, &checkpoint));
    PN_TRY(restore_state(training, &checkpoint));
    PN_TRY(restore_row(training));
    PN_TRY(find_idle(training, stored));
fail:
    pn_free(checkpoint.moments);
    pn_free(checkpoint.parameters);
    pn_free(stored);
    pn_text_free(&path);
    return status;
}
