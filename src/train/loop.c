/* The run: phases made of chunks. A chunk is the steps up to the next event, evaluation, snapshot or phase end, or fewer, so that the
 * host has its turn in time (kernels/begin.h); the device does it in one launch and says itself when a stop rule is met. Then what is
 * due leaves the device, and the host looks around. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "kernels/evaluate.h"
#include "train/training.h"

/* A chunk is cut so that signals, [stop] seconds and progress are looked at about twice a second. */
#define LOOK_EVERY 0.5

/* Loss and learning rate are the last step's, which come home with every chunk: event rows may be far apart. */
static void show_progress(const pinn_training *training, bool force) {
    const pn_problem *problem = training->problem;
    const bool known = training->step > 0;
    const pn_progress_state state = {
        .step = training->step,
        .steps = training->last_step,
        .loss = known ? training->loss : NAN,
        .learning_rate = known ? training->learning_rate : NAN,
        .steps_per_second = pn_progress_rate_get(&training->rate),
        .field = problem->field_name,
        .relative_l2 = training->relative_l2,
        .fields = training->has_evaluation ? problem->fields : 0,
        .evaluated = training->evaluated};
    pn_progress_update(training->progress, &state, force);
}

/* The newest row, once it has come home. */
static void look_at_row(pinn_training *training) {
    const pn_problem *problem = training->problem;
    const double *row = training->row, *error = row + PN_ROW_TERMS + 1 + problem->terms;
    if (row[0] != (double)training->step || !training->has_evaluation || !pn_evaluate_due(&training->settings, training->step)) return;
    for (size_t f = 0; f < problem->fields; f++) training->relative_l2[f] = error[f];
    training->evaluated = training->step;
}

static pinn_status run_chunk(pinn_training *training) {
    const uint64_t end = pn_chunk_end(&training->settings, training->step, training->phase_step);
    const bool last = end == training->last_step;
    pinn_status status;
    PN_TRY(pinn_graph_enqueue(training->chunk_graph, 1));
    if (training->has_evaluation && pn_evaluate_due(&training->settings, end))
        PN_TRY(pinn_graph_enqueue(training->evaluation_graph, 1));
    const bool snapshot =
        pn_due(end, training->settings.checkpoint_every) && !last && training->run && pn_run_snapshot_ready(training->run);
    PN_TRY(pn_drain_enqueue(training, snapshot));
    PN_TRY(pinn_context_synchronize(training->context));
    pn_mirror_words(training, training->landed_words);
    training->seconds = pn_clock() - training->start;
    look_at_row(training);
fail:
    return status;
}

/* What is safe, and how to go on. */
static pinn_status blame_phase(const pinn_training *training, pinn_status status) {
    const bool room = status == PINN_NO_MEMORY || status == PINN_REFUSED;
    const unsigned long long step = (unsigned long long)training->step;
    pn_fail_within(status, "[[train]] %zu of %zu cannot begin", training->phase + 1, training->config->phase_count);
    if (room) pn_fail(status, "%s; pinn-train --plan tells what takes how much", pinn_error_message());
    if (!training->run) return status;
    return pn_fail(status, "%s; the checkpoint of step %llu is safe: --resume goes on from it%s", pinn_error_message(), step,
                   room ? ", and that phase may have other points then" : "");
}

/* The checkpoint comes first: a phase that cannot begin then costs no step. */
static pinn_status next_phase(pinn_training *training) {
    const uint64_t none = 0;
    pinn_status status;
    PN_TRY(pn_checkpoint_now(training));
    training->phase_step = 0;
    training->rate = (pn_progress_rate){0}; /* a step of another phase may cost anything */
    pn_note(training, "[[train]] %zu of %zu begins at step %llu", training->phase + 2, training->config->phase_count,
            (unsigned long long)training->step);
    PN_TRY(pinn_plane_write(training->words, offsetof(pn_words, phase_step), &none, sizeof none));
    status = pn_phase_begin(training, training->phase + 1);
    if (status != PINN_OK) blame_phase(training, status);
fail:
    return status;
}

/* A run is gone on with by the same configuration, which the file alone does not tell when options have changed it. */
static pinn_status report_interrupted(const pinn_training *training) {
    const unsigned long long step = (unsigned long long)training->step;
    if (!training->run) return pn_fail(PINN_INTERRUPTED, "interrupted at step %llu", step);
    if (!training->config_changed) return pn_fail(PINN_INTERRUPTED, "interrupted at step %llu; a checkpoint was written, --resume goes on from it", step);
    return pn_fail(PINN_INTERRUPTED,
                   "interrupted at step %llu; a checkpoint was written, --resume goes on from it: with the same --set and --seed, or from "
                   "%s/config.toml",
                   step, training->directory);
}

/* A run that has nothing to do ends as well as any; what lets it go on is said. */
static void tell_nothing_left(const pinn_training *training) {
    const unsigned long long step = (unsigned long long)training->step;
    const size_t last = training->config->phase_count - 1;
    if (strcmp(training->stop_reason, "steps") == 0)
        pn_note(training, "nothing left to do: the run stands at step %llu; for more steps: --set train.%zu.steps=N, N above %llu", step, last,
                (unsigned long long)training->config->phase[last].steps);
    else
        pn_note(training, "nothing left to do: the run stands at step %llu, where stop.%s ends it; --set stop.%s=... lets it go on", step,
                training->stop_reason, training->stop_reason);
}

