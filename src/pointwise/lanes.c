/* Chooses the instruction set of the vector interpreter. */
#include "pointwise/lanes.h"

#include <stdlib.h>
#include <string.h>

const pn_lanes *pn_lanes_select(void) {
    const pn_lanes *const set[] = {&pn_lanes_sse2, &pn_lanes_avx2, &pn_lanes_avx512};
    size_t best = 0;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) best = 1;
    if (best == 1 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        best = 2;
    const char *wanted = getenv("PINN_ISA");
    for (size_t i = 0; wanted && i < best; i++)
        if (strcmp(wanted, set[i]->isa) == 0) best = i;
    return set[best];
}
