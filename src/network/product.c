/* Matrix products on the CPU: the choice of an instruction set, the same as the interpreter's.
 *
 * Why not a BLAS: a pass multiplies tall matrices by small square ones that all fit a core's cache, from many threads at once. OpenBLAS
 * of Debian 12 takes SSE3 kernels on processors younger than itself (15 instead of 105 GFLOP/s a core on Emerald Rapids), which a
 * library cannot repair from inside the process, and its bits depend on its version. */
#include <string.h>

#include "network/product_kernels.h"
#include "pointwise/program.h"

void pn_product_run(const pn_product *p, pn_real real, const void *a, const void *b, bool add, void *c) {
    const pn_product_kernels *const set[] = {&pn_product_sse2, &pn_product_avx2, &pn_product_avx512};
    const size_t bytes = pn_real_bytes(real);
    const char *isa = pn_program_isa();
    pn_product_function *run = pn_product_sse2.run[real];
    for (size_t i = 0; i < sizeof set / sizeof set[0]; i++)
        if (strcmp(isa, set[i]->isa) == 0) run = set[i]->run[real];
    for (size_t i = 0; i < p->batch; i++)
        run(p, (const char *)a + i * p->stride_a * bytes, (const char *)b + i * p->stride_b * bytes, add,
            (char *)c + i * p->stride_c * bytes);
}
