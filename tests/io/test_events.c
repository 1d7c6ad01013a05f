/* events.h5: what is appended is there, for plain readers after the run and SWMR readers during it; resuming keeps the right rows;
 * a full disk or a damaged file costs no good row. */
#include <math.h>
#include <sys/wait.h>

#include "core/memory.h"
#include "io/events.h"
#include "io_test.h"

static const char *const quantities[] = {"step", "seconds", "loss/total", "loss/heat.1", "relative_l2/u"};
enum { COUNT = 5 };

static long file_size(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 ? (long)info.st_size : -1;
}

/* Row k: step 10 (k+1), the rest numbers that tell row and column. */
static void fill_row(double *row, long k) {
    row[0] = 10.0 * (double)(k + 1);
    for (int q = 1; q < COUNT; q++) row[q] = (double)k + q / 8.0;
}

static pinn_status append_rows(pn_events *events, long first, long rows) {
    double *row = malloc((size_t)rows * COUNT * sizeof *row);
    for (long k = 0; k < rows; k++) fill_row(row + k * COUNT, first + k);
    pinn_status status = pn_events_append(events, row, (size_t)rows);
    free(row);
    return status;
}

/* Rows of the shortest dataset, all of them checked; -1 when the file cannot be read. `equal`: all lengths must be the same. */
static long check_file(const char *path, unsigned flags, bool equal) {
    hid_t file = open_plain(path, flags);
    if (file < 0) return -1;
    long shortest = 1L << 60, longest = 0;
    double *column[COUNT] = {0};
    for (int q = 0; q < COUNT; q++) {
        char name[64];
        snprintf(name, sizeof name, "/events/%s", quantities[q]);
        long length = read_column(file, name, &column[q]);
        ck_assert_msg(length >= 0, "cannot read %s", name);
        if (length < shortest) shortest = length;
        if (length > longest) longest = length;
    }
    if (equal) ck_assert_int_eq(shortest, longest);
    long wrong = 0;
    for (long k = 0; k < shortest; k++) {
        double row[COUNT];
        fill_row(row, k);
        for (int q = 0; q < COUNT; q++) wrong += column[q][k] != row[q];
    }
    ck_assert_int_eq(wrong, 0);
    for (int q = 0; q < COUNT; q++) free(column[q]);
    H5Fclose(file);
    return shortest;
}

START_TEST(appended_rows_are_there) {
    pn_events *events = NULL;
    const char *path = in_directory("events.h5");
    ck_ok(pn_events_create(path, quantities, COUNT, &events));
    ck_ok(append_rows(events, 0, 1));
    ck_ok(pn_events_append(events, NULL, 0));
    ck_ok(append_rows(events, 1, 1500)); /* over several chunks */
    ck_ok(append_rows(events, 1501, 7));
    ck_ok(pn_events_close(events));
    ck_assert_int_eq(check_file(path, H5F_ACC_RDONLY, true), 1508);
    ck_assert_int_eq(objects_with_times(path), 0);
    hid_t file = open_plain(path, H5F_ACC_RDONLY), set = H5Dopen2(file, "/events/step", H5P_DEFAULT), type = H5Dget_type(set);
    ck_assert(H5Tequal(type, H5T_STD_I64LE) > 0);
    ck_assert(!is_there(in_directory("events.h5.tmp")));
}
END_TEST

START_TEST(step_is_needed) {
    pn_events *events = NULL;
    ck_assert_int_eq(pn_events_create(in_directory("events.h5"), quantities + 1, 2, &events), PINN_BAD_ARGUMENT);
    ck_assert_ptr_null(events);
}
END_TEST

/* The reader's own process, from before HDF5 was first used. Exit 0: it saw the record grow, at least `enough` rows, never a wrong
 * one. */
static pid_t start_reader(const char *path, long enough) {
    pid_t child = fork();
    if (child) return child;
    long last = 0;
    for (int tries = 0; tries < 20000 && last < enough; tries++) {
        long rows = is_there(path) ? check_file(path, H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, false) : 0;
        if (rows < last) _exit(1);
        last = rows;
        usleep(500);
    }
    _exit(last >= enough ? 0 : 2);
}

START_TEST(swmr_readers_follow) {
    enum { ROWS = 3000 };
    const char *path = in_directory("events.h5");
    pn_events *events = NULL;
    pid_t reader = start_reader(path, ROWS);
    ck_ok(pn_events_create(path, quantities, COUNT, &events));
    for (long k = 0; k < ROWS; k += 3) {
        ck_ok(append_rows(events, k, 3));
        usleep(200);
    }
    int result = 0;
    ck_assert_int_eq(waitpid(reader, &result, 0), reader); /* the writer is still open: only a SWMR reader gets in */
    ck_assert_int_eq(result, 0);
    ck_ok(pn_events_close(events));
}
END_TEST

