/* solution.h5 and reference files: grids and columns come back as they were written; every fault of a reference is named. */
#include <math.h>

#include "core/memory.h"
#include "io/hdf5_file.h"
#include "io/solution.h"
#include "io_test.h"

static const char *const coordinates[] = {"x", "t"}, *const fields[] = {"u", "v"};
static const double lower[] = {0, 0}, upper[] = {1, 2};

enum { NX = 3, NT = 5, POINTS = NX * NT };

/* u = x + 10 t on the grid x = i/2, t = j/2, t fastest. v has no reference. */
static void fill_grid(double *coordinate, double *field, double *reference) {
    for (int p = 0; p < POINTS; p++) {
        coordinate[p] = p / NT / 2.0;
        coordinate[POINTS + p] = p % NT / 2.0;
        field[p] = coordinate[p] + 10 * coordinate[POINTS + p];
        field[POINTS + p] = -field[p];
        reference[p] = field[p] - 0.25;
        reference[POINTS + p] = NAN;
    }
}

/* Of two fields without reference, title and step; `grid` may be NULL. All is borrowed. */
static pn_solution solution_of(const size_t *grid, const double *coordinate, const double *field) {
    return (pn_solution){.coordinates = 2,
                         .fields = 2,
                         .points = POINTS,
                         .coordinate_name = coordinates,
                         .field_name = fields,
                         .grid = grid,
                         .coordinate = coordinate,
                         .field = field};
}

static pinn_status read_reference(const char *path, pn_reference *out) {
    return pn_reference_read(path, coordinates, lower, upper, 2, fields, 2, out);
}

START_TEST(solutions_are_references) {
    const char *path = in_directory("solution.h5");
    const size_t grid[] = {NX, NT};
    double coordinate[2 * POINTS], field[2 * POINTS], reference[2 * POINTS], *column = NULL;
    fill_grid(coordinate, field, reference);
    pn_solution s = solution_of(_i ? grid : NULL, coordinate, field);
    s.reference = reference;
    s.title = _i ? "heat" : NULL;
    s.step = 1ull << 60;
    s.seed = 7;
    ck_ok(pn_solution_write(path, &s));
    pn_reference r = {0};
    ck_ok(read_reference(path, &r));
    ck_assert_uint_eq(r.points, POINTS);
    ck_assert_int_eq(r.grid != NULL, _i);
    if (_i) ck_assert_mem_eq(r.grid, grid, sizeof grid);
    ck_assert_mem_eq(r.coordinate, coordinate, sizeof coordinate);
    ck_assert_mem_eq(r.field, field, sizeof field);
    ck_assert(r.has[0] && r.has[1] && isnan(r.error));
    pn_reference_free(&r);
    /* Only u has a reference, and an error with it. */
    hid_t file = open_plain(path, H5F_ACC_RDONLY), group = H5Gopen2(file, "error", H5P_DEFAULT);
    ck_assert(H5Lexists(group, "u", H5P_DEFAULT) > 0 && H5Lexists(group, "v", H5P_DEFAULT) == 0);
    if (!_i) {
        ck_assert_int_eq(read_column(file, "error/u", &column), POINTS);
        for (int p = 0; p < POINTS; p++) ck_assert_double_eq(column[p], 0.25);
        free(column);
    }
    H5Gclose(group);
    H5Fclose(file);
}
END_TEST

/* "The same bits" can be seen with cmp: no time of writing, and no gap that holds what was in memory before. */
START_TEST(equal_solutions_are_equal_files) {
    const char *path[] = {in_directory("one.h5"), in_directory("other.h5")};
    const size_t grid[] = {NX, NT};
    double coordinate[2 * POINTS], field[2 * POINTS], reference[2 * POINTS];
    char *bytes[2];
    size_t length[2];
    fill_grid(coordinate, field, reference);
    pn_solution s = solution_of(grid, coordinate, field);
    s.reference = reference;
    for (int i = 0; i < 2; i++) {
        char *stain = malloc(2 << 20);
        memset(stain, i ? 0xaa : 0x55, 2 << 20);
        free(stain);
        ck_ok(pn_solution_write(path[i], &s));
        ck_assert_int_eq(objects_with_times(path[i]), 0);
        bytes[i] = read_bytes(path[i], &length[i]);
    }
    ck_assert_uint_eq(length[0], length[1]);
    ck_assert_mem_eq(bytes[0], bytes[1], length[0]);
    free(bytes[0]);
    free(bytes[1]);
}
END_TEST

