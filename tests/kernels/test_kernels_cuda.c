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
    const pn_real real = _i % 2 ? PN_FLOAT64 : PN_FLOAT32;
    const pn_adam_arguments arguments = {N, real};
    const pn_words words = {.rate = 1.7e-3, .clip = 0.37, .root_correction = 1.23};
    const pn_hyper hyper = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8};
    const pn_loop loop = {.update = _i < 2}; /* or nothing changes */
    void *gradient = numbers(real, N, 1), *parameter = numbers(real, N, 2);
    for (size_t i = 0; i < N; i += 10) pn_real_set(real, gradient, i, i % 20 ? 0 : 1e-30); /* g^2 is subnormal in float32 */
    const operation_case c = {.operation = &pn_adam_operation,
                              .arguments = &arguments,
                              .argument_bytes = sizeof arguments,
                              .buffer = {gradient, &words, &hyper, &loop, parameter, NULL},
                              .bytes = {N * pn_real_bytes(real), sizeof words, sizeof hyper, sizeof loop, N * pn_real_bytes(real),
                                        2 * N * pn_real_bytes(real)},
                              .buffers = 6,
                              .reads = 6,
                              .write = {4, 5},
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

enum { TERMS = 70, FIELDS = 3, SQUARES = 5000, ROWS = 333, RING = 4, ROW = PN_ROW_TERMS + TERMS + FIELDS };

typedef struct finish_buffers {
    double *partial, *squares, *weight;
    pn_finish_column column[TERMS];
} finish_buffers;

static void fill(finish_buffers *b) {
    b->partial = numbers(PN_FLOAT64, ROWS * TERMS, 1);
    b->squares = numbers(PN_FLOAT64, SQUARES, 2);
    b->weight = numbers(PN_FLOAT64, 2 * TERMS, 3);
    for (size_t i = 0; i < SQUARES; i++) b->squares[i] = fabs(b->squares[i]);
    for (size_t k = 0; k < TERMS; k++) {
        b->weight[TERMS + k] = (double)(k + 1);
        b->column[k] = (pn_finish_column){k, TERMS, k % 9 ? ROWS - k : 0};
    }
}

/* 20 replays on the CPU and on the device: words and loop agree in all that no libm function touches, rings nearly. */
static void finish_case(const finish_buffers *b, const pn_hyper *hyper, const pn_loop *loop, pn_words *out) {
    const pn_finish_arguments arguments = {TERMS, FIELDS, SQUARES, RING};
    const operation_case c = {
        .operation = &pn_finish_operation,
        .arguments = &arguments,
        .argument_bytes = sizeof arguments,
        .buffer = {b->partial, b->column, b->squares, b->weight, hyper, NULL, NULL, loop},
        .bytes = {ROWS * TERMS * sizeof(double), sizeof b->column, SQUARES * sizeof(double), 2 * TERMS * sizeof(double),
                  sizeof *hyper, sizeof(pn_words), RING * ROW * sizeof(double), sizeof *loop},
        .buffers = 8,
        .reads = 8,
        .write = {5, 6, 7},
        .writes = 3};
    void *cpu[BUFFERS], *device[BUFFERS];
    run_both(&c, 20, cpu, device);
    const pn_words *x = cpu[5], *y = device[5];
    pn_words z = *y;
    near(&x->learning_rate, &y->learning_rate, 1);
    near(&x->rate, &y->rate, 1);
    near(&x->root_correction, &y->root_correction, 1);
    z.learning_rate = x->learning_rate;
    z.rate = x->rate;
    z.root_correction = x->root_correction;
    ck_assert_mem_eq(x, &z, sizeof z); /* bits */
    ck_assert_mem_eq(cpu[7], device[7], sizeof *loop);
    near(cpu[6], device[6], RING * ROW);
    *out = *y;
    operation_free(&c, cpu);
    operation_free(&c, device);
}

static void release(finish_buffers *b) {
    free(b->partial);
    free(b->squares);
    free(b->weight);
}

static pn_hyper finish_hyper(uint64_t decay) {
    return (pn_hyper){.decay = decay,
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
}

START_TEST(finish) {
    static finish_buffers b;
    const pn_hyper hyper = finish_hyper((uint64_t)_i);
    const pn_loop loop = {.unroll = 3, .until = 25};
    pn_words words;
    fill(&b);
    finish_case(&b, &hyper, &loop, &words);
    ck_assert(words.step == 20 && words.phase_step == 20 && words.optimizer_step == 20 && words.rows == 9);
    ck_assert(words.stop == PN_STOP_STEP && words.best_step == 1);
    release(&b);
}
END_TEST

START_TEST(finish_stops) {
    static finish_buffers b;
    const pn_loop open = {.unroll = 3, .until = 25}, closing = {.unroll = 3, .until = 13};
    const pn_hyper plain = finish_hyper(PN_HYPER_CONSTANT);
    pn_words words;
    fill(&b);
    pn_hyper hyper = plain;
    finish_case(&b, &hyper, &closing, &words); /* the chunk ends: the last seven replays change nothing */
    ck_assert(words.step == 13 && words.stop == PN_STOP_NONE);
    hyper.patience = 5; /* the same loss in every step */
    finish_case(&b, &hyper, &open, &words);
    ck_assert(words.step == 6 && words.stop == PN_STOP_PLATEAU && words.rows == 2);
    hyper = plain;
    hyper.stop_loss = 1e9;
    finish_case(&b, &hyper, &open, &words);
    ck_assert(words.step == 1 && words.stop == PN_STOP_LOSS && words.rows == 1);
    hyper = plain;
    hyper.stop_gradient_norm = 1e9;
    finish_case(&b, &hyper, &open, &words);
    ck_assert(words.step == 1 && words.stop == PN_STOP_GRADIENT_NORM);
    hyper = plain;
    for (int i = 0; i < 2; i++) {
        const double kept = b.squares[4321];
        b.squares[4321] = i ? INFINITY : NAN;
        finish_case(&b, &hyper, &open, &words);
        ck_assert(words.step == 0 && words.stop == PN_STOP_NAN && words.rows == 1 && words.best_step == 0);
        b.squares[4321] = kept;
    }
    b.partial[5 * TERMS + 7] = NAN;
    finish_case(&b, &hyper, &open, &words);
    ck_assert(words.step == 0 && words.stop == PN_STOP_NAN);
    release(&b);
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
    Suite *suite = suite_create("kernels on the GPU");
    TCase *tests = tcase_create("kernels");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, reduce, 0, 2);
    tcase_add_loop_test(tests, adam, 0, 4);
    tcase_add_test(tests, begin);
    tcase_add_loop_test(tests, finish, PN_HYPER_CONSTANT, PN_HYPER_COSINE + 1);
    tcase_add_test(tests, finish_stops);
    tcase_add_loop_test(tests, evaluate, 0, 4);
    suite_add_tcase(suite, tests);
    return test_main(suite, true);
}
