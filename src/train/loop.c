/* The run: phases made of chunks. A chunk is the steps up to the next event, evaluation, snapshot or phase end; it is enqueued whole,
 * then what is due leaves the device, then the host looks at the newest row. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "train/training.h"

/* Steps at least between two drains, so that `events = 1` does not wait for the device at every step. */
#define LEAST_CHUNK 32u
/* A chunk is split so that signals, [stop] seconds and progress are looked at about twice a second. */
#define LOOK_EVERY 0.5

typedef struct chunk {
    uint64_t steps;
    bool row, evaluation, snapshot; /* what is due at its end */
} chunk;

static uint64_t next_multiple(uint64_t step, uint64_t every) {
    return every == 0 || step / every + 1 > UINT64_MAX / every ? UINT64_MAX : (step / every + 1) * every;
}

static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

static bool due(uint64_t step, uint64_t every) { return every != 0 && step % every == 0; }

static chunk next_chunk(const pinn_training *training, uint64_t longest) {
    const pn_config *config = training->config;
    const uint64_t step = training->step, events = config->output.events, checkpoint = config->output.checkpoint;
    const uint64_t evaluate = training->has_evaluation ? config->output.evaluate_every : 0;
    uint64_t event_end = UINT64_MAX;
    if (events) event_end = events >= LEAST_CHUNK ? next_multiple(step, events) : (step + LEAST_CHUNK) / events * events;
    uint64_t end = smaller(event_end, smaller(next_multiple(step, evaluate), next_multiple(step, checkpoint)));
    end = smaller(end, step + config->phase[training->phase].steps - training->phase_step);
    end = smaller(end, training->last_step);
    if (end - step > longest) end = step + longest;
    bool last = end == training->last_step;
    return (chunk){.steps = end - step,
                   .evaluation = training->has_evaluation && (last || due(end, evaluate)),
                   .row = last || due(end, events) || due(end, evaluate),
                   .snapshot = due(end, checkpoint) && !last};
}

/* Names the terms whose loss is not a finite number. */
static pinn_status not_finite(pinn_training *training) {
    const double *loss = training->row + PN_ROW_TERMS + 1;
    pn_text terms = {0};
    for (size_t k = 0; k < training->problem->terms; k++)
        if (!isfinite(loss[k])) pn_text_printf(&terms, "%s\"%s\"", terms.length ? ", " : "", training->term_name[k]);
    training->stop_reason = "nan";
    pinn_status status = pn_fail(PINN_NUMERIC,
                                 "%s is not finite at step %llu%s%s. Try a smaller learning_rate, clip_norm in [[train]], or check the "
                                 "expressions for singular points%s",
                                 terms.length ? "a loss" : "the gradient", (unsigned long long)training->step,
                                 terms.length ? ", first in " : "", pn_text_get(&terms),
                                 training->run ? "; the last checkpoint is kept" : "");
    pn_text_free(&terms);
    return status;
}

/* Every field that has a reference is under the limit, in a row that was evaluated. */
static bool relative_l2_reached(const pinn_training *training, double limit) {
    const double *error = training->row + PN_ROW_TERMS + 1 + training->problem->terms;
    bool any = false;
    for (size_t f = 0; f < training->problem->fields; f++) {
        if (!training->problem->has_reference[f]) continue;
        any = true;
        if (!(error[f] <= limit)) return false;
    }
    return any;
}

/* The rule met by the newest row, or NULL. */
static const char *rule_met(const pinn_training *training) {
    const pn_config *config = training->config;
    if (config->stop.relative_l2 > 0 && relative_l2_reached(training, config->stop.relative_l2)) return "relative_l2";
    if (config->stop.loss > 0 && training->row[PN_ROW_LOSS + 1] <= config->stop.loss) return "loss";
    if (config->stop.gradient_norm > 0 && training->row[PN_ROW_GRADIENT_NORM + 1] <= config->stop.gradient_norm) return "gradient_norm";
    return NULL;
}

static void show_progress(const pinn_training *training, pn_progress *progress, bool force) {
    const pn_problem *problem = training->problem;
    const double *row = training->row;
    bool known = row[0] > 0;
    const pn_progress_state state = {
        .step = training->step,
        .steps = training->last_step,
        .loss = known ? row[PN_ROW_LOSS + 1] : NAN,
        .learning_rate = known ? row[PN_ROW_LEARNING_RATE + 1] : NAN,
        .steps_per_second = (double)(training->step - training->first_step) / fmax(pn_clock() - training->start, 1e-9),
        .field = problem->field_name,
        .relative_l2 = training->relative_l2,
        .fields = training->has_evaluation ? problem->fields : 0};
    pn_progress_update(progress, &state, force);
}

