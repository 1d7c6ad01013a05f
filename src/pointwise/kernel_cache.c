/* Compiled code on disk, in $PINN_CACHE, $XDG_CACHE_HOME/pinn or ~/.cache/pinn, one file for each text compiled.
 *
 * A file is named by a hash of its key (the compiler's version, its options, the whole text), but holds the key itself, and is used only
 * if that is the one asked for: so a collision of hashes costs a compilation, never a wrong kernel. The code carries a checksum. Files
 * are written under a temporary name and renamed, so several processes may share the folder. (After SuiteSparse:GraphBLAS's JIT cache.)
 *
 *     pinn-code 1 <bytes of key> <bytes of code> <checksum of code>\n <key> <code> */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory.h"
#include "pointwise/kernel.h"

#define MOST_BYTES ((size_t)256 << 20)
#define HEADER "pinn-code 1 %zu %zu %016llx\n"

/* FNV-1a (Fowler, Noll & Vo), 64 bits. */
static unsigned long long hash(const void *data, size_t bytes, unsigned long long seed) {
    const unsigned char *c = data;
    unsigned long long h = 14695981039346656037ull ^ seed;
    for (size_t i = 0; i < bytes; i++) h = (h ^ c[i]) * 1099511628211ull;
    return h;
}

unsigned long long pn_cache_hash(const char *key) { return hash(key, strlen(key), 0); }

/* The folder, without making it; false when the environment names none. */
static bool cache_folder(pn_text *out) {
    const char *own = getenv("PINN_CACHE"), *shared = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (own && *own)
        pn_text_string(out, own);
    else if (shared && *shared)
        pn_text_printf(out, "%s/pinn", shared);
    else if (home && *home)
        pn_text_printf(out, "%s/.cache/pinn", home);
    else
        return false;
    return true;
}

static void make_folders(const char *path) {
    char *prefix = pn_duplicate(path, strlen(path));
    if (!prefix) return;
    for (char *c = prefix + 1; *c; c++) {
        if (*c != '/') continue;
        *c = '\0';
        mkdir(prefix, 0777);
        *c = '/';
    }
    mkdir(prefix, 0777);
    pn_free(prefix);
}

static void append_file_name(const char *key, pn_text *out) {
    const size_t bytes = strlen(key);
    pn_text_printf(out, "/%016llx%016llx.bin", hash(key, bytes, 0), hash(key, bytes, 0x9e3779b97f4a7c15ull));
}

/* The code in a file's content, if it is whole and belongs to the key. */
static const char *find_code(const pn_text *file, const char *key, size_t *bytes) {
    size_t key_bytes = 0, code_bytes = 0;
    unsigned long long checksum = 0;
    const char *line_end = file->data ? memchr(file->data, '\n', file->length < 128 ? file->length : 128) : NULL;
    if (!line_end || sscanf(file->data, HEADER, &key_bytes, &code_bytes, &checksum) != 3) return NULL;
    const char *stored = line_end + 1, *code = stored + key_bytes;
    const size_t rest = file->length - (size_t)(stored - file->data);
    if (key_bytes != strlen(key) || key_bytes > rest || code_bytes == 0 || code_bytes != rest - key_bytes) return NULL;
    if (memcmp(stored, key, key_bytes) != 0 || hash(code, code_bytes, 0) != checksum) return NULL;
    *bytes = code_bytes;
    return code;
}

bool pn_cache_find(const char *key, void **code, size_t *bytes) {
    pn_text path = {0}, file = {0};
    void *copy = NULL;
    size_t found_bytes = 0;
    if (cache_folder(&path)) {
        append_file_name(key, &path);
        const bool readable = pn_text_check(&path) == PINN_OK && pn_text_read_regular(&file, path.data, MOST_BYTES) == PINN_OK;
        const char *found = readable ? find_code(&file, key, &found_bytes) : NULL;
        if (found) copy = pn_allocate(found_bytes, 1);
        if (copy) memcpy(copy, found, found_bytes);
    }
    pn_text_free(&path);
    pn_text_free(&file);
    if (!copy) return false;
    *code = copy;
    *bytes = found_bytes;
    return true;
}

/* ---- what went wrong ------------------------------------------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static enum { NO_TROUBLE, TROUBLE, TOLD } state;
static char trouble[PN_CACHE_TROUBLE_BYTES]; /* the first */

static void remember_trouble(const char *reason) {
    pthread_mutex_lock(&lock);
    if (state == NO_TROUBLE) {
        snprintf(trouble, sizeof trouble,
                 "compiled kernels cannot be kept: %s; every start compiles them anew until PINN_CACHE names a folder that can be written", reason);
        state = TROUBLE;
    }
    pthread_mutex_unlock(&lock);
}

bool pn_cache_tell_trouble(char text[PN_CACHE_TROUBLE_BYTES]) {
    pthread_mutex_lock(&lock);
    const bool tell = state == TROUBLE;
    if (tell) {
        memcpy(text, trouble, sizeof trouble);
        state = TOLD;
    }
    pthread_mutex_unlock(&lock);
    return tell;
}

static bool has_trouble(void) {
    pthread_mutex_lock(&lock);
    const bool has = state != NO_TROUBLE;
    pthread_mutex_unlock(&lock);
    return has;
}

/* Writes a file into the folder, which is made where it is missing. `name` begins with the slash; `path`: empty before, the file's after. */
static bool write_file(const char *name, const pn_text *file, pn_text *path) {
    if (!cache_folder(path)) {
        remember_trouble("none of PINN_CACHE, XDG_CACHE_HOME and HOME is set");
        return false;
    }
    if (pn_text_check(path) == PINN_OK) make_folders(path->data);
    pn_text_string(path, name);
    if (pn_text_check(path) == PINN_OK && pn_text_write_file(file, path->data) == PINN_OK) return true;
    remember_trouble(pinn_error_message());
    return false;
}

bool pn_cache_can_keep(void) {
    enum { BYTES = 65536 }; /* a small kernel: a full disk has no room for it */
    static char byte[BYTES];
    const pn_text probe = {.data = byte, .length = BYTES};
    pn_text path = {0};
    const bool can = !has_trouble() && write_file("/probe", &probe, &path);
    if (can) unlink(path.data);
    pn_text_free(&path);
    return can;
}

void pn_cache_keep(const char *key, const void *code, size_t bytes) {
    pn_text path = {0}, name = {0}, file = {0};
    append_file_name(key, &name);
    pn_text_printf(&file, HEADER, strlen(key), bytes, hash(code, bytes, 0));
    pn_text_string(&file, key);
    pn_text_append(&file, code, bytes);
    if (pn_text_check(&name) == PINN_OK)
        write_file(name.data, &file, &path);
    else
        remember_trouble(pinn_error_message());
    pn_text_free(&path);
    pn_text_free(&name);
    pn_text_free(&file);
}
