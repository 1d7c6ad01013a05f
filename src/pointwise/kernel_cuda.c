/* Kernels on the device: text compiled, code loaded, parameter filled in, launched. */
#include "core/memory.h"
#include "pointwise/code.h"
#include "pointwise/kernel.h"

struct pn_kernel {
    pn_grid grid;
    pn_code *code;
};

/* The sections' code for the context's device; `image` is the caller's (pn_free). */
static pinn_status compile_sections(const pinn_context *context, const char *name, const pn_section *section, size_t count, void **image) {
    pinn_status status;
    pn_text source = {0};
    char architecture[PN_ARCHITECTURE_BYTES];
    size_t bytes;
    const pn_program **program = pn_allocate(count, sizeof *program);
    if (!program) return PN_NO_MEMORY("a kernel");
    for (size_t i = 0; i < count; i++) program[i] = section[i].program;
    PN_TRY(pn_kernel_source(name, program, count, &source));
    PN_TRY(pn_code_architecture(context, architecture));
    PN_TRY(pn_kernel_compile(source.data, architecture, image, &bytes));
fail:
    pn_free(program);
    pn_text_free(&source);
    return status;
}

pinn_status pn_kernel_create(pinn_context *context, const char *name, const pn_section *section, size_t count, pn_kernel **out) {
    pinn_status status;
    void *image = NULL;
    if (pinn_context_executor(context) == PINN_EXECUTOR_CPU)
        return pn_fail(PINN_UNSUPPORTED, "kernel %s: the context runs on the CPU", name);
    pn_kernel *kernel = pn_allocate(1, sizeof *kernel);
    if (!kernel) return PN_NO_MEMORY("a kernel");
    PN_TRY(pn_grid_create(section, count, &kernel->grid));
    PN_TRY(compile_sections(context, name, section, count, &image));
    PN_TRY(pn_code_load(context, name, image, &kernel->code));
    pn_free(image);
    *out = kernel;
    return PINN_OK;
fail:
    pn_free(image);
    pn_kernel_destroy(kernel);
    return status;
}

void pn_kernel_destroy(pn_kernel *kernel) {
    if (!kernel) return;
    pn_code_unload(kernel->code);
    pn_grid_free(&kernel->grid);
    pn_free(kernel);
}

size_t pn_kernel_partial_rows(const pn_kernel *kernel, size_t section) { return kernel->grid.rows[section]; }

pinn_status pn_kernel_launch(const pn_kernel *kernel, void *stream, const void *const *in, void *const *out, void *const *partial_real,
                             double *const *partial_f64) {
    uint64_t word[PN_KERNEL_WORDS];
    if (kernel->grid.blocks == 0) return PINN_OK;
    const pinn_status status = pn_grid_check(&kernel->grid, in, out);
    if (status != PINN_OK) return status;
    pn_grid_fill(&kernel->grid, in, out, partial_real, partial_f64, word);
    return pn_code_launch(kernel->code, stream, kernel->grid.blocks, PN_BLOCK_THREADS, word);
}
