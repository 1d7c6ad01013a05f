/* How many points each face of a condition gets.
 *
 * A face's quota is the total times its share of the measure. Faces with a quota under one get one point, and the rest is divided
 * anew among the others, until no quota is under one. Then every face gets its quota's whole part, and the points left over go one
 * each to the largest remainders (Hamilton's method), ties to the earlier face. */
#include <limits.h>
#include <math.h>

#include "geometry/sampler.h"

/* What is divided: `points` among `faces` faces whose measures add up to `total`. */
typedef struct share {
    const pn_face *face;
    const double *lower, *upper;
    size_t coordinates, points, faces;
    int exponent; /* measures are in units of 2^exponent: a product of a hundred widths leaves float64's range */
    double total;
} share;

/* Product of the widths of the coordinates that are free on the face, as a number in [0.5, 1) or 0 times 2^exponent: 1 for an end of an
 * interval. */
static double product(const share *s, size_t i, int *exponent) {
    double mantissa = frexp(1, exponent);
    for (size_t k = 0; k < s->coordinates; k++) {
        int of_width, of_product;
        if ((int)k == s->face[i].axis) continue;
        mantissa = frexp(mantissa * frexp(s->upper[k] - s->lower[k], &of_width), &of_product);
        *exponent += of_width + of_product;
    }
    return mantissa;
}

/* The largest exponent of all faces that have a measure. */
static int largest_exponent(const share *s, size_t faces) {
    int largest = INT_MIN, exponent;
    for (size_t i = 0; i < faces; i++)
        if (product(s, i, &exponent) > 0 && exponent > largest) largest = exponent;
    return largest == INT_MIN ? 0 : largest;
}

static double measure(const share *s, size_t i) {
    int exponent;
    const double mantissa = product(s, i, &exponent);
    return ldexp(mantissa, exponent - s->exponent);
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
    share s = {face, lower, upper, coordinates, points > faces ? points : faces, faces, 0, 0};
    s.exponent = largest_exponent(&s, faces);
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
