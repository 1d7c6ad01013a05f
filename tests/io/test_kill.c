/* kill -9 at random moments of a process that does nothing but write rows and checkpoints: the record is then a right prefix for a
 * SWMR reader, the checkpoint is whole, the record reaches at least as far as the checkpoint, and resuming goes on from there.
 * Fifty kills, each of a run resumed from the one before. */
#include <sys/wait.h>
#include <time.h>

#include "core/memory.h"
#include "io/run_directory.h"
#include "io_test.h"

static const char *const quantities[] = {"step", "seconds", "loss/total", "loss/heat", "loss/ends", "relative_l2/u"};
enum { COUNT = 6, KILLS = 50 };

static double value(long step, int q) { return (double)step + q / 16.0; }

typedef struct arrays {
    double parameters[TEST_PARAMETERS], moments[2 * TEST_PARAMETERS];
} arrays;

static pn_checkpoint checkpoint_of(const pn_network *network, arrays *a, long step) {
    for (size_t i = 0; i < TEST_PARAMETERS; i++)
        a->parameters[i] = a->moments[i] = a->moments[TEST_PARAMETERS + i] = value(step, 0);
    return (pn_checkpoint){.real = PN_FLOAT64,
                           .network = network,
                           .parameters = a->parameters,
                           .moments = a->moments,
                           .words = {.step = (uint64_t)step},
                           .config = "config",
                           .machine = "machine",
                           .executor = "cpu"};
}

/* The child: rows of one step each, a snapshot every 25 steps; never returns. `ready`: a byte once the run is open. */
static void write_for_ever(const char *path, pn_run_mode mode, long step, int ready) {
    pn_network network = test_network();
    arrays a;
    pn_run *run = NULL;
    bool taken;
    const pn_run_spec spec = {.config = "config",
                              .quantity = quantities,
                              .quantities = COUNT,
                              .resume_step = step,
                              .snapshot_parameters = TEST_PARAMETERS,
                              .real = PN_FLOAT64};
    if (pn_run_claim(path, mode, NULL, 0, &run) != PINN_OK || pn_run_start(run, &spec) != PINN_OK || write(ready, "r", 1) != 1) {
        fprintf(stderr, "%s\n", pinn_error_message());
        _exit(1);
    }
    if (pn_run_warning(run)) _exit(2);
    for (;;) {
        double row[COUNT];
        step++;
        for (int q = 0; q < COUNT; q++) row[q] = value(step, q);
        if (pn_run_rows(run, row, 1) != PINN_OK) _exit(3);
        if (step % 25) continue;
        pn_checkpoint checkpoint = checkpoint_of(&network, &a, step);
        if (pn_run_snapshot(run, &checkpoint, false, &taken) != PINN_OK) _exit(4);
    }
}

/* Last step of the record, whose rows must be 1, 2, 3, ...; exits on any fault. Runs in a process of its own, so that the parent,
 * which forks the writers, never starts HDF5. */
static long check_record(const char *path) {
    double *column[COUNT] = {0};
    long shortest = 1L << 60;
    hid_t file = open_plain(path, H5F_ACC_RDONLY | H5F_ACC_SWMR_READ);
    if (file < 0) _exit(10);
    for (int q = 0; q < COUNT; q++) {
        char name[64];
        snprintf(name, sizeof name, "events/%s", quantities[q]);
        long length = read_column(file, name, &column[q]);
        if (length < 0) _exit(11);
        if (length < shortest) shortest = length;
    }
    for (long k = 0; k < shortest; k++)
        for (int q = 0; q < COUNT; q++)
            if (column[q][k] != value(k + 1, q)) _exit(12);
    for (int q = 0; q < COUNT; q++) free(column[q]);
    H5Fclose(file);
    return shortest;
}

static long check_checkpoint(const char *path) {
    pn_network network = test_network();
    arrays a;
    char *config = NULL, *machine = NULL;
    pn_checkpoint checkpoint = checkpoint_of(&network, &a, -1);
    if (access(path, F_OK) != 0) return 0; /* killed before the first was written */
    if (pn_checkpoint_read(path, &checkpoint, &config, &machine) != PINN_OK) _exit(20);
    const double expected = value((long)checkpoint.words.step, 0);
    for (size_t i = 0; i < TEST_PARAMETERS; i++)
        if (a.parameters[i] != expected || a.moments[i] != expected || a.moments[TEST_PARAMETERS + i] != expected) _exit(21);
    if (strcmp(config, "config") != 0 || strcmp(machine, "machine") != 0) _exit(22);
    pn_free(config);
    pn_free(machine);
    return (long)checkpoint.words.step;
}

