/* Matrix products on row-major data: C = op(A) op(B) + beta C, op(A) [m, k], op(B) [k, n], tightly packed; `batch` of them at
 * constant strides. */
#ifndef PN_NETWORK_PRODUCT_H
#define PN_NETWORK_PRODUCT_H

#include "core/real.h"
#include "core/status.h"

#include <stdbool.h>

typedef struct pn_product {
    bool transpose_a, transpose_b;       /* A is stored [k, m], B is stored [n, k] */
    size_t m, n, k;                      /* each at most INT_MAX */
    size_t batch;                        /* at least 1 */
    size_t stride_a, stride_b, stride_c; /* elements from one of the batch to the next */
} pn_product;

/* By CBLAS in the calling thread; see pn_product_hold_threads. */
void pn_product_run(const pn_product *product, pn_real real, const void *a, const void *b, double beta, void *c);

/* Holds OpenBLAS to one thread a call, for the whole process: the pass calls it from inside its own OpenMP threads, which is safe
 * then, and a product's bits don't depend on the number of cores. To be called outside of parallel regions. */
void pn_product_hold_threads(void);

/* By cuBLAS on the stream the handle is set to, beta = 0. Products are of true float32 unless `tf32`. UNSUPPORTED without CUDA. */
pinn_status pn_product_launch(const pn_product *product, pn_real real, bool tf32, void *handle, void *stream, const void *a,
                              const void *b, void *c);

#endif
