/* The run directory: who may start in it, what is removed, one run at a time; a claim that is given back leaves everything as it was.
 * What is then written: test_run_writer.c. */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "core/memory.h"
#include "run_test.h"

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

START_TEST(force_removes_all_or_nothing) {
    static const char *const name[] = {"runs/heat/checkpoint.h5", "runs/heat/solution.h5", "runs/heat/checkpoint.h5.tmp"};
    pn_run *run = NULL;
    for (int i = 0; i < 3; i++) {
        make_run(20, 10);
        unlink(in_directory(name[i]));
        ck_assert_int_eq(mkdir(in_directory(name[i]), 0777), 0);
        ck_assert_int_eq(try_open(PN_RUN_FORCE, &run), PINN_CONFIG);
        ck_assert_msg(strstr(pinn_error_message(), name[i]) && strstr(pinn_error_message(), "--out"), "%s", pinn_error_message());
        ck_assert(is_there(in_directory("runs/heat/events.h5")) && is_there(in_directory("runs/heat/config.toml")));
        ck_assert_int_eq(rmdir(in_directory(name[i])), 0);
        ck_ok(try_open(PN_RUN_FORCE, &run));
        ck_ok(pn_run_close(run));
        unlink(in_directory("runs/heat/events.h5"));
        unlink(in_directory("runs/heat/config.toml"));
    }
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
                if (mode == PN_RUN_RESUME && i == 0) { /* goes on from a config that no run wrote, which stays as it is */
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

/* A file of somebody's stays; an edited one of the run's is kept aside; one that is as the run wrote it is replaced, and nothing is said. */
START_TEST(resume_loses_no_config) {
    const char *config = in_directory("runs/heat/config.toml"), *aside = in_directory("runs/heat/config.toml.edited");
    const char *second = in_directory("runs/heat/config.toml.edited.2");
    char written[256], edited[300];
    pn_run *run = NULL;
    pn_run_spec longer = spec();
    make_run(20, 10);
    snprintf(written, sizeof written, "%s", content(config));
    write_text(config, "\x01\x02 title = \"mine\"\n");
    ck_assert_int_eq(try_open(PN_RUN_RESUME, &run), PINN_CONFIG);
    ck_assert_msg(strstr(pinn_error_message(), config) && strstr(pinn_error_message(), "--resume"), "%s", pinn_error_message());
    ck_assert_str_eq(content(config), "\x01\x02 title = \"mine\"\n");
    for (int i = 0; i < 2; i++) {
        snprintf(edited, sizeof edited, "%s# edit %d\n", written, i);
        write_text(config, edited);
        ck_ok(try_open(PN_RUN_RESUME, &run));
        ck_assert_msg(strstr(pn_run_warning(run), i ? second : aside) != NULL, "%s", pn_run_warning(run));
        ck_ok(pn_run_close(run));
        ck_assert_str_eq(content(config), written);
        ck_assert_str_eq(content(i ? second : aside), edited);
    }
    longer.config = "title = \"longer\"\n";
    ck_ok(claim(PN_RUN_RESUME, &run));
    ck_ok(pn_run_start(run, &longer));
    ck_assert_ptr_null(pn_run_warning(run));
    ck_ok(pn_run_close(run));
    ck_assert_ptr_nonnull(strstr(content(config), "longer"));
    ck_assert(!is_there(in_directory("runs/heat/config.toml.edited.3")));
    ck_assert_int_eq(unlink(config), 0);
    ck_ok(try_open(PN_RUN_RESUME, &run)); /* none at all: a new one */
    ck_ok(pn_run_close(run));
    ck_assert_str_eq(content(config), written);
    write_text(config, edited); /* with both files to be told of */
    write_text(in_directory("runs/heat/events.h5"), "damaged");
    ck_ok(try_open(PN_RUN_RESUME, &run));
    ck_assert_msg(strstr(pn_run_warning(run), "begins; ") && strstr(pn_run_warning(run), "edited.3") && strstr(pn_run_warning(run), "events.h5.damaged"),
                  "%s", pn_run_warning(run));
    ck_ok(pn_run_close(run));
}
END_TEST

/* The run's own config.toml as its problem file: it tells the newest run, too, and an edited one is kept. */
START_TEST(a_resumed_config_is_written_anew) {
    const char *config = in_directory("runs/heat/config.toml"), *aside = in_directory("runs/heat/config.toml.edited");
    pn_run_spec longer = spec();
    longer.config = "title = \"longer\"\n";
    make_run(20, 10);
    for (int edits = 0; edits < 2; edits++) {
        char edited[300] = "";
        pn_run *run = NULL;
        if (edits) {
            snprintf(edited, sizeof edited, "%s# mine\n", content(config));
            write_text(config, edited);
        }
        ck_ok(pn_run_claim(in_directory("runs/heat"), PN_RUN_RESUME, &config, 1, &run));
        ck_ok(pn_run_start(run, &longer));
        ck_assert_int_eq(pn_run_warning(run) != NULL, edits);
        ck_ok(pn_run_close(run));
        ck_assert_ptr_nonnull(strstr(content(config), "longer"));
        ck_assert_ptr_null(strstr(content(config), "# mine"));
        ck_assert_int_eq(is_there(aside), edits);
        if (edits) ck_assert_str_eq(content(aside), edited);
    }
}
END_TEST

/* There is room for config.toml and none for the record. */
START_TEST(a_resumption_that_cannot_begin_leaves_the_config) {
    const char *config = in_directory("runs/heat/config.toml");
    char written[256];
    struct rlimit before, limit;
    pn_run *run = NULL;
    pn_run_spec longer = spec();
    longer.config = "title = \"longer\"\n";
    make_run(20, 10);
    snprintf(written, sizeof written, "%s", content(config));
    ck_ok(claim(PN_RUN_RESUME, &run));
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = (struct rlimit){500, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
    pinn_status status = pn_run_start(run, &longer);
    setrlimit(RLIMIT_FSIZE, &before);
    ck_assert_int_eq(status, PINN_IO);
    ck_ok(pn_run_close(run));
    ck_assert_str_eq(content(config), written);
    ck_assert(!is_there(in_directory("runs/heat/config.toml.tmp")));
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
        if (status != PINN_OK) ck_assert_msg(pinn_error_is_full() && strstr(pinn_error_message(), "Make room"), "%s", pinn_error_message());
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

/* A run that was killed between its last checkpoint and its solution, and has nothing left to do. */
START_TEST(only_a_solution_of_another_step_is_written) {
    static const char *const coordinate[] = {"x"}, *const field[] = {"u"};
    static const double x[] = {0, 1}, u[] = {3, 4};
    const char *path = in_directory("runs/heat/solution.h5");
    pn_solution solution = {.coordinates = 1, .fields = 1, .points = 2, .coordinate_name = coordinate, .field_name = field, .coordinate = x, .field = u, .step = 10};
    uint64_t step = 0;
    pn_run *run = NULL;
    struct stat first, second;
    make_run(20, 10);
    for (int i = 0; i < 4; i++) { /* none, the same, an older one, a damaged one */
        solution.step = i < 2 ? 10 : 11;
        if (i == 3) write_text(path, "damaged");
        ck_ok(claim(PN_RUN_RESUME, &run));
        ck_ok(pn_run_complete(run, &solution));
        ck_ok(pn_run_close(run));
        ck_ok(pn_solution_step(path, &step));
        ck_assert_uint_eq(step, solution.step);
        ck_assert_int_eq(stat(path, i == 0 ? &first : &second), 0);
        if (i == 1) ck_assert_uint_eq(first.st_ino, second.st_ino);
        ck_assert_int_eq(rows_on_file(), 20);
        ck_assert_int_eq(step_on_file(), 10);
    }
    ck_ok(try_open(PN_RUN_RESUME, &run));
    ck_assert_int_eq(pn_run_complete(run, &solution), PINN_BAD_ARGUMENT);
    ck_ok(pn_run_close(run));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("run directory");
    TCase *test = tcase_create("run directory");
    tcase_add_checked_fixture(test, make_test_directory, remove_test_directory);
    tcase_set_timeout(test, 120);
    tcase_add_test(test, new_never_overwrites);
    tcase_add_test(test, force_removes_the_run_and_nothing_else);
    tcase_add_test(test, force_removes_all_or_nothing);
    tcase_add_test(test, resume_needs_a_checkpoint_and_goes_on);
    tcase_add_test(test, one_run_at_a_time);
    tcase_add_test(test, claims_leave_everything_as_it_was);
    tcase_add_test(test, claims_come_before_everything);
    tcase_add_test(test, a_lock_without_a_name_is_none);
    tcase_add_test(test, claims_exclude_each_other);
    tcase_add_test(test, sources_of_a_run_are_never_overwritten);
    tcase_add_test(test, force_needs_a_runs_config);
    tcase_add_test(test, resume_loses_no_config);
    tcase_add_test(test, a_resumed_config_is_written_anew);
    tcase_add_test(test, a_resumption_that_cannot_begin_leaves_the_config);
    tcase_add_test(test, a_lock_file_that_is_somebodys_stays);
    tcase_add_test(test, bad_places);
    tcase_add_loop_test(test, limits_at_the_beginning, 0, 3);
    tcase_add_test(test, every_allocation_may_fail);
    tcase_add_test(test, only_a_solution_of_another_step_is_written);
    suite_add_tcase(suite, test);
    return suite_run(suite);
}
