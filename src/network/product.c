/* Matrix products on the CPU: the choice of an instruction set, the same as the interpreter's.
 *
 * Why not a BLAS: a pass multiplies tall matrices by small square ones that all fit a core's cache, from many threads at once. OpenBLAS
 * of Debian 12 takes SSE3 kernels on processors younger than itself (15 instead of 105 GFLOP/s a core on Emerald Rapids), which a
 * library cannot repair from inside the process, and its bits depend on its version. */
#include <stdatomic.h>
#include <string.h>

#include "network/product_kernels.h"
#include "pointwise/program.h"

static const pn_product_kernels *choose(void) {
    const pn_product_kernels *const set[] = {&pn_product_avx512, &pn_product_avx2, &pn_product_sse2};
    const char *isa = pn_program_isa();
    size_t i = 0;
    while (i + 1 < sizeof set / sizeof set[0] && strcmp(isa, set[i]->isa) != 0) i++;
    return set[i];
}

void pn_product_run(const pn_product *p, pn_real real, const void *a, const void *b, bool add, void *c) {
    static _Atomic(const pn_product_kernels *) chosen; /* threads that race here choose the same */
    const pn_product_kernels *kernels = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (!kernels) atomic_store_explicit(&chosen, kernels = choose(), memory_order_relaxed);
    const size_t bytes = pn_real_bytes(real);
    for (size_t i = 0; i < p->batch; i++)
        kernels->run[real](p, (const char *)a + i * p->stride_a * bytes, (const char *)b + i * p->stride_b * bytes, add,
                           (char *)c + i * p->stride_c * bytes);
}
