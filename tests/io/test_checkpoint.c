/* checkpoint.h5: what is written is read back bit for bit; anything missing, misshapen or of another kind is named; a failed write
 * leaves the old checkpoint. */
#include <errno.h>
#include <math.h>

#include "core/memory.h"
#include "io/checkpoint.h"
#include "io/hdf5_file.h"
#include "io/sha256.h"
#include "io_test.h"

typedef struct state { /* a checkpoint with its arrays */
    pn_network network;
    double parameters[TEST_PARAMETERS], moments[2 * TEST_PARAMETERS]; /* as float32 too */
    pn_checkpoint checkpoint;
} state;

static void prepare(state *s, pn_real real) {
    memset(s, 0, sizeof *s);
    s->network = test_network();
    s->checkpoint = (pn_checkpoint){.real = real,
                                    .network = &s->network,
                                    .parameters = s->parameters,
                                    .moments = s->moments,
                                    .config = "title = \"heat\"\n",
                                    .machine = "cpu, tiled",
                                    .executor = "cpu"};
}

static void fill(state *s, pn_real real) {
    prepare(s, real);
    for (size_t i = 0; i < TEST_PARAMETERS; i++) {
        pn_real_set(real, s->parameters, i, 1.0 / (3.0 + (double)i));
        pn_real_set(real, s->moments, i, -1.0 / (7.0 + (double)i));
        pn_real_set(real, s->moments, TEST_PARAMETERS + i, 1e-12 / (1.0 + (double)i));
    }
    s->checkpoint.words = (pn_words){.step = (1ull << 53) + 1,
                                     .phase_step = 3,
                                     .optimizer_step = 4,
                                     .rows = 5,
                                     .loss = 0.1,
                                     .learning_rate = 1e-3,
                                     .gradient_norm = NAN,
                                     .rate = 2e-3,
                                     .clip = 1,
                                     .root_correction = 31.6,
                                     .best_loss = 0.05,
                                     .best_step = 1ull << 52,
                                     .plateau_loss = 0.06,
                                     .plateau_step = 7};
    s->checkpoint.phase = 2;
    s->checkpoint.seed = UINT64_MAX;
    s->checkpoint.seconds = 12.5;
}

static void check_equal(const state *a, const state *b) {
    ck_assert_mem_eq(a->parameters, b->parameters, sizeof a->parameters);
    ck_assert_mem_eq(a->moments, b->moments, sizeof a->moments);
    ck_assert_mem_eq(&a->checkpoint.words, &b->checkpoint.words, sizeof a->checkpoint.words);
    ck_assert_uint_eq(a->checkpoint.phase, b->checkpoint.phase);
    ck_assert_uint_eq(a->checkpoint.seed, b->checkpoint.seed);
    ck_assert_double_eq(a->checkpoint.seconds, b->checkpoint.seconds);
}

START_TEST(round_trip_is_exact) {
    const char *path = in_directory("checkpoint.h5");
    state written, read;
    char *config = NULL, *machine = NULL, *config_only = NULL;
    uint64_t phase = 0;
    fill(&written, (pn_real)_i);
    prepare(&read, (pn_real)_i);
    read.checkpoint.words.rows = 9;
    ck_ok(pn_checkpoint_write(path, &written.checkpoint));
    written.network.fixed[2] = 5; /* the file's fixed numbers count */
    ck_ok(pn_checkpoint_read(path, &read.checkpoint, &config, &machine));
    written.checkpoint.words.rows = 0; /* counted anew by the run that goes on */
    check_equal(&written, &read);
    ck_assert_double_eq(read.network.fixed[1], -1.0 / 3);
    ck_assert_double_eq(read.network.fixed[2], 1e-300);
    ck_assert_str_eq(config, written.checkpoint.config);
    ck_assert_str_eq(machine, "cpu, tiled");
    ck_ok(pn_checkpoint_read_config(path, &config_only, &phase));
    ck_assert_uint_eq(phase, written.checkpoint.phase);
    ck_assert_str_eq(config_only, config);
    pn_free(config);
    pn_free(machine);
    pn_free(config_only);
    read.checkpoint.moments = NULL;
    ck_ok(pn_checkpoint_read(path, &read.checkpoint, NULL, NULL));
    ck_assert(!is_there(in_directory("checkpoint.h5.tmp")));
}
END_TEST

