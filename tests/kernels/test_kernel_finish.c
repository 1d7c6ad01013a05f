/* The step's scalars on the CPU: schedules against closed forms, losses, clipping, corrections, which steps leave a row and where.
 */
#include <float.h>
#include <math.h>

#include "kernels/finish.h"
#include "operation.h"
#include "problem/config.h"

_Static_assert((int)PN_HYPER_CONSTANT == PN_DECAY_CONSTANT && (int)PN_HYPER_EXPONENTIAL == PN_DECAY_EXPONENTIAL &&
                   (int)PN_HYPER_COSINE == PN_DECAY_COSINE,
               "the words' decay is the config's");

/* A couple of units in the last place: the closed forms below are written differently and call the same libm. */
#define NEAR(a, b) ck_assert_msg(fabs((a) - (b)) <= 8 * DBL_EPSILON * fabs(b), "%.17g, not %.17g", (double)(a), (double)(b))

enum { TERMS = 3, FIELDS = 2, ROW = PN_ROW_TERMS + TERMS + FIELDS, RING = 4, SQUARES = 1500, ROWS = 70 };

typedef struct state {
    double partial[ROWS * 2 + 5], squares[SQUARES], weight[2 * TERMS], ring[RING * ROW];
    pn_finish_column column[TERMS];
    pn_hyper hyper;
    pn_words words;
} state;

/* Term 0 and 1: interleaved columns of 70 rows; term 2: nothing, loss 0. Integers, so that all sums are exact. */
static void start(state *s) {
    memset(s, 0, sizeof *s);
    for (int i = 0; i < ROWS * 2; i++) s->partial[i + 5] = i % 2 ? 2 : i / 2; /* term 0: 0+1+...+69 = 2415, term 1: 140 */
    for (int i = 0; i < SQUARES; i++) s->squares[i] = 0.06;                   /* 1500 * 0.06 = 90 */
    for (int k = 0; k < 2; k++) s->column[k] = (pn_finish_column){5 + k, 2, ROWS};
    memcpy(s->weight, (double[]){1, 10, 3, 5, 7, 11}, sizeof s->weight);
    s->hyper = (pn_hyper){.initial = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .event_every = 3, .evaluate_every = 4};
    for (int i = 0; i < RING * ROW; i++) s->ring[i] = -1;
}

static void finish(state *s) {
    const pn_finish_arguments arguments = {TERMS, FIELDS, SQUARES, RING};
    operation_cpu(&pn_finish_operation, &arguments,
                  ADDRESSES(s->partial, s->column, s->squares, s->weight, &s->hyper, &s->words, s->ring),
                  ADDRESSES(&s->words, s->ring));
}

START_TEST(schedule_constant) {
    pn_hyper h = {.decay = PN_HYPER_CONSTANT, .initial = 2e-3, .phase_steps = 100};
    for (uint64_t s = 0; s < 100; s++) ck_assert(pn_schedule(&h, s) == 2e-3);
    h.warmup = 10;
    for (uint64_t s = 0; s < 100; s++) NEAR(pn_schedule(&h, s), s < 10 ? 2e-4 * (double)(s + 1) : 2e-3);
}
END_TEST

START_TEST(schedule_exponential) {
    const pn_hyper h = {.decay = PN_HYPER_EXPONENTIAL, .initial = 1e-2, .decay_rate = 0.5, .every = 20, .warmup = 5};
    for (uint64_t s = 0; s < 5; s++) NEAR(pn_schedule(&h, s), 2e-3 * (double)(s + 1));
    for (uint64_t s = 5; s < 500; s++) NEAR(pn_schedule(&h, s), 1e-2 * exp2(-(double)(s - 5) / 20));
    ck_assert(pn_schedule(&h, 25) == 5e-3);
    ck_assert(pn_schedule(&h, 45) == 2.5e-3);
}
END_TEST

START_TEST(schedule_cosine) {
    const pn_hyper h = {.decay = PN_HYPER_COSINE, .initial = 2e-3, .final = 1e-5, .phase_steps = 1000, .warmup = _i ? 40 : 0};
    for (uint64_t s = 0; s < h.warmup; s++) NEAR(pn_schedule(&h, s), 2e-3 * (double)(s + 1) / 40);
    for (uint64_t s = h.warmup; s < 1000; s++) {
        const double half = cos(M_PI / 2 * (double)(s - h.warmup) / (double)(1000 - h.warmup));
        const double expected = 1e-5 + (2e-3 - 1e-5) * half * half; /* (1 + cos 2a)/2 = cos^2 a */
        /* Near the end 1 + cos cancels: absolute error of an ulp of 1, times the range. */
        ck_assert(fabs(pn_schedule(&h, s) - expected) <= 4 * DBL_EPSILON * 2e-3);
    }
    ck_assert(pn_schedule(&h, h.warmup) == 2e-3);
    ck_assert(pn_schedule(&h, 1000) == 1e-5); /* and no rise behind the phase's end */
    ck_assert(pn_schedule(&h, 1500) == 1e-5);
    const pn_hyper only_warmup = {.decay = PN_HYPER_COSINE, .initial = 1, .final = 0.5, .phase_steps = 10, .warmup = 10};
    ck_assert(pn_schedule(&only_warmup, 9) == 1);
    ck_assert(pn_schedule(&only_warmup, 10) == 0.5);
}
END_TEST

