/* The progress line on standard error: a live line on a terminal, a plain line every few seconds elsewhere. */
#ifndef PN_IO_PROGRESS_H
#define PN_IO_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct pn_progress pn_progress;

typedef struct pn_progress_state {
    uint64_t step, steps; /* done, of */
    double loss, learning_rate;
    double steps_per_second;   /* recent */
    const char *const *field;  /* [fields] */
    const double *relative_l2; /* [fields]; NaN = not known */
    size_t fields;
} pn_progress_state;

/* `quiet` prints nothing. NULL on lack of memory is fine for the other calls. */
pn_progress *pn_progress_create(FILE *stream, bool quiet);
/* Prints if enough time has passed since the last line (0.2 s on a terminal, 5 s elsewhere) or `force`. */
void pn_progress_update(pn_progress *progress, const pn_progress_state *state, bool force);
/* A whole line of its own, leaving the live line intact. */
void pn_progress_line(pn_progress *progress, const char *format, ...) __attribute__((format(printf, 2, 3)));
void pn_progress_destroy(pn_progress *progress);

#endif
