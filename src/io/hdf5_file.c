/* HDF5 1.10 behind a handful of functions. See the HDF5 Reference Manual, H5F, H5E (error stacks). */
#include "io/hdf5_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "io/file.h"

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

void pn_hdf5_enter(void) {
    pthread_mutex_lock(&lock);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

void pn_hdf5_leave(void) { pthread_mutex_unlock(&lock); }

static herr_t keep_innermost(unsigned n, const H5E_error2_t *error, void *out) {
    if (n == 0 && error->desc) snprintf(out, 512, "%s", error->desc);
    return 0;
}

/* HDF5's drivers describe a failed system call over many fields; only strerror's text is for people. */
static char *describe(char text[512]) {
    text[0] = 0;
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_innermost, text);
    H5Eclear2(H5E_DEFAULT);
    static const char quote[] = "error message = '";
    char *start = strstr(text, quote);
    if (start) {
        start += sizeof quote - 1;
        start[strcspn(start, "'")] = 0;
        return start;
    }
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20) *c = ' ';
    return text[0] ? text : strcpy(text, "no reason given by HDF5");
}

pinn_status pn_hdf5_fail(const char *format, ...) {
    char reason[512], message[2048];
    const char *innermost = describe(reason);
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    return pn_fail(PINN_IO, "%s: %s", message, innermost);
}

void pn_hdf5_close(hid_t id) {
    if (id > 0) H5Idec_ref(id);
}

hid_t pn_hdf5_access(void) {
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (access >= 0 &&
        (H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST) < 0 || H5Pset_metadata_read_attempts(access, 1) < 0)) {
        H5Pclose(access);
        return H5I_INVALID_HID;
    }
    return access;
}

hid_t pn_hdf5_creation(hid_t class) {
    hid_t creation = H5Pcreate(class);
    if (creation >= 0 && H5Pset_obj_track_times(creation, false) < 0) {
        H5Pclose(creation);
        return H5I_INVALID_HID;
    }
    return creation;
}

pinn_status pn_hdf5_open(const char *path, unsigned flags, pn_hdf5 *out) {
    /* HDF5 doesn't tell these cases apart. */
    pinn_status status = pn_file_check_regular(path);
    if (status != PINN_OK) return status;
    int probe = open(path, O_RDONLY | O_CLOEXEC);
    if (probe < 0) return pn_fail(PINN_IO, "%s: cannot open: %s", path, strerror(errno));
    char byte;
    ssize_t got = read(probe, &byte, 1);
    int error = errno;
    close(probe);
    if (got < 0) return pn_fail(PINN_IO, "%s: cannot read: %s", path, strerror(error));
    if (H5Fis_hdf5(path) <= 0) {
        H5Eclear2(H5E_DEFAULT);
        return pn_fail(PINN_IO, "%s: is not an HDF5 file", path);
    }
    hid_t access = pn_hdf5_access();
    hid_t id = access < 0 ? access : H5Fopen(path, flags, access);
    pn_hdf5_close(access);
    if (id < 0) return pn_hdf5_fail("%s: cannot open, the file is damaged or still being written", path);
    *out = (pn_hdf5){id, path, false};
    return PINN_OK;
}

bool pn_hdf5_exists(const pn_hdf5 *file, const char *name) {
    char part[1024];
    size_t length = strlen(name);
    if (length >= sizeof part) return true;
    for (size_t i = 1; i <= length; i++) {
        if (name[i] != '/' && i != length) continue;
        memcpy(part, name, i);
        part[i] = 0;
        htri_t there = H5Lexists(file->id, part, H5P_DEFAULT);
        if (there <= 0) return there != 0;
    }
    return true;
}

static const char *type_name(hid_t type, char name[PN_HDF5_NAME]) {
    H5T_class_t class = H5Tget_class(type);
    const char *kind = class == H5T_FLOAT ? "float" : class == H5T_STRING ? "string" : "other data of";
    if (class == H5T_INTEGER) kind = H5Tget_sign(type) == H5T_SGN_NONE ? "uint" : "int";
    if (class == H5T_STRING)
        snprintf(name, PN_HDF5_NAME, "string");
    else
        snprintf(name, PN_HDF5_NAME, class == H5T_FLOAT || class == H5T_INTEGER ? "%s%zu" : "%s %zu bits", kind,
                 8 * H5Tget_size(type));
    return name;
}

