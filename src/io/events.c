/* The training record in events.h5: one extendible dataset a quantity, appended under HDF5's single-writer/multiple-readers mode.
 *
 * The file is complete (all groups, datasets, kept rows) before SWMR starts: it is laid out in memory, written atomically and then
 * opened for SWMR writing. From there on only dataset lengths and chunks change. A dataset is flushed right after its rows are
 * written: HDF5 writes the rows first and the length only if that went well, so a full disk leaves no length without its rows. See
 * "HDF5 Single-writer/Multiple-reader User's Guide", H5Dflush.
 */
#include "io/events.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/text.h"
#include "io/file.h"
#include "io/hdf5_file.h"

enum { CHUNK = 512 }; /* rows of a chunk: 4 KiB a quantity */

struct pn_events {
    pn_hdf5 file;   /* id <= 0: closed */
    char *path;     /* owned; what file.path points to */
    size_t count;   /* quantities */
    hid_t *dataset; /* [count] */
    hsize_t rows;   /* on file */
    double *column; /* [CHUNK]: one quantity of consecutive rows */
    bool failed;    /* a write went wrong: the file takes nothing more */
};

/* HDF5 writes the open record itself, in the thread that calls. */
static void begin_writing(sigset_t *before) {
    pn_file_guard(before);
    pn_hdf5_enter();
}

static void end_writing(const sigset_t *before) {
    pn_hdf5_leave();
    pn_file_unguard(before);
}

static bool is_step(const char *quantity) { return strcmp(quantity, "step") == 0; }

static void dataset_name(const char *quantity, pn_text *out) {
    out->length = 0;
    pn_text_printf(out, "events/%s", quantity);
}

static void close_datasets(pn_events *events) {
    for (size_t i = 0; events->dataset && i < events->count; i++) {
        pn_hdf5_close(events->dataset[i]);
        events->dataset[i] = 0;
    }
}

static void destroy(pn_events *events) {
    if (!events) return;
    close_datasets(events);
    pn_hdf5_close(events->file.id);
    pn_free(events->dataset);
    pn_free(events->column);
    pn_free(events->path);
    pn_free(events);
}

/* HDF5 cannot close a file it could not flush (it crashes at exit), and would go on writing what it still holds. So its descriptor
 * is turned to the bit bucket: the file on disk stays as it was at the failure. */
static void abandon(pn_events *events) {
    void *handle = NULL;
    events->failed = true;
    if (H5Fget_vfd_handle(events->file.id, H5P_DEFAULT, &handle) < 0 || !handle) return;
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nowhere < 0) return;
    dup3(nowhere, *(int *)handle, O_CLOEXEC);
    close(nowhere);
}

static pinn_status create_dataset(const pn_hdf5 *file, const char *quantity) {
    pinn_status status = PINN_OK;
    pn_text name = {0};
    const hsize_t none = 0, endless = H5S_UNLIMITED, chunk = CHUNK;
    hid_t set = H5I_INVALID_HID, space = H5Screate_simple(1, &none, &endless), layout = pn_hdf5_creation(H5P_DATASET_CREATE);
    dataset_name(quantity, &name);
    PN_TRY(pn_text_check(&name));
    PN_TRY(pn_hdf5_put_groups_above(file, name.data));
    if (space >= 0 && layout >= 0 && H5Pset_chunk(layout, 1, &chunk) >= 0)
        set = H5Dcreate2(file->id, name.data, is_step(quantity) ? H5T_STD_I64LE : H5T_IEEE_F64LE, space, H5P_DEFAULT, layout,
                         H5P_DEFAULT);
    if (set < 0) status = pn_hdf5_fail("%s: cannot make dataset \"%s\"", file->path, name.data);
fail:
    pn_hdf5_close(set);
    pn_hdf5_close(layout);
    pn_hdf5_close(space);
    pn_text_free(&name);
    return status;
}

static pinn_status open_datasets(pn_events *events, const char *const *quantity) {
    pinn_status status = PINN_OK;
    pn_text name = {0};
    for (size_t i = 0; i < events->count; i++) {
        dataset_name(quantity[i], &name);
        PN_TRY(pn_text_check(&name));
        events->dataset[i] = H5Dopen2(events->file.id, name.data, H5P_DEFAULT);
        if (events->dataset[i] < 0) {
            status = pn_hdf5_fail("%s: cannot open dataset \"%s\"", events->path, name.data);
            goto fail;
        }
    }
fail:
    pn_text_free(&name);
    return status;
}

