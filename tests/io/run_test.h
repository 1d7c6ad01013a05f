/* What the tests of the run directory share: runs in runs/heat of the test's directory whose rows and snapshots follow from their
 * steps, so that what is on file can be checked.
 */
#ifndef TESTS_IO_RUN_TEST_H
#define TESTS_IO_RUN_TEST_H

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

#endif
