/* Writes the HDF5 files that the configs beside this file refer to:
 *   cc references.c $(pkg-config --cflags --libs hdf5) -o references && ./references
 * good.h5: axes x, t and u = 1 over them.  zero.h5: u = 0.  no_axis.h5: without t.  shape.h5: u does not fit the axes. */
#include <hdf5.h>

static void put(hid_t file, const char *name, int rank, const hsize_t *shape, const double *data) {
    hid_t space = H5Screate_simple(rank, shape, NULL);
    hid_t set = H5Dcreate2(file, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, data);
    H5Dclose(set);
    H5Sclose(space);
}

static void make(const char *path, int with_t, hsize_t u_rows, double value) {
    const double axis[] = {0, 0.5, 1};
    double u[12];
    for (int i = 0; i < 12; i++) u[i] = value;
    const hsize_t three = 3, shape[] = {u_rows, 3};
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    put(file, "x", 1, &three, axis);
    if (with_t) put(file, "t", 1, &three, axis);
    put(file, "u", 2, shape, u);
    H5Fclose(file);
}

int main(void) {
    make("good.h5", 1, 3, 1);
    make("zero.h5", 1, 3, 0);
    make("no_axis.h5", 0, 3, 1);
    make("shape.h5", 1, 4, 1);
    return 0;
}
