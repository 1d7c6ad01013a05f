/* New HDF5 files laid out in memory, and the seal by which a damaged one is known before HDF5 looks at it.
 *
 * A sealed file is an HDF5 file behind a user block of 512 bytes (HDF5 File Format Specification 3.0, II.A: the superblock may
 * begin at 512), which holds one line that names it, the SHA-256 of all that follows, and zeros. HDF5 1.10 can loop for ever over
 * damaged metadata; it is never shown any.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/file.h"
#include "io/hdf5_file.h"
#include "io/sha256.h"

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

static pinn_status create_image(const char *path, bool sealed, pn_hdf5 *out) {
    enum { GROWTH = 1 << 20 }; /* bytes the image grows by */
    H5FD_file_image_callbacks_t callbacks = {.image_realloc = resize_image, .image_free = free_image};
    hid_t access = pn_hdf5_access(), create = pn_hdf5_creation(H5P_FILE_CREATE), id = H5I_INVALID_HID;
    /* A name that cannot exist: HDF5 would load a file it finds there. */
    if (access >= 0 && create >= 0 && H5Pset_userblock(create, sealed ? PN_HDF5_SEAL : 0) >= 0 &&
        H5Pset_fapl_core(access, GROWTH, false) >= 0 && H5Pset_file_image_callbacks(access, &callbacks) >= 0)
        id = H5Fcreate("/dev/null/image", H5F_ACC_TRUNC, create, access);
    pn_hdf5_close(create);
    pn_hdf5_close(access);
    if (id < 0) return pn_hdf5_fail("%s: cannot prepare the file in memory", path);
    *out = (pn_hdf5){id, path, sealed};
    return PINN_OK;
}

pinn_status pn_hdf5_create_image(const char *path, pn_hdf5 *out) { return create_image(path, false, out); }

pinn_status pn_hdf5_create_sealed(const char *path, pn_hdf5 *out) { return create_image(path, true, out); }

/* Length of the file in an image, whose memory is longer: "end of file address" of the superblock, versions 2 and 3, little-endian
 * (HDF5 File Format Specification 3.0, II.A). 0 = not such a file. */
static size_t image_length(const unsigned char *image, bool sealed) {
    if (sealed) image += PN_HDF5_SEAL;
    enum { VERSION = 8, SIZE_OF_OFFSETS = 9, END_OF_FILE = 28 };
    size_t length = 0;
    if ((image[VERSION] != 2 && image[VERSION] != 3) || image[SIZE_OF_OFFSETS] != 8) return 0;
    for (int i = 7; i >= 0; i--) length = length << 8 | image[END_OF_FILE + i];
    return length;
}

static const char first_line[] = "Sealed HDF5 file: tail -c +513 FILE | sha256sum gives\n";

/* `hash`: of all that follows. */
static void write_seal(pn_sha256 *hash, char seal[PN_HDF5_SEAL]) {
    char hex[PN_SHA256_HEX];
    pn_sha256_end(hash, hex);
    memset(seal, 0, PN_HDF5_SEAL);
    snprintf(seal, PN_HDF5_SEAL, "%s%s\n", first_line, hex);
}

pinn_status pn_hdf5_stage_image(pn_hdf5 *file) {
    capturing = true;
    captured = NULL;
    bool good = H5Fclose(file->id) >= 0 && captured;
    capturing = false;
    const size_t size = good ? image_length(captured, file->sealed) : 0;
    good = size > PN_HDF5_SEAL;
    file->id = 0;
    if (good && file->sealed) {
        pn_sha256 hash;
        pn_sha256_begin(&hash);
        pn_sha256_add(&hash, (char *)captured + PN_HDF5_SEAL, size - PN_HDF5_SEAL);
        write_seal(&hash, captured);
    }
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

#define PUT_BACK "Put back a copy of it, or start anew with --force"

static pinn_status check_seal(const char *path, FILE *file) {
    char seal[PN_HDF5_SEAL], expected[PN_HDF5_SEAL], part[65536];
    size_t got;
    pn_sha256 hash;
    if (fread(seal, sizeof seal, 1, file) != 1 || memcmp(seal, first_line, sizeof first_line - 1) != 0)
        return ferror(file)
                   ? pn_fail(PINN_IO, "%s: cannot read: %s", path, strerror(errno))
                   : pn_fail(PINN_IO, "%s: is damaged, or pinn-train did not write it: there is no seal at its beginning. " PUT_BACK, path);
    pn_sha256_begin(&hash);
    while ((got = fread(part, 1, sizeof part, file)) > 0) pn_sha256_add(&hash, part, got);
    if (ferror(file)) return pn_fail(PINN_IO, "%s: cannot read: %s", path, strerror(errno));
    write_seal(&hash, expected);
    if (memcmp(seal, expected, sizeof seal) == 0) return PINN_OK;
    return pn_fail(PINN_IO, "%s: is damaged, or another program has changed it: its checksum does not match. " PUT_BACK, path);
}

pinn_status pn_hdf5_open_sealed(const char *path, pn_hdf5 *out) {
    pinn_status status = pn_file_check_regular(path);
    if (status != PINN_OK) return status;
    FILE *file = fopen(path, "rbe");
    if (!file) return pn_fail(PINN_IO, "%s: cannot open: %s", path, strerror(errno));
    status = check_seal(path, file);
    fclose(file);
    return status == PINN_OK ? pn_hdf5_open(path, H5F_ACC_RDONLY, out) : status;
}
