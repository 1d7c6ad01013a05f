/* Matrix products on the CPU: OpenBLAS. */
#include "network/product.h"

#include <cblas.h>

void pn_product_hold_threads(void) { openblas_set_num_threads(1); }

void pn_product_run(const pn_product *p, pn_real real, const void *a, const void *b, double beta, void *c) {
    const CBLAS_TRANSPOSE ta = p->transpose_a ? CblasTrans : CblasNoTrans, tb = p->transpose_b ? CblasTrans : CblasNoTrans;
    const blasint m = (blasint)p->m, n = (blasint)p->n, k = (blasint)p->k;
    const blasint lda = p->transpose_a ? m : k, ldb = p->transpose_b ? k : n;
    for (size_t i = 0; i < p->batch; i++) {
        if (real == PN_FLOAT32)
            cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, 1.0f, (const float *)a + i * p->stride_a, lda, (const float *)b + i * p->stride_b,
                        ldb, (float)beta, (float *)c + i * p->stride_c, n);
        else
            cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, 1.0, (const double *)a + i * p->stride_a, lda, (const double *)b + i * p->stride_b,
                        ldb, beta, (double *)c + i * p->stride_c, n);
    }
}
