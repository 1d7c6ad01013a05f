/* Collected errors with file, line, column, source line and caret; nearest names. */
#include "core/diagnostics.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

#define MAX_DIAGNOSTICS 50
#define MAX_SHOWN_LINE 160 /* bytes of a source line printed around the caret */

void pn_diagnostics_init(pn_diagnostics *list, const char *file, const char *source) {
    *list = (pn_diagnostics){.file = file, .source = source};
}

void pn_diagnostics_free(pn_diagnostics *list) {
    for (size_t i = 0; i < list->count; i++) {
        pn_free(list->item[i].message);
        pn_free(list->item[i].hint);
    }
    pn_free(list->item);
    list->item = NULL;
    list->count = list->capacity = 0;
}

pinn_status pn_diagnose(pn_diagnostics *list, pn_position at, const char *hint, const char *format, ...) {
    if (list->count == MAX_DIAGNOSTICS) {
        list->dropped++;
        return PINN_CONFIG;
    }
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 8;
        pn_diagnostic *item = pn_reallocate(list->item, list->count, capacity, sizeof *item);
        if (!item) {
            list->dropped++; /* still an error: check() looks at both counts */
            return PINN_CONFIG;
        }
        list->item = item;
        list->capacity = capacity;
    }
    pn_text message = {0};
    va_list arguments;
    va_start(arguments, format);
    pn_text_vprintf(&message, format, arguments);
    va_end(arguments);
    list->item[list->count++] = (pn_diagnostic){
        .at = at, .message = message.data, .hint = hint ? pn_duplicate(hint, strlen(hint)) : NULL};
    return PINN_CONFIG;
}

static int earlier(const void *a, const void *b) {
    const pn_diagnostic *const *first = a, *const *second = b;
    const pn_position p = (*first)->at, q = (*second)->at;
    if (p.line != q.line) return p.line < q.line ? -1 : 1;
    if (p.column != q.column) return p.column < q.column ? -1 : 1;
    return *first < *second ? -1 : *first > *second; /* as reported */
}

static bool is_continuation(char byte) { return ((unsigned char)byte & 0xc0) == 0x80; } /* of a UTF-8 character */

/* The source line with a caret under the column; long lines are cut to a window around it. */
static void print_source(const pn_diagnostics *list, pn_position at, pn_text *out) {
    if (!list->source || at.line == 0) return;
    const char *line = list->source;
    for (unsigned i = 1; i < at.line; i++) {
        line = strchr(line, '\n');
        if (!line) return;
        line++;
    }
    size_t length = strcspn(line, "\r\n"), caret = at.column ? at.column - 1 : 0;
    if (caret > length) caret = length;
    size_t from = caret > MAX_SHOWN_LINE / 2 && length > MAX_SHOWN_LINE ? caret - MAX_SHOWN_LINE / 2 : 0;
    size_t shown = length - from < MAX_SHOWN_LINE ? length - from : MAX_SHOWN_LINE;
    for (; is_continuation(line[from]) && from < caret; from++) shown--; /* no character is cut in two */
    while (shown && from + shown < length && is_continuation(line[from + shown])) shown--;
    pn_text_string(out, "  ");
    for (size_t i = 0; i < shown; i++) { /* raw control bytes would move the terminal's cursor */
        unsigned char c = (unsigned char)line[from + i];
        pn_text_append(out, c < 0x20 || c == 0x7f ? " " : (const char *)&line[from + i], 1);
    }
    if (at.column) {
        pn_text_string(out, "\n  ");
        for (size_t i = from; i < from + (caret - from); i++)
            if (!is_continuation(line[i])) pn_text_string(out, " "); /* one column a UTF-8 character */
        pn_text_string(out, "^");
    }
    pn_text_string(out, "\n");
}

void pn_diagnostics_print(const pn_diagnostics *list, pn_text *out) {
    const pn_diagnostic **order = pn_allocate(list->count, sizeof *order);
    if (!order) {
        out->failed = true;
        return;
    }
    for (size_t i = 0; i < list->count; i++) order[i] = &list->item[i];
    qsort(order, list->count, sizeof *order, earlier);
    for (size_t i = 0; i < list->count; i++) {
        const pn_diagnostic *item = order[i];
        pn_text_string(out, list->file);
        if (item->at.line) pn_text_printf(out, ":%u", item->at.line);
        if (item->at.line && item->at.column) pn_text_printf(out, ":%u", item->at.column);
        pn_text_printf(out, ": %s\n", item->message ? item->message : "(no memory for the message)");
        print_source(list, item->at, out);
        if (item->hint) pn_text_printf(out, "  %s\n", item->hint);
    }
    if (list->dropped) pn_text_printf(out, "%s: and %zu more errors\n", list->file, list->dropped);
    pn_free(order);
}

pinn_status pn_diagnostics_check(const pn_diagnostics *list) {
    if (list->count == 0 && list->dropped == 0) return PINN_OK;
    pn_text text = {0};
    pn_diagnostics_print(list, &text);
    if (text.length && text.data[text.length - 1] == '\n') text.data[--text.length] = 0;
    pn_fail(PINN_CONFIG, "%s", pn_text_get(&text));
    pn_text_free(&text);
    return PINN_CONFIG;
}

/* Optimal string alignment distance (edits and swaps of neighbours), words up to 63 bytes. */
static size_t distance(const char *a, const char *b) {
    size_t n = strlen(a), m = strlen(b);
    if (n > 63 || m > 63) return SIZE_MAX;
    size_t row[3][64] = {{0}};
    size_t *before = row[0], *previous = row[1], *current = row[2];
    for (size_t j = 0; j <= m; j++) previous[j] = j;
    for (size_t i = 1; i <= n; i++) {
        current[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = previous[j - 1] + (a[i - 1] != b[j - 1]);
            if (previous[j] + 1 < best) best = previous[j] + 1;
            if (current[j - 1] + 1 < best) best = current[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < best) best = before[j - 2] + 1;
            current[j] = best;
        }
        size_t *recycled = before;
        before = previous;
        previous = current;
        current = recycled;
    }
    return previous[m];
}

const char *pn_nearest(const char *word, const char *const *candidates, size_t count) {
    const char *best = NULL;
    size_t length = strlen(word), limit = length <= 2 ? 1 : length <= 5 ? 2 : 3, nearest = limit + 1;
    for (size_t i = 0; i < count; i++) {
        size_t d = distance(word, candidates[i]);
        /* Everything in the word replaced is no misspelling. */
        if (d < nearest && d < strlen(candidates[i]) && d < length) {
            nearest = d;
            best = candidates[i];
        }
    }
    return best;
}
