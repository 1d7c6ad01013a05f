/* Matrix products on a GPU against float64 ones on the CPU: the kernel by itself, and the choice between it and cuBLAS. Needs a GPU:
 * without one the program says so and exits 77. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "network/product_split.h"
#include "pinn_graph.h"
#include "suite.h"

#define MUST(call) ck_assert_msg((call) == PINN_OK, "%s", pinn_error_message())

enum { GUARD = 64, FORMS = 3 };

typedef struct product_case {
    pn_product product;
    pn_real real;
    bool tf32;
    bool chosen; /* by pn_product_launch, else the kernel */
} product_case;

typedef struct operands {
    double *a, *b, *c;              /* [batch] of each, at their strides; C is the true product */
    size_t a_count, b_count, c_count; /* elements */
} operands;

static pinn_context *context;

static pinn_status multiply(const pinn_run *run) {
    const product_case *c = run->arguments;
    if (c->chosen)
        return pn_product_launch(&c->product, c->real, c->tf32, pinn_context_blas(run->context), run->stream, run->read[0], run->read[1],
                                 run->write[0]);
    return pn_split_launch(&c->product, run->stream, run->read[0], run->read[1], run->write[0]);
}

static const pinn_operation operation = {"product", NULL, multiply};

/* ---- one product -------------------------------------------------------------------------------------------------------------- */

static pn_product product_of(int form, size_t m, size_t n, size_t k, size_t batch) {
    return (pn_product){.transpose_a = form == 2, .transpose_b = form == 1, .m = m, .n = n, .k = k, .batch = batch,
                        .stride_a = m * k + 4, .stride_b = k * n + 8, .stride_c = m * n};
}

/* A number in [-1, 1) of 24 bits, so that float32 holds it. */
static double number(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 40) / 8388608.0 - 1.0;
}

static void true_product(const pn_product *p, operands *o) { pn_product_run(p, PN_FLOAT64, o->a, o->b, false, o->c); }

static operands operands_of(const pn_product *p, uint64_t seed) {
    operands o = {.a_count = p->stride_a * p->batch, .b_count = p->stride_b * p->batch, .c_count = p->stride_c * p->batch};
    o.a = pn_allocate(o.a_count, sizeof *o.a);
    o.b = pn_allocate(o.b_count, sizeof *o.b);
    o.c = pn_allocate(o.c_count, sizeof *o.c);
    ck_assert(o.a && o.b && o.c);
    for (size_t i = 0; i < o.a_count; i++) o.a[i] = number(&seed);
    for (size_t i = 0; i < o.b_count; i++) o.b[i] = number(&seed);
    true_product(p, &o);
    return o;
}

static void operands_free(operands *o) {
    pn_free(o->a);
    pn_free(o->b);
    pn_free(o->c);
}

static pinn_plane *plane_of(pn_real real, const double *value, size_t count) {
    pinn_plane *plane = NULL;
    void *converted = pn_allocate(count, pn_real_bytes(real));
    ck_assert_ptr_nonnull(converted);
    for (size_t i = 0; i < count; i++) pn_real_set(real, converted, i, value[i]);
    MUST(pinn_plane_create(context, "operand", PINN_DEVICE, count * pn_real_bytes(real), &plane));
    MUST(pinn_plane_write(plane, 0, converted, count * pn_real_bytes(real)));
    pn_free(converted);
    return plane;
}

/* C as the device computes it, twice with equal bits; elements beyond it must stay as they are. */
static void *device_product(const product_case *c, const operands *o) {
    const size_t bytes = (o->c_count + GUARD) * pn_real_bytes(c->real);
    unsigned char *before = pn_allocate(bytes, 1), *result = pn_allocate(bytes, 1), *again = pn_allocate(bytes, 1);
    pinn_plane *a = plane_of(c->real, o->a, o->a_count), *b = plane_of(c->real, o->b, o->b_count), *product = NULL;
    pinn_graph *graph = NULL;
    ck_assert(before && result && again);
    memset(before, 0xff, bytes); /* NaN */
    MUST(pinn_plane_create(context, "product", PINN_DEVICE, bytes, &product));
    MUST(pinn_plane_write(product, 0, before, bytes));
    MUST(pinn_graph_create(context, "product", &graph));
    MUST(pinn_graph_begin(graph));
    MUST(pinn_graph_operation(graph, &operation, c, sizeof *c, PINN_PLANES(a, b), PINN_PLANES(product)));
    MUST(pinn_graph_launch(graph, 1));
    MUST(pinn_plane_read(product, 0, result, bytes));
    MUST(pinn_graph_launch(graph, 1));
    MUST(pinn_plane_read(product, 0, again, bytes));
    ck_assert_mem_eq(result, again, bytes);
    const size_t guarded = o->c_count * pn_real_bytes(c->real);
    ck_assert_mem_eq(result + guarded, before + guarded, bytes - guarded);
    pinn_graph_destroy(graph);
    pinn_plane_destroy(product);
    pinn_plane_destroy(b);
    pinn_plane_destroy(a);
    pn_free(again);
    pn_free(before);
    return result;
}

