/* The run directory: who may start in it, what is removed, one writer at a time; rows and snapshots arrive complete and in order; a
 * full disk stops the run with the files readable. */
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "core/memory.h"
#include "core/text.h"
#include "io/hdf5_file.h"
#include "io/run.h"
#include "io/run_directory.h"
#include "io_test.h"

static const char *const quantities[] = {"step", "loss/total", "loss/heat"};
enum { COUNT = 3 };

static pn_run_spec spec(void) {
    return (pn_run_spec){.config = "title = \"heat\"\n",
                         .quantity = quantities,
                         .quantities = COUNT,
                         .resume_step = 1000,
                         .snapshot_parameters = TEST_PARAMETERS,
                         .real = PN_FLOAT64};
}

static pinn_status claim(pn_run_mode mode, pn_run **run) { return pn_run_claim(in_directory("runs/heat/"), mode, NULL, 0, run); }

static pinn_status try_open(pn_run_mode mode, pn_run **run) {
    pn_run *claimed = NULL;
    const pn_run_spec begun = spec();
    pinn_status status = claim(mode, &claimed);
    if (status == PINN_OK) status = pn_run_start(claimed, &begun);
    if (status == PINN_OK)
        *run = claimed;
    else
        pn_run_close(claimed);
    return status;
}

static void fill_row(double *row, long step) {
    row[0] = (double)step;
    row[1] = 1.0 / (double)step;
    row[2] = -(double)step;
}

/* Steps first+1 .. first+rows. */
static pinn_status queue_rows(pn_run *run, long first, long rows) {
    double *row = malloc((size_t)rows * COUNT * sizeof *row);
    for (long k = 0; k < rows; k++) fill_row(row + k * COUNT, first + k + 1);
    pinn_status status = pn_run_rows(run, row, (size_t)rows);
    free(row);
    return status;
}

/* Rows of events.h5; -1 when unreadable or one of them is wrong. */
static long rows_on_file(void) {
    hid_t file = open_plain(in_directory("runs/heat/events.h5"), H5F_ACC_RDONLY | H5F_ACC_SWMR_READ);
    if (file < 0) return -1;
    long shortest = 1L << 60;
    double *column[COUNT] = {0};
    for (int q = 0; q < COUNT; q++) {
        char name[64];
        snprintf(name, sizeof name, "events/%s", quantities[q]);
        long length = read_column(file, name, &column[q]);
        if (length < shortest) shortest = length;
    }
    for (long k = 0; k < shortest; k++) {
        double row[COUNT];
        fill_row(row, k + 1);
        for (int q = 0; q < COUNT; q++)
            if (column[q][k] != row[q]) shortest = -1;
    }
    for (int q = 0; q < COUNT; q++) free(column[q]);
    H5Fclose(file);
    return shortest;
}

typedef struct arrays {
    double parameters[TEST_PARAMETERS], moments[2 * TEST_PARAMETERS];
} arrays;

/* A checkpoint that is all of one `step`. */
static pn_checkpoint checkpoint_of(const pn_network *network, arrays *a, long step) {
    for (size_t i = 0; i < TEST_PARAMETERS; i++) a->parameters[i] = a->moments[i] = a->moments[TEST_PARAMETERS + i] = (double)step;
    return (pn_checkpoint){.real = PN_FLOAT64,
                           .network = network,
                           .parameters = a->parameters,
                           .moments = a->moments,
                           .seed = 1,
                           .words = {.step = (uint64_t)step},
                           .config = "title = \"heat\"\n",
                           .machine = "cpu",
                           .executor = "cpu"};
}

static long step_on_file(void) {
    arrays a;
    pn_network network = test_network();
    pn_checkpoint checkpoint = checkpoint_of(&network, &a, -1);
    ck_ok(pn_checkpoint_read(in_directory("runs/heat/checkpoint.h5"), &checkpoint, NULL, NULL));
    for (size_t i = 0; i < TEST_PARAMETERS; i++) {
        ck_assert_double_eq(a.parameters[i], (double)checkpoint.words.step);
        ck_assert_double_eq(a.moments[TEST_PARAMETERS + i], (double)checkpoint.words.step);
    }
    return (long)checkpoint.words.step;
}

