/* Adam's recorded step: tables of partial sums, and reduce, adam in one graph on the CPU. */
#include <float.h>

#include "core/memory.h"
#include "run.h"

/* Parameter i's gradient by the definition of pn_partial. */
static double definition(pn_real real, const void *partials, size_t i) {
    double sum = 0;
    for (size_t p = 0; p < sizeof run_gradient / sizeof run_gradient[0]; p++) {
        const pn_partial *q = &run_gradient[p];
        for (size_t r = 0; i >= q->first && i < q->first + q->count && r < q->rows; r++)
            sum += pn_real_get(real, partials, q->offset + r * q->stride + i - q->first);
    }
    return sum;
}

START_TEST(gradient_by_definition) {
    const pn_real real = _i ? PN_FLOAT64 : PN_FLOAT32;
    void *partials = run_numbers(real, RUN_GRADIENT_ELEMENTS, 1, 5e-3);
    run_result result;
    double square = 0;
    run_optimizer(PINN_EXECUTOR_CPU, real, 1, &result);
    for (size_t i = 0; i < RUN_PARAMETERS; i++) {
        const double g = pn_real_get(real, result.gradient, i), expected = definition(real, partials, i);
        /* 1000 numbers up to 5e-3 added in float64: 1000 roundings of sums under 5, 1.1e-16 each; one rounding of float32 */
        ck_assert(fabs(g - expected) <= 5.5e-13 + (real == PN_FLOAT32 ? FLT_EPSILON / 2 * fabs(expected) : 0));
        if ((i >= 4160 && i < 4200) || i >= 12233) ck_assert(g == 0); /* no partial covers it */
        square += g * g;
    }
    ck_assert(fabs(result.words.gradient_norm - sqrt(square)) <= 1e-12 * sqrt(square));
    ck_assert(square > 1 && result.words.clip < 1); /* the clipping is at work */
    run_free(&result);
    free(partials);
}
END_TEST

/* The first step of Adam moves every parameter by the learning rate against its gradient's sign, whatever the gradient's size (as
 * long as it is far above epsilon). */
START_TEST(first_step) {
    double *before = run_numbers(PN_FLOAT64, RUN_PARAMETERS, 2, 1);
    run_result result;
    run_optimizer(PINN_EXECUTOR_CPU, PN_FLOAT64, 1, &result);
    const double rate = 2e-3 / 3, *g = result.gradient, *p = result.parameter;
    for (size_t i = 0; i < RUN_PARAMETERS; i++)
        if (g[i] == 0)
            ck_assert(p[i] == before[i]);
        else /* m^ / (sqrt(v^) + epsilon) = sign(g) / (1 + epsilon/|g clip|) */
            ck_assert(fabs(p[i] - before[i] + rate * (g[i] > 0 ? 1 : -1) / (1 + 1e-8 / fabs(g[i] * result.words.clip))) <= 1e-14);
    free(before);
    run_free(&result);
}
END_TEST

START_TEST(rows_and_words) {
    run_result result;
    run_optimizer(PINN_EXECUTOR_CPU, PN_FLOAT32, 20, &result);
    ck_assert(result.words.step == 20 && result.words.phase_step == 20 && result.words.optimizer_step == 20);
    ck_assert(result.words.rows == 12); /* 2 4 6 7 8 10 12 14 16 18 19 20 */
    const double step[RUN_RING] = {16, 18, 19, 20, 8, 10, 12, 14};
    for (int r = 0; r < RUN_RING; r++) {
        const double *row = &result.ring[r * RUN_ROW];
        ck_assert(row[PN_ROW_STEP] == step[r]);
        ck_assert(row[PN_ROW_TERMS + 2] == 0); /* no partial */
        double total = 0;
        for (int k = 0; k < RUN_TERMS; k++) total += row[PN_ROW_TERMS + k] * (double[]){1, 10, 1, 0.5, 3}[k];
        ck_assert(fabs(total - row[PN_ROW_LOSS]) <= 1e-14 * total);
    }
    run_free(&result);
}
END_TEST

/* Steps behind an end change nothing. */
START_TEST(ends) {
    const run_end end = run_ending(_i);
    run_result all, enough;
    run_optimizer_with(PINN_EXECUTOR_CPU, PN_FLOAT32, &end.settings, 20, &all);
    run_optimizer_with(PINN_EXECUTOR_CPU, PN_FLOAT32, &end.settings, end.step ? end.step : 1, &enough);
    ck_assert(all.words.step == end.step && all.words.stop == end.stop && all.words.rows == end.rows);
    ck_assert(all.loop.unrolled == 0 && all.loop.single == 0 && enough.loop.single == 0);
    ck_assert_mem_eq(&all.words, &enough.words, sizeof all.words);
    ck_assert_mem_eq(all.ring, enough.ring, sizeof all.ring);
    ck_assert_mem_eq(all.parameter, enough.parameter, RUN_PARAMETERS * sizeof(float));
    ck_assert_mem_eq(all.moments, enough.moments, 2 * RUN_PARAMETERS * sizeof(float));
    if (end.step == 0) {
        float *before = run_numbers(PN_FLOAT32, RUN_PARAMETERS, 2, 1);
        ck_assert_mem_eq(all.parameter, before, RUN_PARAMETERS * sizeof(float));
        free(before);
    }
    run_free(&all);
    run_free(&enough);
}
END_TEST

