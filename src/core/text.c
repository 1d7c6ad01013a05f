/* Growable strings, exact decimal numbers, whole files. */
#include "core/text.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory.h"

static bool reserve(pn_text *text, size_t more) {
    if (text->failed) return false;
    size_t need = text->length + more + 1;
    if (need <= text->capacity) return true;
    size_t capacity = text->capacity ? text->capacity : 128;
    while (capacity < need) capacity *= 2;
    char *data = pn_reallocate(text->data, text->data ? text->length + 1 : 0, capacity, 1);
    if (!data) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void pn_text_append(pn_text *text, const char *bytes, size_t length) {
    if (!reserve(text, length)) return;
    if (length) memcpy(text->data + text->length, bytes, length);
    text->length += length;
    text->data[text->length] = 0;
}

void pn_text_string(pn_text *text, const char *string) { pn_text_append(text, string, strlen(string)); }

void pn_text_vprintf(pn_text *text, const char *format, va_list list) {
    va_list again;
    va_copy(again, list);
    int length = vsnprintf(NULL, 0, format, list);
    if (length < 0)
        text->failed = true;
    else if (reserve(text, (size_t)length)) {
        vsnprintf(text->data + text->length, (size_t)length + 1, format, again);
        text->length += (size_t)length;
    }
    va_end(again);
}

void pn_text_printf(pn_text *text, const char *format, ...) {
    va_list list;
    va_start(list, format);
    pn_text_vprintf(text, format, list);
    va_end(list);
}

void pn_text_number(pn_text *text, double value) {
    if (isnan(value)) {
        pn_text_string(text, "nan");
        return;
    }
    if (isinf(value)) {
        pn_text_string(text, value < 0 ? "-inf" : "inf");
        return;
    }
    char decimal[40];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(decimal, sizeof decimal, "%.*g", digits, value);
        if (strtod(decimal, NULL) == value) break;
    }
    pn_text_string(text, decimal);
}

void pn_text_bytes(pn_text *text, size_t bytes) {
    static const char *const unit[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    enum { UNITS = sizeof unit / sizeof unit[0] };
    size_t u = 0;
    double value = (double)bytes / 1024;
    for (; value >= 1023.95 && u + 1 < UNITS; u++) value /= 1024; /* what would be printed as 1024.0 */
    pn_text_printf(text, "%zu byte%s", bytes, bytes == 1 ? "" : "s");
    if (bytes >= 1024) pn_text_printf(text, " (%.1f %s)", value, unit[u]);
}

size_t pn_text_utf8(const char *text, unsigned *code) {
    static const struct {
        unsigned char mask, mark;
        unsigned least; /* smaller numbers have a shorter form */
    } form[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    const unsigned char *byte = (const unsigned char *)text;
    size_t more = 0;
    while (more < 4 && (byte[0] & form[more].mask) != form[more].mark) more++;
    if (more == 4) return 0;
    unsigned number = byte[0] & (unsigned char)~form[more].mask;
    for (size_t i = 1; i <= more; i++) {
        if ((byte[i] & 0xc0) != 0x80) return 0;
        number = number << 6 | (byte[i] & 0x3fu);
    }
    if (number < form[more].least || number > 0x10ffff || (number >= 0xd800 && number < 0xe000)) return 0;
    *code = number;
    return more + 1;
}

bool pn_text_is_utf8(const char *text) {
    unsigned code;
    for (size_t length; *text; text += length)
        if ((length = pn_text_utf8(text, &code)) == 0) return false;
    return true;
}

void pn_text_quoted(pn_text *text, const char *string) {
    pn_text_append(text, "\"", 1);
    while (*string) {
        unsigned code;
        const size_t length = pn_text_utf8(string, &code);
        if (length == 0)
            pn_text_string(text, "\\ufffd");
        else if (code == '"' || code == '\\')
            pn_text_printf(text, "\\%c", (int)code);
        else if (code == '\n')
            pn_text_string(text, "\\n");
        else if (code < 0x20 || code == 0x7f)
            pn_text_printf(text, "\\u%04x", code);
        else
            pn_text_append(text, string, length);
        string += length ? length : 1;
    }
    pn_text_append(text, "\"", 1);
}

const char *pn_text_get(const pn_text *text) { return text->data ? text->data : ""; }

pinn_status pn_text_check(const pn_text *text) { return text->failed ? PN_NO_MEMORY("a text") : PINN_OK; }

void pn_text_free(pn_text *text) {
    pn_free(text->data);
    *text = (pn_text){0};
}

static pinn_status read_stream(pn_text *out, FILE *file, const char *path, size_t limit) {
    char block[65536];
    size_t total = 0, got;
    while ((got = fread(block, 1, sizeof block, file)) > 0) {
        total += got;
        if (total > limit) return pn_fail(PINN_IO, "%s: larger than %zu bytes", path, limit);
        pn_text_append(out, block, got);
    }
    if (ferror(file)) return pn_fail(PINN_IO, "%s: %s", path, strerror(errno));
    return pn_text_check(out);
}

/* `regular`: nothing else is read, and opening waits for nobody (a FIFO's writer). */
static pinn_status read_file(pn_text *out, const char *path, size_t limit, bool regular) {
    struct stat info;
    pinn_status status;
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC | (regular ? O_NONBLOCK : 0));
    FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "rb");
    if (!file) {
        status = pn_fail(PINN_IO, "%s: %s", path, strerror(errno));
        if (descriptor >= 0) close(descriptor);
        return status;
    }
    const bool known = fstat(descriptor, &info) == 0;
    if (known && S_ISDIR(info.st_mode))
        status = pn_fail(PINN_IO, "%s: is a directory", path);
    else if (regular && !(known && S_ISREG(info.st_mode)))
        status = pn_fail(PINN_IO, "%s: is no regular file", path);
    else
        status = read_stream(out, file, path, limit);
    fclose(file);
    return status;
}

pinn_status pn_text_read_file(pn_text *out, const char *path, size_t limit) { return read_file(out, path, limit, false); }
pinn_status pn_text_read_regular(pn_text *out, const char *path, size_t limit) { return read_file(out, path, limit, true); }

static bool write_all(int file, const char *data, size_t length) {
    while (length) {
        ssize_t done = write(file, data, length);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        data += done;
        length -= (size_t)done;
    }
    return true;
}

pinn_status pn_text_write_file(const pn_text *text, const char *path) {
    pinn_status status = pn_text_check(text);
    if (status != PINN_OK) return status;
    pn_text temporary = {0};
    int file = -1;
    pn_text_printf(&temporary, "%s.%ld.tmp", path, (long)getpid());
    PN_TRY(pn_text_check(&temporary));
    file = open(temporary.data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    bool good = file >= 0 && write_all(file, pn_text_get(text), text->length) && fsync(file) == 0;
    if (file >= 0 && close(file) != 0) good = false;
    if (!good || rename(temporary.data, path) != 0) {
        status = pn_fail(PINN_IO, "%s: cannot write: %s", path, strerror(errno));
        unlink(temporary.data);
    }
fail:
    pn_text_free(&temporary);
    return status;
}
