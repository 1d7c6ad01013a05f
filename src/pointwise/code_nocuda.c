/* Without the CUDA Toolkit there is no device code to load. */
#include "core/status.h"
#include "pointwise/code.h"

static pinn_status unsupported(void) { return pn_fail(PINN_UNSUPPORTED, "this build has no CUDA: build it where the CUDA Toolkit is installed"); }

pinn_status pn_code_architecture(const pinn_context *context, char name[PN_ARCHITECTURE_BYTES]) {
    (void)context;
    (void)name;
    return unsupported();
}

pinn_status pn_code_limits(const pinn_context *context, size_t *shared_bytes, unsigned *processors) {
    (void)context;
    (void)shared_bytes;
    (void)processors;
    return unsupported();
}

pinn_status pn_code_load(const pinn_context *context, const char *name, const void *image, pn_code **out) {
    (void)context;
    (void)name;
    (void)image;
    (void)out;
    return unsupported();
}

pinn_status pn_code_share(pn_code *code, size_t shared_bytes) {
    (void)code;
    (void)shared_bytes;
    return unsupported();
}

void pn_code_unload(pn_code *code) { (void)code; }

pinn_status pn_code_launch(const pn_code *code, void *stream, unsigned blocks, unsigned threads, void *parameter) {
    (void)code;
    (void)stream;
    (void)blocks;
    (void)threads;
    (void)parameter;
    return unsupported();
}

pinn_status pn_code_launch_overlapping(const pn_code *code, void *stream, unsigned blocks, unsigned threads, void *parameter) {
    return pn_code_launch(code, stream, blocks, threads, parameter);
}
