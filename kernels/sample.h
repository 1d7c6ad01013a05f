/* Training points of all sets in one launch: one thread a point. Formulas: src/geometry/sampler.h.
 *
 * Points of a launch are numbered through all its faces; a face row says where its run of points begins, both in that numbering and
 * in the points plane, and what is fixed on it.
 */
#ifndef PN_KERNELS_SAMPLE_H
#define PN_KERNELS_SAMPLE_H

#include <math.h>

#include "kernels/philox.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Philox blocks reserved for a set: 100 float64 coordinates need 50. Blocks of set s start at s * PN_SAMPLE_BLOCKS. */
#define PN_SAMPLE_BLOCKS 64u

typedef struct pn_sample_face {
    uint64_t first;   /* points of the launch on earlier faces */
    uint64_t element; /* in the points plane: coordinate 0 of this face's first point */
    uint64_t stride;  /* elements from one column to the next: points of the set */
    double value;     /* of coordinate `axis` */
    uint32_t point;   /* number, within the set, of this face's first point */
    uint32_t stream;  /* the set's number in the counter */
    int32_t axis;     /* -1: nothing fixed */
    int32_t side;     /* outward normal = side * e_axis */
    uint32_t fixed;   /* the points of step 0, always */
    uint32_t normals; /* `coordinates` more columns hold the normal */
} pn_sample_face;

typedef struct pn_sample_arguments {
    uint64_t coordinates, faces, points; /* of this launch */
    uint64_t real;                       /* pn_real */
} pn_sample_arguments;

/* reads: seed (one uint64), step (first uint64), faces pn_sample_face[faces], box float64 [3][coordinates] (lower, width, upper),
 *        points
 * writes: points, in `real`; elements of no face of the launch keep their values */
extern const pinn_operation pn_sample_operation;
pinn_status pn_sample_cuda(const pinn_run *run);

#ifdef __cplusplus
}
#endif

PN_PORTABLE void pn_sample_store(uint64_t real, void *points, uint64_t element, double value) {
    if (real == PN_FLOAT32)
        ((float *)points)[element] = (float)value;
    else
        ((double *)points)[element] = value;
}

/* Coordinate k of a block's point, in [lower, upper]. The bound's rounding may make the fma pass `upper` by one unit: the minimum.
 */
PN_PORTABLE double pn_sample_coordinate(uint64_t real, const pn_philox_block *block, uint64_t k, double lower, double width,
                                        double upper) {
    if (real == PN_FLOAT32) {
        float x = fmaf((float)width, pn_uniform_float(block->word[k % 4]), (float)lower);
        return x < (float)upper ? x : (float)upper;
    }
    double x = fma(width, pn_uniform_double(block->word[2 * (k % 2)], block->word[2 * (k % 2) + 1]), lower);
    return x < upper ? x : upper;
}

/* Point i of the launch. `box` as read by the operation. */
PN_PORTABLE void pn_sample_point(const pn_sample_arguments *a, uint64_t i, uint64_t seed, uint64_t step,
                                 const pn_sample_face *faces, const double *box, void *points) {
    uint64_t low = 0, high = a->faces; /* the last face with first <= i */
    while (high - low > 1) {
        uint64_t middle = (low + high) / 2;
        if (faces[middle].first <= i)
            low = middle;
        else
            high = middle;
    }
    const pn_sample_face face = faces[low];
    const uint64_t within = i - face.first, d = a->coordinates, block_coordinates = a->real == PN_FLOAT32 ? 4 : 2;
    const uint32_t point = face.point + (uint32_t)within;
    if (face.fixed) step = 0;
    pn_philox_block block = {{0, 0, 0, 0}};
    for (uint64_t k = 0; k < d; k++) {
        if (k % block_coordinates == 0)
            block = pn_philox(point, face.stream * PN_SAMPLE_BLOCKS + (uint32_t)(k / block_coordinates), (uint32_t)step,
                              (uint32_t)(step >> 32), (uint32_t)seed, (uint32_t)(seed >> 32));
        double x =
            (int64_t)k == face.axis ? face.value : pn_sample_coordinate(a->real, &block, k, box[k], box[d + k], box[2 * d + k]);
        pn_sample_store(a->real, points, face.element + k * face.stride + within, x);
    }
    for (uint64_t k = 0; face.normals && k < d; k++)
        pn_sample_store(a->real, points, face.element + (d + k) * face.stride + within, (int64_t)k == face.axis ? face.side : 0);
}

#endif