const char *pn_hdf5_shape_name(int rank, const hsize_t *shape, char name[PN_HDF5_NAME]) {
    if (rank <= 0) {
        snprintf(name, PN_HDF5_NAME, "one number");
        return name;
    }
    size_t used = 0;
    for (int i = 0; i < rank && used < PN_HDF5_NAME - 2; i++) {
        int n = snprintf(name + used, PN_HDF5_NAME - 1 - used, "%s%llu", i ? ", " : "[", (unsigned long long)shape[i]);
        used += n < 0 ? 0 : (size_t)n;
    }
    if (used > PN_HDF5_NAME - 2) used = PN_HDF5_NAME - 2;
    memcpy(name + used, "]", 2);
    return name;
}

/* Byte order may differ (HDF5 converts it exactly); everything else may not. */
static bool same_type(hid_t a, hid_t b) {
    H5T_class_t class = H5Tget_class(a);
    return class == H5Tget_class(b) && H5Tget_size(a) == H5Tget_size(b) &&
           (class != H5T_INTEGER || H5Tget_sign(a) == H5Tget_sign(b));
}

static hid_t space_of(unsigned rank, const hsize_t *shape) {
    return rank ? H5Screate_simple((int)rank, shape, NULL) : H5Screate(H5S_SCALAR);
}

pinn_status pn_hdf5_put_group(const pn_hdf5 *file, const char *name) {
    hid_t creation = pn_hdf5_creation(H5P_GROUP_CREATE);
    hid_t group = creation < 0 ? creation : H5Gcreate2(file->id, name, H5P_DEFAULT, creation, H5P_DEFAULT);
    pinn_status status = group < 0 ? pn_hdf5_fail("%s: cannot make group \"%s\"", file->path, name) : PINN_OK;
    pn_hdf5_close(group);
    pn_hdf5_close(creation);
    return status;
}

/* By itself HDF5 would make them with the time of their creation. */
pinn_status pn_hdf5_put_groups_above(const pn_hdf5 *file, const char *name) {
    for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
        char *group = pn_duplicate(name, (size_t)(slash - name));
        if (!group) return PN_NO_MEMORY("a group's name");
        const htri_t there = H5Lexists(file->id, group, H5P_DEFAULT);
        const pinn_status status = there == 0 ? pn_hdf5_put_group(file, group) : PINN_OK;
        pn_free(group);
        if (status != PINN_OK) return status;
    }
    return PINN_OK;
}

/* HDF5 takes no NULL for the data of an empty dataset. */
static bool is_empty(unsigned rank, const hsize_t *shape) {
    for (unsigned i = 0; i < rank; i++)
        if (!shape[i]) return true;
    return false;
}