/* n <= CHUNK values of one quantity, behind `first` rows. */
static bool write_column(hid_t set, hsize_t first, hsize_t n, const double *column) {
    hid_t memory = H5Screate_simple(1, &n, NULL), space = H5Dget_space(set);
    bool good = memory >= 0 && space >= 0 && H5Sselect_hyperslab(space, H5S_SELECT_SET, &first, NULL, &n, NULL) >= 0 &&
                H5Dwrite(set, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, column) >= 0;
    if (space >= 0) H5Sclose(space);
    if (memory >= 0) H5Sclose(memory);
    return good;
}

static bool write_quantity(pn_events *events, size_t q, const double *row, size_t rows, bool flush) {
    hsize_t length = events->rows + rows;
    if (H5Dset_extent(events->dataset[q], &length) < 0) return false;
    for (size_t done = 0; done < rows;) {
        size_t n = rows - done < CHUNK ? rows - done : CHUNK;
        for (size_t i = 0; i < n; i++) events->column[i] = row[(done + i) * events->count + q];
        if (!write_column(events->dataset[q], events->rows + done, n, events->column)) return false;
        done += n;
    }
    return !flush || H5Dflush(events->dataset[q]) >= 0;
}

static pinn_status append(pn_events *events, const double *row, size_t rows, bool flush) {
    bool good = true;
    for (size_t q = 0; good && q < events->count; q++) good = write_quantity(events, q, row, rows, flush);
    if (!good || (flush && H5Fflush(events->file.id, H5F_SCOPE_GLOBAL) < 0))
        return pn_hdf5_fail("%s: cannot write the training record", events->path);
    events->rows += rows;
    return PINN_OK;
}

static pinn_status create(const char *path, size_t count, pn_events **out) {
    pn_events *events = pn_allocate(1, sizeof *events);
    if (!events) return PN_NO_MEMORY("the training record");
    events->count = count;
    events->path = pn_duplicate(path, strlen(path));
    events->dataset = pn_allocate(count, sizeof *events->dataset);
    events->column = pn_allocate(CHUNK, sizeof *events->column);
    if (!events->path || !events->dataset || !events->column) {
        destroy(events);
        return PN_NO_MEMORY("the training record");
    }
    *out = events;
    return PINN_OK;
}

/* A whole new file beside `path`, under its temporary name, holding `rows` rows. */
static pinn_status lay_out(const char *path, const char *const *quantity, size_t count, const double *row, size_t rows) {
    pn_events *image = NULL;
    pinn_status status;
    PN_TRY(create(path, count, &image));
    PN_TRY(pn_hdf5_create_image(image->path, &image->file));
    for (size_t i = 0; i < count; i++) PN_TRY(create_dataset(&image->file, quantity[i]));
    PN_TRY(open_datasets(image, quantity));
    PN_TRY(append(image, row, rows, false));
    close_datasets(image);
    PN_TRY(pn_hdf5_stage_image(&image->file));
fail:
    destroy(image);
    return status;
}

/* The new file gets its name when it is open: a reader that found it earlier would lock it against its writer. */
static pinn_status start(const char *path, const char *const *quantity, size_t count, const double *row, size_t rows,
                         pn_events **out) {
    pn_events *events = NULL;
    hid_t access = H5I_INVALID_HID;
    bool staged = false;
    char name[PN_FILE_NAME];
    const char *temporary = pn_file_temporary(path, name);
    pinn_status status;
    PN_TRY(create(path, count, &events));
    PN_TRY(lay_out(path, quantity, count, row, rows));
    staged = true;
    access = pn_hdf5_access();
    events->file = (pn_hdf5){access < 0 ? access : H5Fopen(temporary, H5F_ACC_RDWR | H5F_ACC_SWMR_WRITE, access), events->path};
    if (events->file.id < 0) {
        status = pn_hdf5_fail("%s: cannot open the training record for writing", temporary);
        goto fail;
    }
    PN_TRY(open_datasets(events, quantity));
    PN_TRY(pn_file_commit(path));
    events->rows = rows;
    *out = events;
fail:
    pn_hdf5_close(access);
    if (status != PINN_OK) destroy(events);
    if (status != PINN_OK && staged) unlink(temporary);
    return status;
}

static pinn_status check_quantities(const char *path, const char *const *quantity, size_t count) {
    bool step = false;
    for (size_t i = 0; i < count; i++) step |= is_step(quantity[i]);
    return step ? PINN_OK : pn_fail(PINN_BAD_ARGUMENT, "%s: the training record needs the quantity \"step\"", path);
}

pinn_status pn_events_create(const char *path, const char *const *quantity, size_t count, pn_events **out) {
    pinn_status status = check_quantities(path, quantity, count);
    if (status != PINN_OK) return status;
    sigset_t before;
    begin_writing(&before);
    status = start(path, quantity, count, NULL, 0, out);
    end_writing(&before);
    return status;
}