static pinn_status snapshot(pn_run *run, long step, bool wait, bool *taken) {
    arrays a;
    static pn_network network;
    network = test_network();
    pn_checkpoint checkpoint = checkpoint_of(&network, &a, step);
    pinn_status status = pn_run_snapshot(run, &checkpoint, wait, taken);
    memset(&a, 0, sizeof a); /* everything was copied */
    return status;
}

static void make_run(long rows, long step) {
    pn_run *run = NULL;
    bool taken = false;
    ck_ok(try_open(PN_RUN_NEW, &run));
    ck_ok(queue_rows(run, 0, rows));
    ck_ok(snapshot(run, step, true, &taken));
    ck_assert(taken);
    ck_ok(pn_run_close(run));
}

START_TEST(a_whole_run) {
    const double x[] = {0, 1}, u[] = {5, 6};
    const char *name = "x", *field = "u";
    pn_run *run = NULL;
    bool taken = false;
    double *column = NULL;
    ck_ok(try_open(PN_RUN_NEW, &run));
    ck_assert_str_eq(pn_run_path(run), in_directory("runs/heat"));
    ck_assert_ptr_null(pn_run_warning(run));
    ck_ok(queue_rows(run, 0, 3));
    ck_ok(queue_rows(run, 3, 5 * PN_RUN_QUEUE_ROWS + 7)); /* more at once than the queue holds */
    ck_ok(pn_run_rows(run, NULL, 0));
    ck_ok(snapshot(run, 17, false, &taken));
    ck_assert(taken);
    ck_ok(pn_run_solution(run, &(pn_solution){.coordinates = 1,
                                              .fields = 1,
                                              .points = 2,
                                              .coordinate_name = &name,
                                              .field_name = &field,
                                              .coordinate = x,
                                              .field = u,
                                              .title = "heat",
                                              .step = 17,
                                              .seed = 3}));
    ck_ok(pn_run_flush(run));
    ck_assert(pn_run_snapshot_ready(run));
    ck_assert_int_eq(step_on_file(), 17);
    ck_ok(pn_run_close(run));
    ck_assert_int_eq(rows_on_file(), 10 + 5 * PN_RUN_QUEUE_ROWS);
    hid_t file = open_plain(in_directory("runs/heat/solution.h5"), H5F_ACC_RDONLY);
    ck_assert_int_eq(read_column(file, "u", &column), 2);
    ck_assert_mem_eq(column, u, sizeof u);
    free(column);
    uint64_t step = 0, seed = 0;
    char *title = NULL;
    const pn_hdf5 solution = {file, "solution.h5", false};
    ck_ok(pn_hdf5_get_attribute(&solution, "step", H5T_NATIVE_UINT64, &step));
    ck_ok(pn_hdf5_get_attribute(&solution, "seed", H5T_NATIVE_UINT64, &seed));
    ck_ok(pn_hdf5_get_text(&solution, "title", &title));
    ck_assert(step == 17 && seed == 3 && strcmp(title, "heat") == 0);
    pn_free(title);
    H5Fclose(file);
    pn_text config = {0};
    ck_ok(pn_text_read_file(&config, in_directory("runs/heat/config.toml"), 1000));
    ck_assert_int_eq(pn_text_get(&config)[0], '#'); /* a comment by which --force knows it */
    ck_assert_str_eq(strchr(pn_text_get(&config), '\n') + 1, "title = \"heat\"\n");
    pn_text_free(&config);
}
END_TEST

START_TEST(new_never_overwrites) {
    static const char *const file[] = {"runs/heat/events.h5", "runs/heat/checkpoint.h5", "runs/heat/config.toml",
                                       "runs/heat/solution.h5"};
    pn_run *run = NULL;
    make_run(2, 1);
    write_text(in_directory(file[3]), "mine"); /* whoever made it: a run would write over it */
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(try_open(PN_RUN_NEW, &run), PINN_CONFIG);
        const char *message = pinn_error_message();
        ck_assert_msg(strstr(message, "--force") && strstr(message, "--resume") && strstr(message, "runs/heat"), "%s", message);
        ck_assert(is_there(in_directory(file[i])));
        ck_assert_int_eq(unlink(in_directory(file[i])), 0);
    }
    ck_ok(try_open(PN_RUN_NEW, &run)); /* a directory without a run is fine */
    ck_ok(pn_run_close(run));
}
END_TEST

