/* What the tests of src/io share: a directory of their own, plain HDF5 reading, a small network, a file size limit as a full disk.
 */
#ifndef TESTS_IO_IO_TEST_H
#define TESTS_IO_IO_TEST_H

#include <check.h>
#include <hdf5.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "network/network.h"
#include "pinn_status.h"
#include "suite.h"

/* HDF5 1.10 itself leaks when it refuses a damaged file. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libhdf5"; }

#define ck_ok(call) ck_assert_msg((call) == PINN_OK, "%s: %s", #call, pinn_error_message())

static char test_directory[64];

__attribute__((unused)) static void make_test_directory(void) {
    strcpy(test_directory, "/tmp/pinn-io-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(test_directory));
}

__attribute__((unused)) static void remove_test_directory(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", test_directory);
    ck_assert_int_eq(system(command), 0);
}

/* "test_directory/name"; results live for a test. */
__attribute__((unused)) static const char *in_directory(const char *name) {
    static char path[4096][256];
    static unsigned next;
    char *out = path[next++ % 4096];
    snprintf(out, sizeof path[0], "%s/%s", test_directory, name);
    return out;
}

__attribute__((unused)) static bool is_there(const char *path) {
    struct stat info;
    return stat(path, &info) == 0;
}

__attribute__((unused)) static void write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fputs(text, file) < 0, 0);
    ck_assert_int_eq(fclose(file), 0);
}

/* The whole file; the caller frees it. */
__attribute__((unused)) static char *read_bytes(const char *path, size_t *length) {
    FILE *file = fopen(path, "r");
    char *bytes = malloc(1 << 20);
    ck_assert_ptr_nonnull(file);
    *length = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    return bytes;
}

/* Writes beyond this size fail with EFBIG, as a full disk fails with ENOSPC; 0 = no limit. No assertion may come before the limit
 * is lifted: Check writes each to a file. */
__attribute__((unused)) static void limit_file_size(rlim_t bytes) {
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0) abort();
    limit.rlim_cur = bytes ? bytes : limit.rlim_max;
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) abort();
}

__attribute__((unused)) static hid_t open_plain(const char *path, unsigned flags) {
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return H5Fopen(path, flags, H5P_DEFAULT);
}

/* A 1-D dataset as float64; -1 when it cannot be read. The caller frees *out. */
__attribute__((unused)) static long read_column(hid_t file, const char *name, double **out) {
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
    if (set < 0) return -1;
    hid_t space = H5Dget_space(set);
    hsize_t length = 0;
    H5Sget_simple_extent_dims(space, &length, NULL);
    *out = calloc(length + 1, sizeof **out);
    hid_t memory = H5Screate_simple(1, &length, NULL);
    bool good = !length || H5Dread(set, H5T_NATIVE_DOUBLE, memory, H5S_ALL, H5P_DEFAULT, *out) >= 0;
    H5Sclose(memory);
    H5Sclose(space);
    H5Dclose(set);
    if (good) return (long)length;
    free(*out);
    return -1;
}

static inline herr_t count_times(hid_t file, const char *name, const H5O_info_t *info, void *count) {
    (void)file, (void)name;
    if (info->atime || info->mtime || info->ctime || info->btime) ++*(int *)count;
    return 0;
}

/* Objects of a file that keep a time. */
__attribute__((unused)) static int objects_with_times(const char *path) {
    int count = 0;
    hid_t file = open_plain(path, H5F_ACC_RDONLY);
    ck_assert_int_ge(H5Ovisit1(file, H5_INDEX_NAME, H5_ITER_NATIVE, count_times, &count), 0);
    H5Fclose(file);
    return count;
}

/* Two coordinates, a hidden layer of 3, one field, four Fourier numbers: 2*3 + 3 + 3*1 + 1 = 13 parameters. */
enum { TEST_PARAMETERS = 13, TEST_FIXED = 4 };

__attribute__((unused)) static pn_network test_network(void) {
    static pn_parameter block[] = {
        {.name = (char *)"layer0/weight", .offset = 0, .rows = 2, .columns = 3},
        {.name = (char *)"layer0/bias", .offset = 6, .rows = 3},
        {.name = (char *)"output/weight", .offset = 9, .rows = 3, .columns = 1},
        {.name = (char *)"output/bias", .offset = 12, .rows = 1},
    };
    static double fixed[TEST_FIXED] = {0.1, -1.0 / 3, 1e-300, 7};
    return (pn_network){.coordinates = 2,
                        .fields = 1,
                        .parameter = block,
                        .parameter_blocks = 4,
                        .parameters = TEST_PARAMETERS,
                        .fixed = fixed,
                        .fixed_count = TEST_FIXED};
}

#endif
