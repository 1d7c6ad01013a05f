/* Where training points come from: faces of a box, points by Philox counters.
 *
 * A point's coordinates are a pure function of (seed, step, term, point): Philox4x32-10 (Salmon et al. 2011) with
 *     key     = (seed low, seed high)
 *     counter = (point, set * PN_SAMPLE_BLOCKS + block, step low, step high)
 * gives four words a block. float32: coordinate 4*block + i uses word i, u = (w >> 8) * 2^-24 + 2^-25. float64: coordinate
 * 2*block + i uses words 2i (high) and 2i+1 (low), u = (w64 >> 11) * 2^-53 + 2^-54. Then x = fma(width, u, lower). Both kinds of
 * arithmetic are exact or a single rounding, so CPU and GPU give the same bits, and any point can be made without any other.
 */
#ifndef PN_GEOMETRY_SAMPLER_H
#define PN_GEOMETRY_SAMPLER_H

#include "core/real.h"
#include "kernels/sample.h"
#include "pinn_graph.h"

/* An axis-parallel piece of the box: coordinate `axis` fixed at `value` (outward normal `side` * e_axis), or the whole box. */
typedef struct pn_face {
    int axis;     /* -1: the inside of the domain */
    int side;     /* -1 lower face, +1 upper, 0 an inner plane ("x=0.3") */
    double value; /* of coordinate `axis` */
} pn_face;

/* Number of points on each face: the total divided by the faces' measure (product of the free coordinates' widths), at least one a
 * face, largest remainders first, ties to the earlier face. `count[i]` sums to max(points, faces). */
void pn_face_divide(const pn_face *face, size_t faces, size_t coordinates, const double *lower, const double *upper, size_t points,
                    size_t *count);

/* One set's part of the points plane. */
typedef struct pn_sample_set {
    const pn_face *face; /* borrowed during creation */
    size_t faces, points;
    bool fixed;      /* the points of step 0, always */
    bool normals;    /* `coordinates` more columns hold the outward normal */
    uint32_t stream; /* the set's number in the counter */
    size_t offset;   /* elements: column k of this set starts at offset + k*points in the points plane */
} pn_sample_set;

typedef struct pn_sampler pn_sampler;

/* `seed` is a device plane of one uint64, `step` a device plane whose first uint64 is the number of steps done. `points` is the
 * plane written, in precision `real`. */
pinn_status pn_sampler_create(pinn_context *context, pn_real real, size_t coordinates, const double *lower, const double *upper,
                              const pn_sample_set *set, size_t sets, pinn_plane *seed, pinn_plane *step, pinn_plane *points,
                              pn_sampler **out);
void pn_sampler_destroy(pn_sampler *sampler);
/* Appends the node that draws this step's points: sets that are fixed only if `all`. Appends nothing when none is left. */
pinn_status pn_sampler_record(pn_sampler *sampler, pinn_graph *graph, bool all);

#endif
