/* Sums in one fixed order, the same on CPU and GPU.
 *
 * A sum of n numbers over L lanes: lane l adds numbers l, l+L, l+2L, ... one after another, then the lanes fold in halves,
 * s[i] += s[i + h] for h = L/2 ... 2, 1. With L = 32 G every group of 32 folds first, then the G groups' sums fold. On the GPU a
 * group is a warp and folding is a butterfly of shuffles; lane 0 of it adds exactly the pairs of the loop below. The error grows
 * with n/L + log2 L additions instead of n.
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

/* Eight numbers, `stride` apart, fold in halves. */
static __device__ __forceinline__ double pn_sum_fold_eight(const double *s, unsigned stride) {
    return ((s[0] + s[4 * stride]) + (s[2 * stride] + s[6 * stride])) +
           ((s[stride] + s[5 * stride]) + (s[3 * stride] + s[7 * stride]));
}

/* One thread's share of a sum: numbers first, first + step, ... below `count`, number i at value[i * stride], which go to `lanes`
 * lanes in turn (1, or 2 that then fold). Up to `batch` loads are on their way before the first is added: a loop that waits for
 * memory in every turn takes longer than all else a short kernel does. They go out in fours, of which none is done in vain. Adding
 * 0 for a number past the last changes no bit: a lane begins as +0 and so never is -0. The numbers are read for the last time: the second-level
 * cache gives up their place first, not that of what the next pass will read. count < 2^31. */
template <unsigned step, unsigned batch, unsigned lanes, typename real>
static __device__ __forceinline__ double pn_sum_strided(const real *__restrict__ value, uint64_t stride, unsigned first,
                                                        unsigned count) {
    static_assert((lanes == 1 || lanes == 2) && batch % 4 == 0, "one lane, or two that every four fill alike");
    const uint64_t jump = step * stride;
    double lane[lanes] = {};
#pragma unroll 1
    for (unsigned base = first; base < count; base += step * batch) {
        const real *from = value + base * stride;
        real next[batch];
#pragma unroll
        for (unsigned four = 0; four < batch; four += 4)
            if (base + step * four < count)
#pragma unroll
                for (unsigned j = four; j < four + 4; j++, from += jump) next[j] = base + step * j < count ? __ldcs(from) : (real)0;
#pragma unroll
        for (unsigned four = 0; four < batch; four += 4)
            if (base + step * four < count)
#pragma unroll
                for (unsigned j = four; j < four + 4; j++) lane[j % lanes] += (double)next[j];
    }
    return lanes == 1 ? lane[0] : lane[0] + lane[lanes - 1];
}

#else

/* Sum of lane[0..31]; overwrites them. */
static inline double pn_sum_fold(double *lane) {
    for (int half = PN_SUM_LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) lane[i] += lane[i + half];
    return lane[0];
}

/* Sum of lane[0..32*groups-1]; overwrites them. groups: a power of two, at most 32. */
static inline double pn_sum_fold_groups(double *lane, int groups) {
    double group[PN_SUM_LANES];
    for (int i = 0; i < groups; i++) group[i] = pn_sum_fold(lane + i * PN_SUM_LANES);
    for (int half = groups / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) group[i] += group[i + half];
    return group[0];
}

#endif

#endif
