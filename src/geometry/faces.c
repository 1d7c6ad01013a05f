/* How many points each face of a condition gets.
 *
 * A face's quota is the total times its share of the measure. Faces with a quota under one get one point, and the rest is divided
 * anew among the others, until no quota is under one. Then every face gets its quota's whole part, and the points left over go one
 * each to the largest remainders (Hamilton's method), ties to the earlier face. */
#include <math.h>

#include "geometry/sampler.h"

/* What is divided: `points` among `faces` faces whose measures add up to `total`. */
typedef struct share {
    const pn_face *face;
    const double *lower, *upper;
    size_t coordinates, points, faces;
    double total;
} share;

/* Product of the widths of the coordinates that are free on the face: 1 for an end of an interval. */
static double measure(const share *s, size_t i) {
    double product = 1;
    for (size_t k = 0; k < s->coordinates; k++)
        if ((int)k != s->face[i].axis) product *= s->upper[k] - s->lower[k];
    return product;
}

/* Equal shares where nothing has a measure. */
static double quota(const share *s, size_t i) {
    const double part = s->total > 0 ? measure(s, i) / s->total : 1 / (double)s->faces;
    return (double)s->points * part;
}

/* Gives one point to every face whose quota is under one and takes both out of the share; false when there was none. count 0: open.
 */
static bool close_small(share *s, size_t faces, size_t *count) {
    s->total = 0;
    for (size_t i = 0; i < faces; i++)
        if (count[i] == 0) s->total += measure(s, i);
    const share before = *s;
    for (size_t i = 0; i < faces; i++)
        if (count[i] == 0 && s->faces > 1 && quota(&before, i) < 1) {
            count[i] = 1;
            s->points--;
            s->faces--;
        }
    return s->faces < before.faces;
}

void pn_face_divide(const pn_face *face, size_t faces, size_t coordinates, const double *lower, const double *upper, size_t points,
                    size_t *count) {
    share s = {face, lower, upper, coordinates, points > faces ? points : faces, faces, 0};
    for (size_t i = 0; i < faces; i++) count[i] = 0;
    while (close_small(&s, faces, count)) {
    }

    size_t left = s.points;
    for (size_t i = 0; i < faces; i++)
        if (count[i] == 0) left -= count[i] = (size_t)floor(quota(&s, i));
    for (; left > 0; left--) {
        size_t best = faces;
        double largest = -1;
        for (size_t i = 0; i < faces; i++) {
            /* A face that got its extra point, or was closed with a quota under one, has more than its whole part. */
            const double q = quota(&s, i), remainder = q - floor(q);
            if ((double)count[i] == floor(q) && remainder > largest) {
                largest = remainder;
                best = i;
            }
        }
        count[best < faces ? best : 0]++;
    }
}
