/* Positions and excerpts of an expression's text, for error messages. */
#include <stdio.h>
#include <string.h>

#include "expression/internal.h"

void pn_source_report(pn_source *source, size_t offset, const char *hint, const char *format, ...) {
    if (source->errors++ >= PN_MAX_ERRORS) return;
    pn_position at = source->at;
    for (size_t i = 0; i < offset; i++) {
        at.column++;
        if (source->text[i] == '\n') {
            at.line++;
            at.column = 1;
        }
    }
    for (size_t i = 0; i < source->list->count; i++) { /* the first error at a place tells more than what follows from it */
        const pn_position other = source->list->item[i].at;
        if (other.line == at.line && other.column == at.column) return;
    }
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    pn_diagnose(source->list, at, hint, "%s", message);
}

pn_excerpt pn_source_excerpt(const pn_source *source, size_t begin, size_t end) {
    pn_excerpt excerpt;
    size_t length = end - begin, most = sizeof excerpt.text - 1;
    bool cut = length > most;
    if (cut) length = most - 3;
    for (size_t i = 0; i < length; i++) {
        char c = source->text[begin + i];
        excerpt.text[i] = c == '\n' || c == '\r' || c == '\t' ? ' ' : c;
    }
    memcpy(excerpt.text + length, cut ? "..." : "", cut ? 4 : 1);
    return excerpt;
}