static void make_file(const char *path, long rows) {
    pn_events *events = NULL;
    ck_ok(pn_events_create(path, quantities, COUNT, &events));
    ck_ok(append_rows(events, 0, rows));
    ck_ok(pn_events_close(events));
}

START_TEST(resume_keeps_rows_up_to_the_step) {
    static const struct {
        int64_t last;
        long kept;
    } cases[] = {{0, 0}, {9, 0}, {10, 1}, {5005, 500}, {15000, 1500}, {99999, 1500}};
    const char *path = in_directory("events.h5");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pn_events *events = NULL;
        char *warning = NULL;
        make_file(path, 1500);
        ck_ok(pn_events_resume(path, quantities, COUNT, cases[i].last, &events, &warning));
        ck_assert_ptr_null(warning);
        ck_ok(append_rows(events, cases[i].kept, 5));
        ck_ok(pn_events_close(events));
        ck_assert_int_eq(check_file(path, H5F_ACC_RDONLY, true), cases[i].kept + 5);
    }
}
END_TEST

START_TEST(resume_fills_new_quantities_with_nan) {
    const char *path = in_directory("events.h5"), *more[COUNT + 1];
    pn_events *events = NULL;
    memcpy(more, quantities, sizeof quantities);
    more[COUNT] = "relative_l2/v";
    make_file(path, 4);
    ck_ok(pn_events_resume(path, more, COUNT + 1, 100, &events, NULL));
    ck_ok(pn_events_close(events));
    ck_assert_int_eq(check_file(path, H5F_ACC_RDONLY, true), 4);
    double *column = NULL;
    hid_t file = open_plain(path, H5F_ACC_RDONLY);
    ck_assert_int_eq(read_column(file, "/events/relative_l2/v", &column), 4);
    for (int k = 0; k < 4; k++) ck_assert(isnan(column[k]));
    free(column);
}
END_TEST

static void check_set_aside(const char *kept) {
    const char *path = in_directory("events.h5");
    pn_events *events = NULL;
    char *warning = NULL;
    ck_ok(pn_events_resume(path, quantities, COUNT, 100, &events, &warning));
    ck_assert_ptr_nonnull(warning);
    ck_assert_msg(strstr(warning, kept) != NULL, "%s", warning);
    ck_ok(append_rows(events, 0, 3));
    ck_ok(pn_events_close(events));
    ck_assert_int_eq(check_file(path, H5F_ACC_RDONLY, true), 3);
    pn_free(warning);
}

START_TEST(damaged_records_are_kept_aside) {
    const char *path = in_directory("events.h5");
    write_text(path, "no HDF5");
    check_set_aside("events.h5.damaged");
    ck_assert(is_there(in_directory("events.h5.damaged")));
    ck_assert_int_eq(truncate(path, 600), 0);
    check_set_aside("events.h5.damaged.2");
    ck_assert(is_there(in_directory("events.h5.damaged.2")));
    /* The header of one dataset overwritten: HDF5's checksum finds it. */
    FILE *file = fopen(path, "r+");
    char *bytes = calloc(1, 1 << 20);
    size_t length = fread(bytes, 1, 1 << 20, file);
    char *header = memmem(bytes + 200, length - 200, "OHDR", 4);
    ck_assert_ptr_nonnull(header);
    for (char *next = header; next; next = memmem(next + 4, length - (size_t)(next + 4 - bytes), "OHDR", 4)) header = next;
    fseek(file, header - bytes + 20, SEEK_SET);
    fputs("garbage", file);
    fclose(file);
    free(bytes);
    check_set_aside("events.h5.damaged.3");
    ck_assert_int_eq(unlink(path), 0);
    check_set_aside("gone");
}
END_TEST

/* Whatever bytes are damaged, resuming ends, soon, with the rows or with the record kept aside. HDF5's SWMR readers by themselves
 * would try damaged metadata a hundred times, with growing waits. */
