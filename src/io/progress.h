/* The progress line on standard error: a live line on a terminal, a plain line every few seconds elsewhere. */
#ifndef PN_IO_PROGRESS_H
#define PN_IO_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct pn_progress pn_progress;

typedef struct pn_progress_state {
    uint64_t step, steps;       /* done, of */
    double loss, learning_rate; /* of that step; NaN = not known, here and below: left out */
    double steps_per_second;    /* recent; 0 = not known */
    const char *const *field;   /* [fields] */
    const double *relative_l2;  /* [fields] */
    size_t fields;
    uint64_t evaluated;         /* the step that relative_l2 is of; told where that is not the present one */
} pn_progress_state;

/* A recent rate: what was done lately counts, what is older less and less. All zero: nothing yet. */
typedef struct pn_progress_rate {
    double steps, seconds;
} pn_progress_rate;

/* `seconds` more have passed, with `steps` done in them. */
void pn_progress_rate_add(pn_progress_rate *rate, double steps, double seconds);
double pn_progress_rate_get(const pn_progress_rate *rate);

/* `quiet` prints nothing. NULL on lack of memory is fine for the other calls. */
pn_progress *pn_progress_create(FILE *stream, bool quiet);
/* Prints if enough time has passed since the last line (0.2 s on a terminal, 5 s elsewhere) or `force`. */
void pn_progress_update(pn_progress *progress, const pn_progress_state *state, bool force);
/* Around whatever else is written to the terminal, in whole lines: takes the live line away, and puts it back below. Between the two
 * this thread has the stream to itself. */
void pn_progress_pause(pn_progress *progress);
void pn_progress_resume(pn_progress *progress);
void pn_progress_destroy(pn_progress *progress);

#endif
