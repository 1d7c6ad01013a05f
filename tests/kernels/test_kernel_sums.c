/* reduce and evaluate on the CPU against long double sums. */
#include <float.h>
#include <math.h>
#include <omp.h>

#include "kernels/evaluate.h"
#include "kernels/reduce.h"
#include "operation.h"

typedef struct reduction {
    pn_reduce_tile tile[8];
    size_t tiles, elements;
} reduction;

/* Tiles of every kind, 100 entries: many rows, one row, no rows, a stride over the width, a width under the lanes. */
static const reduction mixed = {.tile = {{.offset = 0, .stride = 64, .first = 0, .count = 32, .rows = 1000},
                                         {.offset = 32, .stride = 64, .first = 32, .count = 32, .rows = 1000},
                                         {.offset = 64000, .stride = 7, .first = 64, .count = 7, .rows = 17},
                                         {.first = 71, .count = 5},
                                         {.offset = 64119, .stride = 1, .first = 76, .count = 1, .rows = 16},
                                         {.offset = 64135, .stride = 100, .first = 77, .count = 20, .rows = 1},
                                         {.offset = 64155, .stride = 0, .first = 97, .count = 3, .rows = 2}},
                                .tiles = 7,
                                .elements = 64158};

static void run_reduce(const pn_reduce_tile *tile, size_t tiles, pn_real real, const void *partial, void *gradient,
                       double *squares) {
    const pn_reduce_arguments arguments = {.tiles = tiles, .real = real};
    const pn_hyper hyper = {0};
    const pn_words words = {0};
    const pn_loop loop = {0};
    pn_finish_rates rates;
    double none; /* no terms */
    operation_cpu(&pn_reduce_operation, &arguments,
                  ADDRESSES((void *)partial, (void *)tile, &none, &none, &none, (void *)&hyper, (void *)&words, (void *)&loop),
                  ADDRESSES(gradient, squares, &none, &rates));
}

static void *partials(pn_real real, size_t count) {
    uint64_t state = 7;
    void *p = malloc(count * pn_real_bytes(real));
    for (size_t i = 0; i < count; i++) pn_real_set(real, p, i, test_number(&state));
    return p;
}

START_TEST(reduce_is_the_sum) {
    const pn_real real = _i ? PN_FLOAT64 : PN_FLOAT32;
    void *partial = partials(real, mixed.elements);
    double gradient[100], squares[8]; /* doubles also hold 100 floats */
    memset(gradient, 0xff, sizeof gradient);
    run_reduce(mixed.tile, mixed.tiles, real, partial, gradient, squares);
    for (size_t t = 0; t < mixed.tiles; t++) {
        const pn_reduce_tile *tile = &mixed.tile[t];
        long double square = 0;
        for (size_t c = 0; c < tile->count; c++) {
            long double sum = 0, size = 0;
            for (size_t i = 0; i < tile->rows; i++) {
                const double x = pn_real_get(real, partial, tile->offset + i * tile->stride + c);
                sum += x;
                size += fabs(x);
            }
            /* An entry passes through rows/16 + 4 additions, each half an ulp of a partial sum that is at most `size`; float32
             * entries are then rounded once. */
            const double g = pn_real_get(real, gradient, tile->first + c);
            const long double bound =
                (tile->rows / 16 + 5) * DBL_EPSILON / 2 * size + (real == PN_FLOAT32 ? FLT_EPSILON / 2 * fabsl(sum) : 0);
            ck_assert_msg(fabsl(g - sum) <= bound, "entry %zu: %.17g, not %.17Lg", tile->first + c, g, sum);
            square += (long double)g * g;
        }
        ck_assert(fabsl(squares[t] - square) <= 7 * DBL_EPSILON * square); /* one product, five additions of positive numbers */
    }
    free(partial);
}
END_TEST

