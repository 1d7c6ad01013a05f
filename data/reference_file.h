/* Writes a reference solution: 1-D axes /x and /t, the field /u in [x][t] order, attributes "error" (relative L2 error of the values, as
 * measured by the program) and "source" (how they were computed). */
#ifndef PN_DATA_REFERENCE_FILE_H
#define PN_DATA_REFERENCE_FILE_H

#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static int write_reference(const char *path, const double *x, size_t nx, const double *t, size_t nt, const double *u, double error,
                           const char *source) {
    const hsize_t size_x = nx, size_t_axis = nt, size_u[2] = {nx, nt};
    const struct { const char *name; int rank; const hsize_t *size; const double *data; } part[] = {
        {"x", 1, &size_x, x}, {"t", 1, &size_t_axis, t}, {"u", 2, size_u, u}};
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    int good = file >= 0;
    for (size_t i = 0; good && i < sizeof part / sizeof part[0]; i++) {
        hid_t space = H5Screate_simple(part[i].rank, part[i].size, NULL);
        hid_t set = H5Dcreate2(file, part[i].name, H5T_IEEE_F64LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        good = set >= 0 && H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, part[i].data) >= 0;
        H5Dclose(set);
        H5Sclose(space);
    }
    if (good) {
        hid_t scalar = H5Screate(H5S_SCALAR), text = H5Tcopy(H5T_C_S1);
        H5Tset_size(text, strlen(source) + 1);
        hid_t number = H5Acreate2(file, "error", H5T_IEEE_F64LE, scalar, H5P_DEFAULT, H5P_DEFAULT);
        hid_t origin = H5Acreate2(file, "source", text, scalar, H5P_DEFAULT, H5P_DEFAULT);
        good = H5Awrite(number, H5T_NATIVE_DOUBLE, &error) >= 0 && H5Awrite(origin, text, source) >= 0;
        H5Aclose(origin);
        H5Aclose(number);
        H5Tclose(text);
        H5Sclose(scalar);
    }
    if (file >= 0 && H5Fclose(file) < 0) good = 0;
    if (good)
        printf("%s: %zu x %zu points, relative error %.1e\n", path, nx, nt, error);
    else
        fprintf(stderr, "%s: cannot write\n", path);
    return good ? 0 : 1;
}

/* ||a - b|| / ||b|| over n values. */
static double relative_l2(const double *a, const double *b, size_t n) {
    double difference = 0, norm = 0;
    for (size_t i = 0; i < n; i++) {
        difference += (a[i] - b[i]) * (a[i] - b[i]);
        norm += b[i] * b[i];
    }
    return sqrt(difference / norm);
}

#endif
