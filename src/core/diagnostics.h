/* Errors of the user's configuration: collected, so that one run reports all of them, each with file:line:column, the source
 * line, a caret, and how to repair it.
 *
 *   heat.toml:22:17: unknown name "alhpa"
 *     residual = "u_t - alhpa*u_xx"
 *                       ^
 *     did you mean "alpha"?
 */
#ifndef PN_CORE_DIAGNOSTICS_H
#define PN_CORE_DIAGNOSTICS_H

#include <stddef.h>

#include "core/text.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pn_position { /* 1-based; line 0 = the file as a whole, column 0 = the line as a whole; column counts bytes */
    unsigned line, column;
} pn_position;

typedef struct pn_diagnostic {
    pn_position at;
    char *message; /* owned */
    char *hint;    /* owned, or NULL */
} pn_diagnostic;

typedef struct pn_diagnostics {
    const char *file;   /* borrowed: the name shown */
    const char *source; /* borrowed: the file's whole text, for the caret line; NULL = show no source */
    pn_diagnostic *item;
    size_t count, capacity;
    size_t dropped; /* reported after the limit of 50, counted only */
} pn_diagnostics;

void pn_diagnostics_init(pn_diagnostics *list, const char *file, const char *source);
void pn_diagnostics_free(pn_diagnostics *list);
/* Adds one error; `hint` is a printf-style repair or NULL. Always returns PINN_CONFIG. */
pinn_status pn_diagnose(pn_diagnostics *list, pn_position at, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* All of them as the text above, in file order. */
void pn_diagnostics_print(const pn_diagnostics *list, pn_text *out);
/* PINN_OK when empty, else PINN_CONFIG with the whole print as the thread's error message. */
pinn_status pn_diagnostics_check(const pn_diagnostics *list);

/* The candidate nearest to `word` by edit distance (insert, delete, replace, swap), if near enough to be a misspelling; else NULL. */
const char *pn_nearest(const char *word, const char *const *candidates, size_t count);

#ifdef __cplusplus
}
#endif
#endif
