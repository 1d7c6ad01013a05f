/* The sampler: checks its sets, lays the face table out in device planes, records the node. Formulas: sampler.h; kernel:
 * kernels/sample.*. */
#include "geometry/sampler.h"

#include <math.h>
#include <string.h>

#include "core/memory.h"
#include "core/status.h"

struct pn_sampler {
    pn_real real;
    size_t coordinates;
    size_t faces, points;               /* of all sets */
    size_t moving_faces, moving_points; /* of the sets that are not fixed: they come first in the table */
    pinn_plane *table;                  /* owned; device, pn_sample_face[faces] */
    pinn_plane *box;                    /* owned; device, float64 [3][coordinates]: lower, width, upper */
    pinn_plane *seed, *step, *target;   /* borrowed */
};

static pinn_status check_set(const pn_sample_set *set, size_t number, size_t coordinates, size_t elements) {
    const size_t columns = set->normals ? 2 * coordinates : coordinates;
    if (set->faces == 0 || set->points < set->faces || set->points > UINT32_MAX)
        return pn_fail(PINN_BAD_ARGUMENT,
                       "point set %zu: %zu points on %zu faces; give at least one point a face and fewer than 2^32", number,
                       set->points, set->faces);
    if (set->stream > UINT32_MAX / PN_SAMPLE_BLOCKS)
        return pn_fail(PINN_BAD_ARGUMENT, "point set %zu: stream %u is over %u", number, set->stream,
                       UINT32_MAX / PN_SAMPLE_BLOCKS);
    if (set->offset > elements || columns > (elements - set->offset) / set->points)
        return pn_fail(PINN_BAD_ARGUMENT,
                       "point set %zu: %zu columns of %zu points at element %zu do not fit into a plane of %zu elements", number,
                       columns, set->points, set->offset, elements);
    for (size_t i = 0; i < set->faces; i++)
        if (set->face[i].axis < -1 || set->face[i].axis >= (int)coordinates)
            return pn_fail(PINN_BAD_ARGUMENT, "point set %zu: face %zu fixes coordinate %d of %zu", number, i, set->face[i].axis,
                           coordinates);
    return PINN_OK;
}

static pinn_status check_box(size_t coordinates, const double *lower, const double *upper) {
    if (coordinates == 0 || coordinates > 2 * PN_SAMPLE_BLOCKS)
        return pn_fail(PINN_BAD_ARGUMENT, "a sampler takes 1 to %u coordinates, not %zu", 2 * PN_SAMPLE_BLOCKS, coordinates);
    for (size_t k = 0; k < coordinates; k++)
        if (!isfinite(lower[k]) || !isfinite(upper[k]) || upper[k] < lower[k])
            return pn_fail(PINN_BAD_ARGUMENT, "coordinate %zu: [%g, %g] is not an interval", k, lower[k], upper[k]);
    return PINN_OK;
}

/* The rows of one set, at `row`; `count` is room for set->faces numbers. */
static void fill_set(const pn_sample_set *set, const size_t *count, uint64_t first, pn_sample_face *row) {
    uint32_t point = 0;
    for (size_t i = 0; i < set->faces; i++) {
        const pn_face *face = &set->face[i];
        row[i] = (pn_sample_face){.first = first + point,
                                  .element = set->offset + point,
                                  .stride = set->points,
                                  .value = face->value,
                                  .point = point,
                                  .stream = set->stream,
                                  .axis = face->axis,
                                  .side = face->side,
                                  .fixed = set->fixed,
                                  .normals = set->normals};
        point += (uint32_t)count[i];
    }
}