pinn_status pn_hdf5_put(const pn_hdf5 *file, const char *name, hid_t type, unsigned rank, const hsize_t *shape, const void *data) {
    pinn_status status = pn_hdf5_put_groups_above(file, name);
    if (status != PINN_OK) return status;
    hid_t creation = pn_hdf5_creation(H5P_DATASET_CREATE), space = space_of(rank, shape), set = H5I_INVALID_HID;
    if (creation >= 0 && space >= 0) set = H5Dcreate2(file->id, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    if (set < 0 || (!is_empty(rank, shape) && H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0))
        status = pn_hdf5_fail("%s: cannot make dataset \"%s\"", file->path, name);
    pn_hdf5_close(set);
    pn_hdf5_close(space);
    pn_hdf5_close(creation);
    return status;
}

/* `what` and `name`: 'dataset "u"'. */
static pinn_status check_layout(const pn_hdf5 *file, const char *what, const char *name, hid_t found_type, hid_t found_space,
                                hid_t type, unsigned rank, const hsize_t *shape) {
    char found[PN_HDF5_NAME], expected[PN_HDF5_NAME];
    if (!same_type(found_type, type))
        return pn_fail(PINN_IO, "%s: %s \"%s\" holds %s, expected %s", file->path, what, name, type_name(found_type, found),
                       type_name(type, expected));
    hsize_t found_shape[H5S_MAX_RANK] = {0};
    int found_rank = H5Sget_simple_extent_dims(found_space, found_shape, NULL);
    bool same = found_rank == (int)rank && H5Sget_simple_extent_type(found_space) != H5S_NULL;
    for (unsigned i = 0; same && i < rank; i++) same = found_shape[i] == shape[i];
    if (!same)
        return pn_fail(PINN_IO, "%s: %s \"%s\" has shape %s, expected %s", file->path, what, name,
                       pn_hdf5_shape_name(found_rank, found_shape, found), pn_hdf5_shape_name((int)rank, shape, expected));
    return PINN_OK;
}

pinn_status pn_hdf5_get(const pn_hdf5 *file, const char *name, hid_t type, unsigned rank, const hsize_t *shape, void *data) {
    pinn_status status = PINN_OK;
    hid_t found_type = H5I_INVALID_HID, space = H5I_INVALID_HID, set = H5Dopen2(file->id, name, H5P_DEFAULT);
    if (set < 0) {
        status = pn_hdf5_fail("%s: dataset \"%s\" is missing or damaged", file->path, name);
        goto fail;
    }
    found_type = H5Dget_type(set);
    space = H5Dget_space(set);
    if (found_type < 0 || space < 0) {
        status = pn_hdf5_fail("%s: dataset \"%s\" is damaged", file->path, name);
        goto fail;
    }
    PN_TRY(check_layout(file, "dataset", name, found_type, space, type, rank, shape));
    if (!is_empty(rank, shape) && H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0)
        status = pn_hdf5_fail("%s: cannot read dataset \"%s\"", file->path, name);
fail:
    pn_hdf5_close(space);
    pn_hdf5_close(found_type);
    pn_hdf5_close(set);
    return status;
}

pinn_status pn_hdf5_put_attribute(const pn_hdf5 *file, const char *name, hid_t type, const void *value) {
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t attribute = space < 0 ? space : H5Acreate2(file->id, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    pinn_status status = PINN_OK;
    if (attribute < 0 || H5Awrite(attribute, type, value) < 0)
        status = pn_hdf5_fail("%s: cannot make attribute \"%s\"", file->path, name);
    pn_hdf5_close(attribute);
    pn_hdf5_close(space);
    return status;
}

pinn_status pn_hdf5_get_attribute(const pn_hdf5 *file, const char *name, hid_t type, void *value) {
    pinn_status status = PINN_OK;
    hid_t found_type = H5I_INVALID_HID, space = H5I_INVALID_HID, attribute = H5Aopen(file->id, name, H5P_DEFAULT);
    if (attribute < 0) {
        status = pn_hdf5_fail("%s: attribute \"%s\" is missing or damaged", file->path, name);
        goto fail;
    }
    found_type = H5Aget_type(attribute);
    space = H5Aget_space(attribute);
    if (found_type < 0 || space < 0) {
        status = pn_hdf5_fail("%s: attribute \"%s\" is damaged", file->path, name);
        goto fail;
    }
    PN_TRY(check_layout(file, "attribute", name, found_type, space, type, 0, NULL));
    if (H5Aread(attribute, type, value) < 0) status = pn_hdf5_fail("%s: cannot read attribute \"%s\"", file->path, name);
fail:
    pn_hdf5_close(space);
    pn_hdf5_close(found_type);
    pn_hdf5_close(attribute);
    return status;
}

/* ---- texts ---- */

static hid_t text_type(size_t length) {
    hid_t type = H5Tcopy(H5T_C_S1);
    if (type >= 0 && (H5Tset_size(type, length + 1) < 0 || H5Tset_cset(type, H5T_CSET_UTF8) < 0)) {
        H5Tclose(type);
        return H5I_INVALID_HID;
    }
    return type;
}

pinn_status pn_hdf5_put_text(const pn_hdf5 *file, const char *name, const char *value) {
    enum { MOST = 60000 };
    char *cut = NULL;
    size_t length = strlen(value);
    if (length > MOST) {
        length = MOST;
        while (length && ((unsigned char)value[length] & 0xc0) == 0x80) length--;
        value = cut = pn_duplicate(value, length);
        if (!cut) return PN_NO_MEMORY("an attribute's text");
    }
    hid_t type = text_type(length);
    pinn_status status = pn_hdf5_put_attribute(file, name, type, value);
    pn_hdf5_close(type);
    pn_free(cut);
    return status;
}

pinn_status pn_hdf5_put_text_dataset(const pn_hdf5 *file, const char *name, const char *value) {
    hid_t type = text_type(strlen(value));
    pinn_status status = pn_hdf5_put(file, name, type, 0, NULL, value);
    pn_hdf5_close(type);
    return status;
}

/* What H5Dread and H5Aread have in common. */
typedef herr_t read_function(hid_t object, hid_t type, void *out);

static herr_t read_dataset(hid_t set, hid_t type, void *out) { return H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out); }

static pinn_status get_text(const pn_hdf5 *file, const char *what, const char *name, hid_t object, hid_t type, hid_t space,
                            read_function *get, char **value) {
    pinn_status status = PINN_OK;
    char found[PN_HDF5_NAME], *text = NULL;
    if (object < 0 || type < 0 || space < 0) {
        status = pn_hdf5_fail("%s: %s \"%s\" is missing or damaged", file->path, what, name);
        goto fail;
    }
    if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) != 0 || H5Sget_simple_extent_npoints(space) != 1) {
        status = pn_fail(PINN_IO, "%s: %s \"%s\" holds %s, expected one string of fixed length", file->path, what, name,
                         type_name(type, found));
        goto fail;
    }
    text = pn_allocate(H5Tget_size(type) + 1, 1);
    if (!text) {
        status = PN_NO_MEMORY("a text of an HDF5 file");
        goto fail;
    }
    if (get(object, type, text) < 0) {
        status = pn_hdf5_fail("%s: cannot read %s \"%s\"", file->path, what, name);
        goto fail;
    }
    *value = text;
    text = NULL;
