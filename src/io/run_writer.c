/* The writer thread of a run: one ring of event rows, one snapshot slot, one solution, all guarded by one mutex; writing itself
 * happens outside it. Producers touch only free places of the ring, the writer only filled ones, so rows are written from where
 * they lie.
 *
 * Order: a snapshot waits for the rows queued before it; a solution for all rows and the snapshot. After the first failure
 * everything queued is dropped, so that nobody waits for a disk that is full; a last checkpoint is not tried either: it would be of
 * another moment than the record, and what has failed once on this disk fails again, sooner or later.
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "io/file.h"
#include "io/run.h"

/* ---- copies ---- */

static char **copy_names(const char *const *name, size_t count) {
    char **copy = pn_allocate(count, sizeof *copy);
    for (size_t i = 0; copy && i < count; i++) {
        copy[i] = pn_duplicate(name[i], strlen(name[i]));
        if (copy[i]) continue;
        while (i) pn_free(copy[--i]);
        pn_free(copy);
        copy = NULL;
    }
    return copy;
}

static void free_names(const char *const *name, size_t count) {
    for (size_t i = 0; name && i < count; i++) pn_free((void *)(uintptr_t)name[i]);
    pn_free((void *)(uintptr_t)name);
}

static void *copy_array(const void *array, size_t count, size_t size) {
    void *copy = pn_allocate(count, size);
    if (copy && count) memcpy(copy, array, count * size);
    return copy;
}

static char *copy_text(const char *text) { return pn_duplicate(text ? text : "", text ? strlen(text) : 0); }

static void free_solution(pn_solution *s) {
    if (!s) return;
    free_names(s->coordinate_name, s->coordinates);
    free_names(s->field_name, s->fields);
    pn_free((void *)(uintptr_t)s->grid);
    pn_free((void *)(uintptr_t)s->coordinate);
    pn_free((void *)(uintptr_t)s->field);
    pn_free((void *)(uintptr_t)s->reference);
    pn_free((void *)(uintptr_t)s->title);
    pn_free(s);
}

static pn_solution *copy_solution(const pn_solution *s) {
    pn_solution *copy = pn_allocate(1, sizeof *copy);
    if (!copy) return NULL;
    const size_t numbers = s->fields * s->points;
    copy->coordinates = s->coordinates;
    copy->fields = s->fields;
    copy->points = s->points;
    copy->coordinate_name = (const char *const *)copy_names(s->coordinate_name, s->coordinates);
    copy->field_name = (const char *const *)copy_names(s->field_name, s->fields);
    copy->coordinate = copy_array(s->coordinate, s->coordinates * s->points, sizeof(double));
    copy->field = copy_array(s->field, numbers, sizeof(double));
    copy->grid = s->grid ? copy_array(s->grid, s->coordinates, sizeof(size_t)) : NULL;
    copy->title = copy_text(s->title);
    copy->step = s->step;
    copy->seed = s->seed;
    copy->reference = s->reference ? copy_array(s->reference, numbers, sizeof(double)) : NULL;
    if (copy->coordinate_name && copy->field_name && copy->coordinate && copy->field && copy->title && (copy->grid || !s->grid) &&
        (copy->reference || !s->reference))
        return copy;
    free_solution(copy);
    return NULL;
}

static void free_texts(pn_checkpoint *snapshot) {
    pn_free((void *)(uintptr_t)snapshot->config);
    pn_free((void *)(uintptr_t)snapshot->machine);
    pn_free((void *)(uintptr_t)snapshot->executor);
    snapshot->config = snapshot->machine = snapshot->executor = NULL;
}

/* Into the slot, which is this caller's while the state is FILLING. */
static pinn_status fill_snapshot(pn_run *run, const pn_checkpoint *from) {
    const size_t bytes = run->snapshot_parameters * pn_real_bytes(run->real);
    pn_checkpoint *to = &run->snapshot;
    *to = *from;
    to->parameters = run->slot;
    to->moments = (char *)run->slot + bytes;
    memcpy(to->parameters, from->parameters, bytes);
    memcpy(to->moments, from->moments, 2 * bytes);
    to->config = copy_text(from->config);
    to->machine = copy_text(from->machine);
    to->executor = copy_text(from->executor);
    if (to->config && to->machine && to->executor) return PINN_OK;
    free_texts(to);
    return PN_NO_MEMORY("a snapshot");
}

/* ---- the thread; every function below is called with the mutex held, and holds it again on return ---- */

static void keep_failure(pn_run *run, pinn_status status) {
    if (status == PINN_OK || run->failure != PINN_OK) return;
    run->failure = status;
    const char *room_first = pinn_error_is_full() ? "make room, then " : "";
    int length = snprintf(run->failure_message, sizeof run->failure_message, "%.3000s", pinn_error_message());
    char *rest = run->failure_message + length;
    const size_t room = sizeof run->failure_message - (size_t)length;
    if (run->has_checkpoint)
        snprintf(rest, room, ". Safe on disk: the checkpoint of step %llu and the record up to it; %s--resume goes on from there",
                 (unsigned long long)run->checkpoint_step, room_first);
    else
        snprintf(rest, room, ". No checkpoint had been written yet: %sbegin again with --force", room_first);
}

