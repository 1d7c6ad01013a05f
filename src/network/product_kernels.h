/* The products of one instruction set; product.c chooses. */
#ifndef PN_NETWORK_PRODUCT_KERNELS_H
#define PN_NETWORK_PRODUCT_KERNELS_H

#include <string.h>

#include "network/product.h"

#define PN_PRODUCT_DEPTH 128   /* rows of a panel of B: 32 KiB of 64 float32 columns */
#define PN_PRODUCT_STRIDE 2048 /* bytes from row to row from which on a panel's rows fall into too few sets of a first-level cache */

/* Before a loop over the block of C, which lies in registers only when all its indices are constants. */
#ifdef __clang__
#define PN_UNROLLED _Pragma("clang loop unroll(full)")
#else
#define PN_UNROLLED _Pragma("GCC unroll 24")
#endif

typedef void pn_product_function(const pn_product *product, const void *a, const void *b, bool add, void *c);

typedef struct pn_product_kernels {
    const char *isa;
    pn_product_function *run[2]; /* by pn_real */
} pn_product_kernels;

extern const pn_product_kernels pn_product_sse2, pn_product_avx2, pn_product_avx512;

#endif
