/* Kernels in a build without CUDA: their text can be printed, not compiled or run. */
#include "core/status.h"
#include "pointwise/program.h"

static pinn_status without_cuda(void) {
    return pn_fail(PINN_UNSUPPORTED, "this build has no CUDA: kernels can be neither compiled nor run");
}

pinn_status pn_kernel_compile(const char *source, const char *architecture, void **cubin, size_t *bytes) {
    (void)source, (void)architecture, (void)cubin, (void)bytes;
    return without_cuda();
}

pinn_status pn_architecture_check(const char *name) {
    (void)name;
    return without_cuda();
}

pinn_status pn_kernel_create(pinn_context *context, const char *name, const pn_section *section, size_t count, pn_kernel **out) {
    (void)context, (void)name, (void)section, (void)count, (void)out;
    return without_cuda();
}

pinn_status pn_kernel_begin(pinn_context *context, const char *name, const char *entry, const pn_section *section, size_t count,
                            pn_kernel **out) {
    (void)context, (void)name, (void)entry, (void)section, (void)count, (void)out;
    return without_cuda();
}

pinn_status pn_kernel_finish(pn_kernel *kernel) {
    (void)kernel;
    return without_cuda();
}

pinn_status pn_compilation_begin(const char *source, const char *architecture, pn_compilation **out) {
    (void)source, (void)architecture, (void)out;
    return without_cuda();
}

pinn_status pn_compilation_end(pn_compilation *compilation, void **cubin, size_t *bytes) {
    (void)compilation, (void)cubin, (void)bytes;
    return without_cuda();
}

void pn_compilation_patience(const pn_patience *patience) { (void)patience; }

void pn_compilation_drop(pn_compilation *compilation) { (void)compilation; }

size_t pn_compiled_kernels(void) { return 0; }

size_t pn_asked_kernels(void) { return 0; }

void pn_kernel_destroy(pn_kernel *kernel) { (void)kernel; }

size_t pn_kernel_partial_rows(const pn_kernel *kernel, size_t section) {
    (void)kernel, (void)section;
    return 0;
}

pinn_status pn_kernel_launch(const pn_kernel *kernel, void *stream, const void *const *in, void *const *out, void *const *partial_real,
                             double *const *partial_f64) {
    (void)kernel, (void)stream, (void)in, (void)out, (void)partial_real, (void)partial_f64;
    return without_cuda();
}
