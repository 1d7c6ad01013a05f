/* Atomic replacement of a file: write beside, fsync, rename, fsync the directory (POSIX rename(2); the order is that of ext4's and
 * SQLite's advice for a file that must survive power loss). */
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/memory.h"

char *pn_file_join(const char *directory, const char *name) {
    pn_text text = {0};
    pn_text_printf(&text, "%s/%s", directory, name);
    char *joined = text.failed ? NULL : pn_duplicate(text.data, text.length);
    pn_text_free(&text);
    return joined;
}

const char *pn_file_temporary(const char *path, char name[PN_FILE_NAME]) {
    snprintf(name, PN_FILE_NAME, "%s.tmp", path);
    return name;
}

void pn_file_guard(sigset_t *before) {
    sigset_t limit;
    sigemptyset(&limit);
    sigaddset(&limit, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &limit, before);
}

/* A SIGXFSZ that came meanwhile is pending for this thread; it is taken away, or it would be delivered now. */
void pn_file_unguard(const sigset_t *before) {
    if (!sigismember(before, SIGXFSZ)) {
        sigset_t limit;
        sigemptyset(&limit);
        sigaddset(&limit, SIGXFSZ);
        while (sigtimedwait(&limit, NULL, &(struct timespec){0}) > 0) continue;
    }
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

pinn_status pn_file_check_regular(const char *path) {
    struct stat info;
    if (stat(path, &info) != 0) return pn_fail(PINN_IO, "%s: cannot open: %s", path, strerror(errno));
    if (S_ISDIR(info.st_mode)) return pn_fail(PINN_IO, "%s: is a directory, not a file", path);
    if (!S_ISREG(info.st_mode)) return pn_fail(PINN_IO, "%s: is no regular file", path);
    return PINN_OK;
}

static bool write_all(int file, const char *bytes, size_t length) {
    while (length) {
        ssize_t done = write(file, bytes, length);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return false;
        bytes += done;
        length -= (size_t)done;
    }
    return true;
}

/* Closes in every case, keeps the errno of the first failure. */
static bool write_and_close(int file, const void *bytes, size_t length) {
    bool good = write_all(file, bytes, length) && fsync(file) == 0;
    int error = errno;
    if (close(file) != 0 && good) {
        good = false;
        error = errno;
    }
    errno = error;
    return good;
}

pinn_status pn_file_stage(const char *path, const void *bytes, size_t length) {
    char name[PN_FILE_NAME];
    const char *temporary = pn_file_temporary(path, name);
    pinn_status status = PINN_OK;
    sigset_t before;
    pn_file_guard(&before);
    int file = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0)
        status = pn_fail(PINN_IO, "%s: cannot create: %s", temporary, strerror(errno));
    else if (!write_and_close(file, bytes, length)) {
        status = pn_fail(PINN_IO, "%s: cannot write: %s; the old file, if any, is untouched", path, strerror(errno));
        unlink(temporary);
    }
    pn_file_unguard(&before);
    return status;
}

pinn_status pn_file_commit(const char *path) {
    char name[PN_FILE_NAME];
    const char *temporary = pn_file_temporary(path, name);
    pinn_status status = PINN_OK;
    if (rename(temporary, path) != 0) {
        status = pn_fail(PINN_IO, "%s: cannot rename to %s: %s", temporary, path, strerror(errno));
        unlink(temporary);
    }
    return status == PINN_OK ? pn_file_sync_directory(path) : status;
}

pinn_status pn_file_write(const char *path, const void *bytes, size_t length) {
    pinn_status status = pn_file_stage(path, bytes, length);
    return status == PINN_OK ? pn_file_commit(path) : status;
}

pinn_status pn_file_set_aside(const char *path, const char *suffix, pn_text *kept) {
    pn_text name = {0};
    pinn_status status;
    pn_text_printf(&name, "%s.%s", path, suffix);
    for (int n = 2; !name.failed && access(name.data, F_OK) == 0; n++) {
        name.length = 0;
        pn_text_printf(&name, "%s.%s.%d", path, suffix, n);
    }
    PN_TRY(pn_text_check(&name));
    pn_text_string(kept, name.data);
    PN_TRY(pn_text_check(kept));
    if (rename(path, name.data) != 0) status = pn_fail(PINN_IO, "%s: cannot rename to %s: %s", path, name.data, strerror(errno));
fail:
    pn_text_free(&name);
    return status;
}

pinn_status pn_file_sync(const char *path) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return pn_fail(PINN_IO, "%s: %s", path, strerror(errno));
    pinn_status status = PINN_OK;
    if (fsync(file) != 0) status = pn_fail(PINN_IO, "%s: cannot flush to disk: %s", path, strerror(errno));
    close(file);
    return status;
}

pinn_status pn_file_sync_directory(const char *path) {
    char directory[PN_FILE_NAME];
    const char *slash = strrchr(path, '/');
    snprintf(directory, sizeof directory, "%.*s", slash ? (int)(slash - path + 1) : 1, slash ? path : ".");
    int file = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool good = file >= 0 && (fsync(file) == 0 || errno == EINVAL || errno == ENOTSUP);
    pinn_status status =
        good ? PINN_OK : pn_fail(PINN_IO, "%s: cannot flush the directory to disk: %s", directory, strerror(errno));
    if (file >= 0) close(file);
    return status;
}