START_TEST(damage_anywhere_is_no_hang) {
    enum { MOST = 1 << 20 };
    const char *path = in_directory("events.h5");
    char *bytes = malloc(MOST);
    int kept_aside = 0;
    make_file(path, 40);
    FILE *file = fopen(path, "r");
    const size_t length = fread(bytes, 1, MOST, file);
    fclose(file);
    for (size_t i = 0; i < length; i += 61) {
        pn_events *events = NULL;
        char *warning = NULL;
        file = fopen(path, "w");
        fwrite(bytes, 1, i, file);
        for (size_t k = i; k < length && k < i + 8; k++) fputc(bytes[k] ^ 0x55, file);
        if (i + 8 < length) fwrite(bytes + i + 8, 1, length - i - 8, file);
        fclose(file);
        ck_ok(pn_events_resume(path, quantities, COUNT, 100, &events, &warning));
        ck_ok(pn_events_close(events));
        if (warning) {
            kept_aside++;
            ck_assert_int_eq(unlink(in_directory("events.h5.damaged")), 0);
        }
        pn_free(warning);
    }
    ck_assert_int_gt(kept_aside, 10);
    free(bytes);
}
END_TEST

/* Rows that a crash of the machine left as zeros are no rows. */
START_TEST(resume_stops_where_steps_go_back) {
    const char *path = in_directory("events.h5");
    pn_events *events = NULL;
    double lost[COUNT] = {0};
    ck_ok(pn_events_create(path, quantities, COUNT, &events));
    ck_ok(append_rows(events, 0, 6));
    ck_ok(pn_events_append(events, lost, 1));
    ck_ok(pn_events_close(events));
    ck_ok(pn_events_resume(path, quantities, COUNT, 1000, &events, NULL));
    ck_ok(pn_events_close(events));
    ck_assert_int_eq(check_file(path, H5F_ACC_RDONLY, true), 6);
}
END_TEST

/* Limits chosen to fail in different places of a file: new chunks of any dataset, their indices. */
START_TEST(full_disk_costs_no_earlier_row) {
    const rlim_t limit = 30000 + 7001 * (rlim_t)_i;
    const char *path = in_directory("events.h5");
    char message[1024];
    pn_events *events = NULL;
    long written = 0;
    ck_ok(pn_events_create(path, quantities, COUNT, &events));
    limit_file_size(limit);
    pinn_status status = PINN_OK;
    while (written < 100000 && (status = append_rows(events, written, 5)) == PINN_OK) written += 5;
    snprintf(message, sizeof message, "%s", pinn_error_message());
    pinn_status again = append_rows(events, written, 5), closed = pn_events_close(events);
    limit_file_size(0);
    ck_assert_int_eq(status, PINN_IO);
    ck_assert_msg(strstr(message, path) && strstr(message, "File too large"), "%s", message);
    ck_assert_int_eq(again, PINN_IO);
    ck_assert_int_eq(closed, PINN_OK);
    long kept = check_file(path, H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, false);
    ck_assert_int_ge(kept, written);
    ck_assert_int_le(kept, written + 5);
    ck_ok(pn_events_resume(path, quantities, COUNT, 10 * written, &events, NULL));
    ck_ok(append_rows(events, written, 600));
    ck_ok(pn_events_close(events));
    ck_assert_int_eq(check_file(path, H5F_ACC_RDONLY, true), written + 600);
}
END_TEST

START_TEST(full_disk_at_the_start_leaves_the_old_file) {
    const char *path = in_directory("events.h5");
    pn_events *events = NULL;
    make_file(path, 20);
    limit_file_size(1000);
    pinn_status created = pn_events_create(path, quantities, COUNT, &events);
    pinn_status resumed = pn_events_resume(path, quantities, COUNT, 50, &events, NULL);
    limit_file_size(0);
    ck_assert_int_eq(created, PINN_IO);
    ck_assert_int_eq(resumed, PINN_IO);
    ck_assert_ptr_null(events);
    ck_assert_msg(strstr(pinn_error_message(), path) && strstr(pinn_error_message(), "File too large"), "%s", pinn_error_message());
    ck_assert_int_eq(check_file(path, H5F_ACC_RDONLY, true), 20);
    ck_assert(!is_there(in_directory("events.h5.tmp")));
}
END_TEST

/* In the program's own thread, where SIGXFSZ is neither blocked nor ignored. The record is laid out, opened, or neither. */
START_TEST(file_size_limits_are_errors_not_signals) {
    const char *path = in_directory("events.h5");
    struct rlimit before, limit;
    int failures = 0;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    for (rlim_t bytes = 0; bytes < 40000; bytes += 1500) {
        pn_events *events = NULL;
        limit = (struct rlimit){bytes, before.rlim_max};
        setrlimit(RLIMIT_FSIZE, &limit);
        pinn_status status = pn_events_create(path, quantities, COUNT, &events), appended = PINN_OK, closed = PINN_OK;
        if (status == PINN_OK) {
            appended = append_rows(events, 0, 600);
            closed = pn_events_close(events);
        }
        setrlimit(RLIMIT_FSIZE, &before);
        ck_assert_msg(status == PINN_OK || status == PINN_IO, "%s", pinn_error_message());
        ck_assert(closed == PINN_OK || closed == PINN_IO);
        failures += status != PINN_OK || appended != PINN_OK;
        ck_assert(!is_there(in_directory("events.h5.tmp")));
        if (status == PINN_OK) ck_assert_int_ge(check_file(path, H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, false), 0);
    }
    ck_assert_int_gt(failures, 5);
}
END_TEST