START_TEST(long_configs_and_no_fixed_numbers) {
    enum { LENGTH = 200000 }; /* beyond the 64 KiB an attribute itself may have */
    const char *path = in_directory("checkpoint.h5");
    char *long_text = malloc(LENGTH + 1), *config = NULL;
    state s;
    memset(long_text, '#', LENGTH);
    long_text[LENGTH] = 0;
    fill(&s, PN_FLOAT32);
    s.checkpoint.config = long_text;
    s.network.fixed = NULL;
    s.network.fixed_count = 0;
    ck_ok(pn_checkpoint_write(path, &s.checkpoint));
    ck_ok(pn_checkpoint_read(path, &s.checkpoint, &config, NULL));
    ck_assert_str_eq(config, long_text);
    pn_free(config);
    free(long_text);
}
END_TEST

/* Reading must fail with every text of `expected` in its message and change nothing. */
static void check_refused(const char *path, state *s, const char *first, const char *second) {
    state before = *s;
    char *config = NULL, *machine = NULL;
    ck_assert_int_eq(pn_checkpoint_read(path, &s->checkpoint, &config, &machine), PINN_IO);
    const char *message = pinn_error_message();
    ck_assert_msg(strstr(message, path) && strstr(message, first) && strstr(message, second), "%s", message);
    check_equal(&before, s);
    ck_assert_ptr_null(config);
    ck_assert_ptr_null(machine);
}

START_TEST(other_networks_and_precisions_are_refused) {
    const char *path = in_directory("checkpoint.h5");
    state s;
    fill(&s, PN_FLOAT64);
    ck_ok(pn_checkpoint_write(path, &s.checkpoint));
    pn_parameter *block = s.network.parameter;
    block[0].rows = 3, block[0].columns = 2;
    check_refused(path, &s, "\"parameters/layer0/weight\" has shape [2, 3], expected [3, 2]", "");
    block[0].rows = 6, block[0].columns = 0;
    check_refused(path, &s, "[2, 3]", "expected [6]");
    block[0].rows = 2, block[0].columns = 3;
    block[3].name = (char *)"output/shift";
    check_refused(path, &s, "\"parameters/output/shift\" is missing", "");
    block[3].name = (char *)"output/bias";
    s.network.parameter_blocks = 3;
    check_refused(path, &s, "4 parameter blocks", "has 3");
    s.network.parameter_blocks = 4;
    s.network.fixed_count = 3;
    check_refused(path, &s, "\"network/fixed\"", "[4]");
    s.network.fixed_count = 4;
    s.checkpoint.real = PN_FLOAT32;
    check_refused(path, &s, "float64", "float32");
}
END_TEST

START_TEST(files_that_are_no_checkpoint) {
    const char *path = in_directory("checkpoint.h5");
    state s;
    char *config = NULL;
    fill(&s, PN_FLOAT32);
    check_refused(path, &s, "No such file", "");
    write_text(path, "this is text");
    check_refused(path, &s, "no seal", "Put back a copy of it, or start anew with --force");
    write_text(path, "");
    check_refused(path, &s, "no seal", "Put back a copy of it, or start anew with --force");
    ck_assert_int_eq(pn_checkpoint_read_config(path, &config, NULL), PINN_IO);
    ck_assert_ptr_null(config);
    check_refused(test_directory, &s, "directory", "");
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(file);
    check_refused(path, &s, "no seal", "Put back a copy of it, or start anew with --force");
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkfifo(path, 0666), 0); /* would be waited for */
    check_refused(path, &s, "no regular file", "");
}
END_TEST

static void write_bytes(const char *path, const char *bytes, size_t length) {
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, length, file), length);
    ck_assert_int_eq(fclose(file), 0);
}

/* HDF5 must see none of this: damaged metadata can keep it busy for ever. */
START_TEST(every_damaged_byte_is_found) {
    const char *path = in_directory("checkpoint.h5");
    state s;
    size_t length;
    char *config = NULL;
    fill(&s, PN_FLOAT32);
    ck_ok(pn_checkpoint_write(path, &s.checkpoint));
    char *bytes = read_bytes(path, &length);
    ck_assert_uint_gt(length, 2000);
    for (size_t i = 0; i < length; i += 3) {
        bytes[i] ^= (char)(1 << i % 8);
        write_bytes(path, bytes, length);
        check_refused(path, &s, "is damaged", "");
        ck_assert_int_eq(pn_checkpoint_read_config(path, &config, NULL), PINN_IO);
        bytes[i] ^= (char)(1 << i % 8);
    }
    write_bytes(path, bytes, length + 1);
    check_refused(path, &s, "is damaged", "--force");
    write_bytes(path, bytes, length);
    ck_ok(pn_checkpoint_read(path, &s.checkpoint, NULL, NULL));
    free(bytes);
}
END_TEST