START_TEST(force_removes_the_run_and_nothing_else) {
    static const char *const kept[] = {"runs/heat/notes.txt", "runs/heat/events.h5.damaged", "runs/heat/reference.h5"};
    static const char *const removed[] = {"runs/heat/checkpoint.h5", "runs/heat/solution.h5", "runs/heat/checkpoint.h5.tmp",
                                          "runs/heat/events.h5.tmp"};
    pn_run *run = NULL;
    make_run(20, 10);
    for (int i = 0; i < 3; i++) write_text(in_directory(kept[i]), "mine");
    for (int i = 1; i < 4; i++) write_text(in_directory(removed[i]), "old");
    ck_ok(try_open(PN_RUN_FORCE, &run));
    ck_ok(queue_rows(run, 0, 4));
    ck_ok(pn_run_close(run));
    for (int i = 0; i < 3; i++) ck_assert(is_there(in_directory(kept[i])));
    for (int i = 0; i < 4; i++) ck_assert(!is_there(in_directory(removed[i])));
    ck_assert_int_eq(rows_on_file(), 4);
}
END_TEST

START_TEST(resume_needs_a_checkpoint_and_goes_on) {
    pn_run *run = NULL;
    ck_assert_int_eq(try_open(PN_RUN_RESUME, &run), PINN_CONFIG);
    ck_assert_msg(strstr(pinn_error_message(), "nothing to resume") != NULL, "%s", pinn_error_message());
    make_run(1200, 1000);
    ck_ok(try_open(PN_RUN_RESUME, &run)); /* rows up to step 1000 stay */
    ck_assert_ptr_null(pn_run_warning(run));
    ck_ok(queue_rows(run, 1000, 50));
    ck_ok(pn_run_close(run));
    ck_assert_int_eq(rows_on_file(), 1050);
    ck_assert_int_eq(step_on_file(), 1000);
    write_text(in_directory("runs/heat/events.h5"), "damaged");
    ck_ok(try_open(PN_RUN_RESUME, &run));
    ck_assert_msg(strstr(pn_run_warning(run), "events.h5.damaged") != NULL, "%s", pn_run_warning(run));
    ck_ok(pn_run_close(run));
}
END_TEST

START_TEST(one_run_at_a_time) {
    char process[32];
    int ready[2], result;
    char byte;
    pn_run *run = NULL;
    ck_assert_int_eq(pipe(ready), 0);
    pid_t child = fork();
    if (!child) {
        pn_run *other = NULL;
        if (try_open(PN_RUN_NEW, &other) != PINN_OK || write(ready[1], "r", 1) != 1) _exit(1);
        for (;;) pause();
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    static const pn_run_mode modes[] = {PN_RUN_NEW, PN_RUN_FORCE, PN_RUN_RESUME};
    snprintf(process, sizeof process, "(process %ld)", (long)child);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(try_open(modes[i], &run), PINN_IO);
        ck_assert_msg(strstr(pinn_error_message(), "another run") && strstr(pinn_error_message(), process), "%s",
                      pinn_error_message());
    }
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, &result, 0), child);
    ck_ok(try_open(PN_RUN_FORCE, &run)); /* the lock went with its process */
    pn_run *second = NULL;
    ck_assert_int_eq(try_open(PN_RUN_FORCE, &second), PINN_IO); /* within one process as well */
    ck_ok(pn_run_close(run));
    ck_ok(try_open(PN_RUN_FORCE, &run));
    ck_ok(pn_run_close(run));
}
END_TEST

/* ---- a claim ---- */

/* The content of a file, in a buffer of the function. */
static const char *content(const char *path) {
    static char text[256];
    memset(text, 0, sizeof text);
    FILE *file = fopen(path, "r");
    if (!file) return NULL;
    if (fread(text, 1, sizeof text - 1, file) == 0) text[0] = 0;
    fclose(file);
    return text;
}

