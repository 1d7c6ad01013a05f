/* The run directory: its lock, what may be started in it, its files (see run_directory.h). flock(2) locks belong to the open file,
 * so the kernel drops them when a process ends in any way. The lock file itself stays where a run has begun.
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
#include "core/text.h"
#include "io/file.h"
#include "io/run.h"

#define LOCK_NAME ".lock"

/* First line of a config.toml that a run wrote: --force removes no other, and --resume replaces none. */
static const char written_by_a_run[] = "# The problem of this run with every default; --force overwrites this file.\n";

enum { MOST_CONFIG_BYTES = 1 << 24 };

static const struct file { /* all that a run makes */
    const char *name;
    size_t path; /* offset of its path in pn_run */
} files[] = {
    {"events.h5", offsetof(pn_run, events_path)},
    {"checkpoint.h5", offsetof(pn_run, checkpoint_path)},
    {"config.toml", offsetof(pn_run, config_path)},
    {"solution.h5", offsetof(pn_run, solution_path)},
};
enum { FILES = sizeof files / sizeof *files };

static char **file_path(pn_run *run, size_t i) { return (char **)((char *)run + files[i].path); }

static bool exists(const char *path) {
    struct stat info;
    return lstat(path, &info) == 0;
}

/* `made`, unless it is set already: the length of the first directory's path that was not there. */
static pinn_status make_directories(const char *path, size_t *made) {
    char *part = pn_duplicate(path, strlen(path));
    if (!part) return PN_NO_MEMORY("a directory's name");
    pinn_status status = PINN_OK;
    for (char *c = part + 1; status == PINN_OK; c++) {
        if (*c && *c != '/') continue;
        char end = *c;
        *c = 0;
        struct stat info;
        const bool new = mkdir(part, 0777) == 0;
        if (new && !*made) *made = (size_t)(c - part);
        if (!new &&errno != EEXIST)
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

/* Whether the open lock file is still the one that has the name: its holder may have removed it meanwhile, and a lock on what has
 * no name keeps nobody out. */
static bool has_name(int lock, const char *path) {
    struct stat open_one, named;
    return fstat(lock, &open_one) == 0 && stat(path, &named) == 0 && open_one.st_dev == named.st_dev &&
           open_one.st_ino == named.st_ino;
}

/* One attempt; `again` when the directory or the lock file was removed by another run's end. */
static pinn_status try_lock(pn_run *run, const char *path, bool *again) {
    char text[64];
    *again = false;
    run->lock = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    run->made_lock = run->lock >= 0;
    if (run->lock < 0 && errno == EEXIST) run->lock = open(path, O_RDWR | O_CLOEXEC);
    if (run->lock < 0) {
        *again = errno == ENOENT;
        return pn_fail(PINN_IO, "%s: cannot open the lock file: %s", path, strerror(errno));
    }
    if (flock(run->lock, LOCK_EX | LOCK_NB) == 0) {
        *again = !has_name(run->lock, path);
        return *again ? pn_fail(PINN_IO, "%s: other runs begin and end here all the time", path) : PINN_OK;
    }
    return errno == EWOULDBLOCK
               ? pn_fail(PINN_IO, "%s: another run is writing here%s; wait for it, or choose another directory with --out",
                         run->path, holder(run->lock, text))
               : pn_fail(PINN_IO, "%s: cannot lock: %s; choose a directory on a file system with locks by --out", path,
                         strerror(errno));
}

/* The process number is only for the message above: a failure to write it does no harm. A file with anything else in it is
 * somebody's. */
static void sign_lock(int lock) {
    char text[64];
    const ssize_t length = pread(lock, text, sizeof text, 0);
    if (length == sizeof text) return;
    for (ssize_t i = 0; i < length; i++)
        if (strchr("0123456789\n", text[i]) == NULL) return;
    sigset_t before;
    pn_file_guard(&before);
    if (ftruncate(lock, 0) == 0) dprintf(lock, "%ld\n", (long)getpid());
    pn_file_unguard(&before);
}

static pinn_status take_lock(pn_run *run) {
    enum { ATTEMPTS = 100 };
    char *path = pn_file_join(run->path, LOCK_NAME);
    if (!path) return PN_NO_MEMORY("a lock's name");
    pinn_status status;
    bool again = false;
    int attempt = 0;
    do {
        status = make_directories(run->path, &run->made);
        if (status == PINN_OK) status = try_lock(run, path, &again);
        if (status == PINN_OK) break;
        /* Not ours: release_lock must not touch it. */
        if (run->lock >= 0) close(run->lock);
        run->lock = -1;
    } while (again && ++attempt < ATTEMPTS);
    if (status == PINN_OK) sign_lock(run->lock);
    pn_free(path);
    return status;
}

/* Takes back what pn_run_claim made; under the lock, so that a run that waits for it finds out (has_name). */
static void remove_claim(pn_run *run) {
    char *path = pn_file_join(run->path, LOCK_NAME);
    if (path && run->made_lock) unlink(path);
    pn_free(path);
    for (char *end = run->path + strlen(run->path); run->made && end; end = strrchr(run->path, '/')) {
        *end = 0;
        if (strlen(run->path) < run->made || rmdir(run->path) != 0) break;
    }
}

static void release_lock(pn_run *run) {
    if (run->lock < 0) return;
    if (!run->began) remove_claim(run);
    close(run->lock);
}

static bool same_file(const char *a, const char *b) {
    struct stat first, second;
    return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

/* The run's own sources must outlive it. */
static pinn_status check_input(pn_run *run, const char *input, const char *path) {
    if (!same_file(input, path)) return PINN_OK;
    if (run->mode == PN_RUN_RESUME && path == run->config_path) {
        run->config_is_input = true;
        return PINN_OK;
    }
    return pn_fail(PINN_CONFIG, "%s: the run would write over this file, which it reads as %s; choose another directory with --out",
                   path, input);
}

static pinn_status check_inputs(pn_run *run, const char *const *input, size_t inputs) {
    char temporary[PN_FILE_NAME];
    pinn_status status = PINN_OK;
    for (size_t k = 0; status == PINN_OK && k < inputs; k++)
        for (size_t i = 0; status == PINN_OK && input[k] && i < FILES; i++) {
            status = check_input(run, input[k], *file_path(run, i));
            if (status == PINN_OK) status = check_input(run, input[k], pn_file_temporary(*file_path(run, i), temporary));
        }
    return status;
}

static bool is_a_runs_config(const char *path) {
    char line[sizeof written_by_a_run] = {0};
    struct stat info;
    /* A pipe would be waited for. */
    FILE *file = stat(path, &info) == 0 && S_ISREG(info.st_mode) ? fopen(path, "re") : NULL;
    const bool a_runs = file && fread(line, 1, sizeof line - 1, file) > 0 && strcmp(line, written_by_a_run) == 0;
    if (file) fclose(file);
    return a_runs;
}

/* FORCE removes a config.toml, RESUME replaces it: somebody's own stays, and goes on as the problem file of a resumed run. */
static pinn_status check_config_is_a_runs(pn_run *run) {
    const bool resume = run->mode == PN_RUN_RESUME;
    if (!exists(run->config_path) || is_a_runs_config(run->config_path)) return PINN_OK;
    run->keeps_config = run->config_is_input;
    if (run->keeps_config) return PINN_OK;
    return pn_fail(PINN_CONFIG, "%s: no run wrote this file, so %s leaves it alone; move it%s", run->config_path,
                   resume ? "--resume" : "--force", resume ? " and resume again" : ", or choose another directory with --out");
}

/* What a run left that ended before its first checkpoint is in the way of a new one. */
static pinn_status nothing_to_resume(pn_run *run) {
    bool left = false;
    for (size_t i = 0; i < FILES; i++) left |= exists(*file_path(run, i));
    return pn_fail(PINN_CONFIG, "%s: nothing to resume: there is no checkpoint.h5; start anew %s", run->path,
                   left ? "with --force" : "without --resume");
}

static pinn_status check_no_directory(const char *path) {
    struct stat info;
    if (lstat(path, &info) != 0 || !S_ISDIR(info.st_mode)) return PINN_OK;
    return pn_fail(PINN_CONFIG, "%s: this is a directory, which --force leaves alone; move it, or choose another directory with --out", path);
}

/* Before the first file goes. */
static pinn_status check_removable(pn_run *run) {
    char temporary[PN_FILE_NAME];
    pinn_status status = PINN_OK;
    for (size_t i = 0; status == PINN_OK && i < FILES; i++) {
        status = check_no_directory(*file_path(run, i));
        if (status == PINN_OK) status = check_no_directory(pn_file_temporary(*file_path(run, i), temporary));
    }
    return status;
}

static pinn_status check_mode(pn_run *run) {
    if (run->mode == PN_RUN_RESUME && !exists(run->checkpoint_path)) return nothing_to_resume(run);
    for (size_t i = 0; run->mode == PN_RUN_NEW && i < FILES; i++)
        if (exists(*file_path(run, i)))
            return pn_fail(PINN_CONFIG,
                           "%s: a run is already there (%s); continue it with --resume, replace it with --force, or choose another "
                           "directory with --out",
                           run->path, files[i].name);
    if (run->mode == PN_RUN_NEW) return PINN_OK;
    pinn_status status = check_config_is_a_runs(run);
    return status == PINN_OK && run->mode == PN_RUN_FORCE ? check_removable(run) : status;
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
    if (run->failure != PINN_OK && !run->told) status = pn_fail(run->failure, "%s", run->failure_message);
    pinn_status closed = pn_events_close(run->events);
    if (status == PINN_OK) status = closed;
    release_lock(run);
    for (size_t i = 0; i < FILES; i++) pn_free(*file_path(run, i));
    pn_free(run->path);
    pn_text_free(&run->warning);
    pn_free(run);
    return status;
}

/* Where the disk is full nothing has been lost, and the message says what to do. */
static pinn_status advise(pinn_status status) {
    if (status == PINN_IO && pinn_error_is_full())
        pn_fail(PINN_IO, "%s. Make room, then give the same command again", pinn_error_message());
    return status;
}

pinn_status pn_run_claim(const char *path, pn_run_mode mode, const char *const *input, size_t inputs, pn_run **out) {
    if (!path || !*path) return pn_fail(PINN_BAD_ARGUMENT, "a run needs a directory");
    pn_run *run = pn_allocate(1, sizeof *run);
    if (!run) return PN_NO_MEMORY("a run directory");
    run->lock = -1;
    run->mode = mode;
    pinn_status status;
    PN_TRY(name_files(run, path));
    if (mode == PN_RUN_RESUME && !exists(run->path)) PN_TRY(check_mode(run)); /* makes no directory only to find nothing in it */
    PN_TRY(take_lock(run));
    PN_TRY(check_inputs(run, input, inputs));
    PN_TRY(check_mode(run));
    *out = run;
    return PINN_OK;
fail:
    advise(status);
    release(run);
    return status;
}

static void config_text(const char *config, pn_text *out) {
    pn_text_string(out, written_by_a_run);
    pn_text_string(out, config);
}

/* Whether config.toml is neither `text` nor what the run that is resumed wrote, whose checkpoint knows it. */
static pinn_status is_edited(const pn_run *run, const pn_text *text, bool *edited) {
    pn_text found = {0}, before = {0};
    char *stored = NULL;
    pinn_status status;
    PN_TRY(pn_text_read_file(&found, run->config_path, MOST_CONFIG_BYTES));
    *edited = strcmp(pn_text_get(&found), pn_text_get(text)) != 0;
    if (!*edited) goto fail;
    PN_TRY(pn_checkpoint_read_config(run->checkpoint_path, &stored, NULL));
    config_text(stored, &before);
    PN_TRY(pn_text_check(&before));
    *edited = strcmp(pn_text_get(&found), pn_text_get(&before)) != 0;
fail:
    pn_free(stored);
    pn_text_free(&before);
    pn_text_free(&found);
    return status;
}

/* The new config.toml, on disk beside the old one: a run that cannot begin for want of room leaves that as it is. */
static pinn_status stage_config(pn_run *run, const char *config, bool *edited) {
    pn_text text = {0};
    pinn_status status;
    config_text(config, &text);
    PN_TRY(pn_text_check(&text));
    if (run->mode == PN_RUN_RESUME && exists(run->config_path)) PN_TRY(is_edited(run, &text, edited));
    PN_TRY(pn_file_stage(run->config_path, text.data, text.length));
fail:
    pn_text_free(&text);
    return status;
}

static pinn_status commit_config(pn_run *run, bool edited) {
    pinn_status status;
    if (edited) {
        pn_text_printf(&run->warning, "%s%s was edited since the run wrote it; it is kept as ", run->warning.length ? "; " : "",
                       run->config_path);
        PN_TRY(pn_file_set_aside(run->config_path, "edited", &run->warning));
    }
    PN_TRY(pn_file_commit(run->config_path));
fail:
    return status;
}

static pinn_status open_events(pn_run *run, const pn_run_spec *spec) {
    char *warning = NULL;
    if (run->mode != PN_RUN_RESUME) return pn_events_create(run->events_path, spec->quantity, spec->quantities, &run->events);
    pinn_status status =
        pn_events_resume(run->events_path, spec->quantity, spec->quantities, spec->resume_step, &run->events, &warning);
    if (warning) pn_text_string(&run->warning, warning);
    pn_free(warning);
    return status == PINN_OK ? pn_text_check(&run->warning) : status;
}

/* A new run that could not begin leaves nothing that would be in the way of the next attempt. */
static void remove_beginning(pn_run *run) {
    char temporary[PN_FILE_NAME];
    pn_events_close(run->events);
    run->events = NULL;
    unlink(pn_file_temporary(run->config_path, temporary));
    for (size_t i = 0; run->mode != PN_RUN_RESUME && i < FILES; i++) unlink(*file_path(run, i));
}

pinn_status pn_run_start(pn_run *run, const pn_run_spec *spec) {
    if (run->began || !spec->config || !spec->quantities)
        return pn_fail(PINN_BAD_ARGUMENT, "%s: a run begins once, with a config and quantities", run->path);
    bool removed = false, edited = false;
    run->quantities = spec->quantities;
    run->snapshot_parameters = spec->snapshot_parameters;
    run->real = spec->real;
    run->has_checkpoint = run->mode == PN_RUN_RESUME;
    run->checkpoint_step = (uint64_t)spec->resume_step;
    pinn_status status;
    /* Before an old run is removed: lack of memory must not cost it. */
    PN_TRY(pn_run_writer_allocate(run));
    PN_TRY(remove_files(run, run->mode == PN_RUN_FORCE));
    removed = true;
    if (!run->keeps_config) PN_TRY(stage_config(run, spec->config, &edited));
    PN_TRY(open_events(run, spec));
    if (!run->keeps_config) PN_TRY(commit_config(run, edited));
    PN_TRY(pn_run_writer_start(run));
    run->began = true;
    return PINN_OK;
fail:
    advise(status);
    if (removed) remove_beginning(run);
    return status;
}

pinn_status pn_run_complete(pn_run *run, const pn_solution *solution) {
    uint64_t step = 0;
    if (run->began) return pn_fail(PINN_BAD_ARGUMENT, "%s: a run that has begun queues its solution", run->path);
    if (pn_solution_step(run->solution_path, &step) == PINN_OK && step == solution->step) return PINN_OK;
    return advise(pn_solution_write(run->solution_path, solution));
}

pinn_status pn_run_close(pn_run *run) { return run ? release(run) : PINN_OK; }

const char *pn_run_warning(const pn_run *run) { return run->warning.length ? run->warning.data : NULL; }
