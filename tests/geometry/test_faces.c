/* Points divided among faces. */
#include "../kernels/operation.h"
#include "geometry/sampler.h"

static const double zero[3] = {0, 0, 0};

static void divide(const double upper[3], size_t coordinates, size_t faces, size_t points, size_t *count) {
    /* lower and upper face of coordinate 0, then 1, then 2 */
    const pn_face face[6] = {{0, -1, 0}, {0, 1, upper[0]}, {1, -1, 0}, {1, 1, upper[1]}, {2, -1, 0}, {2, 1, upper[2]}};
    pn_face_divide(face, faces, coordinates, zero, upper, points, count);
}

#define COUNTS(upper, coordinates, points, ...)                                                                \
    do {                                                                                                       \
        const size_t expected[] = {__VA_ARGS__}, faces = sizeof expected / sizeof expected[0];                 \
        size_t count[6];                                                                                       \
        divide(upper, coordinates, faces, points, count);                                                      \
        for (size_t i = 0; i < faces; i++)                                                                     \
            ck_assert_msg(count[i] == expected[i], "face %zu: %zu points, not %zu", i, count[i], expected[i]); \
    } while (0)

START_TEST(by_measure) {
    COUNTS(((double[]){1, 1, 1}), 2, 200, 100, 100);
    COUNTS(((double[]){1, 3, 1}), 2, 80, 30, 30, 10, 10); /* the faces of x are 3 long, those of y 1 */
    COUNTS(((double[]){1, 2, 4}), 3, 280, 80, 80, 40, 40, 20, 20);
    COUNTS(((double[]){5, 0, 0}), 1, 10, 5, 5); /* the ends of an interval have measure 1 */
}
END_TEST

START_TEST(remainders_and_ties) {
    COUNTS(((double[]){1, 1, 1}), 2, 7, 2, 2, 2, 1); /* quotas 1.75: ties to the earlier */
    COUNTS(((double[]){1, 1, 1}), 2, 5, 2, 1, 1, 1);
    COUNTS(((double[]){1, 3, 1}), 2, 12, 5, 5, 1, 1); /* 4.5 4.5 1.5 1.5 */
    COUNTS(((double[]){1, 2, 1}), 2, 10, 3, 3, 2, 2); /* 3.33 3.33 1.67 1.67 */
}
END_TEST

START_TEST(at_least_one) {
    COUNTS(((double[]){1, 1, 1}), 2, 4, 1, 1, 1, 1);
    COUNTS(((double[]){1, 1, 1}), 2, 2, 1, 1, 1, 1); /* more faces than points */
    COUNTS(((double[]){1, 1, 1}), 2, 0, 1, 1, 1, 1);
    COUNTS(((double[]){1, 1000, 1}), 2, 10, 4, 4, 1, 1); /* quotas 4.995 and 0.005: the small ones' points come from the large */
    COUNTS(((double[]){1, 0, 1}), 2, 10, 1, 1, 4, 4);    /* a flat box: the faces of x have measure 0 */
    COUNTS(((double[]){0, 0, 0}), 2, 10, 3, 3, 2, 2);    /* nothing has measure: equal shares */
}
END_TEST

/* Whatever the box: the sum is right, nobody is empty, and a face above its quota's rounding exists only where small ones took. */
START_TEST(sums) {
    uint64_t state = 11;
    for (int n = 0; n < 2000; n++) {
        const double upper[3] = {exp(5 * test_number(&state)), exp(5 * test_number(&state)), exp(5 * test_number(&state))};
        const size_t faces = 1 + (size_t)n % 6, points = (size_t)(n * 7) % 400;
        size_t count[6], sum = 0;
        divide(upper, 3, faces, points, count);
        for (size_t i = 0; i < faces; i++) {
            ck_assert(count[i] >= 1);
            sum += count[i];
        }
        ck_assert(sum == (points > faces ? points : faces));
        for (size_t i = 0; i + 1 < faces; i += 2)
            ck_assert(count[i] == count[i + 1] || count[i] == count[i + 1] + 1); /* opposite faces */
    }
}
END_TEST

/* A hundred widths, whose product float64 does not hold: the same shares as at any other scale. */
START_TEST(many_coordinates) {
    static const double scale[] = {1, 20000, 1e-5, 1e300, 1e-300};
    enum { COORDINATES = 100, FACES = 3 };
    static const pn_face face[FACES] = {{0, -1, 0}, {0, 1, 0}, {1, -1, 0}};
    for (size_t k = 0; k < sizeof scale / sizeof scale[0]; k++) {
        double lower[COORDINATES] = {0}, upper[COORDINATES];
        size_t count[FACES], inside;
        for (size_t i = 0; i < COORDINATES; i++) upper[i] = scale[k] * (i == 0 ? 2 : 1); /* faces of x: 1; of y: 2 */
        pn_face_divide(face, FACES, COORDINATES, lower, upper, 40, count);
        ck_assert(count[0] == 10 && count[1] == 10 && count[2] == 20);
        pn_face_divide(&(pn_face){.axis = -1}, 1, COORDINATES, lower, upper, 40, &inside);
        ck_assert(inside == 40);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("faces");
    TCase *tests = tcase_create("faces");
    tcase_add_test(tests, by_measure);
    tcase_add_test(tests, remainders_and_ties);
    tcase_add_test(tests, at_least_one);
    tcase_add_test(tests, sums);
    tcase_add_test(tests, many_coordinates);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