fail:
    pn_free(text);
    pn_hdf5_close(space);
    pn_hdf5_close(type);
    pn_hdf5_close(object);
    return status;
}

pinn_status pn_hdf5_get_text(const pn_hdf5 *file, const char *name, char **value) {
    hid_t id = H5Aopen(file->id, name, H5P_DEFAULT), type = id < 0 ? id : H5Aget_type(id), space = id < 0 ? id : H5Aget_space(id);
    return get_text(file, "attribute", name, id, type, space, H5Aread, value);
}

pinn_status pn_hdf5_get_text_dataset(const pn_hdf5 *file, const char *name, char **value) {
    hid_t id = H5Dopen2(file->id, name, H5P_DEFAULT), type = id < 0 ? id : H5Dget_type(id), space = id < 0 ? id : H5Dget_space(id);
    return get_text(file, "dataset", name, id, type, space, read_dataset, value);
}

pinn_status pn_hdf5_put_names(const pn_hdf5 *file, const char *name, const char *const *value, size_t count) {
    size_t longest = 0;
    for (size_t i = 0; i < count; i++) longest = strlen(value[i]) > longest ? strlen(value[i]) : longest;
    const hsize_t shape = count;
    char *table = pn_allocate(count, longest + 1);
    if (!table) return PN_NO_MEMORY("a list of names");
    for (size_t i = 0; i < count; i++) memcpy(table + i * (longest + 1), value[i], strlen(value[i]));
    pinn_status status = PINN_OK;
    hid_t type = text_type(longest), space = H5Screate_simple(1, &shape, NULL), attribute = H5I_INVALID_HID;
    if (type >= 0 && space >= 0) attribute = H5Acreate2(file->id, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    if (attribute < 0 || H5Awrite(attribute, type, table) < 0)
        status = pn_hdf5_fail("%s: cannot make attribute \"%s\"", file->path, name);
    pn_hdf5_close(attribute);
    pn_hdf5_close(space);
    pn_hdf5_close(type);
    pn_free(table);
    return status;
}