/* The same run twice is the same to the bit, with the threads of the machine. */
START_TEST(repeats) {
    run_result a, b;
    run_optimizer(PINN_EXECUTOR_CPU, PN_FLOAT32, 20, &a);
    run_optimizer(PINN_EXECUTOR_CPU, PN_FLOAT32, 20, &b);
    ck_assert_mem_eq(a.parameter, b.parameter, RUN_PARAMETERS * sizeof(float));
    ck_assert_mem_eq(&a.words, &b.words, sizeof a.words);
    ck_assert_mem_eq(a.ring, b.ring, sizeof a.ring);
    run_free(&a);
    run_free(&b);
}
END_TEST

/* Tiles cover every entry once and in order, and never more than one partial. */
START_TEST(tiles) {
    pinn_context *context = operation_context(PINN_EXECUTOR_CPU);
    pinn_plane *plane = run_plane(context, "partials", RUN_GRADIENT_ELEMENTS * sizeof(float), NULL);
    const pn_sums sums = {plane, run_gradient, 4, RUN_PARAMETERS};
    pn_reduce_tile *tile;
    size_t count, next = 0;
    ck_ok(pn_reduction_tiles(&sums, sizeof(float), &tile, &count));
    for (size_t t = 0; t < count; t++) {
        ck_assert(tile[t].first == next && tile[t].count >= 1 && tile[t].count <= PN_SUM_LANES);
        next += tile[t].count;
    }
    ck_assert(next == RUN_PARAMETERS);
    pn_free(tile);
    pinn_plane_destroy(plane);
    pinn_context_destroy(context);
}
END_TEST

START_TEST(refusals) {
    static const struct {
        pn_partial partial[2];
        pinn_status status;
    } c[] = {{{{0, 10, 3, 10, 0}, {10, 10, 1, 0, 30}}, PINN_OK},
             {{{0, 10, 3, 10, 0}, {9, 10, 1, 0, 30}}, PINN_BAD_ARGUMENT},             /* overlap */
             {{{10, 10, 3, 10, 0}, {0, 11, 1, 0, 0}}, PINN_BAD_ARGUMENT},             /* overlap, out of order */
             {{{0, 10, 4, 10, 1}, {10, 10, 1, 0, 30}}, PINN_BAD_ARGUMENT},            /* leaves the plane */
             {{{0, 10, 3, 10, 0}, {11, 10, 1, 0, 30}}, PINN_BAD_ARGUMENT},            /* leaves the total */
             {{{0, 10, 3, SIZE_MAX / 2, 0}, {10, 10, 1, 0, 30}}, PINN_BAD_ARGUMENT}}; /* overflow */
    pinn_context *context = operation_context(PINN_EXECUTOR_CPU);
    pinn_plane *plane = run_plane(context, "partials", 40 * sizeof(double), NULL);
    for (size_t i = 0; i < sizeof c / sizeof c[0]; i++) {
        const pn_sums sums = {plane, c[i].partial, 2, 20};
        pn_reduce_tile *tile = NULL;
        pn_reduce_column *column = NULL;
        size_t count = 77;
        ck_assert(pn_reduction_tiles(&sums, sizeof(double), &tile, &count) == c[i].status);
        ck_assert((tile != NULL) == (c[i].status == PINN_OK) && (count == 77) == (c[i].status != PINN_OK));
        ck_assert(pn_reduction_columns(&sums, &column) == c[i].status);
        pn_free(tile);
        pn_free(column);
    }
    pinn_plane_destroy(plane);
    pinn_context_destroy(context);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("adam step");
    TCase *tests = tcase_create("adam step");
    tcase_set_timeout(tests, 60); /* sanitizers on a busy machine */
    tcase_add_loop_test(tests, gradient_by_definition, 0, 2);
    tcase_add_test(tests, first_step);
    tcase_add_test(tests, rows_and_words);
    tcase_add_loop_test(tests, ends, 0, RUN_ENDS);
    tcase_add_test(tests, repeats);
    tcase_add_test(tests, tiles);
    tcase_add_test(tests, refusals);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
