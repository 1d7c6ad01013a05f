/* The sampler on the CPU against the formula of sampler.h written again with Random123. */
#include <Random123/philox.h>
#include <math.h>
#include <omp.h>

#include "drawing.h"
#include "geometry/sampler.h"

static double formula(const drawing *d, const pn_sample_set *set, size_t k, uint32_t point) {
    const uint64_t step = set->fixed ? 0 : d->step;
    const uint32_t per_block = d->real == PN_FLOAT32 ? 4 : 2;
    const philox4x32_ctr_t counter = {{point, set->stream * 64 + (uint32_t)k / per_block, (uint32_t)step, (uint32_t)(step >> 32)}};
    const philox4x32_key_t key = {{(uint32_t)d->seed, (uint32_t)(d->seed >> 32)}};
    const philox4x32_ctr_t word = philox4x32(counter, key);
    if (d->real == PN_FLOAT32) {
        const float u = (float)((word.v[k % 4] >> 8) * 0x1p-24 + 0x1p-25); /* exact in float64, then rounded once */
        return fminf(fmaf((float)(d->upper[k] - d->lower[k]), u, (float)d->lower[k]), (float)d->upper[k]);
    }
    const uint64_t pair = (uint64_t)word.v[2 * (k % 2)] << 32 | word.v[2 * (k % 2) + 1];
    return fmin(fma(d->upper[k] - d->lower[k], (double)(pair >> 11) * 0x1p-53 + 0x1p-54, d->lower[k]), d->upper[k]);
}

static double in_real(pn_real real, double x) { return real == PN_FLOAT32 ? (float)x : x; }

static void check_set(const drawing *d, const pn_sample_set *set, const void *points) {
    size_t count[3], point = 0;
    pn_face_divide(set->face, set->faces, d->coordinates, d->lower, d->upper, set->points, count);
    for (size_t f = 0; f < set->faces; f++)
        for (size_t i = 0; i < count[f]; i++, point++)
            for (size_t k = 0; k < d->coordinates; k++) {
                const bool fixed = set->face[f].axis == (int)k;
                const double x = pn_real_get(d->real, points, set->offset + k * set->points + point);
                ck_assert(x == (fixed ? in_real(d->real, set->face[f].value) : formula(d, set, k, (uint32_t)point)));
                ck_assert(x >= in_real(d->real, d->lower[k]) && x <= in_real(d->real, d->upper[k]));
                if (set->normals)
                    ck_assert(pn_real_get(d->real, points, set->offset + (d->coordinates + k) * set->points + point) ==
                              (fixed ? set->face[f].side : 0));
            }
    ck_assert(point == set->points);
}

static const uint64_t steps[] = {0, 1, 0xfffffffe00000003u};

START_TEST(equals_formula) {
    const drawing d = mixed_drawing(PINN_EXECUTOR_CPU, _i % 2 ? PN_FLOAT64 : PN_FLOAT32, steps[_i / 2], true);
    void *points = draw(&d);
    for (size_t s = 0; s < d.sets; s++) check_set(&d, &d.set[s], points);
    for (size_t i = MIXED_INSIDE * MIXED_D; i < MIXED_FIXED_AT; i++) ck_assert(pn_real_get(d.real, points, i) == -7);
    for (size_t i = MIXED_END; i < MIXED_ELEMENTS; i++) ck_assert(pn_real_get(d.real, points, i) == -7);
    free(points);
}
END_TEST

START_TEST(fixed_sets_stay) {
    drawing d = mixed_drawing(PINN_EXECUTOR_CPU, PN_FLOAT32, 5, false);
    void *points = draw(&d);
    check_set(&d, &d.set[0], points);
    check_set(&d, &d.set[2], points);
    for (size_t i = MIXED_FIXED_AT; i < MIXED_FACES_AT; i++) ck_assert(pn_real_get(d.real, points, i) == -7);
    free(points);
}
END_TEST

