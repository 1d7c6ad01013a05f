/* Matrix products on a GPU's tensor cores in float32, at float32's accuracy: what product_cuda.c chooses beside cuBLAS, and what tests and
 * benches look at by itself. */
#ifndef PN_NETWORK_PRODUCT_SPLIT_H
#define PN_NETWORK_PRODUCT_SPLIT_H

#include "network/product.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether the present device takes the product at all: not both operands transposed, rows and strides in memory multiples of 16 bytes,
 * addresses too. */
bool pn_split_takes(const pn_product *product, const void *a, const void *b, const void *c);
/* Launches on the stream (a cudaStream_t) of the present device; inside a capture too. The bits do not depend on the device. */
pinn_status pn_split_launch(const pn_product *product, void *stream, const void *a, const void *b, void *c);

#ifdef __cplusplus
}
#endif
#endif