pinn_status pn_events_append(pn_events *events, const double *row, size_t rows) {
    if (events->failed) return pn_fail(PINN_IO, "%s: takes no rows after a failed write", events->path);
    if (!rows) return PINN_OK;
    sigset_t before;
    begin_writing(&before);
    pinn_status status = append(events, row, rows, true);
    if (status != PINN_OK) abandon(events);
    end_writing(&before);
    return status;
}

pinn_status pn_events_close(pn_events *events) {
    if (!events) return PINN_OK;
    pinn_status status = PINN_OK;
    sigset_t before;
    begin_writing(&before);
    if (!events->failed && H5Fflush(events->file.id, H5F_SCOPE_GLOBAL) < 0) {
        status = pn_hdf5_fail("%s: cannot flush the training record", events->path);
        abandon(events);
    }
    close_datasets(events);
    if (H5Fclose(events->file.id) < 0 && status == PINN_OK && !events->failed)
        status = pn_hdf5_fail("%s: cannot close the training record", events->path);
    events->file.id = 0;
    if (status == PINN_OK && !events->failed) status = pn_file_sync(events->path);
    destroy(events);
    end_writing(&before);
    return status;
}

/* Length of a quantity's dataset in the old file. */
static pinn_status length_of(const pn_hdf5 *file, const char *name, hsize_t *length) {
    hid_t space = H5I_INVALID_HID, set = H5Dopen2(file->id, name, H5P_DEFAULT);
    pinn_status status = PINN_OK;
    if (set >= 0) space = H5Dget_space(set);
    if (space < 0 || H5Sget_simple_extent_ndims(space) != 1 || H5Sget_simple_extent_dims(space, length, NULL) < 0)
        status = pn_hdf5_fail("dataset \"%s\" is damaged", name);
    pn_hdf5_close(space);
    pn_hdf5_close(set);
    return status;
}

/* `rows` values of a quantity, from `first` on, into its place in rows of `stride` numbers. */
static pinn_status read_quantity(const pn_hdf5 *file, const char *name, hsize_t first, hsize_t rows, size_t stride, double *out) {
    if (!rows) return PINN_OK;
    double *column = pn_allocate(rows, sizeof *column);
    if (!column) return PN_NO_MEMORY("the old training record");
    hid_t space = H5I_INVALID_HID, memory = H5Screate_simple(1, &rows, NULL), set = H5Dopen2(file->id, name, H5P_DEFAULT);
    pinn_status status = PINN_OK;
    if (set >= 0) space = H5Dget_space(set);
    if (memory < 0 || space < 0 || H5Sselect_hyperslab(space, H5S_SELECT_SET, &first, NULL, &rows, NULL) < 0 ||
        H5Dread(set, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, column) < 0)
        status = pn_hdf5_fail("dataset \"%s\" is damaged", name);
    for (hsize_t i = 0; status == PINN_OK && i < rows; i++) out[i * stride] = column[i];
    pn_hdf5_close(space);
    pn_hdf5_close(memory);
    pn_hdf5_close(set);
    pn_free(column);
    return status;
}

/* Rows to keep of a column of steps: up to the first that is beyond `last`, or goes back (rows lost in a crash of the machine read
 * as zeros). */
static hsize_t kept_rows(const double *step, hsize_t rows, size_t stride, int64_t last) {
    hsize_t kept = 0;
    while (kept < rows && step[kept * stride] <= (double)last && (!kept || step[kept * stride] >= step[(kept - 1) * stride]))
        kept++;
    return kept;
}

/* How many whole rows the old file has, and which quantity is the step; IO means that the file is damaged. */
static pinn_status count_rows(const pn_hdf5 *file, const char *const *quantity, size_t count, hsize_t *rows, size_t *step) {
    pinn_status status = PINN_OK;
    pn_text name = {0};
    hsize_t shortest = HSIZE_UNDEF, length = 0;
    for (size_t i = 0; i < count; i++) {
        dataset_name(quantity[i], &name);
        PN_TRY(pn_text_check(&name));
        if (is_step(quantity[i]))
            *step = i;
        else if (!pn_hdf5_exists(file, name.data))
            continue;
        PN_TRY(length_of(file, name.data, &length));
        if (length < shortest) shortest = length;
    }
    *rows = shortest;
fail:
    pn_text_free(&name);
    return status;
}

/* `rows` rows from `first` on; a quantity the old file has not reads as NaN. */
static pinn_status read_between(const pn_hdf5 *file, const char *const *quantity, size_t count, hsize_t first, hsize_t rows,
                                double *row) {
    pinn_status status = PINN_OK;
    pn_text name = {0};
    for (size_t i = 0; i < count; i++) {
        dataset_name(quantity[i], &name);
        PN_TRY(pn_text_check(&name));
        if (!is_step(quantity[i]) && !pn_hdf5_exists(file, name.data))
            for (hsize_t k = 0; k < rows; k++) row[k * count + i] = NAN;
        else
            PN_TRY(read_quantity(file, name.data, first, rows, count, row + i));
    }
fail:
    pn_text_free(&name);
    return status;
}