/* Builds the table in host memory and writes it; sampler->faces and ->points are known. */
static pinn_status write_table(pn_sampler *s, const double *lower, const double *upper, const pn_sample_set *set, size_t sets) {
    pinn_status status = PINN_OK;
    size_t faces = 0;
    uint64_t points = 0;
    size_t *count = pn_allocate(s->faces, sizeof *count);
    pn_sample_face *table = pn_allocate(s->faces, sizeof *table);
    if (!count || !table) {
        status = PN_NO_MEMORY("the sampler's face table");
        goto fail;
    }
    for (int fixed = 0; fixed < 2; fixed++) {
        for (size_t i = 0; i < sets; i++) {
            if (set[i].fixed != (fixed == 1)) continue;
            pn_face_divide(set[i].face, set[i].faces, s->coordinates, lower, upper, set[i].points, count);
            fill_set(&set[i], count, points, table + faces);
            faces += set[i].faces;
            points += set[i].points;
        }
        if (!fixed) {
            s->moving_faces = faces;
            s->moving_points = points;
        }
    }
    PN_TRY(pinn_plane_write(s->table, 0, table, s->faces * sizeof *table));
fail:
    pn_free(table);
    pn_free(count);
    return status;
}

static pinn_status write_box(pn_sampler *s, const double *lower, const double *upper) {
    const size_t d = s->coordinates;
    double box[3 * 2 * PN_SAMPLE_BLOCKS];
    for (size_t k = 0; k < d; k++) {
        box[k] = lower[k];
        box[d + k] = upper[k] - lower[k];
        box[2 * d + k] = upper[k];
    }
    return pinn_plane_write(s->box, 0, box, 3 * d * sizeof *box);
}

pinn_status pn_sampler_create(pinn_context *context, pn_real real, size_t coordinates, const double *lower, const double *upper,
                              const pn_sample_set *set, size_t sets, pinn_plane *seed, pinn_plane *step, pinn_plane *points,
                              pn_sampler **out) {
    pinn_status status = PINN_OK;
    pn_sampler *s = pn_allocate(1, sizeof *s);
    if (!s) return PN_NO_MEMORY("a sampler");
    *s = (pn_sampler){.real = real, .coordinates = coordinates, .seed = seed, .step = step, .target = points};
    PN_TRY(check_box(coordinates, lower, upper));
    if (sets == 0 || pinn_plane_bytes(seed) < sizeof(uint64_t) || pinn_plane_bytes(step) < sizeof(uint64_t)) {
        status = pn_fail(PINN_BAD_ARGUMENT, "a sampler needs a point set, and 8 bytes each of seed and step");
        goto fail;
    }
    for (size_t i = 0; i < sets; i++) {
        PN_TRY(check_set(&set[i], i, coordinates, pinn_plane_bytes(points) / pn_real_bytes(real)));
        s->faces += set[i].faces;
        s->points += set[i].points;
    }
    PN_TRY(pinn_plane_create(context, "sampler faces", PINN_DEVICE, s->faces * sizeof(pn_sample_face), &s->table));
    PN_TRY(pinn_plane_create(context, "sampler box", PINN_DEVICE, 3 * coordinates * sizeof(double), &s->box));
    PN_TRY(write_table(s, lower, upper, set, sets));
    PN_TRY(write_box(s, lower, upper));
    *out = s;
    return PINN_OK;
fail:
    pn_sampler_destroy(s);
    return status;
}

void pn_sampler_destroy(pn_sampler *sampler) {
    if (!sampler) return;
    pinn_plane_destroy(sampler->box);
    pinn_plane_destroy(sampler->table);
    pn_free(sampler);
}

pinn_status pn_sampler_record(pn_sampler *s, pinn_graph *graph, bool all) {
    const pn_sample_arguments arguments = {.coordinates = s->coordinates,
                                           .faces = all ? s->faces : s->moving_faces,
                                           .points = all ? s->points : s->moving_points,
                                           .real = s->real};
    if (arguments.points == 0) return PINN_OK;
    /* The points are also read: what the launch does not draw (fixed sets, other columns) stays. */
    return pinn_graph_operation(graph, &pn_sample_operation, &arguments, sizeof arguments,
                                PINN_PLANES(s->seed, s->step, s->table, s->box, s->target), PINN_PLANES(s->target));
}