const char *pn_end_reached(const pinn_training *training) {
    const double seconds = training->config->stop.seconds;
    if (training->step >= training->last_step) return training->last_step == training->total_steps ? "steps" : "step";
    return seconds > 0 && training->seconds_before + training->seconds >= seconds ? "seconds" : NULL;
}

/* Everything the host looks at between chunks; true through `stop` when the run ends here. */
static pinn_status look_around(pinn_training *training, bool *stop) {
    static const char *const rule[PN_STOPS] = {[PN_STOP_LOSS] = "loss",
                                               [PN_STOP_GRADIENT_NORM] = "gradient_norm",
                                               [PN_STOP_RELATIVE_L2] = "relative_l2",
                                               [PN_STOP_PLATEAU] = "plateau",
                                               [PN_STOP_NAN] = "nan"};
    const char *end = rule[training->stop] ? rule[training->stop] : pn_end_reached(training);
    *stop = true;
    if (end)
        training->stop_reason = end;
    else if (atomic_load(&training->interrupted)) {
        training->stop_reason = "signal";
        return report_interrupted(training);
    } else
        *stop = false;
    return PINN_OK;
}

static pinn_status train(pinn_training *training) {
    uint64_t longest = 1;
    bool stop = false;
    pinn_status status = look_around(training, &stop);
    if (status == PINN_OK && stop) tell_nothing_left(training);
    while (status == PINN_OK && !stop) {
        while (training->phase_step >= training->config->phase[training->phase].steps &&
               training->phase + 1 < training->config->phase_count) {
            PN_TRY(next_phase(training));
            longest = 1; /* its steps may take longer */
        }
        const double before = pn_clock();
        const uint64_t step = training->step;
        PN_TRY(pn_chunk_limit(training, longest, false));
        PN_TRY(run_chunk(training));
        const double took = pn_clock() - before;
        pn_progress_rate_add(&training->rate, (double)(training->step - step), took);
        if (took < LOOK_EVERY / 2 && longest < PN_LONGEST_CHUNK / 2) longest *= 2;
        if (took > LOOK_EVERY && longest > 1) longest /= 2;
        status = look_around(training, &stop);
        if (!stop) show_progress(training, false);
    }
fail:
    return status;
}

/* The last word of a run: a checkpoint of where it stands and the fields on the evaluation set. After a loss that is not finite
 * both are of the last good parameters. */
static pinn_status finish(pinn_training *training) {
    pinn_status status;
    if (training->idle) return pn_finish_solution(training);
    PN_TRY(pn_checkpoint_now(training));
    PN_TRY(pn_finish_solution(training));
    if (training->run) PN_TRY(pn_run_flush(training->run));
fail:
    return status;
}

/* What an earlier run of this process stopped for does not hold for the next one. */
static pinn_status clear_stop(pinn_training *training) {
    const uint64_t none = PN_STOP_NONE;
    if (training->stop == PN_STOP_NONE) return PINN_OK;
    training->stop = PN_STOP_NONE;
    return pinn_plane_write(training->words, offsetof(pn_words, stop), &none, sizeof none);
}

/* A run directory that takes nothing more shows in a host node, whose message speaks of the graph; the directory's own tells what is
 * safe and what to do. */
static pinn_status blame_directory(pinn_training *training, pinn_status status) {
    const pinn_status own = status == PINN_HOST_FAILED && training->run ? pn_run_rows(training->run, NULL, 0) : PINN_OK;
    return own != PINN_OK ? own : status;
}

pinn_status pinn_training_run(pinn_training *training) {
    if (training->check_only) return pn_fail(PINN_BAD_ARGUMENT, "a training made with compile_for or plan_only cannot be run");
    pinn_status status = clear_stop(training);
    if (status != PINN_OK) return status;
    training->progress = pn_progress_create(training->progress_stream, training->progress_stream == NULL);
    training->start = pn_clock();
    training->trains = true;
    status = train(training);
    training->trains = false;
    if (training->stop != PN_STOP_NAN) show_progress(training, true); /* else the error tells all */
    pn_progress_destroy(training->progress);
    training->progress = NULL;
    if (status != PINN_OK && status != PINN_INTERRUPTED) return blame_directory(training, status);
    pinn_status finished = blame_directory(training, finish(training));
    if (finished == PINN_OK && training->stop == PN_STOP_NAN) finished = pn_blame(training);
    return finished != PINN_OK ? finished : status;
}

void pinn_training_interrupt(pinn_training *training) { atomic_store(&training->interrupted, 1); }

pinn_status pinn_training_steps(pinn_training *training, uint64_t count, double *enqueue_seconds, double *seconds) {
    pn_words words;
    pinn_status status;
    if (count > training->longest)
        return pn_fail(PINN_BAD_ARGUMENT, "at most %llu steps in one launch, not %llu", (unsigned long long)training->longest,
                       (unsigned long long)count);
    PN_TRY(clear_stop(training));
    PN_TRY(pn_chunk_limit(training, count, true));
    PN_TRY(pinn_context_synchronize(training->context));
    double start = pn_clock();
    PN_TRY(pinn_graph_enqueue(training->chunk_graph, 1));
    double enqueued = pn_clock();
    PN_TRY(pinn_context_synchronize(training->context));
    if (enqueue_seconds) *enqueue_seconds = enqueued - start;
    if (seconds) *seconds = pn_clock() - start;
    PN_TRY(pinn_plane_read(training->words, 0, &words, sizeof words));
    pn_mirror_words(training, &words);
    if (training->stop == PN_STOP_NAN) status = pn_blame(training);
fail:
    return status;
}
