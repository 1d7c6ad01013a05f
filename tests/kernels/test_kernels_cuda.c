/* Every kernel on the GPU against its CPU twin: replayed as a graph and by the eager executor, which must agree to the bit. */
#include <float.h>
#include <math.h>

#include "kernels/adam.h"
#include "kernels/evaluate.h"
#include "kernels/finish.h"
#include "kernels/reduce.h"
#include "operation.h"

/* Runs on the CPU and on the device, twice; the device's results must agree with each other to the bit. */
static void run_both(const operation_case *c, uint64_t times, void *cpu[BUFFERS], void *device[BUFFERS]) {
    void *eager[BUFFERS];
    operation_run(c, PINN_EXECUTOR_CPU, times, cpu);
    operation_run(c, PINN_EXECUTOR_GRAPH, times, device);
    operation_run(c, PINN_EXECUTOR_EAGER, times, eager);
    for (size_t i = 0; i < c->buffers; i++) ck_assert_mem_eq(device[i], eager[i], c->bytes[i]);
    operation_free(c, eager);
}

static void same_bits(const operation_case *c, uint64_t times) {
    void *cpu[BUFFERS], *device[BUFFERS];
    run_both(c, times, cpu, device);
    for (size_t i = 0; i < c->buffers; i++) ck_assert_mem_eq(cpu[i], device[i], c->bytes[i]);
    operation_free(c, cpu);
    operation_free(c, device);
}

static void *numbers(pn_real real, size_t count, uint64_t state) {
    void *p = malloc(count * pn_real_bytes(real));
    for (size_t i = 0; i < count; i++) pn_real_set(real, p, i, test_number(&state));
    return p;
}

/* The sums' order is part of the kernel's contract: bits, in both precisions. */
START_TEST(reduce) {
    enum { TILES = 300, ELEMENTS = 1000 * 64 + 40 * 32 * TILES, PARAMETERS = 32 * TILES };
    static const uint32_t rows[] = {1000, 64, 0, 1, 15, 16, 17, 129};
    static pn_reduce_tile tile[TILES];
    const pn_real real = _i ? PN_FLOAT64 : PN_FLOAT32;
    const pn_reduce_arguments arguments = {TILES, real};
    void *partial = numbers(real, ELEMENTS, 1);
    for (uint32_t t = 0; t < TILES; t++)
        tile[t] = (pn_reduce_tile){
            .offset = 7 * t, .stride = 61 + t % 3, .first = 32 * t, .count = t % 5 ? 32 : 1 + t % 31, .rows = rows[t % 8]};
    const operation_case c = {
        .operation = &pn_reduce_operation,
        .arguments = &arguments,
        .argument_bytes = sizeof arguments,
        .buffer = {partial, tile, NULL, NULL},
        .bytes = {ELEMENTS * pn_real_bytes(real), sizeof tile, PARAMETERS * pn_real_bytes(real), TILES * sizeof(double)},
        .buffers = 4,
        .reads = 2,
        .write = {2, 3},
        .writes = 2};
    same_bits(&c, 1);
    free(partial);
}
END_TEST

START_TEST(adam) {
    enum { N = 1001 };
    const pn_real real = _i ? PN_FLOAT64 : PN_FLOAT32;
    const pn_adam_arguments arguments = {N, real};
    const pn_words words = {.rate = 1.7e-3, .clip = 0.37, .root_correction = 1.23};
    const pn_hyper hyper = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8};
    void *gradient = numbers(real, N, 1), *parameter = numbers(real, N, 2);
    for (size_t i = 0; i < N; i += 10) pn_real_set(real, gradient, i, i % 20 ? 0 : 1e-30); /* g^2 is subnormal in float32 */
    const operation_case c = {
        .operation = &pn_adam_operation,
        .arguments = &arguments,
        .argument_bytes = sizeof arguments,
        .buffer = {gradient, &words, &hyper, parameter, NULL},
        .bytes = {N * pn_real_bytes(real), sizeof words, sizeof hyper, N * pn_real_bytes(real), 2 * N * pn_real_bytes(real)},
        .buffers = 5,
        .reads = 5,
        .write = {3, 4},
        .writes = 2};
    same_bits(&c, 50);
    free(gradient);
    free(parameter);
}
END_TEST

/* log, expm1, pow and cos of CUDA and glibc are a unit or two apart; what follows are a few operations on them. */
static void near(const double *cpu, const double *device, size_t count) {
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(
            cpu[i] == device[i] || (isnan(cpu[i]) && isnan(device[i])) || fabs(cpu[i] - device[i]) <= 1e-14 * fabs(cpu[i]),
            "number %zu: %.17g on the CPU, %.17g on the device", i, cpu[i], device[i]);
}

