/* Draws points with a sampler on any executor, for tests. */
#ifndef TEST_GEOMETRY_DRAWING_H
#define TEST_GEOMETRY_DRAWING_H

#include "../kernels/operation.h"
#include "geometry/sampler.h"

typedef struct drawing {
    pinn_executor executor;
    pn_real real;
    size_t coordinates;
    const double *lower, *upper;
    const pn_sample_set *set;
    size_t sets, elements; /* of the points plane */
    uint64_t seed, step;
    bool fixed_too;
} drawing;

/* The points plane, of elements that were all -7 before, in `real`; malloc. */
static inline void *draw(const drawing *d) {
    const size_t bytes = d->elements * pn_real_bytes(d->real);
    void *points = malloc(bytes);
    pinn_context *context = operation_context(d->executor);
    pinn_plane *seed, *step, *plane;
    pn_sampler *sampler;
    pinn_graph *graph;
    for (size_t i = 0; i < d->elements; i++) pn_real_set(d->real, points, i, -7);
    ck_ok(pinn_plane_create(context, "seed", PINN_DEVICE, sizeof d->seed, &seed));
    ck_ok(pinn_plane_create(context, "step", PINN_DEVICE, sizeof d->step, &step));
    ck_ok(pinn_plane_create(context, "points", PINN_DEVICE, bytes, &plane));
    ck_ok(pinn_plane_write(seed, 0, &d->seed, sizeof d->seed));
    ck_ok(pinn_plane_write(step, 0, &d->step, sizeof d->step));
    ck_ok(pinn_plane_write(plane, 0, points, bytes));
    ck_ok(pn_sampler_create(context, d->real, d->coordinates, d->lower, d->upper, d->set, d->sets, seed, step, plane, &sampler));
    ck_ok(pinn_graph_create(context, "draw", &graph));
    ck_ok(pinn_graph_begin(graph));
    ck_ok(pn_sampler_record(sampler, graph, d->fixed_too));
    ck_ok(pinn_graph_launch(graph, 1));
    ck_ok(pinn_plane_read(plane, 0, points, bytes));
    pinn_graph_destroy(graph);
    pn_sampler_destroy(sampler);
    pinn_plane_destroy(plane);
    pinn_plane_destroy(step);
    pinn_plane_destroy(seed);
    pinn_context_destroy(context);
    return points;
}

/* A problem with everything: five coordinates (two blocks in float32, three in float64), an inside set, a fixed set, faces with
 * normals on the upper, lower and an inner plane, a gap between the sets and an extra column behind the last. */
enum { MIXED_INSIDE = 1000, MIXED_FIXED = 300, MIXED_FACES = 700, MIXED_GAP = 13, MIXED_D = 5 };
enum {
    MIXED_FIXED_AT = MIXED_INSIDE * MIXED_D + MIXED_GAP,
    MIXED_FACES_AT = MIXED_FIXED_AT + MIXED_FIXED * MIXED_D,
    MIXED_END = MIXED_FACES_AT + MIXED_FACES * 2 * MIXED_D,
    MIXED_ELEMENTS = MIXED_END + MIXED_FACES
};

static inline drawing mixed_drawing(pinn_executor executor, pn_real real, uint64_t step, bool fixed_too) {
    static const double lower[MIXED_D] = {0, -1, 0.1, -1e-3, 7}, upper[MIXED_D] = {1, 1, 0.7, 1e3, 7.5};
    static const pn_face inside = {-1, 0, 0};
    static const pn_face faces[3] = {{0, -1, 0}, {2, 1, 0.7}, {4, 0, 7.3}};
    static const pn_sample_set set[3] = {
        {&inside, 1, MIXED_INSIDE, false, false, 0, 0},
        {&inside, 1, MIXED_FIXED, true, false, 1, MIXED_FIXED_AT},
        {faces, 3, MIXED_FACES, false, true, 5, MIXED_FACES_AT},
    };
    return (drawing){executor, real, MIXED_D, lower, upper, set, 3, MIXED_ELEMENTS, 0x123456789abcdef0u, step, fixed_too};
}

#endif
