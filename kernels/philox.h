/* Philox4x32-10: four random words as a pure function of a 128-bit counter and a 64-bit key.
 *
 * Ten rounds; each multiplies two of the words by odd constants, keeps the low halves and mixes the high halves with the other two
 * words and the key; the key steps by two Weyl constants between rounds. No state: any word can be made without any other.
 * J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011. The bits are those
 * of Random123 and of cuRAND (tests/kernels/test_kernel_philox.c holds it to the published vectors and to Random123).
 */
#ifndef PN_KERNELS_PHILOX_H
#define PN_KERNELS_PHILOX_H

#include "kernels/portable.h"

typedef struct pn_philox_block {
    uint32_t word[4];
} pn_philox_block;

PN_PORTABLE pn_philox_block pn_philox(uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3, uint32_t k0, uint32_t k1) {
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u; /* golden ratio */
        k1 += 0xBB67AE85u; /* sqrt(3) - 1 */
    }
    pn_philox_block block = {{c0, c1, c2, c3}};
    return block;
}

/* Middle of the word's cell of (0,1): 2^24 cells. The sum rounds once, to nearest even; above 1/2 the middle is a tie, so the
 * largest word gives exactly 1. */
PN_PORTABLE float pn_uniform_float(uint32_t word) { return (float)(word >> 8) * 0x1p-24f + 0x1p-25f; }

/* The same with 2^53 cells from two words. */
PN_PORTABLE double pn_uniform_double(uint32_t high, uint32_t low) {
    return (double)(((uint64_t)high << 32 | low) >> 11) * 0x1p-53 + 0x1p-54;
}

#endif