START_TEST(claims_leave_everything_as_it_was) {
    static const char *const file[] = {"runs/heat/solution.h5", "runs/heat/checkpoint.h5.tmp", "runs/heat/events.h5"};
    pn_run *run = NULL, *other = NULL;
    ck_ok(claim(PN_RUN_NEW, &run));
    ck_assert(is_there(in_directory("runs/heat/.lock")));
    ck_ok(pn_run_close(run));
    ck_assert(!is_there(in_directory("runs"))); /* made by it */
    ck_assert_int_eq(mkdir(in_directory("runs"), 0777), 0);
    ck_ok(claim(PN_RUN_NEW, &run));
    write_text(in_directory("runs/heat/notes"), "mine");
    ck_ok(pn_run_close(run));
    ck_assert(is_there(in_directory("runs/heat/notes")) && !is_there(in_directory("runs/heat/.lock")));
    make_run(20, 10);
    write_text(in_directory(file[0]), "old");
    write_text(in_directory(file[1]), "old");
    const pn_run_mode mode[] = {PN_RUN_FORCE, PN_RUN_RESUME};
    for (int i = 0; i < 2; i++) {
        ck_ok(claim(mode[i], &run));
        ck_assert_int_eq(claim(mode[i], &other), PINN_IO); /* the lock is taken */
        ck_ok(pn_run_close(run));
        for (int k = 0; k < 3; k++) ck_assert(is_there(in_directory(file[k])));
        ck_assert_int_eq(step_on_file(), 10);
        ck_assert_int_eq(rows_on_file(), 20);
    }
}
END_TEST

START_TEST(claims_come_before_everything) {
    pn_run *run = NULL;
    const pn_run_spec begun = spec();
    ck_assert_int_eq(claim(PN_RUN_RESUME, &run), PINN_CONFIG);
    ck_assert(!is_there(in_directory("runs"))); /* nothing to resume: no reason to make it */
    ck_ok(claim(PN_RUN_NEW, &run));
    ck_ok(pn_run_start(run, &begun));
    ck_assert_int_eq(pn_run_start(run, &begun), PINN_BAD_ARGUMENT);
    ck_ok(pn_run_close(run));
    ck_assert_ptr_null(strstr(content(in_directory("runs/heat/.lock")), "-"));
}
END_TEST

/* In place of the C library's: before the next lock is taken, `meanwhile` happens. */
static void (*meanwhile)(void);

int flock(int file, int operation) {
    void (*now)(void) = meanwhile;
    meanwhile = NULL;
    if (now) now();
    return (int)syscall(SYS_flock, file, operation);
}

static int others_lock = -1;

static void the_other_run_ends(void) {
    unlink(in_directory("runs/heat/.lock"));
    rmdir(in_directory("runs/heat"));
    rmdir(in_directory("runs"));
}

static void the_other_run_ends_and_a_third_begins(void) {
    the_other_run_ends();
    mkdir(in_directory("runs"), 0777);
    mkdir(in_directory("runs/heat"), 0777);
    others_lock = open(in_directory("runs/heat/.lock"), O_RDWR | O_CREAT, 0666);
    flock(others_lock, LOCK_EX);
}

/* Another run takes its lock file away between this one's opening and locking it. */
START_TEST(a_lock_without_a_name_is_none) {
    pn_run *run = NULL;
    meanwhile = the_other_run_ends;
    ck_ok(claim(PN_RUN_NEW, &run));
    ck_assert(is_there(in_directory("runs/heat/.lock")));
    ck_ok(pn_run_close(run));
    ck_assert(!is_there(in_directory("runs")));
    meanwhile = the_other_run_ends_and_a_third_begins;
    ck_assert_int_eq(claim(PN_RUN_NEW, &run), PINN_IO);
    ck_assert_msg(strstr(pinn_error_message(), "another run") != NULL, "%s", pinn_error_message());
    close(others_lock);
}
END_TEST

/* Many processes claim and give back one place, which vanishes and comes again meanwhile: never two at once. */
START_TEST(claims_exclude_each_other) {
    enum { PROCESSES = 4, CLAIMS = 40 };
    char witness[256];
    snprintf(witness, sizeof witness, "%s", in_directory("witness"));
    for (int p = 0; p < PROCESSES; p++) {
        if (fork()) continue;
        for (int got = 0; got < CLAIMS;) {
            pn_run *run = NULL;
            if (claim(PN_RUN_NEW, &run) != PINN_OK) {
                usleep(50);
                continue;
            }
            if (mkdir(witness, 0777) != 0) _exit(1); /* another holds the claim as well */
            got++;
            if (rmdir(witness) != 0 || pn_run_close(run) != PINN_OK) _exit(2);
        }
        _exit(0);
    }
    for (int p = 0; p < PROCESSES; p++) {
        int result = 0;
        ck_assert_int_gt(wait(&result), 0);
        ck_assert_int_eq(result, 0);
    }
}
END_TEST