START_TEST(finish) {
    enum { TERMS = 70, FIELDS = 3, SQUARES = 5000, ROWS = 333, RING = 4, ROW = PN_ROW_TERMS + TERMS + FIELDS };
    const pn_finish_arguments arguments = {TERMS, FIELDS, SQUARES, RING};
    const pn_hyper hyper = {.decay = (uint64_t)_i,
                            .initial = 2e-3,
                            .final = 1e-5,
                            .decay_rate = 0.7,
                            .every = 5,
                            .phase_steps = 60,
                            .warmup = 4,
                            .beta1 = 0.9,
                            .beta2 = 0.999,
                            .clip_norm = 1,
                            .event_every = 3,
                            .evaluate_every = 7,
                            .last_step = 20};
    static pn_finish_column column[TERMS];
    double *partial = numbers(PN_FLOAT64, ROWS * TERMS, 1), *squares = numbers(PN_FLOAT64, SQUARES, 2),
           *weight = numbers(PN_FLOAT64, 2 * TERMS, 3);
    for (size_t i = 0; i < SQUARES; i++) squares[i] = fabs(squares[i]);
    for (size_t k = 0; k < TERMS; k++) {
        weight[TERMS + k] = (double)(k + 1);
        column[k] = (pn_finish_column){k, TERMS, k % 9 ? ROWS - k : 0};
    }
    const operation_case c = {.operation = &pn_finish_operation,
                              .arguments = &arguments,
                              .argument_bytes = sizeof arguments,
                              .buffer = {partial, column, squares, weight, &hyper, NULL, NULL},
                              .bytes = {ROWS * TERMS * sizeof(double), sizeof column, SQUARES * sizeof(double),
                                        2 * TERMS * sizeof(double), sizeof hyper, sizeof(pn_words), RING * ROW * sizeof(double)},
                              .buffers = 7,
                              .reads = 7,
                              .write = {5, 6},
                              .writes = 2};
    void *cpu[BUFFERS], *device[BUFFERS];
    run_both(&c, 20, cpu, device);
    const pn_words *a = cpu[5], *b = device[5];
    ck_assert(a->step == 20 && b->step == 20 && b->phase_step == 20 && b->optimizer_step == 20 && a->rows == b->rows &&
              b->rows == 9);
    ck_assert(a->loss == b->loss && a->gradient_norm == b->gradient_norm && a->clip == b->clip); /* bits */
    near(&a->learning_rate, &b->learning_rate, 1);
    near(&a->rate, &b->rate, 1);
    near(&a->root_correction, &b->root_correction, 1);
    near(cpu[6], device[6], RING * ROW);
    operation_free(&c, cpu);
    operation_free(&c, device);
    free(partial);
    free(squares);
    free(weight);
}
END_TEST

START_TEST(evaluate) {
    enum { FIELDS = 3, POINTS = 10201, TERMS = 2, RING = 4, ROW = PN_ROW_TERMS + TERMS + FIELDS };
    const pn_real real = _i % 2 ? PN_FLOAT64 : PN_FLOAT32;
    const pn_evaluate_arguments arguments = {FIELDS, POINTS, TERMS, RING, real};
    const pn_words words = {.rows = _i < 2 ? 7 : 0}; /* no row yet: nothing is written */
    void *fields = numbers(real, FIELDS * POINTS, 1);
    double *reference = numbers(PN_FLOAT64, FIELDS * POINTS, 2), ring[RING * ROW];
    for (size_t i = 0; i < RING * ROW; i++) ring[i] = (double)i;
    const operation_case c = {
        .operation = &pn_evaluate_operation,
        .arguments = &arguments,
        .argument_bytes = sizeof arguments,
        .buffer = {fields, reference, &words, ring},
        .bytes = {FIELDS * POINTS * pn_real_bytes(real), FIELDS * POINTS * sizeof(double), sizeof words, sizeof ring},
        .buffers = 4,
        .reads = 4,
        .write = {3},
        .writes = 1};
    same_bits(&c, 1);
    for (size_t i = POINTS; i < 2 * POINTS; i++) reference[i] = NAN; /* a field without reference */
    void *out[BUFFERS];
    operation_run(&c, PINN_EXECUTOR_GRAPH, 1, out);
    const double *row = (double *)out[3] + 2 * ROW + PN_ROW_TERMS + TERMS;
    ck_assert(_i < 2 ? isnan(row[1]) && row[0] > 0 && row[2] > 0 : row[1] == 2 * ROW + PN_ROW_TERMS + TERMS + 1);
    operation_free(&c, out);
    free(fields);
    free(reference);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("kernels on the GPU");
    TCase *tests = tcase_create("kernels");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, reduce, 0, 2);
    tcase_add_loop_test(tests, adam, 0, 2);
    tcase_add_loop_test(tests, finish, PN_HYPER_CONSTANT, PN_HYPER_COSINE + 1);
    tcase_add_loop_test(tests, evaluate, 0, 4);
    suite_add_tcase(suite, tests);
    return test_main(suite, true);
}