/* More tiles than squares: some squares stand for two. */
START_TEST(reduce_shares_the_squares) {
    enum { TILES = PN_REDUCE_SQUARES + 300 };
    void *partial = partials(PN_FLOAT32, mixed.elements);
    static pn_reduce_tile tile[TILES];
    static float gradient[TILES * PN_SUM_LANES];
    double squares[PN_REDUCE_SQUARES], left = 0;
    for (uint32_t t = 0; t < TILES; t++) {
        tile[t] = mixed.tile[t % mixed.tiles];
        tile[t].first = t * PN_SUM_LANES;
    }
    run_reduce(tile, TILES, PN_FLOAT32, partial, gradient, squares);
    ck_assert(pn_reduce_squares(TILES) == PN_REDUCE_SQUARES && pn_reduce_squares(7) == 7);
    for (uint32_t b = 0; b < PN_REDUCE_SQUARES; b++) {
        double square = 0;
        for (uint32_t t = b; t < TILES; t += PN_REDUCE_SQUARES)
            for (uint32_t c = 0; c < tile[t].count; c++) square += pow((double)gradient[t * PN_SUM_LANES + c], 2);
        left += fabs(squares[b] - square) > 64 * DBL_EPSILON * square; /* 64 additions of positive numbers */
    }
    ck_assert(left == 0);
    free(partial);
}
END_TEST

START_TEST(reduce_repeats_for_any_threads) {
    enum { TILES = 1200 }; /* enough for threads to be used, and for squares of two tiles */
    void *partial = partials(PN_FLOAT32, mixed.elements);
    static pn_reduce_tile tile[TILES];
    static float first[TILES * PN_SUM_LANES], gradient[TILES * PN_SUM_LANES];
    double first_squares[PN_REDUCE_SQUARES], squares[PN_REDUCE_SQUARES];
    for (uint32_t t = 0; t < TILES; t++) {
        tile[t] = mixed.tile[t % mixed.tiles];
        tile[t].first = t * PN_SUM_LANES;
    }
    omp_set_num_threads(1);
    run_reduce(tile, TILES, PN_FLOAT32, partial, first, first_squares);
    for (int threads = 2; threads <= 5; threads++) {
        omp_set_num_threads(threads);
        run_reduce(tile, TILES, PN_FLOAT32, partial, gradient, squares);
        ck_assert_mem_eq(first, gradient, sizeof gradient);
        ck_assert_mem_eq(first_squares, squares, sizeof squares);
    }
    free(partial);
}
END_TEST

enum { FIELDS = 3, POINTS = 2500, TERMS = 2, ROW = PN_ROW_TERMS + TERMS + FIELDS, RING = 4 };

/* Of the state after 30 steps, whose row is the newest of `rows`; returns the stop word. */
static uint64_t run_evaluate(pn_real real, uint64_t rows, const pn_hyper *hyper, uint64_t stop, const void *fields,
                             const double *reference, double *ring) {
    const pn_evaluate_arguments arguments = {FIELDS, POINTS, TERMS, RING, real};
    pn_words words = {.step = 30, .rows = rows, .stop = stop};
    if (rows) ring[(rows - 1) % RING * ROW + PN_ROW_STEP] = 30;
    operation_cpu(&pn_evaluate_operation, &arguments, ADDRESSES((void *)fields, (void *)reference, (void *)hyper, &words, ring),
                  ADDRESSES(ring, &words));
    ck_assert(words.step == 30 && words.rows == rows);
    return words.stop;
}

static const pn_hyper due = {.evaluate_every = 10};

START_TEST(evaluate_is_relative_l2) {
    const pn_real real = _i ? PN_FLOAT64 : PN_FLOAT32;
    static double reference[FIELDS * POINTS], ring[RING * ROW];
    void *fields = partials(real, FIELDS * POINTS);
    uint64_t state = 3;
    for (size_t i = 0; i < FIELDS * POINTS; i++) reference[i] = i / POINTS == 1 ? NAN : test_number(&state);
    for (size_t i = 0; i < RING * ROW; i++) ring[i] = (double)i;
    ring[2 * ROW] = 30;
    run_evaluate(real, 7, &due, 0, fields, reference, ring); /* the newest of 7 rows of a ring of 4 is row 2 */
    for (size_t i = 0; i < RING * ROW; i++) {
        const size_t first = 2 * ROW + PN_ROW_TERMS + TERMS;
        if (i < first || i >= first + FIELDS) {
            ck_assert(ring[i] == (i == 2 * ROW ? 30 : (double)i));
            continue;
        }
        long double error = 0, size = 0;
        for (size_t p = (i - first) * POINTS; p < (i - first + 1) * POINTS; p++) {
            const long double difference = (long double)pn_real_get(real, fields, p) - reference[p];
            error += difference * difference;
            size += (long double)reference[p] * reference[p];
        }
        /* Sums of positive numbers, at most 3 + 10 roundings deep, and three more: 1e-15 is over twice their square root's half. */
        if (i - first == 1)
            ck_assert(isnan(ring[i])); /* no reference */
        else
            ck_assert(fabsl(ring[i] - sqrtl(error / size)) <= 2e-15L * ring[i]);
    }
    free(fields);
}
END_TEST

