/* check_run DIRECTORY: opens events.h5 as a SWMR reader and checkpoint.h5 for reading, reads all of both; exit 0 when both are whole. */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>

static hsize_t shortest = HSIZE_UNDEF;
static int failures, datasets;

static herr_t read_all(hid_t file, const char *name, const H5O_info_t *info, void *user) {
    (void)user;
    if (info->type != H5O_TYPE_DATASET) return 0;
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(set), type = H5Dget_type(set);
    hssize_t points = H5Sget_simple_extent_npoints(space);
    char *data = malloc((size_t)(points > 0 ? points : 1) * H5Tget_size(type));
    datasets++;
    if (set < 0 || points < 0 || H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0) {
        fprintf(stderr, "%s cannot be read\n", name);
        failures++;
    } else if ((hsize_t)points < shortest)
        shortest = (hsize_t)points;
    free(data);
    H5Tclose(type);
    H5Sclose(space);
    H5Dclose(set);
    return 0;
}

/* `rows`: every dataset must hold at least one entry. */
static void read_file(const char *directory, const char *name, unsigned flags, int least, int rows) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    hid_t file = H5Fopen(path, flags, H5P_DEFAULT);
    datasets = 0;
    shortest = HSIZE_UNDEF;
    if (file < 0) {
        fprintf(stderr, "%s cannot be opened\n", path);
        failures++;
        return;
    }
    H5Ovisit(file, H5_INDEX_NAME, H5_ITER_NATIVE, read_all, NULL);
    H5Fclose(file);
    if (datasets < least || (rows && shortest == 0)) {
        fprintf(stderr, "%s: %d datasets, the shortest of %llu entries\n", path, datasets, (unsigned long long)shortest);
        failures++;
    }
}

int main(int count, char **argument) {
    if (count != 2) return 2;
    read_file(argument[1], "events.h5", H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, 8, 1);
    read_file(argument[1], "checkpoint.h5", H5F_ACC_RDONLY, 6, 0);
    return failures != 0;
}
