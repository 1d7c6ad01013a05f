/* The clock that durations are measured with. */
#ifndef PN_CORE_CLOCK_H
#define PN_CORE_CLOCK_H

#include <time.h>

/* Seconds since some fixed moment; never set back. */
static inline double pn_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
