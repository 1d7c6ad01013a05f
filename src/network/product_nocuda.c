/* Builds without CUDA: no products on a GPU. */
#include "network/product_split.h"

pinn_status pn_product_launch(const pn_product *product, pn_real real, bool tf32, void *handle, void *stream, const void *a,
                              const void *b, void *c) {
    (void)product, (void)real, (void)tf32, (void)handle, (void)stream, (void)a, (void)b, (void)c;
    return pn_fail(PINN_UNSUPPORTED, "this build has no CUDA");
}

bool pn_split_takes(const pn_product *product, const void *a, const void *b, const void *c) {
    (void)product, (void)a, (void)b, (void)c;
    return false;
}

pinn_status pn_split_launch(const pn_product *product, void *stream, const void *a, const void *b, void *c) {
    (void)product, (void)stream, (void)a, (void)b, (void)c;
    return pn_fail(PINN_UNSUPPORTED, "this build has no CUDA");
}