START_TEST(losses_and_norm) {
    state s;
    start(&s);
    s.hyper.event_every = 1;
    finish(&s);
    ck_assert(s.ring[PN_ROW_STEP] == 1);
    ck_assert(s.ring[PN_ROW_TERMS] == 2415.0 / 5);
    ck_assert(s.ring[PN_ROW_TERMS + 1] == 140.0 / 7);
    ck_assert(s.ring[PN_ROW_TERMS + 2] == 0); /* no partial covers it */
    ck_assert(s.ring[PN_ROW_LOSS] == 483 + 10 * 20.0);
    ck_assert(s.words.loss == 683);
    NEAR(s.words.gradient_norm, sqrt(90));
    ck_assert(s.ring[PN_ROW_GRADIENT_NORM] == s.words.gradient_norm);
    ck_assert(s.ring[PN_ROW_LEARNING_RATE] == 1e-3 && s.words.learning_rate == 1e-3);
    for (int f = 0; f < FIELDS; f++) ck_assert(isnan(s.ring[PN_ROW_TERMS + TERMS + f]));
}
END_TEST

START_TEST(clipping) {
    state s;
    start(&s);
    finish(&s);
    ck_assert(s.words.clip == 1); /* clip_norm 0: none */
    s.hyper.clip_norm = 3;
    finish(&s);
    NEAR(s.words.clip, 3 / sqrt(90));
    s.hyper.clip_norm = 10; /* over the norm */
    finish(&s);
    ck_assert(s.words.clip == 1);
    s.hyper.clip_norm = 3;
    s.squares[700] = NAN;
    finish(&s);
    ck_assert(isnan(s.words.gradient_norm) && s.words.clip == 1);
    s.squares[700] = 0;
    for (int i = 0; i < SQUARES; i++) s.squares[i] = 0;
    finish(&s);
    ck_assert(s.words.gradient_norm == 0 && s.words.clip == 1);
}
END_TEST

START_TEST(words_and_corrections) {
    state s;
    start(&s);
    s.words = (pn_words){.step = 100, .phase_step = 20, .optimizer_step = 7};
    s.hyper.decay = PN_HYPER_EXPONENTIAL;
    s.hyper.decay_rate = 0.1;
    s.hyper.every = 10;
    finish(&s);
    ck_assert(s.words.step == 101 && s.words.phase_step == 21 && s.words.optimizer_step == 8);
    NEAR(s.words.learning_rate, 1e-5); /* phase step 20, counted before this step */
    double power1 = 1, power2 = 1;
    for (int t = 0; t < 8; t++) {
        power1 *= 0.9;
        power2 *= 0.999;
    }
    NEAR(s.words.rate, 1e-5 / (1 - power1));
    ck_assert(fabs(s.words.root_correction - 1 / sqrt(1 - power2)) <= 1e-12 * s.words.root_correction); /* here 1 - 0.992 cancels */
    NEAR(pn_finish_bias(0.999, 1), 1 - 0.999);
    ck_assert(pn_finish_bias(0.9, 1000000) == 1 && pn_finish_bias(0, 1) == 1);
    ck_assert(s.words.rows == 0); /* 101 is neither a third nor a fourth step */
}
END_TEST

START_TEST(rows_when_due) {
    state s;
    start(&s);
    s.hyper.last_step = 19;
    uint64_t rows = 0;
    for (uint64_t n = 1; n <= 25; n++) {
        double before[RING * ROW];
        memcpy(before, s.ring, sizeof before);
        finish(&s);
        const bool due = n % 3 == 0 || n % 4 == 0 || n == 19;
        if (due) {
            const size_t at = rows % RING * ROW;
            ck_assert(s.ring[at + PN_ROW_STEP] == (double)n);
            for (int i = 0; i < ROW; i++) before[at + i] = s.ring[at + i];
            rows++;
        }
        ck_assert(s.words.rows == rows);
        ck_assert_mem_eq(before, s.ring, sizeof before); /* no other entry moved */
    }
    ck_assert(rows == 13); /* 3 4 6 8 9 12 15 16 18 19 20 21 24: the ring wrapped three times */
}
END_TEST

START_TEST(rows_never) {
    state s;
    start(&s);
    s.hyper.event_every = s.hyper.evaluate_every = 0;
    for (int n = 0; n < 10; n++) finish(&s);
    ck_assert(s.words.rows == 0 && s.words.step == 10);
    for (int i = 0; i < RING * ROW; i++) ck_assert(s.ring[i] == -1);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("finish");
    TCase *tests = tcase_create("finish");
    tcase_add_test(tests, schedule_constant);
    tcase_add_test(tests, schedule_exponential);
    tcase_add_loop_test(tests, schedule_cosine, 0, 2);
    tcase_add_test(tests, losses_and_norm);
    tcase_add_test(tests, clipping);
    tcase_add_test(tests, words_and_corrections);
    tcase_add_test(tests, rows_when_due);
    tcase_add_test(tests, rows_never);
    suite_add_tcase(suite, tests);
    return test_main(suite, false);
}