/* In every mode, by every name of it. */
START_TEST(sources_of_a_run_are_never_overwritten) {
    static const char *const name[] = {"config.toml", "solution.h5", "events.h5", "checkpoint.h5.tmp"};
    const char *link_name = in_directory("link"), *directory = in_directory("runs/heat");
    for (size_t i = 0; i < sizeof name / sizeof *name; i++)
        for (int mode = PN_RUN_NEW; mode <= PN_RUN_RESUME; mode++) {
            char path[256];
            pn_run *run = NULL;
            ck_ok(try_open(PN_RUN_FORCE, &run));
            ck_ok(pn_run_close(run));
            write_text(in_directory("runs/heat/checkpoint.h5"), "for RESUME");
            snprintf(path, sizeof path, "%s/%s", directory, name[i]);
            unlink(path);
            write_text(path, "mine");
            for (int other_name = 0; other_name < 2; other_name++) {
                unlink(link_name);
                ck_assert_int_eq(symlink(path, link_name), 0);
                const char *const input[] = {NULL, other_name ? link_name : path};
                pinn_status status = pn_run_claim(directory, (pn_run_mode)mode, input, 2, &run);
                if (mode == PN_RUN_RESUME && i == 0) { /* goes on from its own config, which stays as it is */
                    const pn_run_spec begun = spec();
                    ck_ok(status);
                    ck_ok(pn_run_start(run, &begun));
                    ck_ok(pn_run_close(run));
                } else {
                    ck_assert_int_eq(status, PINN_CONFIG);
                    ck_assert_msg(strstr(pinn_error_message(), "--out") && strstr(pinn_error_message(), path), "%s",
                                  pinn_error_message());
                }
                ck_assert_str_eq(content(path), "mine");
            }
            ck_assert_int_eq(unlink(path), 0);
        }
}
END_TEST

START_TEST(force_needs_a_runs_config) {
    const char *config = in_directory("runs/heat/config.toml");
    pn_run *run = NULL;
    ck_ok(try_open(PN_RUN_NEW, &run));
    ck_ok(pn_run_close(run));
    ck_ok(try_open(PN_RUN_FORCE, &run)); /* what a run wrote goes */
    ck_ok(pn_run_close(run));
    write_text(config, "title = \"mine\"\n");
    ck_assert_int_eq(try_open(PN_RUN_FORCE, &run), PINN_CONFIG);
    ck_assert_msg(strstr(pinn_error_message(), config) && strstr(pinn_error_message(), "--out"), "%s", pinn_error_message());
    ck_assert_str_eq(content(config), "title = \"mine\"\n");
    ck_assert(is_there(in_directory("runs/heat/events.h5")));
    ck_assert_int_eq(unlink(config), 0);
    ck_assert_int_eq(mkfifo(config, 0666), 0); /* would be waited for */
    ck_assert_int_eq(try_open(PN_RUN_FORCE, &run), PINN_CONFIG);
}
END_TEST

START_TEST(a_lock_file_that_is_somebodys_stays) {
    const char *lock = in_directory("runs/heat/.lock");
    pn_run *run = NULL;
    ck_assert_int_eq(mkdir(in_directory("runs"), 0777) | mkdir(in_directory("runs/heat"), 0777), 0);
    write_text(lock, "not a number");
    ck_ok(claim(PN_RUN_NEW, &run));
    ck_ok(pn_run_close(run));
    ck_ok(try_open(PN_RUN_NEW, &run));
    ck_ok(pn_run_close(run));
    ck_assert_str_eq(content(lock), "not a number");
}
END_TEST

START_TEST(bad_places) {
    pn_run *run = NULL;
    write_text(in_directory("runs"), "a file");
    ck_assert_int_eq(try_open(PN_RUN_NEW, &run), PINN_IO);
    ck_assert_msg(strstr(pinn_error_message(), "not a directory") != NULL, "%s", pinn_error_message());
    ck_assert_int_eq(pn_run_claim("/proc/nowhere/run", PN_RUN_NEW, NULL, 0, &run), PINN_IO);
    ck_assert_int_eq(pn_run_claim("", PN_RUN_NEW, NULL, 0, &run), PINN_BAD_ARGUMENT);
    ck_ok(pn_run_close(NULL));
    /* One letter in the working directory. */
    ck_assert_int_eq(chdir(test_directory), 0);
    ck_ok(pn_run_claim("r", PN_RUN_NEW, NULL, 0, &run));
    ck_ok(pn_run_close(run));
    ck_assert(!is_there("r"));
}
END_TEST

