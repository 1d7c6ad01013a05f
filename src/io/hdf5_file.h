/* The few things this program does with HDF5, with messages that name file, object, expected and found.
 *
 * hdf5_file.c: objects of an open file; hdf5_image.c: new files.
 *
 * New files are built in memory (HDF5's core driver) and written by pn_file_write: HDF5 itself never meets a full disk there, which
 * it survives badly (a file whose flush failed can't be closed, and the library crashes at exit).
 */
#ifndef PN_IO_HDF5_FILE_H
#define PN_IO_HDF5_FILE_H

#include <hdf5.h>
#include <stdbool.h>

#include "core/real.h"
#include "core/status.h"

typedef struct pn_hdf5 {
    hid_t id;         /* open file */
    const char *path; /* borrowed, for messages */
    bool sealed;      /* a new file that will be */
} pn_hdf5;

/* Around every use of HDF5 (Debian's library is not thread-safe): takes the process-wide recursive lock, and keeps HDF5 from
 * printing its error stack. */
void pn_hdf5_enter(void);
void pn_hdf5_leave(void);

/* PINN_IO with "message: HDF5's innermost description" (the operating system's text where HDF5 quotes one). */
pinn_status pn_hdf5_fail(const char *format, ...) __attribute__((format(printf, 1, 2), cold));
/* Closes an object of any kind; ids <= 0 are skipped, so that a cleanup block needs no tests. */
void pn_hdf5_close(hid_t id);
/* File access properties every file here is opened with: the latest format, which SWMR needs and which keeps a checksum with all
 * metadata; no second attempt at metadata that don't match it: who reads here reads what nobody writes. Close it. */
hid_t pn_hdf5_access(void);
/* Properties to create an object with, by their class: H5P_DATASET_CREATE, H5P_GROUP_CREATE, or H5P_FILE_CREATE for the root. No object
 * keeps the times of its creation and changes, so that equal contents are equal bytes. Close it. */
hid_t pn_hdf5_creation(hid_t class);

/* An empty file in memory; `path` is where pn_hdf5_write_image will put it. */
pinn_status pn_hdf5_create_image(const char *path, pn_hdf5 *out);
/* The same for a file whose first PN_HDF5_SEAL bytes will hold a checksum of the rest. */
enum { PN_HDF5_SEAL = 512 };
pinn_status pn_hdf5_create_sealed(const char *path, pn_hdf5 *out);
/* Closes the image and writes its bytes to its path, atomically. Every other object of it must be closed before. */
pinn_status pn_hdf5_write_image(pn_hdf5 *file);
/* The same up to the temporary file; pn_file_commit renames it. */
pinn_status pn_hdf5_stage_image(pn_hdf5 *file);

/* Opens for reading; `flags` as for H5Fopen. Says apart: missing, no regular file, no HDF5 file, damaged. */
pinn_status pn_hdf5_open(const char *path, unsigned flags, pn_hdf5 *out);
/* Opens a sealed file for reading, after all its bytes were checked: HDF5 sees no damaged one. */
pinn_status pn_hdf5_open_sealed(const char *path, pn_hdf5 *out);
/* Whether every link of "a/b/c" exists; true also where HDF5 cannot tell (a damaged group): opening it then says why. */
bool pn_hdf5_exists(const pn_hdf5 *file, const char *name);

/* Datasets; rank 0 is a scalar. Intermediate groups of `name` are made. */
pinn_status pn_hdf5_put(const pn_hdf5 *file, const char *name, hid_t type, unsigned rank, const hsize_t *shape, const void *data);
/* Strict: the dataset has this shape and this very type. */
pinn_status pn_hdf5_get(const pn_hdf5 *file, const char *name, hid_t type, unsigned rank, const hsize_t *shape, void *data);
/* An empty group. */
pinn_status pn_hdf5_put_group(const pn_hdf5 *file, const char *name);
/* The groups "a" and "a/b" of "a/b/c", where they are missing. */
pinn_status pn_hdf5_put_groups_above(const pn_hdf5 *file, const char *name);

/* Text as a string of fixed length, UTF-8: variable lengths would lie in HDF5's global heap, which no checksum guards. As an
 * attribute of the root (under 64 KiB; longer ones are cut between two characters) or a dataset. A text that is read is owned by
 * the caller (pn_free). */
pinn_status pn_hdf5_put_text(const pn_hdf5 *file, const char *name, const char *value);
pinn_status pn_hdf5_get_text(const pn_hdf5 *file, const char *name, char **value);
pinn_status pn_hdf5_put_text_dataset(const pn_hdf5 *file, const char *name, const char *value);
pinn_status pn_hdf5_get_text_dataset(const pn_hdf5 *file, const char *name, char **value);
/* A list of names as an attribute of the root. */
pinn_status pn_hdf5_put_names(const pn_hdf5 *file, const char *name, const char *const *value, size_t count);

/* Scalar attributes of the file's root. */
pinn_status pn_hdf5_put_attribute(const pn_hdf5 *file, const char *name, hid_t type, const void *value);
pinn_status pn_hdf5_get_attribute(const pn_hdf5 *file, const char *name, hid_t type, void *value);

static inline hid_t pn_hdf5_real(pn_real real) { return real == PN_FLOAT32 ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE; }

/* Room for a shape "[2, 3]" or a type "float32" as text. */
enum { PN_HDF5_NAME = 128 };
const char *pn_hdf5_shape_name(int rank, const hsize_t *shape, char name[PN_HDF5_NAME]);

#endif