static pinn_status report_failure(pn_run *run) {
    if (run->failure == PINN_OK) return PINN_OK;
    run->told = true;
    return pn_fail(run->failure, "%s", run->failure_message);
}

static pinn_status report_not_finite(const pn_run *run) {
    if (!run->not_finite) return PINN_OK;
    return pn_fail(PINN_NUMERIC, "%s: the state after step %llu is not finite; %s. Try a smaller learning_rate, or clip_norm in [[train]]", run->path,
                   (unsigned long long)run->not_finite_step,
                   run->has_checkpoint ? "the last good checkpoint is kept" : "no checkpoint was written");
}

static void free_snapshot(pn_run *run) {
    free_texts(&run->snapshot);
    run->snapshot_state = PN_SNAPSHOT_FREE;
}

static void write_rows(pn_run *run) {
    const size_t first = run->written % PN_RUN_QUEUE_ROWS;
    size_t rows = run->queued - run->written;
    if (rows > PN_RUN_QUEUE_ROWS - first) rows = PN_RUN_QUEUE_ROWS - first;
    pthread_mutex_unlock(&run->mutex);
    pinn_status status = pn_events_append(run->events, run->queue + first * run->quantities, rows);
    pthread_mutex_lock(&run->mutex);
    keep_failure(run, status);
    run->written += rows;
}

/* Parameters and moments lie in one piece. */
static bool is_finite(const pn_run *run) {
    for (size_t i = 0; i < 3 * run->snapshot_parameters; i++)
        if (!isfinite(pn_real_get(run->real, run->slot, i))) return false;
    return true;
}

static void write_snapshot(pn_run *run) {
    const uint64_t step = run->snapshot.words.step;
    run->snapshot_state = PN_SNAPSHOT_WRITING;
    pthread_mutex_unlock(&run->mutex);
    const bool finite = is_finite(run);
    pinn_status status = pn_file_sync(run->events_path);
    if (status == PINN_OK && finite) status = pn_checkpoint_write(run->checkpoint_path, &run->snapshot);
    pthread_mutex_lock(&run->mutex);
    keep_failure(run, status);
    if (status == PINN_OK && finite) {
        run->has_checkpoint = true;
        run->checkpoint_step = step;
    } else if (!finite && !run->not_finite) {
        run->not_finite = true;
        run->not_finite_step = step;
    }
    free_snapshot(run);
}

static void write_solution(pn_run *run) {
    const pn_solution *solution = run->solution;
    pthread_mutex_unlock(&run->mutex);
    pinn_status status = pn_solution_write(run->solution_path, solution);
    pthread_mutex_lock(&run->mutex);
    keep_failure(run, status);
    free_solution(run->solution);
    run->solution = NULL;
}

static void drop_everything(pn_run *run) {
    run->written = run->queued;
    if (run->snapshot_state == PN_SNAPSHOT_QUEUED) free_snapshot(run);
    free_solution(run->solution);
    run->solution = NULL;
}

static bool has_work(const pn_run *run) {
    return run->queued != run->written || run->snapshot_state == PN_SNAPSHOT_QUEUED || run->solution;
}

static bool is_idle(const pn_run *run) { return !has_work(run) && run->snapshot_state == PN_SNAPSHOT_FREE; }

static void *write_queued(void *argument) {
    pn_run *run = argument;
    pthread_mutex_lock(&run->mutex);
    for (;;) {
        while (!has_work(run) && !run->stop) pthread_cond_wait(&run->work, &run->mutex);
        if (!has_work(run)) break;
        if (run->failure != PINN_OK)
            drop_everything(run);
        else if (run->snapshot_state == PN_SNAPSHOT_QUEUED && run->written >= run->snapshot_after)
            write_snapshot(run);
        else if (run->queued != run->written)
            write_rows(run);
        else
            write_solution(run);
        pthread_cond_broadcast(&run->done);
    }
    pthread_mutex_unlock(&run->mutex);
    return NULL;
}

pinn_status pn_run_writer_allocate(pn_run *run) {
    run->queue = pn_allocate(PN_RUN_QUEUE_ROWS * run->quantities, sizeof *run->queue);
    run->slot = pn_allocate(run->snapshot_parameters, 3 * pn_real_bytes(run->real));
    return run->queue && run->slot ? PINN_OK : PN_NO_MEMORY("the writer's queue");
}

