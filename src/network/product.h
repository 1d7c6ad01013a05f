/* Matrix products on row-major data: C = op(A) op(B), op(A) [m, k], op(B) [k, n], tightly packed; `batch` of them at
 * constant strides. */
#ifndef PN_NETWORK_PRODUCT_H
#define PN_NETWORK_PRODUCT_H

#include "core/real.h"
#include "core/status.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pn_product {
    bool transpose_a, transpose_b;       /* A is stored [k, m], B is stored [n, k] */
    size_t m, n, k;                      /* each at most INT_MAX */
    size_t batch;                        /* at least 1 */
    size_t stride_a, stride_b, stride_c; /* elements from one of the batch to the next */
} pn_product;

/* On the CPU, in the calling thread; `add` keeps what C holds, else C is overwritten (even NaN). Bits depend on the instruction set
 * and the sizes only. */
void pn_product_run(const pn_product *product, pn_real real, const void *a, const void *b, bool add, void *c);

/* On a GPU, on the stream the handle is set to: by product_split.h's kernel or by cuBLAS, chosen by sizes and device, or by
 * PINN_PRODUCTS=split|blas in the environment. Products have float32's accuracy unless `tf32`. UNSUPPORTED without CUDA. */
pinn_status pn_product_launch(const pn_product *product, pn_real real, bool tf32, void *handle, void *stream, const void *a,
                              const void *b, void *c);

#ifdef __cplusplus
}
#endif
#endif
