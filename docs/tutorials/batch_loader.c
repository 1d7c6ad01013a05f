/* batch_loader [--device WHERE]: the host loads batch i+1 while the device bins batch i.
 *
 * The counts are compared with those of a serial program. See batch_loader.md.
 */
#include "batch_loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTICLES = 1 << 18, BATCHES = 12 };

static pinn_status count_cpu(const pinn_run *run) {
    const batch_sizes *s = run->arguments;
    const float *x = run->read[0];
    uint32_t *count = run->write[0];
    for (uint64_t i = 0; i < s->particles; i++) count[batch_bin(x[i])]++;
    return PINN_OK;
}

static const pinn_operation count_operation = {"count", count_cpu, TUTORIAL_CUDA(batch_count_cuda)};

/* Batch b: what a file or a detector would give. Positions in [0, 1), thinner to the right; a 32-bit mix of the particle's number
 * (Wellons' lowbias32). */
static void fill(float *x, uint32_t batch) {
    for (uint32_t i = 0; i < PARTICLES; i++) {
        uint32_t h = batch * (uint32_t)PARTICLES + i;
        h = (h ^ (h >> 16)) * 0x7feb352du;
        h = (h ^ (h >> 15)) * 0x846ca68bu;
        h ^= h >> 16;
        const float v = (float)(h >> 8) * 0x1p-24f;
        x[i] = v * v;
    }
}

typedef struct loader {
    pinn_plane *batch; /* pinned, [PARTICLES], float */
    uint32_t next;     /* the batch to load; what changes from replay to replay lives in memory, not in the list */
} loader;

static pinn_status load(void *user) {
    loader *l = user;
    if (l->next < BATCHES) fill(pinn_plane_address(l->batch), l->next++); /* the last round has nothing left to load */
    return PINN_OK;
}

/* A round: branch 1 takes the batch to the device and bins it there, branch 2 loads the next one. There are two buffers, one on
 * each side: the loader may write the pinned one as soon as the copy has left it, which is what it waits for; the binning goes on
 * meanwhile. */
static void record(pinn_graph *graph, loader *l, pinn_plane *x, pinn_plane *count) {
    const batch_sizes sizes = {PARTICLES};
    tutorial_must(pinn_graph_begin(graph));
    tutorial_must(pinn_graph_fork(graph));
    tutorial_must(pinn_graph_branch(graph, "bin this batch"));
    tutorial_must(pinn_graph_copy(graph, l->batch, x));
    tutorial_must(pinn_graph_operation(graph, &count_operation, &sizes, sizeof sizes, PINN_PLANES(x, count), PINN_PLANES(count)));
    tutorial_must(pinn_graph_branch(graph, "load the next"));
    tutorial_must(pinn_graph_wait(graph, l->batch));
    tutorial_must(pinn_graph_host(graph, "load", load, l, PINN_NO_PLANES, PINN_PLANES(l->batch)));
    tutorial_must(pinn_graph_join(graph));
}

static void count_serially(uint32_t *count) {
    float *x = malloc(PARTICLES * sizeof *x);
    if (!x) exit(1);
    for (uint32_t b = 0; b < BATCHES; b++) {
        fill(x, b);
        for (uint32_t i = 0; i < PARTICLES; i++) count[batch_bin(x[i])]++;
    }
    free(x);
}

int main(int count, char **argument) {
    uint32_t found[BATCH_BINS], expected[BATCH_BINS] = {0};
    pinn_graph *graph;
    pinn_context *context = tutorial_context(&count, argument);
    if (count > 1) tutorial_usage("batch_loader [--device WHERE]");
    pinn_plane *x = tutorial_plane(context, "batch on the device", PINN_DEVICE, PARTICLES * sizeof(float));
    pinn_plane *counts = tutorial_plane(context, "counts", PINN_DEVICE, sizeof found);
    loader l = {.batch = tutorial_plane(context, "batch", PINN_PINNED, PARTICLES * sizeof(float))};
    tutorial_must(pinn_graph_create(context, "batches", &graph));

    load(&l); /* the first batch has nothing to hide behind */
    record(graph, &l, x, counts);
    tutorial_must(pinn_graph_enqueue(graph, BATCHES));
    tutorial_must(pinn_context_synchronize(context));

    tutorial_must(pinn_plane_read(counts, 0, found, sizeof found));
    count_serially(expected);
    uint64_t sum = 0;
    for (int b = 0; b < BATCH_BINS; b++) {
        sum += found[b];
        if (b % 8 == 0) printf("bin %2d: %8u\n", b, found[b]);
        tutorial_check(found[b] == expected[b], "bin %d: %u instead of %u", b, found[b], expected[b]);
    }
    printf("%llu particles in %d batches\n", (unsigned long long)sum, BATCHES);
    tutorial_check(sum == (uint64_t)PARTICLES * BATCHES, "particles are missing");
    tutorial_explain(graph);

    pinn_graph_destroy(graph);
    pinn_plane_destroy(x);
    pinn_plane_destroy(counts);
    pinn_plane_destroy(l.batch);
    pinn_context_destroy(context);
    return 0;
}
