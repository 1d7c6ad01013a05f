/* A histogram of particles' positions: how many lie in each of BATCH_BINS equal bins of [0, 1). Counts are integers, so the order
 * in which they are added does not matter. */
#ifndef BATCH_LOADER_H
#define BATCH_LOADER_H

#include "tutorial.h"

#define BATCH_BINS 64

typedef struct batch_sizes {
    uint64_t particles; /* of a batch */
} batch_sizes;

TUTORIAL_PORTABLE uint32_t batch_bin(float x) {
    const uint32_t bin = (uint32_t)(x * BATCH_BINS);
    return bin < BATCH_BINS ? bin : BATCH_BINS - 1;
}

#ifdef __cplusplus
extern "C" {
#endif
pinn_status batch_count_cuda(const pinn_run *run); /* reads x [particles], float; adds to count [BATCH_BINS], uint32 */
#ifdef __cplusplus
}
#endif
#endif