START_TEST(solutions_say_what_they_are) {
    enum { LONG = 100000 };
    const char *path = in_directory("solution.h5");
    const size_t grid[] = {NX, NT};
    double coordinate[2 * POINTS], field[2 * POINTS], reference[2 * POINTS];
    char *title = malloc(LONG + 1), *text = NULL, names[2][2];
    fill_grid(coordinate, field, reference);
    for (int i = 0; i < LONG; i++) title[i] = "\xc3\xa4"[i % 2]; /* umlauts: the cut must not halve one */
    title[LONG] = 0;
    pn_solution s = solution_of(grid, coordinate, field);
    s.title = title;
    s.step = 123;
    s.seed = UINT64_MAX;
    ck_ok(pn_solution_write(path, &s));
    pn_hdf5 file;
    uint64_t number = 0;
    pn_hdf5_enter();
    ck_ok(pn_hdf5_open(path, H5F_ACC_RDONLY, &file));
    ck_ok(pn_hdf5_get_attribute(&file, "step", H5T_NATIVE_UINT64, &number));
    ck_assert_uint_eq(number, 123);
    ck_ok(pn_hdf5_get_attribute(&file, "seed", H5T_NATIVE_UINT64, &number));
    ck_assert_uint_eq(number, UINT64_MAX);
    ck_ok(pn_hdf5_get_text(&file, "title", &text));
    ck_assert_uint_eq(strlen(text) % 2, 0);
    ck_assert(strlen(text) > 50000 && strncmp(text, title, strlen(text)) == 0);
    pn_free(text);
    ck_ok(pn_hdf5_get_text(&file, "layout", &text));
    ck_assert_str_eq(text, "grid");
    pn_free(text);
    hid_t attribute = H5Aopen(file.id, "coordinates", H5P_DEFAULT), type = H5Aget_type(attribute);
    ck_assert_uint_eq(H5Tget_size(type), 2);
    ck_assert_int_ge(H5Aread(attribute, type, names), 0);
    ck_assert_str_eq(names[0], "x");
    ck_assert_str_eq(names[1], "t");
    H5Tclose(type);
    H5Aclose(attribute);
    pn_hdf5_close(file.id);
    pn_hdf5_leave();
    free(title);
}
END_TEST

START_TEST(wrong_solutions_are_refused) {
    const size_t grid[] = {NX, NT + 1};
    double coordinate[2 * POINTS], field[2 * POINTS], reference[2 * POINTS];
    fill_grid(coordinate, field, reference);
    pn_solution s = solution_of(grid, coordinate, field);
    ck_assert_int_eq(pn_solution_write(in_directory("solution.h5"), &s), PINN_BAD_ARGUMENT);
    s.grid = NULL;
    s.points = 0;
    ck_assert_int_eq(pn_solution_write(in_directory("solution.h5"), &s), PINN_BAD_ARGUMENT);
    ck_assert(!is_there(in_directory("solution.h5")));
}
END_TEST

/* ---- reference files made by other programs ---- */

static void put(hid_t file, const char *name, hid_t type, int rank, hsize_t n0, hsize_t n1, const double *value) {
    const hsize_t shape[2] = {n0, n1};
    hid_t space = rank ? H5Screate_simple(rank, shape, NULL) : H5Screate(H5S_SCALAR);
    hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    ck_assert_int_ge(set, 0);
    if (value) ck_assert_int_ge(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, value), 0);
    H5Dclose(set);
    H5Sclose(space);
}

static void put_error(hid_t file, hid_t type, hsize_t count, const double *value) {
    hid_t space = H5Screate_simple(1, &count, NULL), attribute = H5Acreate2(file, "error", type, space, H5P_DEFAULT, H5P_DEFAULT);
    if (value) ck_assert_int_ge(H5Awrite(attribute, H5T_NATIVE_DOUBLE, value), 0);
    H5Aclose(attribute);
    H5Sclose(space);
}

