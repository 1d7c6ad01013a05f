/* Every kernel on the GPU against its CPU twin: replayed as a graph and by the eager executor, which must agree to the bit. */
#include <float.h>
#include <math.h>

#include "kernels/adam.h"
#include "kernels/evaluate.h"
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

/* log, expm1, pow and cos of CUDA and glibc are a unit or two apart; what follows are a few operations on them. */
static void near(const double *cpu, const double *device, size_t count) {
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(
            cpu[i] == device[i] || (isnan(cpu[i]) && isnan(device[i])) || fabs(cpu[i] - device[i]) <= 1e-14 * fabs(cpu[i]),
            "number %zu: %.17g on the CPU, %.17g on the device", i, cpu[i], device[i]);
}

enum { TERMS = 70, FIELDS = 3, RING = 4, ROW = PN_ROW_TERMS + TERMS + FIELDS };

static pn_hyper step_hyper(uint64_t decay) {
    return (pn_hyper){.decay = decay,
                      .initial = 2e-3,
                      .final = 1e-5,
                      .decay_rate = 0.7,
                      .every = 5,
                      .phase_steps = 60,
                      .warmup = 4,
                      .beta1 = 0.9,
                      .beta2 = 0.999,
                      .epsilon = 1e-8,
                      .clip_norm = 1,
                      .event_every = 3,
                      .evaluate_every = 7,
                      .last_step = 20};
}

/* The sums' order is part of the kernel's contract: bits, in both precisions; fewer tiles than squares, more, and more than eight times as
 * many, which is where the kernel's ways part. */
START_TEST(reduce) {
    enum { TILES = 9000, ELEMENTS = 1000 * 64 + 8 * TILES, ROWS = 333 };
    static const uint32_t counts[] = {900, 1300, TILES};
    static const uint32_t rows[] = {1000, 64, 0, 1, 15, 16, 17, 129, 255, 256, 257, 513};
    static pn_reduce_tile tile[TILES];
    static pn_reduce_column column[TERMS];
    const pn_real real = _i % 2 ? PN_FLOAT64 : PN_FLOAT32;
    const uint32_t tiles = counts[_i / 2 % 3];
    const pn_reduce_arguments arguments = {tiles, TERMS, real};
    const pn_hyper hyper = step_hyper((uint64_t)_i % 3);
    const pn_words words = {.step = (uint64_t)_i * 4 + 2, .phase_step = (uint64_t)_i * 3, .optimizer_step = (uint64_t)_i * 7};
    const pn_loop loop = {.until = 20};
    void *partial = numbers(real, ELEMENTS, 1);
    double *loss = numbers(PN_FLOAT64, ROWS * TERMS, 2), *weight = numbers(PN_FLOAT64, 2 * TERMS, 3);
    for (uint32_t t = 0; t < tiles; t++)
        tile[t] = (pn_reduce_tile){
            .offset = 7 * t, .stride = 61 + t % 3, .first = 32 * t, .count = t % 5 ? 32 : 1 + t % 31, .rows = rows[t % 12]};
    for (size_t k = 0; k < TERMS; k++) {
        weight[TERMS + k] = (double)(k + 1);
        column[k] = (pn_reduce_column){k, TERMS, k % 9 ? ROWS - 4 * k : 0};
    }
    const operation_case c = {
        .operation = &pn_reduce_operation,
        .arguments = &arguments,
        .argument_bytes = sizeof arguments,
        .buffer = {partial, tile, loss, column, weight, &hyper, &words, &loop, NULL, NULL, NULL, NULL},
        .bytes = {ELEMENTS * pn_real_bytes(real), sizeof tile, ROWS * TERMS * sizeof(double), sizeof column,
                  2 * TERMS * sizeof(double), sizeof hyper, sizeof words, sizeof loop, 32 * tiles * pn_real_bytes(real),
                  pn_reduce_squares(tiles) * sizeof(double), 2 * TERMS * sizeof(double), sizeof(pn_finish_rates)},
        .buffers = 12,
        .reads = 8,
        .write = {8, 9, 10, 11},
        .writes = 4};
    void *cpu[BUFFERS], *device[BUFFERS];
    run_both(&c, 2, cpu, device);
    for (size_t i = 8; i < 11; i++) ck_assert_mem_eq(cpu[i], device[i], c.bytes[i]);
    const pn_finish_rates *x = cpu[11], *y = device[11];
    near(&x->learning_rate, &y->learning_rate, 1);
    near(&x->rate, &y->rate, 1);
    near(&x->root_correction, &y->root_correction, 1);
    ck_assert(x->open == y->open && x->due == y->due && x->open == (words.step < 20));
    operation_free(&c, cpu);
    operation_free(&c, device);
    free(weight);
    free(loss);
    free(partial);
}
END_TEST

