/* A growable string. Appending never fails loudly: a failed growth marks the text, and pn_text_check reports it once at the end. */
#ifndef PN_CORE_TEXT_H
#define PN_CORE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pn_text {
    char *data;      /* zero-terminated, owned; NULL while empty */
    size_t length;   /* bytes, without the terminator */
    size_t capacity; /* bytes */
    bool failed;     /* memory ran out: the content is cut */
} pn_text;

void pn_text_append(pn_text *text, const char *bytes, size_t length);
void pn_text_string(pn_text *text, const char *string);
void pn_text_printf(pn_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void pn_text_vprintf(pn_text *text, const char *format, va_list list);
/* Shortest decimal that reads back as exactly `value` (%.17g at worst); inf and nan as "inf", "-inf", "nan". */
void pn_text_number(pn_text *text, double value);
/* "862832 bytes (842.6 KiB)": without the unit where it says nothing more. */
void pn_text_bytes(pn_text *text, size_t bytes);
/* Bytes of the UTF-8 character at `text` (RFC 3629: no overlong forms, no surrogates) and, through `code`, its number; 0 when the bytes
 * there are none. Reads no further than a zero byte. */
size_t pn_text_utf8(const char *text, unsigned *code);
bool pn_text_is_utf8(const char *text);
/* `string` between double quotes, escaped so that both JSON and TOML read it back; bytes that are not UTF-8 become U+FFFD. */
void pn_text_quoted(pn_text *text, const char *string);
/* The content as a C string, never NULL; borrowed until the next append. */
const char *pn_text_get(const pn_text *text);
pinn_status pn_text_check(const pn_text *text);
void pn_text_free(pn_text *text);

/* Whole file into `out` (appended). Errors name the path: missing, a directory, unreadable, larger than `limit` bytes. */
pinn_status pn_text_read_file(pn_text *out, const char *path, size_t limit);
/* The same for a regular file: a FIFO or device of that name is an error, not waited for. */
pinn_status pn_text_read_regular(pn_text *out, const char *path, size_t limit);
/* Writes a temporary name beside `path`, flushes it to disk, renames: `path` is either the old or the new content, never a mix. */
pinn_status pn_text_write_file(const pn_text *text, const char *path);

#ifdef __cplusplus
}
#endif
#endif