pinn_status pn_run_writer_start(pn_run *run) {
    sigset_t all, before;
    pthread_mutex_init(&run->mutex, NULL);
    pthread_cond_init(&run->work, NULL);
    pthread_cond_init(&run->done, NULL);
    /* Signals are the main thread's; and a write beyond a file size limit becomes an error here instead of SIGXFSZ. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&run->thread, NULL, write_queued, run);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0) {
        run->started = true;
        return PINN_OK;
    }
    pthread_cond_destroy(&run->done);
    pthread_cond_destroy(&run->work);
    pthread_mutex_destroy(&run->mutex);
    return pn_fail(PINN_NO_MEMORY, "cannot start the writer thread: %s", strerror(error));
}

void pn_run_writer_stop(pn_run *run) {
    if (run->started) {
        pthread_mutex_lock(&run->mutex);
        run->stop = true;
        pthread_cond_broadcast(&run->work);
        pthread_mutex_unlock(&run->mutex);
        pthread_join(run->thread, NULL);
        pthread_cond_destroy(&run->done);
        pthread_cond_destroy(&run->work);
        pthread_mutex_destroy(&run->mutex);
        run->started = false;
    }
    pn_free(run->queue);
    pn_free(run->slot);
}

/* ---- the producers' side ---- */

pinn_status pn_run_rows(pn_run *run, const double *row, size_t rows) {
    pthread_mutex_lock(&run->mutex);
    while (rows && run->failure == PINN_OK) {
        const size_t first = run->queued % PN_RUN_QUEUE_ROWS;
        size_t room = PN_RUN_QUEUE_ROWS - (run->queued - run->written);
        if (room > PN_RUN_QUEUE_ROWS - first) room = PN_RUN_QUEUE_ROWS - first;
        if (!room) {
            pthread_cond_wait(&run->done, &run->mutex);
            continue;
        }
        const size_t taken = rows < room ? rows : room;
        memcpy(run->queue + first * run->quantities, row, taken * run->quantities * sizeof *row);
        run->queued += taken;
        row += taken * run->quantities;
        rows -= taken;
        pthread_cond_signal(&run->work);
    }
    pinn_status status = report_failure(run);
    pthread_mutex_unlock(&run->mutex);
    return status;
}

bool pn_run_snapshot_ready(pn_run *run) {
    pthread_mutex_lock(&run->mutex);
    bool ready = run->snapshot_state == PN_SNAPSHOT_FREE;
    pthread_mutex_unlock(&run->mutex);
    return ready;
}

pinn_status pn_run_snapshot(pn_run *run, const pn_checkpoint *checkpoint, bool wait, bool *taken) {
    if (!checkpoint->network || checkpoint->network->parameters != run->snapshot_parameters || checkpoint->real != run->real)
        return pn_fail(PINN_BAD_ARGUMENT, "%s: the snapshot's network or precision is not the run's", run->path);
    pthread_mutex_lock(&run->mutex);
    while (wait && run->snapshot_state != PN_SNAPSHOT_FREE && run->failure == PINN_OK) pthread_cond_wait(&run->done, &run->mutex);
    pinn_status status = report_failure(run);
    const bool mine = status == PINN_OK && run->snapshot_state == PN_SNAPSHOT_FREE;
    if (mine) {
        run->snapshot_state = PN_SNAPSHOT_FILLING;
        run->snapshot_after = run->queued;
        pthread_mutex_unlock(&run->mutex);
        status = fill_snapshot(run, checkpoint);
        pthread_mutex_lock(&run->mutex);
        run->snapshot_state = status == PINN_OK ? PN_SNAPSHOT_QUEUED : PN_SNAPSHOT_FREE;
        pthread_cond_signal(&run->work);
        pthread_cond_broadcast(&run->done);
    }
    pthread_mutex_unlock(&run->mutex);
    if (status == PINN_OK && taken) *taken = mine;
    return status;
}

pinn_status pn_run_solution(pn_run *run, const pn_solution *solution) {
    pn_solution *copy = copy_solution(solution);
    if (!copy) return PN_NO_MEMORY("a solution");
    pthread_mutex_lock(&run->mutex);
    while (run->solution && run->failure == PINN_OK) pthread_cond_wait(&run->done, &run->mutex);
    pinn_status status = report_failure(run);
    if (status == PINN_OK) {
        run->solution = copy;
        copy = NULL;
        pthread_cond_signal(&run->work);
    }
    pthread_mutex_unlock(&run->mutex);
    free_solution(copy);
    return status;
}

pinn_status pn_run_flush(pn_run *run) {
    pthread_mutex_lock(&run->mutex);
    while (!is_idle(run)) pthread_cond_wait(&run->done, &run->mutex);
    pinn_status status = report_failure(run);
    const pinn_status finite = status == PINN_OK ? report_not_finite(run) : status;
    pthread_mutex_unlock(&run->mutex);
    if (status == PINN_OK) status = pn_file_sync(run->events_path);
    return status == PINN_OK ? finite : status;
}