/* Bits, or both not a number: which one, neither C nor CUDA says. */
static void same_row(const double *cpu, const double *device, size_t count) {
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(cpu[i] == device[i] || (isnan(cpu[i]) && isnan(device[i])),
                      "number %zu: %.17g on the CPU, %.17g on the device", i, cpu[i], device[i]);
}

/* From the same sums and rates everything is the same, words and rows included. */
static void adam_case(pn_real real, size_t n, size_t squares, double bad_square, double bad_loss, const pn_hyper *hyper, bool open,
                      pn_words *out) {
    const pn_adam_arguments arguments = {n, real, squares, TERMS, FIELDS, RING};
    const pn_finish_rates rates = {.learning_rate = 1e-3, .rate = 1.7e-3, .root_correction = 1.23, .open = open, .due = 1};
    const pn_loop loop = {.unroll = 3, .until = 100};
    const pn_words words = {.step = 4, .phase_step = 3, .optimizer_step = 2, .rows = 1, .stop = open ? PN_STOP_NONE : PN_STOP_LOSS};
    void *gradient = numbers(real, n, 1), *parameter = numbers(real, n, 2);
    double *square = numbers(PN_FLOAT64, squares, 3), *losses = numbers(PN_FLOAT64, 2 * TERMS, 4);
    for (size_t i = 5; i < n; i += 10) pn_real_set(real, gradient, i, i % 20 == 5 ? 0 : 1e-30); /* g^2 is subnormal in float32 */
    for (size_t i = 0; i < squares; i++) square[i] = fabs(square[i]);
    square[squares / 2] += bad_square;
    losses[TERMS + 17] += bad_loss;
    const size_t bytes = pn_real_bytes(real);
    const operation_case c = {
        .operation = &pn_adam_operation,
        .arguments = &arguments,
        .argument_bytes = sizeof arguments,
        .buffer = {gradient, square, losses, &rates, hyper, &words, NULL, &loop, parameter, NULL},
        .bytes = {n * bytes, squares * sizeof(double), 2 * TERMS * sizeof(double), sizeof rates, sizeof *hyper, sizeof words,
                  RING * ROW * sizeof(double), sizeof loop, n * bytes, 2 * n * bytes},
        .buffers = 10,
        .reads = 10,
        .write = {8, 9, 5, 6, 7},
        .writes = 5};
    void *cpu[BUFFERS], *device[BUFFERS];
    run_both(&c, 5, cpu, device);
    for (size_t i = 0; i < c.buffers; i++)
        if (i != 6) ck_assert_mem_eq(cpu[i], device[i], c.bytes[i]);
    same_row(cpu[6], device[6], RING * ROW);
    *out = *(const pn_words *)device[5];
    ck_assert((memcmp(parameter, device[8], n * bytes) == 0) == (out->step == words.step)); /* moves with the step */
    operation_free(&c, cpu);
    operation_free(&c, device);
    free(gradient);
    free(parameter);
    free(square);
    free(losses);
}

START_TEST(adam) {
    /* Of one block and of many, and of more than a thread a parameter; every filling of the lanes of squares. */
    static const size_t parameters[] = {1, 255, 256, 257, 1001, 40000, 300000}, squares[] = {1, 31, 256, 257, 700, 1023, 1024};
    const pn_real real = _i % 2 ? PN_FLOAT64 : PN_FLOAT32;
    const size_t n = parameters[_i / 2], s = squares[_i / 2];
    pn_hyper hyper = step_hyper(PN_HYPER_CONSTANT);
    pn_words words;
    adam_case(real, n, s, 0, 0, &hyper, true, &words);
    ck_assert(words.step == 9 && words.rows == 6 && words.stop == PN_STOP_NONE && (s == 1 || words.clip < 1));
    hyper.clip_norm = 0;
    adam_case(real, n, s, 0, 0, &hyper, true, &words);
    ck_assert(words.step == 9 && words.clip == 1);
    adam_case(real, n, s, 0, 0, &hyper, false, &words);
    ck_assert(words.step == 4 && words.rows == 1 && words.stop == PN_STOP_LOSS);
}
END_TEST

/* The rates still say `open` in the next replay, as `reduce` does not run here: the refused step is refused again. */
START_TEST(adam_refuses) {
    const pn_hyper hyper = step_hyper(PN_HYPER_CONSTANT);
    for (int i = 0; i < 4; i++) {
        const double bad = i % 2 ? INFINITY : NAN;
        pn_words words;
        adam_case(i < 2 ? PN_FLOAT32 : PN_FLOAT64, 1001, 333, i < 2 ? bad : 0, i < 2 ? 0 : bad, &hyper, true, &words);
        ck_assert(words.step == 4 && words.optimizer_step == 2 && words.stop == PN_STOP_NAN && words.rows == 6);
    }
}
END_TEST