static pinn_status look_at_row(pinn_training *training, const chunk *done, bool *stop) {
    const pn_problem *problem = training->problem;
    if (!isfinite(training->row[PN_ROW_LOSS + 1]) || !isfinite(training->row[PN_ROW_GRADIENT_NORM + 1])) return not_finite(training);
    if (done->evaluation)
        memcpy(training->relative_l2, training->row + PN_ROW_TERMS + 1 + problem->terms, problem->fields * sizeof(double));
    const char *rule = rule_met(training);
    if (rule) {
        training->stop_reason = rule;
        *stop = true;
    }
    return PINN_OK;
}

static pinn_status run_chunk(pinn_training *training, const chunk *next, bool *stop) {
    pinn_status status;
    PN_TRY(pinn_graph_enqueue(training->step_graph, next->steps));
    if (next->evaluation) PN_TRY(pinn_graph_enqueue(training->evaluation_graph, 1));
    if (next->row || next->snapshot) {
        bool snapshot = next->snapshot && training->run && pn_run_snapshot_ready(training->run);
        if (next->row || snapshot) PN_TRY(pn_drain_enqueue(training, snapshot));
    }
    PN_TRY(pinn_context_synchronize(training->context));
    training->step += next->steps;
    training->phase_step += next->steps;
    training->seconds = pn_clock() - training->start;
    if (next->row) PN_TRY(look_at_row(training, next, stop));
fail:
    return status;
}

static pinn_status next_phase(pinn_training *training) {
    const uint64_t none = 0;
    pinn_status status;
    training->phase_step = 0;
    pn_note(training, "[[train]] %zu of %zu begins at step %llu", training->phase + 2, training->config->phase_count,
            (unsigned long long)training->step);
    PN_TRY(pinn_plane_write(training->words, offsetof(pn_words, phase_step), &none, sizeof none));
    PN_TRY(pn_phase_begin(training, training->phase + 1));
fail:
    return status;
}

/* Everything the host looks at between chunks; true through `stop` when the run ends here. */
static pinn_status look_around(pinn_training *training, bool *stop) {
    const pn_config *config = training->config;
    if (*stop) return PINN_OK;
    *stop = true;
    if (training->step >= training->last_step)
        training->stop_reason = training->last_step == training->total_steps ? "steps" : "step";
    else if (config->stop.seconds > 0 && training->seconds_before + training->seconds >= config->stop.seconds)
        training->stop_reason = "seconds";
    else if (atomic_load(&training->interrupted)) {
        training->stop_reason = "signal";
        return pn_fail(PINN_INTERRUPTED, "interrupted at step %llu%s", (unsigned long long)training->step,
                       training->run ? "; a checkpoint was written, --resume goes on from it" : "");
    } else
        *stop = false;
    return PINN_OK;
}

static pinn_status train(pinn_training *training, pn_progress *progress) {
    uint64_t longest = 1;
    bool stop = false;
    pinn_status status = look_around(training, &stop);
    if (status == PINN_OK && stop) pn_note(training, "nothing left to do: the run stands at step %llu", (unsigned long long)training->step);
    while (status == PINN_OK && !stop) {
        while (training->phase_step >= training->config->phase[training->phase].steps &&
               training->phase + 1 < training->config->phase_count)
            PN_TRY(next_phase(training));
        double before = pn_clock();
        chunk next = next_chunk(training, longest);
        PN_TRY(run_chunk(training, &next, &stop));
        double took = pn_clock() - before;
        if (took < LOOK_EVERY / 2 && longest < UINT64_MAX / 2) longest *= 2;
        if (took > LOOK_EVERY && longest > 1) longest /= 2;
        show_progress(training, progress, stop);
        status = look_around(training, &stop);
    }
fail:
    return status;
}

/* The last word of a run: a checkpoint of where it stands and the fields on the evaluation set. */
static pinn_status finish(pinn_training *training) {
    pinn_status status;
    PN_TRY(pn_checkpoint_now(training));
    PN_TRY(pn_finish_solution(training));
    if (training->run) PN_TRY(pn_run_flush(training->run));
fail:
    return status;
}

pinn_status pinn_training_run(pinn_training *training) {
    pn_progress *progress = pn_progress_create(training->progress_stream, training->progress_stream == NULL);
    training->start = pn_clock();
    pinn_status status = train(training, progress);
    show_progress(training, progress, true);
    pn_progress_destroy(progress);
    if (status != PINN_OK && status != PINN_INTERRUPTED) return status;
    pinn_status finished = finish(training);
    return finished != PINN_OK ? finished : status;
}

void pinn_training_interrupt(pinn_training *training) { atomic_store(&training->interrupted, 1); }

pinn_status pinn_training_steps(pinn_training *training, uint64_t count, double *enqueue_seconds, double *seconds) {
    pinn_status status;
    PN_TRY(pinn_context_synchronize(training->context));
    double start = pn_clock();
    PN_TRY(pinn_graph_enqueue(training->step_graph, count));
    double enqueued = pn_clock();
    PN_TRY(pinn_context_synchronize(training->context));
    if (enqueue_seconds) *enqueue_seconds = enqueued - start;
    if (seconds) *seconds = pn_clock() - start;
    training->step += count;
    training->phase_step += count;
fail:
    return status;
}
