/* The run directory: its lock, what may be started in it, its files (see run_directory.h). flock(2) locks belong to the open file,
 * so the kernel drops them when a process ends in any way; the lock file itself stays, as removing it would race with the next run.
 */
#include "io/run_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory.h"
#include "io/file.h"
#include "io/run.h"

#define LOCK_NAME ".lock"

static const struct file { /* all that a run makes */
    const char *name;
    size_t path; /* offset of its path in pn_run */
    bool is_run; /* its presence means that a run is there */
} files[] = {
    {"events.h5", offsetof(pn_run, events_path), true},
    {"checkpoint.h5", offsetof(pn_run, checkpoint_path), true},
    {"config.toml", offsetof(pn_run, config_path), true},
    {"solution.h5", offsetof(pn_run, solution_path), false},
};
enum { FILES = sizeof files / sizeof *files };

static char **file_path(pn_run *run, size_t i) { return (char **)((char *)run + files[i].path); }

static bool exists(const char *path) {
    struct stat info;
    return lstat(path, &info) == 0;
}

static pinn_status make_directories(const char *path) {
    char *part = pn_duplicate(path, strlen(path));
    if (!part) return PN_NO_MEMORY("a directory's name");
    pinn_status status = PINN_OK;
    for (char *c = part + 1; status == PINN_OK; c++) {
        if (*c && *c != '/') continue;
        char end = *c;
        *c = 0;
        struct stat info;
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            status = pn_fail(PINN_IO, "%s: cannot make the directory: %s", part, strerror(errno));
        else if (stat(part, &info) != 0 || !S_ISDIR(info.st_mode))
            status = pn_fail(PINN_IO, "%s: is in the way: not a directory", part);
        *c = end;
        if (!end) break;
    }
    pn_free(part);
    return status;
}

/* " (process 1234)" from the lock file, or "". */
static const char *holder(int lock, char text[64]) {
    char digits[32] = {0};
    text[0] = 0;
    if (pread(lock, digits, sizeof digits - 1, 0) > 0 && atol(digits) > 0) snprintf(text, 64, " (process %ld)", atol(digits));
    return text;
}

static pinn_status take_lock(pn_run *run) {
    pinn_status status = PINN_OK;
    char *path = pn_file_join(run->path, LOCK_NAME), text[64];
    if (!path) return PN_NO_MEMORY("a lock's name");
    run->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (run->lock < 0)
        status = pn_fail(PINN_IO, "%s: cannot open the lock file: %s", path, strerror(errno));
    else if (flock(run->lock, LOCK_EX | LOCK_NB) != 0)
        status = errno == EWOULDBLOCK
                     ? pn_fail(PINN_IO, "%s: another run is writing here%s; wait for it, or choose another directory with --out",
                               run->path, holder(run->lock, text))
                     : pn_fail(PINN_IO, "%s: cannot lock: %s; choose a directory on a file system with locks by --out", path,
                               strerror(errno));
    pn_free(path);
    if (status != PINN_OK) {
        /* Not ours: release_lock must not touch what it says. */
        if (run->lock >= 0) close(run->lock);
        run->lock = -1;
        return status;
    }
    /* The process number is only for the message above: a failure to write it does no harm. */
    if (ftruncate(run->lock, 0) == 0) dprintf(run->lock, "%ld\n", (long)getpid());
    return PINN_OK;
}

static void release_lock(pn_run *run) {
    if (run->lock < 0) return;
    if (ftruncate(run->lock, 0) != 0) errno = 0; /* a stale number is never read: the lock is free */
    close(run->lock);
}

