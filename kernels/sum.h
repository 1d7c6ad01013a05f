/* Sums in one fixed order, the same on CPU and GPU.
 *
 * A sum of n numbers over L lanes: lane l adds numbers l, l+L, l+2L, ... one after another, then the lanes fold in halves,
 * s[i] += s[i + h] for h = 16, 8, 4, 2, 1. With L = 1024 every group of 32 folds first, then the 32 groups' sums fold. On the GPU a
 * group is a warp and folding is a butterfly of shuffles; lane 0 of it adds exactly the pairs of the loop below.
 * The error grows with n/L + log2 L additions instead of n.
 */
#ifndef PN_KERNELS_SUM_H
#define PN_KERNELS_SUM_H

#include "kernels/portable.h"

#define PN_SUM_LANES 32
#define PN_SUM_WIDE (PN_SUM_LANES * PN_SUM_LANES) /* one thread block of the largest size */

#ifdef __CUDACC__

/* All 32 threads of the warp take part; each returns the sum. */
static __device__ __forceinline__ double pn_sum_fold(double sum) {
#pragma unroll
    for (int half = PN_SUM_LANES / 2; half > 0; half /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, half);
    return sum;
}

#else

/* Sum of lane[0..31]; overwrites them. */
static inline double pn_sum_fold(double *lane) {
    for (int half = PN_SUM_LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) lane[i] += lane[i + half];
    return lane[0];
}

/* Sum of lane[0..1023]; overwrites them. */
static inline double pn_sum_fold_wide(double *lane) {
    double group[PN_SUM_LANES];
    for (int i = 0; i < PN_SUM_LANES; i++) group[i] = pn_sum_fold(lane + i * PN_SUM_LANES);
    return pn_sum_fold(group);
}

#endif

#endif
