/* Reads reference solutions: axes named as the coordinates with fields in domain order, or equal-length columns (see solution.h).
 *
 * Which of the two a file is shows in its fields: rank 1 over several coordinates means columns. With one coordinate the two are
 * the same thing and read as a grid.
 */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "core/memory.h"
#include "core/text.h"
#include "io/hdf5_file.h"
#include "io/solution.h"

typedef struct reader {
    pn_hdf5 file;
    const char *const *coordinate_name, *const *field_name;
    const double *lower, *upper;
    size_t coordinates, fields;
    hsize_t *length; /* owned, [coordinates]: of each coordinate's dataset */
    double **axis;   /* owned, [coordinates][length] */
    bool scattered;
    bool known; /* `scattered` was seen at a field */
} reader;

/* A numeric dataset; its shape too. Close it. */
static pinn_status open_numbers(const reader *r, const char *name, hid_t *out, int *rank, hsize_t shape[H5S_MAX_RANK]) {
    hid_t set = H5Dopen2(r->file.id, name, H5P_DEFAULT);
    if (set < 0) return pn_hdf5_fail("%s: \"%s\" is not a readable dataset", r->file.path, name);
    hid_t type = H5Dget_type(set), space = H5Dget_space(set);
    H5T_class_t class = type < 0 ? H5T_NO_CLASS : H5Tget_class(type);
    int found = space < 0 ? -1 : H5Sget_simple_extent_dims(space, shape, NULL);
    pn_hdf5_close(type);
    pn_hdf5_close(space);
    if (found >= 0 && (class == H5T_FLOAT || class == H5T_INTEGER)) {
        *out = set;
        *rank = found;
        return PINN_OK;
    }
    pn_hdf5_close(set);
    return pn_fail(PINN_CONFIG, "%s: dataset \"%s\" does not hold floating-point or integer numbers", r->file.path, name);
}

static pinn_status read_numbers(const reader *r, const char *name, hid_t set, size_t count, double *out) {
    if (H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, out) < 0)
        return pn_hdf5_fail("%s: cannot read dataset \"%s\"", r->file.path, name);
    for (size_t i = 0; i < count; i++)
        if (!isfinite(out[i]))
            return pn_fail(PINN_CONFIG, "%s: dataset \"%s\" holds %g at element %zu", r->file.path, name, out[i], i);
    return PINN_OK;
}

/* Bounds stored as float32 are off by this much; such values are put back onto the bound. */
static pinn_status check_bounds(const reader *r, size_t i) {
    const double lower = r->lower[i], upper = r->upper[i];
    const double rounding = 4 * (double)FLT_EPSILON * fmax(fabs(lower), fabs(upper));
    for (hsize_t k = 0; k < r->length[i]; k++) {
        double *x = &r->axis[i][k];
        if (*x < lower - rounding || *x > upper + rounding)
            return pn_fail(PINN_CONFIG, "%s: dataset \"%s\" holds %.9g at element %llu, outside the domain's [%.9g, %.9g]",
                           r->file.path, r->coordinate_name[i], *x, (unsigned long long)k, lower, upper);
        *x = fmin(fmax(*x, lower), upper);
    }
    return PINN_OK;
}

/* What is read is copied a few times and goes to the device: the limit of a set that is made here (problem/evaluation.c), 8 GB. */
static pinn_status check_size(const reader *r, size_t points) {
    const double numbers = (double)points * (double)(r->coordinates + 2 * r->fields);
    if (numbers <= 1e9) return PINN_OK;
    return pn_fail(PINN_CONFIG, "%s: %zu points of %zu coordinates and %zu fields do not fit in 8 GB; thin the file out",
                   r->file.path, points, r->coordinates, r->fields);
}

static pinn_status read_axis(reader *r, size_t i) {
    const char *name = r->coordinate_name[i];
    if (!pn_hdf5_exists(&r->file, name))
        return pn_fail(PINN_CONFIG, "%s: has no dataset \"%s\": every coordinate of the problem needs one", r->file.path, name);
    hid_t set = H5I_INVALID_HID;
    hsize_t shape[H5S_MAX_RANK] = {0};
    char found[PN_HDF5_NAME];
    int rank = 0;
    pinn_status status;
    PN_TRY(open_numbers(r, name, &set, &rank, shape));
    if (rank != 1 || !shape[0]) {
        status = pn_fail(PINN_CONFIG, "%s: dataset \"%s\" has shape %s, expected one axis [n] with n at least 1", r->file.path,
                         name, pn_hdf5_shape_name(rank, shape, found));
        goto fail;
    }
    PN_TRY(check_size(r, shape[0]));
    r->length[i] = shape[0];
    r->axis[i] = pn_allocate(shape[0], sizeof(double));
    if (!r->axis[i]) {
        status = PN_NO_MEMORY("a reference's axis");
        goto fail;
    }
    PN_TRY(read_numbers(r, name, set, shape[0], r->axis[i]));
    PN_TRY(check_bounds(r, i));
fail:
    pn_hdf5_close(set);
    return status;
}

