/* Measures the product peak through the same product calls that the network pass uses. */
#include "network/peak.h"

#include <math.h>
#include <omp.h>

#include "core/clock.h"
#include "core/memory.h"
#include "network/product.h"

enum { GPU_SIZE = 8192, CPU_SIZE = 256 /* fits a second-level cache in float64 too */, REPETITIONS = 16, GPU_LAUNCHES = 3, CPU_LAUNCHES = 100 };
static const double repetition = 0.1, most = 1; /* seconds; a build for debugging is a hundred times slower */

typedef struct peak {
    pn_real real;
    bool tf32;
    size_t size;
} peak;

static pn_product square(size_t n) { return (pn_product){.m = n, .n = n, .k = n, .batch = 1}; }

static pinn_status multiply_cuda(const pinn_run *run) {
    const peak *p = run->arguments;
    const pn_product product = square(p->size);
    return pn_product_launch(&product, p->real, p->tf32, pinn_context_blas(run->context), run->stream, run->read[0], run->read[0],
                             run->write[0]);
}

static pinn_status multiply_cpu(const pinn_run *run) {
    const peak *p = run->arguments;
    const pn_product product = square(p->size);
    const size_t matrix = p->size * p->size * pn_real_bytes(p->real);
#pragma omp parallel
    pn_product_run(&product, p->real, run->read[0], run->read[0], false, (char *)run->write[0] + (size_t)omp_get_thread_num() * matrix);
    return PINN_OK;
}

static const pinn_operation multiply = {"square product", multiply_cpu, multiply_cuda};

/* Numbers of mixed sign and size: hardware can run faster on zeros. */
static pinn_status fill(pinn_plane *plane, pn_real real, size_t count) {
    void *value = pn_allocate(count, pn_real_bytes(real));
    if (!value) return PN_NO_MEMORY("the product peak");
    for (size_t i = 0; i < count; i++) pn_real_set(real, value, i, (double)(i * 2654435761u % 2001) / 1000.0 - 1.0);
    pinn_status status = pinn_plane_write(plane, 0, value, count * pn_real_bytes(real));
    pn_free(value);
    return status;
}

pinn_status pn_product_peak(pinn_context *context, pn_real real, bool tf32, double *operations_per_second) {
    const bool cpu = pinn_context_executor(context) == PINN_EXECUTOR_CPU;
    const peak p = {.real = real, .tf32 = tf32, .size = cpu ? CPU_SIZE : GPU_SIZE};
    const size_t copies = cpu ? (size_t)omp_get_max_threads() : 1;
    const size_t matrix = p.size * p.size * pn_real_bytes(real);
    pinn_plane *factor = NULL, *product = NULL;
    pinn_graph *graph = NULL;
    double best = 0;
    pinn_status status;
    PN_TRY(pinn_plane_create(context, "factor", PINN_DEVICE, matrix, &factor));
    PN_TRY(pinn_plane_create(context, "product", PINN_DEVICE, copies * matrix, &product));
    PN_TRY(fill(factor, real, p.size * p.size));
    PN_TRY(pinn_graph_create(context, "product peak", &graph));
    PN_TRY(pinn_graph_begin(graph));
    PN_TRY(pinn_graph_operation(graph, &multiply, &p, sizeof p, PINN_PLANES(factor), PINN_PLANES(product)));
    PN_TRY(pinn_graph_launch(graph, 1));
    const double begin = pn_clock();
    PN_TRY(pinn_graph_launch(graph, 1));
    const uint64_t repeat = (uint64_t)fmin(fmax(repetition / (pn_clock() - begin), 1), cpu ? CPU_LAUNCHES : GPU_LAUNCHES);
    for (int i = 0; i < REPETITIONS && (best == 0 || pn_clock() - begin < most); i++) {
        const double start = pn_clock();
        PN_TRY(pinn_graph_launch(graph, repeat));
        double rate = 2.0 * (double)(p.size * p.size * p.size) * (double)copies * (double)repeat / (pn_clock() - start);
        if (rate > best) best = rate;
    }
    *operations_per_second = best;
fail:
    pinn_graph_destroy(graph);
    pinn_plane_destroy(product);
    pinn_plane_destroy(factor);
    return status;
}
