/* Kernels on the device: text compiled, code loaded, parameter filled in, launched. */
#include <string.h>

#include "core/memory.h"
#include "pointwise/code.h"
#include "pointwise/kernel.h"

struct pn_kernel {
    pn_grid grid;
    const pinn_context *context; /* borrowed */
    char *name;                  /* owned, in messages */
    char *entry;                 /* owned, in the text */
    pn_compilation *compilation; /* until it is finished */
    pn_code *code;
};

static pinn_status begin_sections(pn_kernel *kernel, const pn_section *section, size_t count) {
    pinn_status status;
    pn_text source = {0};
    char architecture[PN_ARCHITECTURE_BYTES];
    const pn_program **program = pn_allocate(count, sizeof *program);
    if (!program) return PN_NO_MEMORY("a kernel");
    for (size_t i = 0; i < count; i++) program[i] = section[i].program;
    PN_TRY(pn_kernel_source(kernel->entry, program, count, &source));
    PN_TRY(pn_code_architecture(kernel->context, architecture));
    PN_TRY(pn_compilation_begin(source.data, architecture, &kernel->compilation));
fail:
    pn_free(program);
    pn_text_free(&source);
    return status;
}

pinn_status pn_kernel_begin(pinn_context *context, const char *name, const char *entry, const pn_section *section, size_t count,
                            pn_kernel **out) {
    pinn_status status;
    if (pinn_context_executor(context) == PINN_EXECUTOR_CPU)
        return pn_fail(PINN_UNSUPPORTED, "kernel %s: the context runs on the CPU", name);
    pn_kernel *kernel = pn_allocate(1, sizeof *kernel);
    if (!kernel) return PN_NO_MEMORY("a kernel");
    kernel->context = context;
    kernel->name = pn_duplicate(name, strlen(name));
    kernel->entry = pn_duplicate(entry, strlen(entry));
    if (!kernel->name || !kernel->entry) {
        status = PN_NO_MEMORY("a kernel");
        goto fail;
    }
    PN_TRY(pn_grid_create(section, count, &kernel->grid));
    PN_TRY(begin_sections(kernel, section, count));
    *out = kernel;
    return PINN_OK;
fail:
    pn_kernel_destroy(kernel);
    return status;
}

pinn_status pn_kernel_finish(pn_kernel *kernel) {
    void *image = NULL;
    if (!kernel->compilation) return PINN_OK;
    pinn_status status = pn_compilation_end(kernel->compilation, &image, NULL);
    kernel->compilation = NULL;
    if (status == PINN_OK) status = pn_code_load(kernel->context, kernel->entry, image, &kernel->code);
    pn_free(image);
    return status == PINN_OK ? status : pn_fail_within(status, "kernel %s", kernel->name);
}

pinn_status pn_kernel_create(pinn_context *context, const char *name, const pn_section *section, size_t count, pn_kernel **out) {
    pn_kernel *kernel = NULL;
    pinn_status status = pn_kernel_begin(context, name, name, section, count, &kernel);
    if (status == PINN_OK) status = pn_kernel_finish(kernel);
    if (status == PINN_OK)
        *out = kernel;
    else
        pn_kernel_destroy(kernel);
    return status;
}

void pn_kernel_destroy(pn_kernel *kernel) {
    if (!kernel) return;
    pn_compilation_drop(kernel->compilation);
    pn_code_unload(kernel->code);
    pn_grid_free(&kernel->grid);
    pn_free(kernel->name);
    pn_free(kernel->entry);
    pn_free(kernel);
}

size_t pn_kernel_partial_rows(const pn_kernel *kernel, size_t section) { return kernel->grid.rows[section]; }

pinn_status pn_kernel_launch(const pn_kernel *kernel, void *stream, const void *const *in, void *const *out, void *const *partial_real,
                             double *const *partial_f64) {
    uint64_t word[PN_KERNEL_WORDS];
    if (kernel->grid.blocks == 0) return PINN_OK;
    if (!kernel->code) return pn_fail(PINN_BAD_ARGUMENT, "kernel %s is launched before it is finished", kernel->name);
    const pinn_status status = pn_grid_check(&kernel->grid, in, out);
    if (status != PINN_OK) return status;
    pn_grid_fill(&kernel->grid, in, out, partial_real, partial_f64, word);
    return pn_code_launch(kernel->code, stream, kernel->grid.blocks, PN_BLOCK_THREADS, word);
}