/* The first files of a run are written in the program's own thread, which SIGXFSZ would end: at whatever size the limit strikes, it
 * is an error, nothing half-written stays, and the same command works once there is room. */
START_TEST(limits_at_the_beginning) {
    const pn_run_mode mode[] = {PN_RUN_NEW, PN_RUN_FORCE, PN_RUN_RESUME};
    struct rlimit before, limit;
    int failures = 0;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    for (rlim_t bytes = 0; bytes < 6000; bytes += 500) {
        pn_run *run = NULL;
        if (mode[_i] != PN_RUN_NEW) make_run(20, 10);
        limit = (struct rlimit){bytes, before.rlim_max};
        setrlimit(RLIMIT_FSIZE, &limit);
        pinn_status status = try_open(mode[_i], &run), closed = status == PINN_OK ? pn_run_close(run) : PINN_OK;
        setrlimit(RLIMIT_FSIZE, &before);
        ck_assert(status == PINN_OK || status == PINN_IO);
        ck_assert_int_eq(closed, PINN_OK);
        failures += status != PINN_OK;
        ck_assert(!is_there(in_directory("runs/heat/config.toml.tmp")) && !is_there(in_directory("runs/heat/events.h5.tmp")));
        if (status != PINN_OK && mode[_i] == PN_RUN_NEW) ck_assert(!is_there(in_directory("runs")));
        if (status != PINN_OK && mode[_i] == PN_RUN_RESUME) ck_assert_int_eq(rows_on_file(), 20);
        if (status != PINN_OK) {
            ck_ok(try_open(mode[_i], &run));
            ck_ok(pn_run_close(run));
        }
        char command[128];
        snprintf(command, sizeof command, "rm -rf '%s/runs'", test_directory);
        ck_assert_int_eq(system(command), 0);
    }
    ck_assert_int_gt(failures, 2);
}
END_TEST

/* The writer is held up by the HDF5 lock: the queue fills, the producer waits, nothing is lost. */
typedef struct producer {
    pn_run *run;
    pinn_status status;
    bool done;
    pthread_mutex_t mutex;
} producer;

static void *produce(void *argument) {
    producer *p = argument;
    pinn_status status = queue_rows(p->run, 0, 4 * PN_RUN_QUEUE_ROWS);
    pthread_mutex_lock(&p->mutex);
    p->status = status;
    p->done = true;
    pthread_mutex_unlock(&p->mutex);
    return NULL;
}

static bool is_done(producer *p) {
    pthread_mutex_lock(&p->mutex);
    bool done = p->done;
    pthread_mutex_unlock(&p->mutex);
    return done;
}

START_TEST(producers_wait_for_a_slow_disk) {
    producer p = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    pthread_t thread;
    bool taken = true;
    ck_ok(try_open(PN_RUN_NEW, &p.run));
    pn_hdf5_enter();
    ck_assert_int_eq(pthread_create(&thread, NULL, produce, &p), 0);
    usleep(100000);
    ck_assert(!is_done(&p));
    ck_ok(snapshot(p.run, 1, false, &taken));
    ck_assert(taken);
    ck_assert(!pn_run_snapshot_ready(p.run));
    ck_ok(snapshot(p.run, 2, false, &taken));
    ck_assert(!taken); /* skipped: the last one is not written yet */
    pn_hdf5_leave();
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_ok(p.status);
    ck_ok(snapshot(p.run, 3, true, &taken));
    ck_assert(taken);
    ck_ok(pn_run_close(p.run));
    ck_assert_int_eq(rows_on_file(), 4 * PN_RUN_QUEUE_ROWS);
    ck_assert_int_eq(step_on_file(), 3);
}
END_TEST