START_TEST(evaluate_exact_and_empty) {
    static double reference[FIELDS * POINTS], fields[FIELDS * POINTS], ring[RING * ROW];
    for (size_t i = 0; i < FIELDS * POINTS; i++) {
        reference[i] = 2;
        fields[i] = i < POINTS ? 2 : i < 2 * POINTS ? 2.5 : 0;
    }
    run_evaluate(PN_FLOAT64, 0, &due, 0, fields, reference, ring); /* no row yet */
    for (size_t i = 0; i < RING * ROW; i++) ck_assert(ring[i] == 0);
    run_evaluate(PN_FLOAT64, 1, &due, 0, fields, reference, ring);
    ck_assert(ring[PN_ROW_TERMS + TERMS] == 0);
    ck_assert(ring[PN_ROW_TERMS + TERMS + 1] == 0.25);
    ck_assert(ring[PN_ROW_TERMS + TERMS + 2] == 1);
}
END_TEST

/* Errors 0, 0.25, 1. */
START_TEST(evaluate_when_due_and_its_rule) {
    static const struct {
        pn_hyper hyper;
        uint64_t stop, expected;
        bool written;
    } c[] = {
        {{.evaluate_every = 10}, PN_STOP_NONE, PN_STOP_NONE, true},
        {{.evaluate_every = 11}, PN_STOP_NONE, PN_STOP_NONE, false},
        {{.evaluate_every = 11, .last_step = 30}, PN_STOP_STEP, PN_STOP_STEP, true},
        {{.evaluate_every = 11, .last_step = 30, .stop_relative_l2 = 1}, PN_STOP_STEP, PN_STOP_RELATIVE_L2, true},
        {{.evaluate_every = 10, .stop_relative_l2 = 1}, PN_STOP_NONE, PN_STOP_RELATIVE_L2, true},
        {{.evaluate_every = 10, .stop_relative_l2 = 0.999}, PN_STOP_NONE, PN_STOP_NONE, true},
        {{.evaluate_every = 10, .stop_relative_l2 = 1}, PN_STOP_LOSS, PN_STOP_LOSS, true},
        {{.evaluate_every = 7, .stop_relative_l2 = 1}, PN_STOP_NONE, PN_STOP_NONE, false},
    };
    static double reference[FIELDS * POINTS], fields[FIELDS * POINTS];
    for (size_t i = 0; i < FIELDS * POINTS; i++) {
        reference[i] = 2;
        fields[i] = i < POINTS ? 2 : i < 2 * POINTS ? 2.5 : 0;
    }
    for (size_t i = 0; i < sizeof c / sizeof c[0]; i++) {
        double ring[RING * ROW] = {0};
        ck_assert(run_evaluate(PN_FLOAT64, 1, &c[i].hyper, c[i].stop, fields, reference, ring) == c[i].expected);
        ck_assert(ring[PN_ROW_TERMS + TERMS + 2] == c[i].written);
    }
    /* The newest row is of a step that was not done. */
    const pn_evaluate_arguments arguments = {FIELDS, POINTS, TERMS, RING, PN_FLOAT64};
    const pn_hyper hyper = {.evaluate_every = 10, .stop_relative_l2 = 1};
    pn_words words = {.step = 30, .rows = 1, .stop = PN_STOP_NAN};
    double ring[RING * ROW] = {31};
    operation_cpu(&pn_evaluate_operation, &arguments, ADDRESSES(fields, reference, (void *)&hyper, &words, ring),
                  ADDRESSES(ring, &words));
    for (int i = 1; i < RING * ROW; i++) ck_assert(ring[i] == 0);
    ck_assert(words.stop == PN_STOP_NAN);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("sums");
    TCase *tests = tcase_create("sums");
    tcase_set_timeout(tests, 60); /* sanitizers on a busy machine */
    tcase_add_loop_test(tests, reduce_is_the_sum, 0, 2);
    tcase_add_test(tests, reduce_shares_the_squares);
    tcase_add_test(tests, reduce_repeats_for_any_threads);
    tcase_add_loop_test(tests, evaluate_is_relative_l2, 0, 2);
    tcase_add_test(tests, evaluate_exact_and_empty);
    tcase_add_test(tests, evaluate_when_due_and_its_rule);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