/* ||C - product|| / ||product|| over elements [first, first + count). */
static double distance(pn_real real, const void *c, const double *product, size_t first, size_t count) {
    double difference = 0, square = 0;
    for (size_t i = first; i < first + count; i++) {
        const double d = pn_real_get(real, c, i) - product[i];
        difference += d * d;
        square += product[i] * product[i];
    }
    return sqrt(difference / square);
}

/* float32: cut, rounded and added up to 512 times, each good for a few 1e-8, few of them with the same sign. tf32: cuBLAS may cut
 * both factors, which is 2^-9 at most. float64: 512 roundings of 1.1e-16. */
static double tolerance(const product_case *c) {
    if (c->real == PN_FLOAT64) return 1e-14;
    return !c->tf32 ? 1e-6 : 2e-3;
}

static const char *describe(const product_case *c) {
    static char text[200];
    const pn_product *p = &c->product;
    snprintf(text, sizeof text, "%s%s, [%zu, %zu]%s x [%zu, %zu]%s x %zu", c->chosen ? "chosen" : "split",
             c->tf32 ? " tf32" : "", p->m, p->k, p->transpose_a ? "^T" : "", p->k, p->n, p->transpose_b ? "^T" : "", p->batch);
    return text;
}

static void check(const product_case *c, const operands *o) {
    void *result = device_product(c, o);
    const double error = distance(c->real, result, o->c, 0, o->c_count);
    ck_assert_msg(error <= tolerance(c), "%s: error %.3g", describe(c), error);
    pn_free(result);
}

/* ---- the kernel ------------------------------------------------------------------------------------------------------------------ */

static const size_t sizes[][4] = {{4, 4, 4, 1},      {128, 128, 32, 1},  {132, 132, 36, 2}, {256, 256, 512, 3}, {100, 64, 200, 1},
                                  {1000, 68, 100, 1}, {64, 300, 44, 70}, {260, 516, 64, 1}, {33, 128, 128, 2},  {2049, 256, 256, 1}};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

START_TEST(kernel_matches_the_definition) {
    const size_t *s = sizes[_i % SIZES];
    const pn_product p = product_of(_i / SIZES, s[0], s[1], s[2], s[3]);
    operands o = operands_of(&p, (uint64_t)_i);
    if (pn_split_takes(&p, NULL, NULL, NULL)) check(&(product_case){p, PN_FLOAT32, false, false}, &o);
    operands_free(&o);
}
END_TEST

/* Whole numbers of so few bits that every product and sum is exact, too many for one tf32 part. */
START_TEST(whole_numbers_are_exact) {
    const product_case c = {product_of(_i, 192, 136, 72, 2), PN_FLOAT32, false, false};
    operands o = operands_of(&c.product, 5);
    for (size_t i = 0; i < o.a_count; i++) o.a[i] = trunc(o.a[i] * 4096);
    for (size_t i = 0; i < o.b_count; i++) o.b[i] = trunc(o.b[i] * 32);
    true_product(&c.product, &o);
    float *result = device_product(&c, &o);
    for (size_t i = 0; i < o.c_count; i++) ck_assert_msg((double)result[i] == o.c[i], "%s: %.9g, not %.9g", describe(&c), (double)result[i], o.c[i]);
    pn_free(result);
    operands_free(&o);
}
END_TEST