static hid_t new_file(void) { return H5Fcreate(in_directory("reference.h5"), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT); }

static const double x_axis[] = {0, 0.5, 1}, t_axis[] = {0, 1, 2, 2, 2};
static double values[POINTS + 5]; /* of u, zeros */

/* A right file but for `skip`, which the caller adds in his own way. */
static hid_t begin(const char *skip) {
    hid_t file = new_file();
    if (strcmp(skip, "x") != 0) put(file, "x", H5T_IEEE_F64LE, 1, NX, 0, x_axis);
    if (strcmp(skip, "t") != 0) put(file, "t", H5T_IEEE_F64LE, 1, NT, 0, t_axis);
    if (strcmp(skip, "u") != 0) put(file, "u", H5T_IEEE_F64LE, 2, NX, NT, values);
    return file;
}

START_TEST(number_types_are_converted) {
    const double x[] = {0, 0.1, 1}, t[] = {0, 1, 1, 2, 2}, error = 1e-3;
    hid_t file = new_file();
    for (int p = 0; p < POINTS; p++) values[p] = p;
    put(file, "x", H5T_IEEE_F32BE, 1, NX, 0, x);
    put(file, "t", H5T_STD_I8LE, 1, NT, 0, t);
    put(file, "v", H5T_STD_U16BE, 2, NX, NT, values);
    put_error(file, H5T_IEEE_F32LE, 1, &error);
    H5Fclose(file);
    pn_reference r = {0};
    ck_ok(read_reference(in_directory("reference.h5"), &r));
    ck_assert(!r.has[0] && r.has[1]);
    ck_assert_double_eq(r.error, (double)1e-3f);
    ck_assert_double_eq(r.coordinate[5], (double)0.1f);
    ck_assert_double_eq(r.coordinate[POINTS + 3], 2);
    for (int p = 0; p < POINTS; p++) ck_assert(isnan(r.field[p]) && r.field[POINTS + p] == p);
    pn_reference_free(&r);
    memset(values, 0, sizeof values);
}
END_TEST

START_TEST(one_coordinate_reads_as_a_grid) {
    hid_t file = new_file();
    put(file, "x", H5T_IEEE_F64LE, 1, NX, 0, x_axis);
    put(file, "u", H5T_IEEE_F64LE, 1, NX, 0, x_axis);
    H5Fclose(file);
    pn_reference r = {0};
    ck_ok(pn_reference_read(in_directory("reference.h5"), coordinates, lower, upper, 1, fields, 1, &r));
    ck_assert_uint_eq(r.points, NX);
    ck_assert_ptr_nonnull(r.grid);
    ck_assert_mem_eq(r.field, x_axis, sizeof x_axis);
    pn_reference_free(&r);
}
END_TEST

/* Bounds written as float32: 0.7f > 0.7. */
START_TEST(rounded_bounds_count_as_the_bound) {
    const double x[] = {(double)-0.7f, 0, (double)0.7f}, low = -0.7, high = 0.7;
    hid_t file = new_file();
    put(file, "x", H5T_IEEE_F32LE, 1, NX, 0, x);
    put(file, "u", H5T_IEEE_F64LE, 1, NX, 0, x);
    H5Fclose(file);
    pn_reference r = {0};
    ck_ok(pn_reference_read(in_directory("reference.h5"), coordinates, &low, &high, 1, fields, 1, &r));
    ck_assert(r.coordinate[0] >= low && r.coordinate[2] <= high);
    pn_reference_free(&r);
}
END_TEST

static void check_refused(hid_t file, pinn_status expected, const char *first, const char *second) {
    const char *path = in_directory("reference.h5");
    pn_reference r = {.points = 42};
    if (file > 0) H5Fclose(file);
    ck_assert_int_eq(read_reference(path, &r), expected);
    const char *message = pinn_error_message();
    ck_assert_msg(strstr(message, path) && strstr(message, first) && strstr(message, second), "%s", message);
    ck_assert_uint_eq(r.points, 42);
}