START_TEST(nothing_to_draw) {
    drawing d = mixed_drawing(PINN_EXECUTOR_CPU, PN_FLOAT32, 5, false);
    pinn_context *context = operation_context(PINN_EXECUTOR_CPU);
    pinn_plane *seed, *points;
    pn_sampler *sampler;
    pinn_graph *graph;
    pinn_graph_stats stats;
    ck_ok(pinn_plane_create(context, "seed", PINN_DEVICE, 8, &seed));
    ck_ok(pinn_plane_create(context, "points", PINN_DEVICE, MIXED_ELEMENTS * 4, &points));
    ck_ok(pn_sampler_create(context, PN_FLOAT32, MIXED_D, d.lower, d.upper, &d.set[1], 1, seed, seed, points, &sampler));
    ck_ok(pinn_graph_create(context, "draw", &graph));
    ck_ok(pinn_graph_begin(graph));
    ck_ok(pn_sampler_record(sampler, graph, false));
    pinn_graph_get_stats(graph, &stats);
    ck_assert(stats.gpu_nodes == 0);
    ck_ok(pn_sampler_record(sampler, graph, true));
    pinn_graph_get_stats(graph, &stats);
    ck_assert(stats.gpu_nodes == 1);
    pinn_graph_destroy(graph);
    pn_sampler_destroy(sampler);
    pinn_plane_destroy(points);
    pinn_plane_destroy(seed);
    pinn_context_destroy(context);
}
END_TEST

START_TEST(any_threads) {
    const drawing d = mixed_drawing(PINN_EXECUTOR_CPU, PN_FLOAT32, 3, true);
    omp_set_num_threads(1);
    void *first = draw(&d);
    for (int threads = 2; threads < 6; threads++) {
        omp_set_num_threads(threads);
        void *points = draw(&d);
        ck_assert_mem_eq(first, points, MIXED_ELEMENTS * sizeof(float));
        free(points);
    }
    free(first);
}
END_TEST

/* Point i of a set of n points is point i of a set of m points. */
START_TEST(point_does_not_know_the_others) {
    const double lower[2] = {0, 0}, upper[2] = {1, 2};
    const pn_face inside = {-1, 0, 0};
    const pn_sample_set small = {&inside, 1, 100, false, false, 2, 0}, large = {&inside, 1, 1000, false, false, 2, 0};
    drawing d = {PINN_EXECUTOR_CPU, PN_FLOAT64, 2, lower, upper, &small, 1, 2000, 9, 4, true};
    double *few = draw(&d);
    d.set = &large;
    double *many = draw(&d);
    for (int k = 0; k < 2; k++) ck_assert_mem_eq(few + k * 100, many + k * 1000, 100 * sizeof(double));
    free(few);
    free(many);
}
END_TEST

/* Mean and variance of n uniform numbers have standard deviations w/sqrt(12 n) and w^2/sqrt(180 n): within five of them. Different
 * steps, streams, seeds and coordinates are uncorrelated: the mean product has standard deviation w^2/(12 sqrt(n)). */
START_TEST(distribution) {
    enum { COUNT = 100000 };
    const double lower[2] = {-1, 2}, upper[2] = {3, 2.5}, n = COUNT;
    const pn_face inside = {-1, 0, 0};
    pn_sample_set set = {&inside, 1, COUNT, false, false, 0, 0};
    drawing d = {PINN_EXECUTOR_CPU, _i ? PN_FLOAT64 : PN_FLOAT32, 2, lower, upper, &set, 1, 2 * COUNT, 1, 0, true};
    void *points[4];
    points[0] = draw(&d);
    d.step = 1;
    points[1] = draw(&d);
    set.stream = 1;
    points[2] = draw(&d);
    d.seed = 2;
    points[3] = draw(&d);
    for (int k = 0; k < 2; k++) {
        const double w = upper[k] - lower[k], middle = (lower[k] + upper[k]) / 2;
        double mean = 0, square = 0, product[4] = {0};
        for (size_t i = 0; i < COUNT; i++) {
            const double x = pn_real_get(d.real, points[0], k * COUNT + i) - middle;
            mean += x / n;
            square += x * x / n;
            for (int p = 1; p < 4; p++) product[p] += x * (pn_real_get(d.real, points[p], k * COUNT + i) - middle) / n;
            product[0] += x * (pn_real_get(d.real, points[0], (1 - k) * COUNT + i) - (lower[1 - k] + upper[1 - k]) / 2) / n;
        }
        ck_assert(fabs(mean) < 5 * w / sqrt(12 * n));
        ck_assert(fabs(square - w * w / 12) < 5 * w * w / sqrt(180 * n));
        for (int p = 1; p < 4; p++) ck_assert(fabs(product[p]) < 5 * w * w / (12 * sqrt(n)));
        ck_assert(fabs(product[0]) < 5 * (upper[0] - lower[0]) * (upper[1] - lower[1]) / (12 * sqrt(n)));
    }
    for (int p = 0; p < 4; p++) free(points[p]);
}
END_TEST

