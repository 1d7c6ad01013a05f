/* Matrix products on a GPU's tensor cores in float32, at float32 accuracy or at tf32's. What product_cuda.c chooses from, and what tests
 * and benches look at one by one. */
#ifndef PN_NETWORK_PRODUCT_SPLIT_H
#define PN_NETWORK_PRODUCT_SPLIT_H

#include "network/product.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Kernels: a size of a block's tile of C and an accuracy, 0 <= tile < pn_split_tiles(). */
size_t pn_split_tiles(void);
const char *pn_split_name(size_t tile);
bool pn_split_is_tf32(size_t tile);

/* Whether such kernels take the product at all: not both operands transposed, rows and strides in memory multiples of 16 bytes,
 * addresses too. */
bool pn_split_takes(const pn_product *product, const void *a, const void *b, const void *c);
/* The tile of this accuracy, SIZE_MAX if it does not fit the present device or cannot cut the product. */
size_t pn_split_choose(const pn_product *product, bool tf32);
/* Launches on the stream (a cudaStream_t) of the present device; inside a capture too. The bits depend on the accuracy alone, not on
 * the tile or device. */
pinn_status pn_split_launch(const pn_product *product, size_t tile, void *stream, const void *a, const void *b, void *c);

#ifdef __cplusplus
}
#endif
#endif