/* Old rows up to `last_step`. `row` is the caller's. */
static pinn_status read_rows(const pn_hdf5 *file, const char *const *quantity, size_t count, int64_t last_step, double **row,
                             size_t *rows) {
    double *all = NULL;
    hsize_t there = 0;
    size_t step = 0, bytes;
    pinn_status status;
    PN_TRY(count_rows(file, quantity, count, &there, &step));
    all = __builtin_mul_overflow((size_t)there, count * sizeof *all, &bytes) ? NULL : pn_allocate(bytes, 1);
    if (!all) {
        status = PN_NO_MEMORY("the old training record");
        goto fail;
    }
    PN_TRY(read_between(file, quantity, count, 0, there, all));
    *rows = kept_rows(all + step, there, count, last_step);
    *row = all;
    all = NULL;
fail:
    pn_free(all);
    return status;
}

/* The last of those rows alone; `found`: there is one. */
static pinn_status read_last(const pn_hdf5 *file, const char *const *quantity, size_t count, int64_t last_step, double *row,
                             bool *found) {
    double *column = NULL;
    hsize_t rows = 0;
    size_t step = 0;
    pinn_status status;
    PN_TRY(count_rows(file, quantity, count, &rows, &step));
    column = pn_allocate(rows, sizeof *column);
    if (!column) {
        status = PN_NO_MEMORY("the training record");
        goto fail;
    }
    PN_TRY(read_between(file, quantity + step, 1, 0, rows, column));
    rows = kept_rows(column, rows, 1, last_step);
    if (rows) PN_TRY(read_between(file, quantity, count, rows - 1, 1, row));
    *found = rows > 0;
fail:
    pn_free(column);
    return status;
}

pinn_status pn_events_last(const char *path, const char *const *quantity, size_t count, int64_t last_step, double *row,
                           bool *found) {
    pn_hdf5 file = {0};
    pinn_status status = check_quantities(path, quantity, count);
    double *last = status == PINN_OK ? pn_allocate(count, sizeof *last) : NULL;
    bool there = false;
    if (status != PINN_OK) return status;
    if (!last) return PN_NO_MEMORY("a row of the training record");
    pn_hdf5_enter();
    status = pn_hdf5_open(path, H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, &file);
    if (status == PINN_OK) status = read_last(&file, quantity, count, last_step, last, &there);
    pn_hdf5_close(file.id);
    pn_hdf5_leave();
    if (status == PINN_OK && there) memcpy(row, last, count * sizeof *row);
    if (status == PINN_OK) *found = there;
    pn_free(last);
    return status;
}

/* Renames the damaged file out of the way and words the warning; the thread's message says what is wrong. */
static pinn_status set_aside(const char *path, char **warning) {
    pinn_status status;
    pn_text text = {0};
    pn_text_printf(&text, "the old training record could not be read (%s); it is kept as ", pinn_error_message());
    PN_TRY(pn_text_check(&text));
    PN_TRY(pn_file_set_aside(path, "damaged", &text));
    pn_text_string(&text, " and a new one begins");
    *warning = text.data;
    text.data = NULL;
fail:
    pn_text_free(&text);
    return status;
}

static pinn_status resume(const char *path, const char *const *quantity, size_t count, int64_t last_step, pn_events **out,
                          char **warning) {
    pn_hdf5 old = {0};
    double *row = NULL;
    size_t rows = 0;
    pinn_status status = pn_hdf5_open(path, H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, &old);
    if (status == PINN_OK) status = read_rows(&old, quantity, count, last_step, &row, &rows);
    pn_hdf5_close(old.id);
    if (status == PINN_IO && access(path, F_OK) != 0) {
        const char text[] = "the old training record is gone; a new one begins";
        *warning = pn_duplicate(text, sizeof text - 1);
        status = *warning ? PINN_OK : PN_NO_MEMORY("a warning");
    } else if (status == PINN_IO && access(path, R_OK) == 0)
        status = set_aside(path, warning);
    if (status == PINN_OK) status = start(path, quantity, count, row, rows, out);
    pn_free(row);
    return status;
}

pinn_status pn_events_resume(const char *path, const char *const *quantity, size_t count, int64_t last_step, pn_events **out,
                             char **warning) {
    char *text = NULL;
    pinn_status status = check_quantities(path, quantity, count);
    if (status != PINN_OK) return status;
    sigset_t before;
    begin_writing(&before);
    status = resume(path, quantity, count, last_step, out, &text);
    end_writing(&before);
    if (status == PINN_OK && warning)
        *warning = text;
    else
        pn_free(text);
    return status;
}
