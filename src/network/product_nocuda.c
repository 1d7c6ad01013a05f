/* Builds without CUDA: no products on a GPU. */
#include "network/product_split.h"

#include <stdint.h>

pinn_status pn_product_launch(const pn_product *product, pn_real real, bool tf32, void *handle, void *stream, const void *a,
                              const void *b, void *c) {
    (void)product, (void)real, (void)tf32, (void)handle, (void)stream, (void)a, (void)b, (void)c;
    return pn_fail(PINN_UNSUPPORTED, "this build has no CUDA");
}

size_t pn_split_tiles(void) { return 0; }

const char *pn_split_name(size_t tile) {
    (void)tile;
    return "";
}

bool pn_split_is_tf32(size_t tile) {
    (void)tile;
    return false;
}

bool pn_split_takes(const pn_product *product, const void *a, const void *b, const void *c) {
    (void)product, (void)a, (void)b, (void)c;
    return false;
}

size_t pn_split_choose(const pn_product *product, bool tf32) {
    (void)product, (void)tf32;
    return SIZE_MAX;
}

pinn_status pn_split_launch(const pn_product *product, size_t tile, void *stream, const void *a, const void *b, void *c) {
    (void)product, (void)tile, (void)stream, (void)a, (void)b, (void)c;
    return pn_fail(PINN_UNSUPPORTED, "this build has no CUDA");
}
