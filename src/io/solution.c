/* Writes fields over an evaluation set: solution.h5 (see solution.h). */
#include "io/solution.h"

#include <math.h>
#include <string.h>

#include "core/memory.h"
#include "core/text.h"
#include "io/hdf5_file.h"

static pinn_status check(const char *path, const pn_solution *s) {
    size_t points = 1;
    if (!s->points || !s->coordinates || !s->fields)
        return pn_fail(PINN_BAD_ARGUMENT, "%s: a solution needs coordinates, fields and points", path);
    for (size_t i = 0; s->grid && i < s->coordinates; i++)
        if (__builtin_mul_overflow(points, s->grid[i], &points)) points = 0;
    if (s->grid && points != s->points)
        return pn_fail(PINN_BAD_ARGUMENT, "%s: the grid has %zu points, the solution %zu", path, points, s->points);
    return PINN_OK;
}

/* Axis values of coordinate i: the points where all others are at their first value, `stride` apart. */
static pinn_status put_axis(const pn_hdf5 *file, const pn_solution *s, size_t i) {
    const double *column = s->coordinate + i * s->points;
    const hsize_t length = s->grid ? s->grid[i] : s->points;
    if (!s->grid) return pn_hdf5_put(file, s->coordinate_name[i], H5T_NATIVE_DOUBLE, 1, &length, column);
    size_t stride = 1;
    for (size_t j = i + 1; j < s->coordinates; j++) stride *= s->grid[j];
    double *axis = pn_allocate(length, sizeof *axis);
    if (!axis) return PN_NO_MEMORY("a solution's axis");
    for (size_t k = 0; k < length; k++) axis[k] = column[k * stride];
    pinn_status status = pn_hdf5_put(file, s->coordinate_name[i], H5T_NATIVE_DOUBLE, 1, &length, axis);
    pn_free(axis);
    return status;
}

static bool all_nan(const double *value, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!isnan(value[i])) return false;
    return true;
}

/* One field with its reference and error, if it has a reference. `error` [points] is scratch. */
static pinn_status put_field(const pn_hdf5 *file, const pn_solution *s, size_t f, const hsize_t *shape, double *error) {
    const unsigned rank = s->grid ? (unsigned)s->coordinates : 1;
    const double *field = s->field + f * s->points, *reference = s->reference ? s->reference + f * s->points : NULL;
    pn_text name = {0};
    pinn_status status;
    PN_TRY(pn_hdf5_put(file, s->field_name[f], H5T_NATIVE_DOUBLE, rank, shape, field));
    if (!reference || all_nan(reference, s->points)) goto fail;
    for (size_t i = 0; i < s->points; i++) error[i] = field[i] - reference[i];
    pn_text_printf(&name, "reference/%s", s->field_name[f]);
    PN_TRY(pn_text_check(&name));
    PN_TRY(pn_hdf5_put(file, name.data, H5T_NATIVE_DOUBLE, rank, shape, reference));
    name.length = 0;
    pn_text_printf(&name, "error/%s", s->field_name[f]);
    PN_TRY(pn_text_check(&name));
    PN_TRY(pn_hdf5_put(file, name.data, H5T_NATIVE_DOUBLE, rank, shape, error));
fail:
    pn_text_free(&name);
    return status;
}

static pinn_status put_attributes(const pn_hdf5 *file, const pn_solution *s) {
    pinn_status status;
    PN_TRY(pn_hdf5_put_text(file, "title", s->title ? s->title : ""));
    PN_TRY(pn_hdf5_put_attribute(file, "step", H5T_NATIVE_UINT64, &s->step));
    PN_TRY(pn_hdf5_put_attribute(file, "seed", H5T_NATIVE_UINT64, &s->seed));
    PN_TRY(pn_hdf5_put_text(file, "layout", s->grid ? "grid" : "columns"));
    PN_TRY(pn_hdf5_put_names(file, "coordinates", s->coordinate_name, s->coordinates));
fail:
    return status;
}

static pinn_status write_file(const char *path, const pn_solution *s) {
    pn_hdf5 file = {0};
    double *error = pn_allocate(s->points, sizeof *error);
    hsize_t *shape = pn_allocate(s->coordinates, sizeof *shape);
    pinn_status status = error && shape ? PINN_OK : PN_NO_MEMORY("a solution");
    if (status != PINN_OK) goto fail;
    shape[0] = s->points;
    for (size_t i = 0; s->grid && i < s->coordinates; i++) shape[i] = s->grid[i];
    PN_TRY(pn_hdf5_create_image(path, &file));
    PN_TRY(put_attributes(&file, s));
    for (size_t i = 0; i < s->coordinates; i++) PN_TRY(put_axis(&file, s, i));
    for (size_t f = 0; f < s->fields; f++) PN_TRY(put_field(&file, s, f, shape, error));
    PN_TRY(pn_hdf5_write_image(&file));
fail:
    pn_hdf5_close(file.id);
    pn_free(shape);
    pn_free(error);
    return status;
}

pinn_status pn_solution_write(const char *path, const pn_solution *solution) {
    pinn_status status = check(path, solution);
    if (status != PINN_OK) return status;
    pn_hdf5_enter();
    status = write_file(path, solution);
    pn_hdf5_leave();
    return status;
}

pinn_status pn_solution_step(const char *path, uint64_t *step) {
    pn_hdf5 file = {0};
    uint64_t found;
    pn_hdf5_enter();
    pinn_status status = pn_hdf5_open(path, H5F_ACC_RDONLY, &file);
    if (status == PINN_OK) status = pn_hdf5_get_attribute(&file, "step", H5T_NATIVE_UINT64, &found);
    pn_hdf5_close(file.id);
    pn_hdf5_leave();
    if (status == PINN_OK) *step = found;
    return status;
}
