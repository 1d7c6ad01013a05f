/* A run's files: rows and snapshots arrive complete and in order, producers wait for a slow disk; a full disk, or a state that is not
 * finite, stops the run with the files readable. */
#include <math.h>
#include <pthread.h>

#include "core/memory.h"
#include "core/text.h"
#include "io/hdf5_file.h"
#include "run_test.h"

START_TEST(a_whole_run) {
    const double x[] = {0, 1}, u[] = {5, 6};
    const char *name = "x", *field = "u";
    pn_run *run = NULL;
    bool taken = false;
    double *column = NULL;
    ck_ok(try_open(PN_RUN_NEW, &run));
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
        ck_assert_msg(strstr(message, "after step 20 is not finite") && strstr(message, "last good checkpoint is kept. Try a smaller learning_rate"), "%s",
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
    Suite *suite = suite_create("run writer");
    TCase *test = tcase_create("run writer");
    tcase_add_checked_fixture(test, make_test_directory, remove_test_directory);
    tcase_set_timeout(test, 120);
    tcase_add_test(test, a_whole_run);
    tcase_add_test(test, producers_wait_for_a_slow_disk);
    tcase_add_test(test, full_disk_stops_the_run);
    tcase_add_test(test, failed_checkpoint_leaves_the_old_one);
    tcase_add_test(test, closing_tells_what_was_not_told);
    tcase_add_test(test, states_that_are_not_finite_are_not_kept);
    tcase_add_test(test, snapshots_must_fit_the_run);
    tcase_add_test(test, allocations_of_the_writer_may_fail);
    suite_add_tcase(suite, test);
    return suite_run(suite);
}