/* After a change from outside: what the file's first line says, done here. */
static void seal(const char *path) {
    size_t length;
    char *bytes = read_bytes(path, &length), hex[PN_SHA256_HEX];
    pn_sha256 hash;
    ck_assert_uint_gt(length, PN_HDF5_SEAL);
    pn_sha256_begin(&hash);
    pn_sha256_add(&hash, bytes + PN_HDF5_SEAL, length - PN_HDF5_SEAL);
    pn_sha256_end(&hash, hex);
    memcpy(strchr(bytes, '\n') + 1, hex, PN_SHA256_HEX - 1);
    write_bytes(path, bytes, length);
    free(bytes);
}

START_TEST(the_first_line_tells_the_checksum) {
    const char *path = in_directory("checkpoint.h5");
    char command[512];
    state s;
    fill(&s, PN_FLOAT64);
    ck_ok(pn_checkpoint_write(path, &s.checkpoint));
    snprintf(command, sizeof command, "[ \"$(tail -c +513 %s | sha256sum | cut -d' ' -f1)\" = \"$(sed -n 2p %s)\" ]", path, path);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

/* Nothing may lie in the global heap, which has no checksum: HDF5 marks it with GCOL, old groups with SNOD, TREE or HEAP. */
START_TEST(all_metadata_has_checksums) {
    static const char *const marks[] = {"GCOL", "SNOD", "TREE", "HEAP"};
    const char *path = in_directory("checkpoint.h5");
    state s;
    size_t length;
    fill(&s, PN_FLOAT64);
    ck_ok(pn_checkpoint_write(path, &s.checkpoint));
    char *bytes = read_bytes(path, &length);
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) ck_assert_ptr_null(memmem(bytes, length, marks[i], 4));
    free(bytes);
    ck_assert_int_eq(objects_with_times(path), 0); /* the seal would tell equal states apart */
}
END_TEST

START_TEST(truncated_files) {
    const char *path = in_directory("checkpoint.h5");
    state s;
    struct stat info;
    fill(&s, PN_FLOAT32);
    ck_ok(pn_checkpoint_write(path, &s.checkpoint));
    ck_assert_int_eq(stat(path, &info), 0);
    for (off_t length = info.st_size - 1; length > 0; length -= 97) {
        ck_assert_int_eq(truncate(path, length), 0);
        check_refused(path, &s, "", "");
    }
}
END_TEST

