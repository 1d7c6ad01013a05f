/* HDF5 1.10 behind a handful of functions. See the HDF5 Reference Manual, H5F (core driver, file images) and H5E (error stacks). */
#include "io/hdf5_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
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
    if (access >= 0 && H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST) < 0) {
        H5Pclose(access);
        return H5I_INVALID_HID;
    }
    return access;
}

/* HDF5 gives a closed image's memory to a callback: the only way to a file that is marked as properly closed (H5Fget_file_image
 * clears the mark but leaves the superblock's checksum wrong, HDF5 1.10). Both variables are guarded by the lock. */
static bool capturing;
static void *captured;

static void *resize_image(void *image, size_t size, H5FD_file_image_op_t operation, void *user) {
    (void)operation, (void)user;
    return realloc(image, size);
}

static herr_t free_image(void *image, H5FD_file_image_op_t operation, void *user) {
    (void)user;
    if (capturing && operation == H5FD_FILE_IMAGE_OP_FILE_CLOSE)
        captured = image;
    else
        free(image);
    return 0;
}

pinn_status pn_hdf5_create_image(const char *path, pn_hdf5 *out) {
    enum { GROWTH = 1 << 20 }; /* bytes the image grows by */
    H5FD_file_image_callbacks_t callbacks = {.image_realloc = resize_image, .image_free = free_image};
    hid_t access = pn_hdf5_access(), id = H5I_INVALID_HID;
    /* A name that cannot exist: HDF5 would load a file it finds there. */
    if (access >= 0 && H5Pset_fapl_core(access, GROWTH, false) >= 0 && H5Pset_file_image_callbacks(access, &callbacks) >= 0)
        id = H5Fcreate("/dev/null/image", H5F_ACC_TRUNC, H5P_DEFAULT, access);
    pn_hdf5_close(access);
    if (id < 0) return pn_hdf5_fail("%s: cannot prepare the file in memory", path);
    *out = (pn_hdf5){id, path};
    return PINN_OK;
}

/* Length of the file in an image, whose memory is longer: "end of file address" of the superblock, versions 2 and 3, little-endian
 * (HDF5 File Format Specification 3.0, II.A). 0 = not such a file. */
static size_t image_length(const unsigned char *image) {
    enum { VERSION = 8, SIZE_OF_OFFSETS = 9, END_OF_FILE = 28 };
    size_t length = 0;
    if ((image[VERSION] != 2 && image[VERSION] != 3) || image[SIZE_OF_OFFSETS] != 8) return 0;
    for (int i = 7; i >= 0; i--) length = length << 8 | image[END_OF_FILE + i];
    return length;
}

pinn_status pn_hdf5_stage_image(pn_hdf5 *file) {
    capturing = true;
    captured = NULL;
    bool good = H5Fclose(file->id) >= 0 && captured;
    capturing = false;
    const size_t size = good ? image_length(captured) : 0;
    good = size > 0;
    file->id = 0;
    pinn_status status =
        good ? pn_file_stage(file->path, captured, size) : pn_hdf5_fail("%s: cannot lay out the file in memory", file->path);
    free(captured);
    captured = NULL;
    return status;
}

pinn_status pn_hdf5_write_image(pn_hdf5 *file) {
    pinn_status status = pn_hdf5_stage_image(file);
    return status == PINN_OK ? pn_file_commit(file->path) : status;
}

pinn_status pn_hdf5_open(const char *path, unsigned flags, pn_hdf5 *out) {
    /* HDF5 doesn't tell these cases apart. */
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
    *out = (pn_hdf5){id, path};
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

static hid_t with_groups(void) {
    hid_t links = H5Pcreate(H5P_LINK_CREATE);
    if (links >= 0) H5Pset_create_intermediate_group(links, 1);
    return links;
}

/* HDF5 takes no NULL for the data of an empty dataset. */
static bool is_empty(unsigned rank, const hsize_t *shape) {
    for (unsigned i = 0; i < rank; i++)
        if (!shape[i]) return true;
    return false;
}

pinn_status pn_hdf5_put(const pn_hdf5 *file, const char *name, hid_t type, unsigned rank, const hsize_t *shape, const void *data) {
    hid_t links = with_groups(), space = space_of(rank, shape);
    hid_t set = links < 0 || space < 0 ? H5I_INVALID_HID : H5Dcreate2(file->id, name, type, space, links, H5P_DEFAULT, H5P_DEFAULT);
    pinn_status status = PINN_OK;
    if (set < 0 || (!is_empty(rank, shape) && H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0))
        status = pn_hdf5_fail("%s: cannot make dataset \"%s\"", file->path, name);
    pn_hdf5_close(set);
    pn_hdf5_close(space);
    pn_hdf5_close(links);
    return status;
}

pinn_status pn_hdf5_put_group(const pn_hdf5 *file, const char *name) {
    hid_t group = H5Gcreate2(file->id, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    if (group < 0) return pn_hdf5_fail("%s: cannot make group \"%s\"", file->path, name);
    H5Gclose(group);
    return PINN_OK;
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

/* Variable length, UTF-8: kept in HDF5's heap, so that no 64 KiB limit of attributes applies, and read by h5py as str. */
static hid_t text_type(void) {
    hid_t type = H5Tcopy(H5T_C_S1);
    if (type >= 0) {
        H5Tset_size(type, H5T_VARIABLE);
        H5Tset_cset(type, H5T_CSET_UTF8);
    }
    return type;
}

pinn_status pn_hdf5_put_text(const pn_hdf5 *file, const char *name, const char *value) {
    hid_t type = text_type();
    pinn_status status = pn_hdf5_put_attribute(file, name, type, &value);
    pn_hdf5_close(type);
    return status;
}

pinn_status pn_hdf5_get_text(const pn_hdf5 *file, const char *name, char **value) {
    hid_t type = text_type();
    char *text = NULL, *copy = NULL;
    pinn_status status = PINN_OK;
    PN_TRY(pn_hdf5_get_attribute(file, name, type, &text));
    copy = pn_duplicate(text ? text : "", text ? strlen(text) : 0);
    if (!copy)
        status = PN_NO_MEMORY("an attribute's text");
    else
        *value = copy;
fail:
    if (text) H5free_memory(text);
    pn_hdf5_close(type);
    return status;
}