/* Parts are relative to what they are parts of: rows of very different size are equally right. */
START_TEST(any_magnitude) {
    const product_case c = {product_of(0, 160, 128, 128, 1), PN_FLOAT32, false, false};
    const pn_product *p = &c.product;
    operands o = operands_of(p, 6);
    for (size_t i = 0; i < p->m; i++)
        for (size_t k = 0; k < p->k; k++) o.a[i * p->k + k] = ldexp(o.a[i * p->k + k], (int)(i % 161) - 80);
    true_product(p, &o);
    float *result = device_product(&c, &o);
    for (size_t i = 0; i < p->m; i++) {
        const double error = distance(PN_FLOAT32, result, o.c, i * p->n, p->n);
        ck_assert_msg(error <= 2 * tolerance(&c), "%s: row %zu has error %.3g", describe(&c), i, error); /* a row is a small sample */
    }
    pn_free(result);
    operands_free(&o);
}
END_TEST

/* NaN and infinity show in the row they belong to and nowhere else. */
START_TEST(what_is_not_finite_stays_so) {
    const product_case c = {product_of(0, 160, 64, 64, 1), PN_FLOAT32, false, false};
    const pn_product *p = &c.product;
    operands o = operands_of(p, 7);
    const size_t bad[] = {3, 70, 159};
    o.a[bad[0] * p->k + 5] = NAN;
    o.a[bad[1] * p->k + 63] = INFINITY;
    o.a[bad[2] * p->k] = -NAN;
    float *result = device_product(&c, &o);
    for (size_t i = 0; i < p->m; i++)
        for (size_t j = 0; j < p->n; j++)
            ck_assert_msg(!isfinite(result[i * p->n + j]) == (i == bad[0] || i == bad[1] || i == bad[2]), "%s: C[%zu, %zu] = %g", describe(&c), i, j,
                          (double)result[i * p->n + j]);
    pn_free(result);
    operands_free(&o);
}
END_TEST

/* ---- the choice ----------------------------------------------------------------------------------------------------------------- */

static const size_t ragged[][4] = {{1, 1, 1, 1},      {33, 1, 256, 1}, {33, 256, 1, 3},  {129, 65, 31, 2},  {64, 62, 66, 1}, {300, 100, 100, 1},
                                   {256, 256, 512, 9}, {255, 257, 129, 1}, {7, 512, 64, 1}, {4000, 128, 128, 1}};
enum { RAGGED = sizeof ragged / sizeof ragged[0] };

START_TEST(any_size_is_multiplied) {
    static const char *const choice[] = {"", "blas", "split"};
    const size_t *s = ragged[_i % RAGGED];
    for (int form = 0; form < FORMS + 1; form++) {
        pn_product p = product_of(form % FORMS, s[0], s[1], s[2], s[3]);
        p.transpose_a |= form == FORMS; /* both */
        p.transpose_b |= form == FORMS;
        operands o = operands_of(&p, (uint64_t)_i);
        setenv("PINN_PRODUCTS", choice[_i / RAGGED], 1);
        check(&(product_case){p, PN_FLOAT32, false, true}, &o);
        check(&(product_case){p, PN_FLOAT32, true, true}, &o);
        check(&(product_case){p, PN_FLOAT64, false, true}, &o);
        unsetenv("PINN_PRODUCTS");
        operands_free(&o);
    }
}
END_TEST

static TCase *list_tests(void) {
    TCase *tests = tcase_create("cuda");
    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, kernel_matches_the_definition, 0, FORMS * SIZES);
    tcase_add_loop_test(tests, whole_numbers_are_exact, 0, FORMS);
    tcase_add_test(tests, any_magnitude);
    tcase_add_test(tests, what_is_not_finite_stays_so);
    tcase_add_loop_test(tests, any_size_is_multiplied, 0, 3 * RAGGED);
    return tests;
}

int main(void) {
    if (pinn_device_count() == 0) return suite_skip("no GPU");
    const pinn_context_options options = {.executor = PINN_EXECUTOR_EAGER};
    if (pinn_context_create(&options, &context) != PINN_OK) {
        puts(pinn_error_message());
        return 1;
    }
    Suite *suite = suite_create("products on a GPU");
    suite_add_tcase(suite, list_tests());
    const int status = suite_run_nofork(suite);
    pinn_context_destroy(context);
    return status;
}