static pinn_status check_mode(pn_run *run, pn_run_mode mode) {
    if (mode == PN_RUN_RESUME && !exists(run->checkpoint_path))
        return pn_fail(PINN_CONFIG, "%s: nothing to resume: there is no checkpoint.h5; start anew without --resume", run->path);
    for (size_t i = 0; mode == PN_RUN_NEW && i < FILES; i++)
        if (files[i].is_run && exists(*file_path(run, i)))
            return pn_fail(PINN_CONFIG,
                           "%s: a run is already there (%s); continue it with --resume, replace it with --force, or choose another "
                           "directory with --out",
                           run->path, files[i].name);
    return PINN_OK;
}

static pinn_status remove_file(const char *path) {
    if (unlink(path) == 0 || errno == ENOENT) return PINN_OK;
    return pn_fail(PINN_IO, "%s: cannot remove: %s", path, strerror(errno));
}

/* What a killed run left half-written; with `all`, the whole old run. */
static pinn_status remove_files(pn_run *run, bool all) {
    char temporary[PN_FILE_NAME];
    pinn_status status = PINN_OK;
    for (size_t i = 0; status == PINN_OK && i < FILES; i++) {
        const char *path = *file_path(run, i);
        status = remove_file(pn_file_temporary(path, temporary));
        if (status == PINN_OK && all) status = remove_file(path);
    }
    return status;
}

static pinn_status name_files(pn_run *run, const char *path) {
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') length--;
    run->path = pn_duplicate(path, length);
    if (!run->path) return PN_NO_MEMORY("a run directory");
    for (size_t i = 0; i < FILES; i++) {
        *file_path(run, i) = pn_file_join(run->path, files[i].name);
        if (!*file_path(run, i)) return PN_NO_MEMORY("a run directory");
    }
    return PINN_OK;
}

static pinn_status release(pn_run *run) {
    pinn_status status = PINN_OK;
    pn_run_writer_stop(run);
    if (run->failure != PINN_OK) status = pn_fail(run->failure, "%s", run->failure_message);
    pinn_status closed = pn_events_close(run->events);
    if (status == PINN_OK) status = closed;
    release_lock(run);
    for (size_t i = 0; i < FILES; i++) pn_free(*file_path(run, i));
    pn_free(run->path);
    pn_free(run->warning);
    pn_free(run);
    return status;
}

static pinn_status open_events(pn_run *run, const pn_run_spec *spec) {
    if (spec->mode != PN_RUN_RESUME) return pn_events_create(run->events_path, spec->quantity, spec->quantities, &run->events);
    return pn_events_resume(run->events_path, spec->quantity, spec->quantities, spec->resume_step, &run->events, &run->warning);
}

pinn_status pn_run_open(const pn_run_spec *spec, pn_run **out) {
    if (!spec->path || !*spec->path || !spec->config || !spec->quantities)
        return pn_fail(PINN_BAD_ARGUMENT, "a run needs a directory, a config and quantities");
    pn_run *run = pn_allocate(1, sizeof *run);
    if (!run) return PN_NO_MEMORY("a run directory");
    run->lock = -1;
    run->quantities = spec->quantities;
    run->snapshot_parameters = spec->snapshot_parameters;
    run->real = spec->real;
    pinn_status status;
    PN_TRY(name_files(run, spec->path));
    /* Before an old run is removed: lack of memory must not cost it. */
    PN_TRY(pn_run_writer_allocate(run));
    PN_TRY(make_directories(run->path));
    PN_TRY(take_lock(run));
    PN_TRY(check_mode(run, spec->mode));
    PN_TRY(remove_files(run, spec->mode == PN_RUN_FORCE));
    PN_TRY(pn_file_write(run->config_path, spec->config, strlen(spec->config)));
    PN_TRY(open_events(run, spec));
    PN_TRY(pn_run_writer_start(run));
    *out = run;
    return PINN_OK;
fail:
    release(run); /* nothing was queued: it cannot fail with anything worth more than `status`'s message */
    return status;
}

pinn_status pn_run_close(pn_run *run) { return run ? release(run) : PINN_OK; }

const char *pn_run_path(const pn_run *run) { return run->path; }

const char *pn_run_warning(const pn_run *run) { return run->warning; }