START_TEST(begin) {
    const pn_begin_arguments arguments = {.unroll = 10};
    const pn_hyper hyper = {
        .longest = 1000, .phase_steps = 5000, .last_step = 7000, .event_every = 7, .evaluate_every = 50, .checkpoint_every = 31};
    for (uint64_t step = 0; step < 40; step++) {
        const pn_words words = {.step = step, .phase_step = step, .stop = step % 10 == 9 ? PN_STOP_LOSS : PN_STOP_NONE};
        const operation_case c = {.operation = &pn_begin_operation,
                                  .arguments = &arguments,
                                  .argument_bytes = sizeof arguments,
                                  .buffer = {&words, &hyper, NULL},
                                  .bytes = {sizeof words, sizeof hyper, sizeof(pn_loop)},
                                  .buffers = 3,
                                  .reads = 2,
                                  .write = {2},
                                  .writes = 1};
        same_bits(&c, 1);
    }
}
END_TEST

START_TEST(evaluate) {
    enum { E_FIELDS = 3, POINTS = 10201, E_TERMS = 2, E_ROW = PN_ROW_TERMS + E_TERMS + E_FIELDS };
    const pn_real real = _i % 2 ? PN_FLOAT64 : PN_FLOAT32;
    const pn_evaluate_arguments arguments = {E_FIELDS, POINTS, E_TERMS, RING, real};
    const pn_words words = {.step = 14, .rows = _i < 2 ? 7 : 0}; /* no row yet: nothing is written */
    pn_hyper hyper = {.evaluate_every = 7, .stop_relative_l2 = 1e9};
    void *fields = numbers(real, E_FIELDS * POINTS, 1);
    double *reference = numbers(PN_FLOAT64, E_FIELDS * POINTS, 2), ring[RING * E_ROW];
    for (size_t i = 0; i < RING * E_ROW; i++) ring[i] = (double)i;
    ck_assert(ring[2 * E_ROW + PN_ROW_STEP] == 18);
    ring[2 * E_ROW + PN_ROW_STEP] = 14;
    const operation_case c = {.operation = &pn_evaluate_operation,
                              .arguments = &arguments,
                              .argument_bytes = sizeof arguments,
                              .buffer = {fields, reference, &hyper, &words, ring},
                              .bytes = {E_FIELDS * POINTS * pn_real_bytes(real), E_FIELDS * POINTS * sizeof(double), sizeof hyper,
                                        sizeof words, sizeof ring},
                              .buffers = 5,
                              .reads = 5,
                              .write = {4, 3},
                              .writes = 2};
    void *out[BUFFERS];
    same_bits(&c, 1);
    operation_run(&c, PINN_EXECUTOR_GRAPH, 1, out);
    ck_assert(((const pn_words *)out[3])->stop == (_i < 2 ? PN_STOP_RELATIVE_L2 : PN_STOP_NONE));
    operation_free(&c, out);
    hyper.evaluate_every = 15; /* not due */
    same_bits(&c, 1);
    operation_run(&c, PINN_EXECUTOR_GRAPH, 1, out);
    ck_assert_mem_eq(out[4], ring, sizeof ring);
    operation_free(&c, out);
    hyper.evaluate_every = 7;
    for (size_t i = POINTS; i < 2 * POINTS; i++) reference[i] = NAN; /* a field without reference: the rule is never met */
    operation_run(&c, PINN_EXECUTOR_GRAPH, 1, out);
    const double *row = (double *)out[4] + 2 * E_ROW + PN_ROW_TERMS + E_TERMS;
    ck_assert(_i < 2 ? isnan(row[1]) && row[0] > 0 && row[2] > 0 : row[1] == 2 * E_ROW + PN_ROW_TERMS + E_TERMS + 1);
    ck_assert(((const pn_words *)out[3])->stop == PN_STOP_NONE);
    operation_free(&c, out);
    free(fields);
    free(reference);
}
END_TEST

int main(void) {
    if (pinn_device_count() == 0) return suite_skip("no GPU");
    Suite *suite = suite_create("kernels on the GPU");
    TCase *tests = tcase_create("kernels");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, reduce, 0, 6);
    tcase_add_loop_test(tests, adam, 0, 14);
    tcase_add_test(tests, adam_refuses);
    tcase_add_test(tests, begin);
    tcase_add_loop_test(tests, evaluate, 0, 4);
    suite_add_tcase(suite, tests);
    return suite_run_nofork(suite);
}