static bool same_shape(const reader *r, int rank, const hsize_t *shape) {
    bool same = (size_t)rank == r->coordinates;
    for (size_t i = 0; same && i < r->coordinates; i++) same = shape[i] == r->length[i];
    return same;
}

static bool equal_columns(const reader *r) {
    for (size_t i = 1; i < r->coordinates; i++)
        if (r->length[i] != r->length[0]) return false;
    return true;
}

static pinn_status wrong_shape(const reader *r, const char *name, int rank, const hsize_t *shape) {
    char found[PN_HDF5_NAME], expected[PN_HDF5_NAME];
    pn_text axes = {0};
    for (size_t i = 0; i < r->coordinates; i++) pn_text_printf(&axes, "%s%s", i ? ", " : "", r->coordinate_name[i]);
    bool columns = equal_columns(r);
    pinn_status status =
        pn_fail(PINN_CONFIG, "%s: dataset \"%s\" has shape %s, expected %s (axes in domain order: %s)%s", r->file.path, name,
                pn_hdf5_shape_name(rank, shape, found), pn_hdf5_shape_name((int)r->coordinates, r->length, expected),
                pn_text_get(&axes), columns && r->coordinates > 1 ? " or a column as long as the coordinates'" : "");
    pn_text_free(&axes);
    return status;
}

/* Grid or columns, by one field's shape; fields may not differ in that. */
static pinn_status classify(reader *r, const char *name, int rank, const hsize_t *shape) {
    bool grid = same_shape(r, rank, shape);
    bool column = r->coordinates > 1 && rank == 1 && shape[0] == r->length[0] && equal_columns(r);
    if ((!grid && !column) || (r->known && r->scattered != column)) return wrong_shape(r, name, rank, shape);
    r->scattered = column;
    r->known = true;
    return PINN_OK;
}

/* Shapes of all fields that are there, before anything large is allocated. */
static pinn_status check_fields(reader *r, bool *has) {
    pinn_status status = PINN_OK;
    for (size_t f = 0; status == PINN_OK && f < r->fields; f++) {
        has[f] = pn_hdf5_exists(&r->file, r->field_name[f]);
        if (!has[f]) continue;
        hid_t set = H5I_INVALID_HID;
        hsize_t shape[H5S_MAX_RANK] = {0};
        int rank = 0;
        status = open_numbers(r, r->field_name[f], &set, &rank, shape);
        pn_hdf5_close(set);
        if (status == PINN_OK) status = classify(r, r->field_name[f], rank, shape);
    }
    if (status != PINN_OK || r->known) return status;
    pn_text names = {0};
    for (size_t f = 0; f < r->fields; f++) pn_text_printf(&names, "%s%s", f ? ", " : "", r->field_name[f]);
    status = pn_fail(PINN_CONFIG, "%s: has no field of the problem (%s)", r->file.path, pn_text_get(&names));
    pn_text_free(&names);
    return status;
}

static pinn_status read_error(const reader *r, double *error) {
    *error = NAN;
    htri_t there = H5Aexists(r->file.id, "error");
    if (there == 0) return PINN_OK;
    hid_t attribute = H5Aopen(r->file.id, "error", H5P_DEFAULT);
    hid_t type = attribute < 0 ? attribute : H5Aget_type(attribute), space = attribute < 0 ? attribute : H5Aget_space(attribute);
    H5T_class_t class = type < 0 ? H5T_NO_CLASS : H5Tget_class(type);
    pinn_status status = PINN_OK;
    if ((class != H5T_FLOAT && class != H5T_INTEGER) || H5Sget_simple_extent_npoints(space) != 1)
        status = pn_fail(PINN_CONFIG, "%s: attribute \"error\" is not one number", r->file.path);
    else if (H5Aread(attribute, H5T_NATIVE_DOUBLE, error) < 0)
        status = pn_hdf5_fail("%s: cannot read attribute \"error\"", r->file.path);
    pn_hdf5_close(space);
    pn_hdf5_close(type);
    pn_hdf5_close(attribute);
    return status;
}

