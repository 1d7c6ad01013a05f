/* What the tests of whole trainings share: creating one from a config of this repository, comparing bits. */
#ifndef TRAINING_TOOLS_H
#define TRAINING_TOOLS_H

#include <check.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "suite.h"
#include "train/training.h"

#define CONFIG(name) PINN_SOURCE_DIR "/configs/" name

static inline void must(pinn_status status) {
    ck_assert_msg(status == PINN_OK, "%s: %s", pinn_status_name(status), pinn_error_message());
}

static inline double *read_parameters(pinn_training *training, size_t *count) {
    must(pinn_training_parameters(training, NULL, count));
    double *value = malloc(*count * sizeof *value);
    ck_assert_ptr_nonnull(value);
    must(pinn_training_parameters(training, value, count));
    return value;
}

static inline void assert_same_parameters(pinn_training *a, pinn_training *b) {
    size_t na, nb;
    double *pa = read_parameters(a, &na), *pb = read_parameters(b, &nb);
    ck_assert_uint_eq(na, nb);
    for (size_t i = 0; i < na; i++) ck_assert_msg(pa[i] == pb[i], "parameter %zu: %.17g and %.17g", i, pa[i], pb[i]);
    free(pa);
    free(pb);
}

static inline int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *walk) {
    (void)info, (void)kind, (void)walk;
    return remove(path);
}

static inline void remove_tree(const char *path) { nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS); }

#endif
