/* Matrix products of every instruction set this machine has, against the definition, at sizes around every block's edge. */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "core/memory.h"
#include "network/product_kernels.h"
#include "suite.h"

static const pn_product_kernels *const sets[] = {&pn_product_sse2, &pn_product_avx2, &pn_product_avx512};
static const size_t sizes[][3] = {{1, 1, 1},  {5, 3, 7},    {6, 16, 128}, {7, 17, 129}, {12, 64, 64}, {13, 63, 5},
                                  {1, 65, 3}, {100, 1, 64}, {64, 2, 300}, {3, 130, 1},  {25, 48, 257},
                                  {8, 3, 37}, {9, 4, 150},  {5, 576, 9}};
enum { SETS = sizeof sets / sizeof sets[0], SIZES = sizeof sizes / sizeof sizes[0] };

static bool has(size_t set) {
    if (set == 0) return true;
    if (set == 1) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

static double number(size_t i) { return sin(1.0 + 0.7 * (double)i); }

/* A sum of k products is off by at most k+1 rounding errors of the sum of magnitudes (Higham 2002, 3.5). Elements just beyond C must stay as they are. */
static void check(size_t set, pn_real real, const pn_product *p, bool add) {
    const size_t a_size = p->m * p->k, b_size = p->k * p->n, c_size = p->m * p->n, guard = 32;
    const double unit = real == PN_FLOAT32 ? 1.2e-7 : 2.3e-16;
    void *a = pn_allocate(a_size, pn_real_bytes(real)), *b = pn_allocate(b_size, pn_real_bytes(real));
    void *c = pn_allocate(c_size + guard, pn_real_bytes(real));
    ck_assert(a && b && c);
    for (size_t i = 0; i < a_size; i++) pn_real_set(real, a, i, number(i));
    for (size_t i = 0; i < b_size; i++) pn_real_set(real, b, i, number(3 * i + 1));
    for (size_t i = 0; i < c_size + guard; i++) pn_real_set(real, c, i, add || i >= c_size ? 0.5 : NAN);
    sets[set]->run[real](p, a, b, add, c);
    for (size_t i = 0; i < p->m; i++)
        for (size_t j = 0; j < p->n; j++) {
            double sum = add ? 0.5 : 0.0, magnitude = sum;
            for (size_t k = 0; k < p->k; k++) {
                const double term = pn_real_get(real, a, p->transpose_a ? k * p->m + i : i * p->k + k) *
                                    pn_real_get(real, b, p->transpose_b ? j * p->k + k : k * p->n + j);
                sum += term;
                magnitude += fabs(term);
            }
            const double got = pn_real_get(real, c, i * p->n + j);
            ck_assert_msg(fabs(got - sum) <= unit * (double)(p->k + 1) * magnitude, "%s [%zu, %zu, %zu] at %zu, %zu: %.9g, not %.9g", sets[set]->isa, p->m,
                          p->n, p->k, i, j, got, sum);
        }
    for (size_t i = c_size; i < c_size + guard; i++) ck_assert(pn_real_get(real, c, i) == 0.5);
    pn_free(a);
    pn_free(b);
    pn_free(c);
}

START_TEST(matches_the_definition) {
    const size_t set = (size_t)_i / SIZES, *size = sizes[_i % SIZES];
    if (!has(set)) return;
    for (int variant = 0; variant < 16; variant++) {
        const pn_product p = {.transpose_a = variant & 1, .transpose_b = variant & 2, .m = size[0], .n = size[1], .k = size[2], .batch = 1};
        check(set, variant & 4 ? PN_FLOAT64 : PN_FLOAT32, &p, variant & 8);
    }
}
END_TEST

START_TEST(batches_move_by_their_strides) {
    const pn_product p = {.m = 2, .n = 1, .k = 1, .batch = 3, .stride_a = 2, .stride_b = 1, .stride_c = 4};
    const double a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, 10, 100};
    double c[12] = {0};
    pn_product_run(&p, PN_FLOAT64, a, b, false, c);
    const double expected[12] = {1, 2, 0, 0, 30, 40, 0, 0, 500, 600, 0, 0};
    for (int i = 0; i < 12; i++) ck_assert(c[i] == expected[i]);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("product");
    TCase *tests = tcase_create("product");
    tcase_add_loop_test(tests, matches_the_definition, 0, SETS * SIZES);
    tcase_add_test(tests, batches_move_by_their_strides);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