/* Coordinates of every point, the last axis fastest; or the columns as they are. */
static void fill_coordinates(const reader *r, pn_reference *out) {
    size_t stride = out->points;
    for (size_t i = 0; i < r->coordinates; i++) {
        double *column = out->coordinate + i * out->points;
        if (r->scattered) {
            memcpy(column, r->axis[i], out->points * sizeof *column);
            continue;
        }
        stride /= r->length[i];
        for (size_t p = 0; p < out->points; p++) column[p] = r->axis[i][p / stride % r->length[i]];
    }
}

static pinn_status fill_fields(const reader *r, pn_reference *out) {
    pinn_status status = PINN_OK;
    for (size_t f = 0; status == PINN_OK && f < r->fields; f++) {
        double *field = out->field + f * out->points;
        for (size_t p = 0; !out->has[f] && p < out->points; p++) field[p] = NAN;
        if (!out->has[f]) continue;
        hid_t set = H5I_INVALID_HID;
        hsize_t shape[H5S_MAX_RANK];
        int rank;
        status = open_numbers(r, r->field_name[f], &set, &rank, shape);
        if (status == PINN_OK) status = read_numbers(r, r->field_name[f], set, out->points, field);
        pn_hdf5_close(set);
    }
    return status;
}

static pinn_status allocate(const reader *r, pn_reference *out) {
    size_t points = 1;
    for (size_t i = 0; i < (r->scattered ? 1 : r->coordinates); i++)
        if (__builtin_mul_overflow(points, r->length[i], &points)) points = SIZE_MAX;
    pinn_status status = check_size(r, points);
    if (status != PINN_OK) return status;
    out->points = points;
    out->coordinate = pn_allocate(points * r->coordinates, sizeof *out->coordinate);
    out->field = pn_allocate(points * r->fields, sizeof *out->field);
    out->grid = r->scattered ? NULL : pn_allocate(r->coordinates, sizeof *out->grid);
    if (!out->coordinate || !out->field || (!r->scattered && !out->grid)) return PN_NO_MEMORY("a reference solution");
    for (size_t i = 0; out->grid && i < r->coordinates; i++) out->grid[i] = r->length[i];
    return PINN_OK;
}

static pinn_status read_open(reader *r, pn_reference *out) {
    pinn_status status = PINN_OK;
    r->length = pn_allocate(r->coordinates, sizeof *r->length);
    r->axis = pn_allocate(r->coordinates, sizeof *r->axis);
    out->has = pn_allocate(r->fields, sizeof *out->has);
    if (!r->length || !r->axis || !out->has) {
        status = PN_NO_MEMORY("a reference solution");
        goto fail;
    }
    for (size_t i = 0; i < r->coordinates; i++) PN_TRY(read_axis(r, i));
    PN_TRY(check_fields(r, out->has));
    PN_TRY(read_error(r, &out->error));
    PN_TRY(allocate(r, out));
    fill_coordinates(r, out);
    PN_TRY(fill_fields(r, out));
fail:
    for (size_t i = 0; r->axis && i < r->coordinates; i++) pn_free(r->axis[i]);
    pn_free(r->axis);
    pn_free(r->length);
    return status;
}

pinn_status pn_reference_read(const char *path, const char *const *coordinate_name, const double *lower, const double *upper,
                              size_t coordinates, const char *const *field_name, size_t fields, pn_reference *out) {
    if (!coordinates) return pn_fail(PINN_BAD_ARGUMENT, "%s: a reference needs at least one coordinate", path);
    reader r = {.coordinate_name = coordinate_name,
                .field_name = field_name,
                .lower = lower,
                .upper = upper,
                .coordinates = coordinates,
                .fields = fields};
    pn_reference found = {0};
    pn_hdf5_enter();
    pinn_status status = pn_hdf5_open(path, H5F_ACC_RDONLY, &r.file);
    if (status == PINN_OK) status = read_open(&r, &found);
    pn_hdf5_close(r.file.id);
    pn_hdf5_leave();
    if (status == PINN_OK)
        *out = found;
    else
        pn_reference_free(&found);
    return status;
}

void pn_reference_free(pn_reference *reference) {
    if (!reference) return;
    pn_free(reference->grid);
    pn_free(reference->coordinate);
    pn_free(reference->field);
    pn_free(reference->has);
    *reference = (pn_reference){0};
}