START_TEST(full_disk_stops_the_run) {
    pn_run *run = NULL;
    char first[2048], path[256];
    long rows = 0;
    make_run(1000, 1000);
    ck_ok(try_open(PN_RUN_RESUME, &run));
    snprintf(path, sizeof path, "%s", in_directory("runs/heat/events.h5"));
    limit_file_size(60000);
    pinn_status status;
    while ((status = queue_rows(run, 1000 + rows, 10)) == PINN_OK && rows < 1000000) rows += 10;
    snprintf(first, sizeof first, "%s", pinn_error_message());
    bool taken = false;
    pinn_status after = snapshot(run, 2000, true, &taken), flushed = pn_run_flush(run), closed = pn_run_close(run);
    bool same = strcmp(first, pinn_error_message()) == 0;
    limit_file_size(0);
    ck_assert_int_eq(status, PINN_IO);
    ck_assert_msg(strstr(first, path) && strstr(first, "File too large"), "%s", first);
    ck_assert_int_eq(after, PINN_IO);
    ck_assert_int_eq(flushed, PINN_IO);
    ck_ok(closed); /* all was told */
    ck_assert(same && !taken);
    ck_assert_msg(strstr(first, "the checkpoint of step 1000") && strstr(first, "--resume"), "%s", first);
    ck_assert_int_ge(rows_on_file(), 1000);
    ck_assert_int_eq(step_on_file(), 1000);
    ck_ok(try_open(PN_RUN_RESUME, &run));
    ck_ok(pn_run_close(run));
    ck_assert_int_eq(rows_on_file(), 1000);
}
END_TEST

/* The disk is full for the checkpoint only. */
START_TEST(failed_checkpoint_leaves_the_old_one) {
    pn_run *run = NULL;
    char message[2048];
    bool taken = false;
    make_run(3, 3);
    ck_ok(try_open(PN_RUN_RESUME, &run));
    ck_assert_int_eq(mkdir(in_directory("runs/heat/checkpoint.h5.tmp"), 0777), 0);
    ck_ok(snapshot(run, 4, true, &taken));
    pinn_status flushed = pn_run_flush(run), rows = queue_rows(run, 3, 1);
    snprintf(message, sizeof message, "%s", pinn_error_message());
    ck_assert_int_eq(flushed, PINN_IO);
    ck_assert_int_eq(rows, PINN_IO);
    ck_assert_msg(strstr(message, "checkpoint.h5") && strstr(message, "directory"), "%s", message);
    ck_ok(pn_run_close(run));
    ck_assert_int_eq(step_on_file(), 3);
}
END_TEST

/* What no call has returned yet, closing does. */
START_TEST(closing_tells_what_was_not_told) {
    pn_run *run = NULL;
    bool taken = false;
    ck_ok(try_open(PN_RUN_NEW, &run));
    ck_assert_int_eq(mkdir(in_directory("runs/heat/checkpoint.h5.tmp"), 0777), 0);
    ck_ok(snapshot(run, 4, true, &taken));
    ck_assert_int_eq(pn_run_close(run), PINN_IO);
    ck_assert_msg(strstr(pinn_error_message(), "No checkpoint") != NULL, "%s", pinn_error_message());
}
END_TEST

/* One number of the state, anywhere in it, that is not finite. */
START_TEST(states_that_are_not_finite_are_not_kept) {
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    pn_run *run = NULL;
    pn_network network = test_network();
    bool taken = false;
    make_run(20, 10);
    for (size_t i = 0; i < 3 * TEST_PARAMETERS; i++) {
        arrays a;
        pn_checkpoint checkpoint = checkpoint_of(&network, &a, 20);
        *(i < TEST_PARAMETERS ? &a.parameters[i] : &a.moments[i - TEST_PARAMETERS]) = bad[i % 3];
        ck_ok(try_open(PN_RUN_RESUME, &run));
        ck_ok(queue_rows(run, 20, 5));
        ck_ok(pn_run_snapshot(run, &checkpoint, true, &taken));
        ck_assert(taken);
        ck_ok(queue_rows(run, 25, 5)); /* the record shows where it went wrong */
        ck_assert_int_eq(pn_run_flush(run), PINN_NUMERIC);
        const char *message = pinn_error_message();
        ck_assert_msg(strstr(message, "after step 20 is not finite") && strstr(message, "last good checkpoint is kept"), "%s",
                      message);
        ck_assert_int_eq(rows_on_file(), 30);
        ck_ok(pn_run_close(run));
        ck_assert_int_eq(step_on_file(), 10);
        pn_run *again = NULL; /* back to 20 rows */
        pn_run_spec begun = spec();
        begun.resume_step = 20;
        ck_ok(claim(PN_RUN_RESUME, &again));
        ck_ok(pn_run_start(again, &begun));
        ck_ok(pn_run_close(again));
    }
}
END_TEST