/* The checkpoint's step after everything was found right, through a pipe. */
static long check_files(const char *events, const char *checkpoint) {
    int answer[2], result = 0;
    long step = -1;
    ck_assert_int_eq(pipe(answer), 0);
    pid_t child = fork();
    if (!child) {
        long last = check_record(events);
        step = check_checkpoint(checkpoint);
        if (last < step) _exit(30);
        _exit(write(answer[1], &step, sizeof step) == sizeof step ? 0 : 40);
    }
    ck_assert_int_eq(waitpid(child, &result, 0), child);
    ck_assert_msg(WIFEXITED(result) && WEXITSTATUS(result) == 0, "the files are wrong: status %d", result);
    ck_assert_int_eq(read(answer[0], &step, sizeof step), sizeof step);
    close(answer[0]);
    close(answer[1]);
    return step;
}

START_TEST(killed_runs_are_whole) {
    const char *path = in_directory("run"), *events = in_directory("run/events.h5"),
               *checkpoint = in_directory("run/checkpoint.h5");
    unsigned random = 12345, longest = 60000; /* microseconds; more on a machine so slow that nothing gets done */
    long step = 0;
    for (int kills = 0; kills < KILLS; kills++) {
        int ready[2], result;
        char byte;
        ck_assert_int_eq(pipe(ready), 0);
        pid_t child = fork();
        if (!child) write_for_ever(path, step ? PN_RUN_RESUME : PN_RUN_FORCE, step, ready[1]);
        close(ready[1]);
        ck_assert_int_eq(read(ready[0], &byte, 1), 1);
        close(ready[0]);
        random = random * 1664525u + 1013904223u;
        usleep(500 + random % longest);
        ck_assert_int_eq(kill(child, SIGKILL), 0);
        ck_assert_int_eq(waitpid(child, &result, 0), child);
        ck_assert_msg(WIFSIGNALED(result), "the writer ended by itself: status %d", result);
        long now = check_files(events, checkpoint);
        ck_assert_int_ge(now, step);
        if (now == step && longest < 250000) longest *= 2;
        step = now;
    }
    ck_assert_int_gt(step, 100); /* the kills did not all come too early to mean anything */
}
END_TEST

/* Kills while a resumed record is laid out anew: the old one or the new one, nothing between. */
START_TEST(killed_while_resuming) {
    const char *path = in_directory("run"), *events = in_directory("run/events.h5"),
               *checkpoint = in_directory("run/checkpoint.h5");
    unsigned random = 999;
    long step = 0;
    for (int kills = 0; kills < KILLS; kills++) {
        int ready[2], result;
        char byte;
        ck_assert_int_eq(pipe(ready), 0);
        pid_t child = fork();
        if (!child) write_for_ever(path, step ? PN_RUN_RESUME : PN_RUN_FORCE, step, ready[1]);
        close(ready[1]);
        if (!step) { /* until there is something to resume */
            ck_assert_int_eq(read(ready[0], &byte, 1), 1);
            usleep(50000);
        }
        close(ready[0]);
        random = random * 1664525u + 1013904223u;
        usleep(random % 8000);
        ck_assert_int_eq(kill(child, SIGKILL), 0);
        ck_assert_int_eq(waitpid(child, &result, 0), child);
        ck_assert_msg(WIFSIGNALED(result), "the writer ended by itself: status %d", result);
        long now = check_files(events, checkpoint);
        ck_assert_int_ge(now, step);
        step = now;
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("kill");
    TCase *test = tcase_create("kill");
    tcase_add_checked_fixture(test, make_test_directory, remove_test_directory);
    tcase_set_timeout(test, 300);
    tcase_add_test(test, killed_runs_are_whole);
    tcase_add_test(test, killed_while_resuming);
    suite_add_tcase(suite, test);
    return suite_run(suite);
}
