/* Whole files that are never half-written, and the two fsyncs that make a rename last. */
#ifndef PN_IO_FILE_H
#define PN_IO_FILE_H

#include <limits.h>
#include <signal.h>
#include <stddef.h>

#include "core/text.h"

/* Around writes of a thread that is not the library's own: one beyond a limit of file sizes (ulimit -f) becomes EFBIG instead of a
 * SIGXFSZ that ends the program. Nests. */
void pn_file_guard(sigset_t *before);
void pn_file_unguard(const sigset_t *before);
/* An error for what is no regular file: to open a pipe or a device may wait for ever. */
pinn_status pn_file_check_regular(const char *path);
/* Writes `path`.tmp, flushes it to disk, renames it over `path` and flushes the directory: after a crash or on a full disk `path`
 * is the old content or the new one, whole. One writer a path: the run directory's lock sees to it. */
pinn_status pn_file_write(const char *path, const void *bytes, size_t length);
/* The two halves of that: the temporary file, whole and on disk; its renaming (which removes it on failure). */
pinn_status pn_file_stage(const char *path, const void *bytes, size_t length);
pinn_status pn_file_commit(const char *path);
/* Renames `path` to `path`.SUFFIX, or `path`.SUFFIX.2 and so on: never over an older one. `kept`: the new name (appended). */
pinn_status pn_file_set_aside(const char *path, const char *suffix, pn_text *kept);
/* `path`.tmp, in `name`: longer than any path may be, so that what doesn't fit is refused by the system. */
enum { PN_FILE_NAME = PATH_MAX + 8 };
const char *pn_file_temporary(const char *path, char name[PN_FILE_NAME]);
/* Flushes a file's data and length to disk. */
pinn_status pn_file_sync(const char *path);
/* Flushes the directory entry of `path`. File systems that cannot flush directories are let pass. */
pinn_status pn_file_sync_directory(const char *path);
/* "DIR/name"; owned by the caller (pn_free). NULL when memory is short. */
char *pn_file_join(const char *directory, const char *name);

#endif