START_TEST(snapshots_must_fit_the_run) {
    pn_run *run = NULL;
    arrays a;
    bool taken = true;
    pn_network network = test_network();
    pn_checkpoint checkpoint = checkpoint_of(&network, &a, 1);
    ck_ok(try_open(PN_RUN_NEW, &run));
    checkpoint.real = PN_FLOAT32;
    ck_assert_int_eq(pn_run_snapshot(run, &checkpoint, true, &taken), PINN_BAD_ARGUMENT);
    checkpoint.real = PN_FLOAT64;
    network.parameters++;
    ck_assert_int_eq(pn_run_snapshot(run, &checkpoint, true, &taken), PINN_BAD_ARGUMENT);
    ck_assert(taken);
    ck_ok(pn_run_close(run));
}
END_TEST

START_TEST(every_allocation_may_fail) {
    pinn_status status = PINN_NO_MEMORY;
    long n = 0;
    make_run(20, 10);
    for (; status != PINN_OK; n++) {
        pn_run *run = NULL;
        pn_memory_fail_after(n);
        status = try_open(PN_RUN_RESUME, &run);
        pn_memory_fail_after(-1);
        ck_assert(status == PINN_OK || status == PINN_NO_MEMORY);
        if (run) ck_ok(pn_run_close(run));
        ck_assert_int_eq(rows_on_file(), 20);
    }
    ck_assert_int_gt(n, 15);
    ck_assert_int_eq(step_on_file(), 10);
}
END_TEST

/* A whole process under failing allocations: at worst a failure that is told. */
START_TEST(allocations_of_the_writer_may_fail) {
    for (long n = 0; n < 20; n++) {
        pn_run *run = NULL;
        bool taken = false;
        ck_ok(try_open(PN_RUN_FORCE, &run));
        pn_memory_fail_after(n);
        pinn_status status = snapshot(run, n, true, &taken), flushed = pn_run_flush(run);
        pn_memory_fail_after(-1);
        ck_assert(status == PINN_OK || status == PINN_NO_MEMORY);
        ck_assert(flushed == PINN_OK || flushed == PINN_NO_MEMORY);
        ck_ok(pn_run_close(run)); /* it was told */
        if (status == PINN_OK && flushed == PINN_OK) ck_assert_int_eq(step_on_file(), n);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("run directory");
    TCase *test = tcase_create("run directory");
    tcase_add_checked_fixture(test, make_test_directory, remove_test_directory);
    tcase_set_timeout(test, 120);
    tcase_add_test(test, a_whole_run);
    tcase_add_test(test, new_never_overwrites);
    tcase_add_test(test, force_removes_the_run_and_nothing_else);
    tcase_add_test(test, resume_needs_a_checkpoint_and_goes_on);
    tcase_add_test(test, one_run_at_a_time);
    tcase_add_test(test, claims_leave_everything_as_it_was);
    tcase_add_test(test, claims_come_before_everything);
    tcase_add_test(test, a_lock_without_a_name_is_none);
    tcase_add_test(test, claims_exclude_each_other);
    tcase_add_test(test, sources_of_a_run_are_never_overwritten);
    tcase_add_test(test, force_needs_a_runs_config);
    tcase_add_test(test, a_lock_file_that_is_somebodys_stays);
    tcase_add_test(test, bad_places);
    tcase_add_loop_test(test, limits_at_the_beginning, 0, 3);
    tcase_add_test(test, producers_wait_for_a_slow_disk);
    tcase_add_test(test, full_disk_stops_the_run);
    tcase_add_test(test, failed_checkpoint_leaves_the_old_one);
    tcase_add_test(test, closing_tells_what_was_not_told);
    tcase_add_test(test, states_that_are_not_finite_are_not_kept);
    tcase_add_test(test, snapshots_must_fit_the_run);
    tcase_add_test(test, every_allocation_may_fail);
    tcase_add_test(test, allocations_of_the_writer_may_fail);
    suite_add_tcase(suite, test);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