static pinn_status try_create(size_t coordinates, const double *lower, const double *upper, const pn_sample_set *set, size_t sets,
                              size_t bytes) {
    pinn_context *context = operation_context(PINN_EXECUTOR_CPU);
    pinn_plane *seed, *points;
    pn_sampler *sampler = NULL;
    ck_ok(pinn_plane_create(context, "seed", PINN_DEVICE, 8, &seed));
    ck_ok(pinn_plane_create(context, "points", PINN_DEVICE, bytes, &points));
    const pinn_status status =
        pn_sampler_create(context, PN_FLOAT32, coordinates, lower, upper, set, sets, seed, seed, points, &sampler);
    ck_assert((sampler != NULL) == (status == PINN_OK));
    pn_sampler_destroy(sampler);
    pinn_plane_destroy(points);
    pinn_plane_destroy(seed);
    pinn_context_destroy(context);
    return status;
}

START_TEST(refusals) {
    const double lower[2] = {0, 0}, upper[2] = {1, 1}, empty[2] = {-1, 1}, infinite[2] = {INFINITY, 1};
    const pn_face faces[2] = {{0, -1, 0}, {1, 1, 1}}, wrong[1] = {{2, 1, 1}};
    const pn_sample_set good = {faces, 2, 10, false, true, 0, 0}, few = {faces, 2, 1, false, true, 0, 0},
                        axis = {wrong, 1, 10, false, false, 0, 0}, stream = {faces, 2, 10, false, true, 1u << 26, 0},
                        far = {faces, 2, 10, false, true, 0, 1};
    ck_assert(try_create(2, lower, upper, &good, 1, 160) == PINN_OK); /* 4 columns of 10 floats, to the byte */
    ck_assert(try_create(2, lower, upper, &good, 1, 156) == PINN_BAD_ARGUMENT);
    ck_assert(try_create(2, lower, upper, &far, 1, 160) == PINN_BAD_ARGUMENT);
    ck_assert(try_create(2, lower, upper, &few, 1, 160) == PINN_BAD_ARGUMENT);
    ck_assert(try_create(2, lower, upper, &axis, 1, 160) == PINN_BAD_ARGUMENT);
    ck_assert(try_create(2, lower, upper, &stream, 1, 160) == PINN_BAD_ARGUMENT);
    ck_assert(try_create(2, lower, upper, &good, 0, 160) == PINN_BAD_ARGUMENT);
    ck_assert(try_create(0, lower, upper, &good, 1, 160) == PINN_BAD_ARGUMENT);
    ck_assert(try_create(2, lower, empty, &good, 1, 160) == PINN_BAD_ARGUMENT);
    ck_assert(try_create(2, lower, infinite, &good, 1, 160) == PINN_BAD_ARGUMENT);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("sampler");
    TCase *tests = tcase_create("sampler");
    tcase_set_timeout(tests, 60); /* sanitizers on a busy machine */
    tcase_add_loop_test(tests, equals_formula, 0, 6);
    tcase_add_test(tests, fixed_sets_stay);
    tcase_add_test(tests, nothing_to_draw);
    tcase_add_test(tests, any_threads);
    tcase_add_test(tests, point_does_not_know_the_others);
    tcase_add_loop_test(tests, distribution, 0, 2);
    tcase_add_test(tests, refusals);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