/* Each object removed or replaced by something else. */
START_TEST(missing_or_strange_objects) {
    static const char *const dataset[] = {
        "parameters/layer0/bias", "network/fixed",  "optimizer/m",       "optimizer/v", "step/step", "step/phase",
        "step/root_correction",   "step/best_loss", "step/plateau_step", "config"};
    static const char *const attribute[] = {"format", "seed", "precision", "machine"};
    const char *path = in_directory("checkpoint.h5");
    state s;
    fill(&s, PN_FLOAT32);
    for (size_t i = 0; i < sizeof dataset / sizeof *dataset; i++) {
        ck_ok(pn_checkpoint_write(path, &s.checkpoint));
        hid_t file = open_plain(path, H5F_ACC_RDWR);
        ck_assert_int_ge(H5Ldelete(file, dataset[i], H5P_DEFAULT), 0);
        H5Fclose(file);
        seal(path);
        check_refused(path, &s, dataset[i], "is missing");
        file = open_plain(path, H5F_ACC_RDWR);
        const hsize_t shape[3] = {1, 1, 1};
        hid_t space = H5Screate_simple(3, shape, NULL);
        hid_t set = H5Dcreate2(file, dataset[i], H5T_STD_I16LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        ck_assert_int_ge(set, 0);
        H5Dclose(set);
        H5Sclose(space);
        H5Fclose(file);
        seal(path);
        check_refused(path, &s, dataset[i], "holds int16, expected");
    }
    for (size_t i = 0; i < sizeof attribute / sizeof *attribute; i++) {
        ck_ok(pn_checkpoint_write(path, &s.checkpoint));
        hid_t file = open_plain(path, H5F_ACC_RDWR);
        ck_assert_int_ge(H5Adelete(file, attribute[i]), 0);
        H5Fclose(file);
        seal(path);
        check_refused(path, &s, attribute[i], "is missing");
    }
    ck_ok(pn_checkpoint_write(path, &s.checkpoint));
    hid_t file = open_plain(path, H5F_ACC_RDWR), format = H5Aopen(file, "format", H5P_DEFAULT);
    const int later = 2;
    ck_assert_int_ge(H5Awrite(format, H5T_NATIVE_INT, &later), 0);
    H5Aclose(format);
    H5Fclose(file);
    seal(path);
    check_refused(path, &s, "format 2", "reads format 1");
}
END_TEST

START_TEST(full_disk_leaves_the_old_checkpoint) {
    const char *path = in_directory("checkpoint.h5");
    char message[1024];
    state old, new, read;
    fill(&old, PN_FLOAT64);
    ck_ok(pn_checkpoint_write(path, &old.checkpoint));
    new = old;
    new.checkpoint.parameters = new.parameters;
    new.checkpoint.moments = new.moments;
    new.checkpoint.network = &new.network;
    new.parameters[0] = 77;
    limit_file_size(2000);
    pinn_status status = pn_checkpoint_write(path, &new.checkpoint);
    snprintf(message, sizeof message, "%s", pinn_error_message());
    limit_file_size(0);
    ck_assert_int_eq(status, PINN_IO);
    ck_assert_msg(strstr(message, path) && strstr(message, "File too large"), "%s", message);
    ck_assert(!is_there(in_directory("checkpoint.h5.tmp")));
    prepare(&read, PN_FLOAT64);
    ck_ok(pn_checkpoint_read(path, &read.checkpoint, NULL, NULL));
    old.checkpoint.words.rows = 0;
    check_equal(&old, &read);
    ck_assert_int_eq(pn_checkpoint_write(in_directory("nowhere/checkpoint.h5"), &new.checkpoint), PINN_IO);
    ck_assert_msg(strstr(pinn_error_message(), "No such file") != NULL, "%s", pinn_error_message());
}
END_TEST

/* In place of the C library's: a disk that reports an error, late, as disks do. The n-th call fails; 0: none. */
static int failing_fsync, fsyncs;

int fsync(int file) {
    (void)file;
    if (++fsyncs != failing_fsync) return 0;
    errno = EIO;
    return -1;
}

START_TEST(failing_flushes_are_errors) {
    const char *path = in_directory("checkpoint.h5");
    state old, read;
    fill(&old, PN_FLOAT64);
    ck_ok(pn_checkpoint_write(path, &old.checkpoint));
    ck_assert_int_eq(fsyncs, 2); /* the file's, the directory's */
    for (failing_fsync = 1; failing_fsync <= 2; failing_fsync++) {
        fsyncs = 0;
        ck_assert_int_eq(pn_checkpoint_write(path, &old.checkpoint), PINN_IO);
        ck_assert_msg(strstr(pinn_error_message(), test_directory) && strstr(pinn_error_message(), strerror(EIO)), "%s",
                      pinn_error_message());
        ck_assert(!is_there(in_directory("checkpoint.h5.tmp")));
        prepare(&read, PN_FLOAT64);
        ck_ok(pn_checkpoint_read(path, &read.checkpoint, NULL, NULL));
    }
}
END_TEST

START_TEST(every_allocation_may_fail) {
    const char *path = in_directory("checkpoint.h5");
    state s, read;
    fill(&s, PN_FLOAT32);
    pinn_status status = PINN_NO_MEMORY;
    long n = 0;
    for (; status != PINN_OK; n++) {
        pn_memory_fail_after(n);
        status = pn_checkpoint_write(path, &s.checkpoint);
        pn_memory_fail_after(-1);
        ck_assert(status == PINN_OK || status == PINN_NO_MEMORY);
        ck_assert(!is_there(in_directory("checkpoint.h5.tmp")));
    }
    ck_assert_int_gt(n, 1);
    status = PINN_NO_MEMORY;
    for (n = 0; status != PINN_OK; n++) {
        char *config = NULL, *machine = NULL;
        prepare(&read, PN_FLOAT32);
        pn_memory_fail_after(n);
        status = pn_checkpoint_read(path, &read.checkpoint, &config, &machine);
        pn_memory_fail_after(-1);
        ck_assert(status == PINN_OK || status == PINN_NO_MEMORY);
        pn_free(config);
        pn_free(machine);
    }
    ck_assert_int_gt(n, 5);
    s.checkpoint.words.rows = 0;
    check_equal(&s, &read);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("checkpoint");
    TCase *test = tcase_create("checkpoint");
    tcase_add_checked_fixture(test, make_test_directory, remove_test_directory);
    tcase_set_timeout(test, 120);
    tcase_add_loop_test(test, round_trip_is_exact, PN_FLOAT32, PN_FLOAT64 + 1);
    tcase_add_test(test, long_configs_and_no_fixed_numbers);
    tcase_add_test(test, other_networks_and_precisions_are_refused);
    tcase_add_test(test, files_that_are_no_checkpoint);
    tcase_add_test(test, every_damaged_byte_is_found);
    tcase_add_test(test, the_first_line_tells_the_checksum);
    tcase_add_test(test, all_metadata_has_checksums);
    tcase_add_test(test, truncated_files);
    tcase_add_test(test, missing_or_strange_objects);
    tcase_add_test(test, full_disk_leaves_the_old_checkpoint);
    tcase_add_test(test, failing_flushes_are_errors);
    tcase_add_test(test, every_allocation_may_fail);
    suite_add_tcase(suite, test);
    return suite_run(suite);
}