START_TEST(every_allocation_may_fail) {
    const char *path = in_directory("events.h5");
    pinn_status status = PINN_NO_MEMORY;
    for (long n = 0; status != PINN_OK; n++) {
        pn_events *events = NULL;
        char *warning = NULL;
        pn_memory_fail_after(-1);
        make_file(path, 700);
        pn_memory_fail_after(n);
        status = pn_events_resume(path, quantities, COUNT, 6000, &events, &warning);
        pn_memory_fail_after(-1);
        ck_assert_ptr_null(warning);
        if (status == PINN_OK) {
            ck_assert_int_gt(n, 10);
            ck_ok(pn_events_close(events));
            ck_assert_int_eq(check_file(path, H5F_ACC_RDONLY, true), 600);
        } else {
            ck_assert_int_eq(status, PINN_NO_MEMORY);
            ck_assert_ptr_null(events);
            /* The old rows, or the new file where only opening it failed. */
            ck_assert_int_ge(check_file(path, H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, true), 600);
        }
    }
}
END_TEST

/* The last row up to a step, with a quantity that the record has not; nothing where there is none. The record stays as it is. */
START_TEST(the_last_row_is_found) {
    static const char *const wanted[] = {"loss/heat.1", "step", "loss/new"};
    const char *path = in_directory("events.h5");
    double row[3] = {1, 2, 3};
    bool found = true;
    ck_assert_int_eq(pn_events_last(path, wanted, 3, 100, row, &found), PINN_IO);
    make_file(path, 700);
    const long size = file_size(path);
    ck_ok(pn_events_last(path, wanted, 3, 9, row, &found));
    ck_assert(!found && row[1] == 2);
    ck_ok(pn_events_last(path, wanted, 3, 6009, row, &found));
    ck_assert(found && row[0] == 599 + 3 / 8.0 && row[1] == 6000 && isnan(row[2]));
    ck_ok(pn_events_last(path, wanted, 3, INT64_MAX, row, &found));
    ck_assert(found && row[1] == 7000);
    ck_assert_int_eq(file_size(path), size);
    ck_assert_int_eq(pn_events_last(path, wanted, 1, 100, row, &found), PINN_BAD_ARGUMENT);
    pinn_status status = PINN_NO_MEMORY;
    for (long n = 0; status != PINN_OK; n++) {
        row[1] = 2;
        pn_memory_fail_after(n);
        status = pn_events_last(path, wanted, 3, 10, row, &found);
        pn_memory_fail_after(-1);
        ck_assert(status == PINN_OK || (status == PINN_NO_MEMORY && row[1] == 2));
    }
    ck_assert(row[1] == 10);
    write_text(path, "damaged");
    ck_assert_int_eq(pn_events_last(path, wanted, 3, 100, row, &found), PINN_IO);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("events");
    TCase *test = tcase_create("events");
    tcase_add_checked_fixture(test, make_test_directory, remove_test_directory);
    tcase_set_timeout(test, 120);
    tcase_add_test(test, appended_rows_are_there);
    tcase_add_test(test, step_is_needed);
    tcase_add_test(test, swmr_readers_follow);
    tcase_add_test(test, resume_keeps_rows_up_to_the_step);
    tcase_add_test(test, resume_fills_new_quantities_with_nan);
    tcase_add_test(test, damaged_records_are_kept_aside);
    tcase_add_test(test, damage_anywhere_is_no_hang);
    tcase_add_test(test, resume_stops_where_steps_go_back);
    tcase_add_loop_test(test, full_disk_costs_no_earlier_row, 0, 12);
    tcase_add_test(test, file_size_limits_are_errors_not_signals);
    tcase_add_test(test, full_disk_at_the_start_leaves_the_old_file);
    tcase_add_test(test, every_allocation_may_fail);
    tcase_add_test(test, the_last_row_is_found);
    suite_add_tcase(suite, test);
    return suite_run(suite);
}
