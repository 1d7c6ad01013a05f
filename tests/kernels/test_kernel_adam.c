/* reduce and adam together on the CPU, 1000 steps, against algorithm 1 of Kingma & Ba written as in the paper. */
#include <float.h>
#include <math.h>
#include <omp.h>

#include "kernels/adam.h"
#include "kernels/reduce.h"
#include "operation.h"

enum { N = 45, ROWS = 3, STEPS = 1000 };

/* The gradient of sum_i a_i (p_i - b_i)^2 / 2 with a from 0.01 to 10: norms from large (clipped) to small. */
static double slope(int i, double p) { return 0.01 * pow(1000, i / (double)(N - 1)) * (p - sin(i)); }

typedef struct machine {
    pn_real real;
    double partial[ROWS * N], gradient[N], parameter[N], moments[2 * N]; /* in `real`: room for the wider one */
    double squares[2], losses[2], weight[2], ring[8];
    pn_reduce_tile tile[2];
    pn_reduce_column column[1]; /* of no rows */
    pn_finish_rates rates;
    pn_hyper hyper;
    pn_words words;
    pn_loop loop;
} machine;

static void start(machine *m, pn_real real, double clip_norm) {
    *m = (machine){
        .real = real,
        .weight = {1, 1},
        .tile = {{.stride = N, .count = 32, .rows = ROWS}, {.offset = 32, .stride = N, .first = 32, .count = N - 32, .rows = ROWS}},
        .hyper = {.decay = PN_HYPER_COSINE,
                  .initial = 0.02,
                  .final = 1e-4,
                  .phase_steps = STEPS,
                  .warmup = 20,
                  .beta1 = 0.9,
                  .beta2 = 0.999,
                  .epsilon = 1e-8,
                  .clip_norm = clip_norm},
        .loop = {.until = STEPS}};
    for (int i = 0; i < N; i++) pn_real_set(real, m->parameter, i, cos(3 * i));
}

static void step(machine *m) {
    const pn_reduce_arguments reduce = {2, 1, m->real};
    const pn_adam_arguments adam = {N, m->real, 2, 1, 1, 1};
    for (int i = 0; i < N; i++) /* in three parts */
        for (int r = 0; r < ROWS; r++)
            pn_real_set(m->real, m->partial, r * N + i,
                        slope(i, pn_real_get(m->real, m->parameter, i)) * (double[]){0.5, 0.25, 0.25}[r]);
    operation_cpu(&pn_reduce_operation, &reduce,
                  ADDRESSES(m->partial, m->tile, NULL, m->column, m->weight, &m->hyper, &m->words, &m->loop),
                  ADDRESSES(m->gradient, m->squares, m->losses, &m->rates));
    operation_cpu(
        &pn_adam_operation, &adam,
        ADDRESSES(m->gradient, m->squares, m->losses, &m->rates, &m->hyper, &m->words, m->ring, &m->loop, m->parameter, m->moments),
        ADDRESSES(m->parameter, m->moments, &m->words, m->ring, &m->loop));
}

/* The largest distance from the textbook's parameters over all steps; *clipped counts the steps that were clipped. */
static double compare(pn_real real, double clip_norm, int *clipped) {
    static machine m;
    double p[N], first[N] = {0}, second[N] = {0}, worst = 0;
    start(&m, real, clip_norm);
    for (int i = 0; i < N; i++) p[i] = pn_real_get(real, m.parameter, i);
    *clipped = 0;
    for (int t = 1; t <= STEPS; t++) {
        double g[N], norm = 0;
        for (int i = 0; i < N; i++) {
            g[i] = slope(i, p[i]);
            norm += g[i] * g[i];
        }
        norm = sqrt(norm);
        const double scale = clip_norm > 0 && norm > clip_norm ? clip_norm / norm : 1;
        const double x = (t - 1 - 20) / (double)(STEPS - 20);
        const double rate = t <= 20 ? 0.02 * t / 20 : 1e-4 + (0.02 - 1e-4) * (1 + cos(M_PI * x)) / 2;
        *clipped += scale < 1;
        step(&m);
        for (int i = 0; i < N; i++) {
            first[i] = 0.9 * first[i] + 0.1 * scale * g[i];
            second[i] = 0.999 * second[i] + 0.001 * scale * g[i] * scale * g[i];
            const double unbiased1 = first[i] / (1 - pow(0.9, t)), unbiased2 = second[i] / (1 - pow(0.999, t));
            p[i] -= rate * unbiased1 / (sqrt(unbiased2) + 1e-8);
            worst = fmax(worst, fabs(p[i] - pn_real_get(real, m.parameter, i)));
        }
    }
    return worst;
}

/* Half an ulp of parameters of size 1 a step, with the same sign for 1000 steps at worst: 1e-13 and 6e-5. The minimum attracts, so
 * what is seen is a hundredth of that, hence 1e-5 for float32. A wrong sign, bias or clip factor gives 1e-2. */
START_TEST(textbook) {
    static const struct {
        pn_real real;
        double clip_norm, tolerance;
    } c[] = {{PN_FLOAT64, 0, 1e-13}, {PN_FLOAT64, 5, 1e-13}, {PN_FLOAT32, 0, 1e-5}, {PN_FLOAT32, 5, 1e-5}};
    int clipped;
    const double worst = compare(c[_i].real, c[_i].clip_norm, &clipped);
    ck_assert_msg(worst <= c[_i].tolerance, "parameters are off by %g", worst);
    ck_assert(c[_i].clip_norm > 0 ? clipped > 50 && clipped < STEPS - 50 : clipped == 0);
}
END_TEST

START_TEST(repeats_for_any_threads) {
    enum { MANY = 20001 }; /* enough for threads to be used */
    static float gradient[MANY], parameter[2][MANY], moments[2][2 * MANY];
    const pn_adam_arguments arguments = {MANY, PN_FLOAT32, 1, 1, 1, 1};
    const pn_finish_rates rates = {.rate = 1e-3, .root_correction = 1.5, .open = 1};
    const pn_hyper hyper = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .clip_norm = 0.5};
    double squares = 1, losses[2] = {0}, ring[8];
    pn_words words = {0};
    pn_loop loop = {.until = 100};
    uint64_t state = 1;
    for (int t = 0; t < 20; t++) {
        for (int i = 0; i < MANY; i++) gradient[i] = (float)test_number(&state);
        for (int k = 0; k < 2; k++) {
            omp_set_num_threads(k ? 2 + t % 4 : 1);
            operation_cpu(&pn_adam_operation, &arguments,
                          ADDRESSES(gradient, &squares, losses, (void *)&rates, (void *)&hyper, &words, ring, &loop, parameter[k],
                                    moments[k]),
                          ADDRESSES(parameter[k], moments[k], &words, ring, &loop));
        }
        ck_assert(words.clip == 0.5);
        ck_assert_mem_eq(parameter[0], parameter[1], sizeof parameter[0]);
        ck_assert_mem_eq(moments[0], moments[1], sizeof moments[0]);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("adam");
    TCase *tests = tcase_create("adam");
    tcase_set_timeout(tests, 60); /* sanitizers on a busy machine */
    tcase_add_loop_test(tests, textbook, 0, 4);
    tcase_add_test(tests, repeats_for_any_threads);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
