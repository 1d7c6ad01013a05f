/* Small trainings of the heat problem on the device that the including test names, their files, and the run of a suite of them. */
#ifndef SMALL_TRAINING_H
#define SMALL_TRAINING_H

#include <hdf5.h>
#include <math.h>

#include "scratch.h"

static const char *device; /* "cpu" or "cuda" */

static const char *const small[] = {"equation.0.points=130", "condition.0.points=20", "condition.1.points=20",
                                    "network.width=12",      "output.events=10",      "output.checkpoint=20",
                                    "train.0.steps=100",     "stop.relative_l2=1e-9"};
enum { SMALL = sizeof small / sizeof small[0] };

static inline pinn_training *create(const char *const *more, size_t count, const char *directory, bool resume) {
    const char *set[SMALL + 8];
    memcpy(set, small, sizeof small);
    for (size_t i = 0; i < count; i++) set[SMALL + i] = more[i];
    const pinn_options options = {.config = CONFIG("heat.toml"),
                                  .device = device,
                                  .set = set,
                                  .set_count = SMALL + count,
                                  .directory = directory,
                                  .no_directory = !directory,
                                  .resume = resume};
    pinn_training *training = NULL;
    must(pinn_training_create(&options, &training));
    return training;
}

/* ---- files ------------------------------------------------------------------------------------------------------------------ */

typedef struct comparison {
    hid_t other;
    char difference[256]; /* asserting inside HDF5's callback would leave its lock held */
} comparison;

/* Every dataset of the visited file must be in the other one with the same type, shape and bytes. */
static inline herr_t same_dataset(hid_t file, const char *name, const H5O_info_t *info, void *user) {
    comparison *c = user;
    if (info->type != H5O_TYPE_DATASET || strcmp(name, "config") == 0) return 0; /* [stop] and [output] may differ */
    hid_t a = H5Dopen2(file, name, H5P_DEFAULT), b = H5Dopen2(c->other, name, H5P_DEFAULT);
    if (a < 0 || b < 0) {
        snprintf(c->difference, sizeof c->difference, "%s is missing", name);
        return 1;
    }
    hid_t type = H5Dget_type(a), space = H5Dget_space(a), other_space = H5Dget_space(b);
    size_t bytes = H5Tget_size(type) * (size_t)H5Sget_simple_extent_npoints(space);
    char *x = calloc(bytes + 1, 1), *y = calloc(bytes + 1, 1);
    if (H5Sextent_equal(space, other_space) <= 0)
        snprintf(c->difference, sizeof c->difference, "%s has another shape", name);
    else if (H5Dread(a, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, x) < 0 || H5Dread(b, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, y) < 0 ||
             memcmp(x, y, bytes) != 0)
        snprintf(c->difference, sizeof c->difference, "%s differs", name);
    free(x);
    free(y);
    H5Sclose(other_space);
    H5Sclose(space);
    H5Tclose(type);
    H5Dclose(b);
    H5Dclose(a);
    return c->difference[0] != 0;
}

static inline void assert_same_datasets(const char *path_a, const char *path_b) {
    hid_t a = H5Fopen(path_a, H5F_ACC_RDONLY, H5P_DEFAULT), b = H5Fopen(path_b, H5F_ACC_RDONLY, H5P_DEFAULT);
    comparison forth = {.other = b}, back = {.other = a};
    ck_assert_msg(a >= 0 && b >= 0, "%s or %s cannot be opened", path_a, path_b);
    H5Ovisit(a, H5_INDEX_NAME, H5_ITER_NATIVE, same_dataset, &forth);
    H5Ovisit(b, H5_INDEX_NAME, H5_ITER_NATIVE, same_dataset, &back);
    H5Fclose(a);
    H5Fclose(b);
    ck_assert_msg(!forth.difference[0] && !back.difference[0], "%s and %s: %s%s", path_a, path_b, forth.difference,
                  back.difference);
}

static inline void run_and_destroy(pinn_training *training) {
    must(pinn_training_run(training));
    pinn_training_destroy(training);
}

/* A dataset of one axis as float64; malloc. */
static inline double *read_column(const char *path, const char *name, size_t *count) {
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT), set = H5Dopen2(file, name, H5P_DEFAULT);
    ck_assert_msg(set >= 0, "%s: no %s", path, name);
    hid_t space = H5Dget_space(set);
    *count = (size_t)H5Sget_simple_extent_npoints(space);
    double *value = calloc(*count + 1, sizeof *value);
    ck_assert_int_ge(H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, value), 0);
    H5Sclose(space);
    H5Dclose(set);
    H5Fclose(file);
    return value;
}

/* Runs a suite whose files lie in `scratch`; the program's exit status. */
static inline int run_in_scratch(Suite *suite) {
    if (!mkdtemp(scratch)) return EXIT_FAILURE;
    const int status = suite_run_nofork(suite);
    remove_tree(scratch);
    return status;
}

#endif
