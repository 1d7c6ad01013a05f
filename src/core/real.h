/* The two precisions a problem can be trained in. */
#ifndef PN_CORE_REAL_H
#define PN_CORE_REAL_H

#include <stddef.h>

typedef enum pn_real { PN_FLOAT32, PN_FLOAT64 } pn_real;

static inline size_t pn_real_bytes(pn_real real) { return real == PN_FLOAT32 ? sizeof(float) : sizeof(double); }

static inline double pn_real_get(pn_real real, const void *array, size_t i) {
    return real == PN_FLOAT32 ? (double)((const float *)array)[i] : ((const double *)array)[i];
}

static inline void pn_real_set(pn_real real, void *array, size_t i, double value) {
    if (real == PN_FLOAT32)
        ((float *)array)[i] = (float)value;
    else
        ((double *)array)[i] = value;
}

#endif