START_TEST(every_fault_is_named) {
    const double outside[] = {0, 0.5, 1.001}, nan_axis[] = {0, NAN, 1}, two[] = {1, 2};
    hid_t file;
    check_refused(0, PINN_IO, "No such file", "");
    write_text(in_directory("reference.h5"), "x,t,u\n");
    check_refused(0, PINN_IO, "not an HDF5 file", "");
    check_refused(begin("t"), PINN_CONFIG, "no dataset \"t\"", "coordinate");
    check_refused(begin("u"), PINN_CONFIG, "no field of the problem", "u, v");
    file = begin("u");
    put(file, "u", H5T_IEEE_F64LE, 2, NT, NX, values);
    check_refused(file, PINN_CONFIG, "\"u\" has shape [5, 3], expected [3, 5]", "x, t");
    file = begin("u");
    put(file, "u", H5T_IEEE_F64LE, 1, POINTS, 0, values);
    check_refused(file, PINN_CONFIG, "\"u\" has shape [15], expected [3, 5]", "");
    file = begin("u");
    put(file, "u", H5T_IEEE_F64LE, 0, 0, 0, values);
    check_refused(file, PINN_CONFIG, "\"u\" has shape one number", "");
    file = begin("");
    put(file, "v", H5T_IEEE_F64LE, 1, NX, 0, values);
    check_refused(file, PINN_CONFIG, "\"v\" has shape [3], expected [3, 5]", "");
    file = begin("x");
    put(file, "x", H5T_IEEE_F64LE, 2, 1, NX, x_axis);
    check_refused(file, PINN_CONFIG, "\"x\" has shape [1, 3]", "one axis");
    file = begin("x");
    put(file, "x", H5T_IEEE_F64LE, 1, 0, 0, NULL);
    check_refused(file, PINN_CONFIG, "\"x\" has shape [0]", "at least 1");
    file = begin("x");
    put(file, "x", H5T_C_S1, 1, NX, 0, NULL);
    check_refused(file, PINN_CONFIG, "\"x\" does not hold", "numbers");
    file = begin("x");
    H5Gclose(H5Gcreate2(file, "x", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    check_refused(file, PINN_IO, "\"x\" is not a readable dataset", "");
    file = begin("x");
    put(file, "x", H5T_IEEE_F64LE, 1, NX, 0, outside);
    check_refused(file, PINN_CONFIG, "\"x\" holds 1.001 at element 2", "[0, 1]");
    file = begin("x");
    put(file, "x", H5T_IEEE_F64LE, 1, NX, 0, nan_axis);
    check_refused(file, PINN_CONFIG, "\"x\" holds nan at element 1", "");
    values[7] = INFINITY;
    check_refused(begin(""), PINN_CONFIG, "\"u\" holds inf at element 7", "");
    values[7] = 0;
    file = begin("");
    put_error(file, H5T_IEEE_F64LE, 2, two);
    check_refused(file, PINN_CONFIG, "attribute \"error\" is not one number", "");
    file = begin("");
    put_error(file, H5T_C_S1, 1, NULL);
    check_refused(file, PINN_CONFIG, "attribute \"error\" is not one number", "");
}
END_TEST

/* Each would be waited for, or read for ever. */
START_TEST(only_regular_files_are_opened) {
    const char *path = in_directory("reference.h5");
    ck_assert_int_eq(mkfifo(path, 0666), 0);
    check_refused(0, PINN_IO, "no regular file", "");
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(symlink("/dev/zero", path), 0);
    check_refused(0, PINN_IO, "no regular file", "");
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkdir(path, 0777), 0);
    check_refused(0, PINN_IO, "is a directory", "");
}
END_TEST

/* A file of a few kilobytes may say that it holds more than fits anywhere. */
static void put_huge(hid_t file, const char *name, int rank, hsize_t n0, hsize_t n1) {
    const hsize_t shape[2] = {n0, n1}, chunk[2] = {1, 1};
    hid_t space = H5Screate_simple(rank, shape, NULL), layout = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(layout, rank, chunk);
    hid_t set = H5Dcreate2(file, name, H5T_IEEE_F64LE, space, H5P_DEFAULT, layout, H5P_DEFAULT);
    ck_assert_int_ge(set, 0);
    H5Dclose(set);
    H5Pclose(layout);
    H5Sclose(space);
}

START_TEST(sizes_are_limited) {
    enum { MANY = 60000 };
    hid_t file = begin("x");
    put_huge(file, "x", 1, 1ull << 40, 0);
    check_refused(file, PINN_CONFIG, "1099511627776 points", "8 GB");
    file = new_file();
    put_huge(file, "x", 1, MANY, 0);
    put_huge(file, "t", 1, MANY, 0);
    put_huge(file, "u", 2, MANY, MANY);
    check_refused(file, PINN_CONFIG, "3600000000 points", "8 GB");
}
END_TEST

/* Columns and grids in one file contradict each other. */
START_TEST(mixed_layouts_are_refused) {
    const double square[] = {0, 0.5, 1};
    hid_t file = new_file();
    put(file, "x", H5T_IEEE_F64LE, 1, NX, 0, square);
    put(file, "t", H5T_IEEE_F64LE, 1, NX, 0, square);
    put(file, "u", H5T_IEEE_F64LE, 1, NX, 0, values);
    put(file, "v", H5T_IEEE_F64LE, 2, NX, NX, values);
    check_refused(file, PINN_CONFIG, "\"v\" has shape [3, 3]", "");
}
END_TEST

START_TEST(truncated_files) {
    const char *path = in_directory("reference.h5");
    struct stat info;
    hid_t file = begin("");
    H5Fclose(file);
    ck_assert_int_eq(stat(path, &info), 0);
    for (off_t length = info.st_size - 1; length > 0; length -= 113) {
        ck_assert_int_eq(truncate(path, length), 0);
        check_refused(0, PINN_IO, "", "");
    }
}
END_TEST

START_TEST(every_allocation_may_fail) {
    const size_t grid[] = {NX, NT};
    double coordinate[2 * POINTS], field[2 * POINTS], reference[2 * POINTS];
    fill_grid(coordinate, field, reference);
    pn_solution s = {.coordinates = 2,
                     .fields = 2,
                     .points = POINTS,
                     .coordinate_name = coordinates,
                     .field_name = fields,
                     .grid = grid,
                     .coordinate = coordinate,
                     .field = field,
                     .reference = reference};
    const char *path = in_directory("solution.h5");
    pinn_status status = PINN_NO_MEMORY;
    long n = 0;
    for (; status != PINN_OK; n++) {
        pn_memory_fail_after(n);
        status = pn_solution_write(path, &s);
        pn_memory_fail_after(-1);
        ck_assert(status == PINN_OK || status == PINN_NO_MEMORY);
    }
    ck_assert_int_gt(n, 4);
    status = PINN_NO_MEMORY;
    for (n = 0; status != PINN_OK; n++) {
        pn_reference r = {0};
        pn_memory_fail_after(n);
        status = read_reference(path, &r);
        pn_memory_fail_after(-1);
        ck_assert(status == PINN_OK || status == PINN_NO_MEMORY);
        pn_reference_free(&r);
    }
    ck_assert_int_gt(n, 6);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("reference");
    TCase *test = tcase_create("reference");
    tcase_add_checked_fixture(test, make_test_directory, remove_test_directory);
    tcase_set_timeout(test, 120);
    tcase_add_loop_test(test, solutions_are_references, 0, 2);
    tcase_add_test(test, equal_solutions_are_equal_files);
    tcase_add_test(test, solutions_say_what_they_are);
    tcase_add_test(test, wrong_solutions_are_refused);
    tcase_add_test(test, number_types_are_converted);
    tcase_add_test(test, one_coordinate_reads_as_a_grid);
    tcase_add_test(test, rounded_bounds_count_as_the_bound);
    tcase_add_test(test, every_fault_is_named);
    tcase_add_test(test, only_regular_files_are_opened);
    tcase_add_test(test, sizes_are_limited);
    tcase_add_test(test, mixed_layouts_are_refused);
    tcase_add_test(test, truncated_files);
    tcase_add_test(test, every_allocation_may_fail);
    suite_add_tcase(suite, test);
    return suite_run(suite);
}
