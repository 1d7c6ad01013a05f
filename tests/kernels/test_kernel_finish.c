/* The step's scalars on the CPU: schedules against closed forms, losses, clipping, corrections, which steps leave a row and where,
 * stop rules, where chunks end. */
#include <float.h>
#include <math.h>

#include "kernels/adam.h"
#include "kernels/reduce.h"
#include "operation.h"
#include "problem/config.h"

_Static_assert((int)PN_HYPER_CONSTANT == PN_DECAY_CONSTANT && (int)PN_HYPER_EXPONENTIAL == PN_DECAY_EXPONENTIAL &&
                   (int)PN_HYPER_COSINE == PN_DECAY_COSINE,
               "the words' decay is the config's");

/* A couple of units in the last place: the closed forms below are written differently and call the same libm. */
#define NEAR(a, b) ck_assert_msg(fabs((a) - (b)) <= 8 * DBL_EPSILON * fabs(b), "%.17g, not %.17g", (double)(a), (double)(b))

enum { TERMS = 3, FIELDS = 2, ROW = PN_ROW_TERMS + TERMS + FIELDS, RING = 4, SQUARES = 1000, ROWS = 70 };

typedef struct state {
    double partial[ROWS * 2 + 5], squares[SQUARES], weight[2 * TERMS], ring[RING * ROW];
    pn_reduce_column column[TERMS];
    double parameter, moments[2]; /* one parameter: it moves when a step is done */
    pn_hyper hyper;
    pn_words words;
    pn_loop loop;
} state;

/* Term 0 and 1: interleaved columns of 70 rows; term 2: nothing, loss 0. Integers, so that all sums are exact. */
static void start(state *s) {
    memset(s, 0, sizeof *s);
    for (int i = 0; i < ROWS * 2; i++) s->partial[i + 5] = i % 2 ? 2 : i / 2; /* term 0: 0+1+...+69 = 2415, term 1: 140 */
    for (int i = 0; i < SQUARES; i++) s->squares[i] = 0.09;                   /* 1000 * 0.09 = 90 */
    for (int k = 0; k < 2; k++) s->column[k] = (pn_reduce_column){5 + k, 2, ROWS};
    memcpy(s->weight, (double[]){1, 10, 3, 5, 7, 11}, sizeof s->weight);
    s->hyper = (pn_hyper){.initial = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .event_every = 3, .evaluate_every = 4};
    s->loop = (pn_loop){.unroll = 4, .until = UINT64_MAX};
    for (int i = 0; i < RING * ROW; i++) s->ring[i] = -1;
}

/* A step whose squares are given. */
static void finish(state *s) {
    const pn_reduce_arguments reduce = {.terms = TERMS, .real = PN_FLOAT64};
    const pn_adam_arguments adam = {1, PN_FLOAT64, SQUARES, TERMS, FIELDS, RING};
    double gradient = 1, squares, losses[2 * TERMS];
    pn_finish_rates rates;
    operation_cpu(&pn_reduce_operation, &reduce,
                  ADDRESSES(NULL, NULL, s->partial, s->column, s->weight, &s->hyper, &s->words, &s->loop),
                  ADDRESSES(&gradient, &squares, losses, &rates));
    operation_cpu(
        &pn_adam_operation, &adam,
        ADDRESSES(&gradient, s->squares, losses, &rates, &s->hyper, &s->words, s->ring, &s->loop, &s->parameter, s->moments),
        ADDRESSES(&s->parameter, s->moments, &s->words, s->ring, &s->loop));
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
    s.hyper.plain = 1; /* goes on behind the last step */
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

/* ---- stop rules ------------------------------------------------------------------------------------------------------------ */

/* Steps until a rule is met, at most 100; what the words say then. The loss of step n is 683 * factor^n. */
static uint64_t steps_until_stop(state *s, double factor) {
    uint64_t n = 0;
    while (n < 100 && s->words.stop == PN_STOP_NONE) {
        s->weight[0] *= factor;
        s->weight[1] *= factor;
        const double before = s->parameter;
        finish(s);
        n++;
        ck_assert(s->words.step == n && s->parameter < before); /* the step that meets a rule is done whole */
    }
    return n;
}

START_TEST(rules_stop_at_their_step) {
    state s;
    start(&s);
    s.hyper.stop_loss = 683 * pow(0.5, 7) * 1.01;
    ck_assert(steps_until_stop(&s, 0.5) == 7 && s.words.stop == PN_STOP_LOSS);
    ck_assert(s.words.rows == 4); /* 3 4 6, and 7 because of the rule */
    ck_assert(s.ring[(s.words.rows - 1) % RING * ROW + PN_ROW_STEP] == 7);
    ck_assert(s.loop.unrolled == 0 && s.loop.single == 0);

    start(&s);
    s.hyper.stop_gradient_norm = 10; /* of sqrt(90) */
    ck_assert(steps_until_stop(&s, 1) == 1 && s.words.stop == PN_STOP_GRADIENT_NORM);

    start(&s);
    s.hyper.last_step = 11;
    ck_assert(steps_until_stop(&s, 1) == 11 && s.words.stop == PN_STOP_STEP);

    start(&s);
    s.hyper.plain = 1;
    s.hyper.last_step = 11;
    s.hyper.stop_loss = s.hyper.stop_gradient_norm = 1e9;
    s.hyper.patience = 1;
    ck_assert(steps_until_stop(&s, 1) == 100);
}
END_TEST

START_TEST(plateau) {
    state s;
    start(&s);
    s.hyper.patience = 5;
    s.hyper.min_delta = 0.1;
    ck_assert(steps_until_stop(&s, 1) == 6 &&
              s.words.stop == PN_STOP_PLATEAU); /* the first step sets the mark, then five are no better */
    ck_assert(s.words.best_step == 1 && s.words.plateau_step == 1 && s.words.best_loss == 683);

    start(&s);
    s.hyper.patience = 5;
    s.hyper.min_delta = 0.1;
    ck_assert(steps_until_stop(&s, 0.95) == 100); /* small steps add up: 0.95^3 < 0.9 */
    ck_assert(s.words.best_step == 100 && s.words.best_loss == s.words.loss);
    ck_assert(s.words.plateau_step == 100); /* 1 4 7 ... 100 */

    start(&s);
    s.hyper.patience = 5;
    s.hyper.min_delta = 0.1;
    ck_assert(steps_until_stop(&s, 0.99) == 6); /* 0.99^5 > 0.9 */
    ck_assert(s.words.best_step == 6 && s.words.plateau_step == 1);

    start(&s); /* a rise does not move the best */
    finish(&s);
    s.weight[0] = 100;
    finish(&s);
    ck_assert(s.words.best_loss == 683 && s.words.best_step == 1 && s.words.loss > 683);
}
END_TEST

/* The step is not done: but for `stop` and the row everything stays. */
static void check_refused(state *s, double loss, double norm) {
    const pn_words before = s->words;
    const double parameter = s->parameter, moments[2] = {s->moments[0], s->moments[1]};
    finish(s);
    ck_assert(s->parameter == parameter && s->moments[0] == moments[0] && s->moments[1] == moments[1]);
    pn_words expected = before;
    expected.stop = PN_STOP_NAN;
    expected.rows++;
    ck_assert_mem_eq(&s->words, &expected, sizeof expected);
    ck_assert(s->loop.unrolled == 0 && s->loop.single == 0);
    const double *row = &s->ring[before.rows % RING * ROW];
    ck_assert(row[PN_ROW_STEP] == (double)before.step + 1);
    ck_assert(isnan(loss) ? isnan(row[PN_ROW_LOSS]) : row[PN_ROW_LOSS] == loss);
    ck_assert(isnan(norm) ? isnan(row[PN_ROW_GRADIENT_NORM])
                          : row[PN_ROW_GRADIENT_NORM] == norm || fabs(row[PN_ROW_GRADIENT_NORM] - norm) < 1e-12);
}

START_TEST(not_finite) {
    static const double bad[] = {NAN, INFINITY};
    for (int plain = 0; plain < 2; plain++)
        for (int i = 0; i < 2; i++) {
            state s;
            start(&s);
            s.hyper.plain = (uint64_t)plain;
            finish(&s);
            s.partial[5 + 2 * 17] = bad[i]; /* term 0 */
            check_refused(&s, bad[i], sqrt(90));
            start(&s);
            s.hyper.plain = (uint64_t)plain;
            finish(&s);
            s.squares[700] = bad[i];
            check_refused(&s, 683, bad[i]);
        }
}
END_TEST

START_TEST(a_closed_loop_changes_nothing) {
    for (int i = 0; i < 2; i++) {
        state s;
        start(&s);
        s.hyper.event_every = 1;
        finish(&s);
        if (i)
            s.loop.until = 1;
        else
            s.words.stop = PN_STOP_LOSS;
        state before = s;
        finish(&s);
        ck_assert(s.loop.unrolled == 0 && s.loop.single == 0 && before.parameter < 0);
        ck_assert(s.parameter == before.parameter);
        ck_assert_mem_eq(s.moments, before.moments, sizeof s.moments);
        ck_assert_mem_eq(&s.words, &before.words, sizeof s.words);
        ck_assert_mem_eq(s.ring, before.ring, sizeof s.ring);
    }
}
END_TEST

/* ---- chunks ---------------------------------------------------------------------------------------------------------------- */

static pn_loop begin(const pn_hyper *hyper, const pn_words *words, uint64_t unroll) {
    const pn_begin_arguments arguments = {.unroll = unroll};
    pn_loop loop;
    memset(&loop, 0xff, sizeof loop);
    operation_cpu(&pn_begin_operation, &arguments, ADDRESSES((void *)words, (void *)hyper), ADDRESSES(&loop));
    ck_assert(loop.unroll == unroll);
    return loop;
}

START_TEST(chunks_end_where_something_is_due) {
    static const struct {
        pn_hyper hyper;
        uint64_t step, phase_step, end;
    } c[] = {
        {{.longest = 1000, .phase_steps = 500, .last_step = 800}, 0, 0, 500},   /* the phase's end */
        {{.longest = 1000, .phase_steps = 500, .last_step = 800}, 500, 0, 800}, /* the run's */
        {{.longest = 7, .phase_steps = 500, .last_step = 800}, 0, 0, 7},
        {{.longest = 1000, .phase_steps = 500, .last_step = 800, .event_every = 100}, 0, 0, 100},
        {{.longest = 1000, .phase_steps = 500, .last_step = 800, .event_every = 100}, 99, 99, 100},
        {{.longest = 1000, .phase_steps = 500, .last_step = 800, .event_every = 1}, 3, 3, 3 + PN_LEAST_CHUNK},
        {{.longest = 1000, .phase_steps = 500, .last_step = 800, .event_every = 7}, 3, 3, (3 + PN_LEAST_CHUNK) / 7 * 7},
        {{.longest = 1000, .phase_steps = 500, .last_step = 800, .event_every = 7, .evaluate_every = 20}, 3, 3, 20},
        {{.longest = 1000, .phase_steps = 500, .last_step = 800, .event_every = 7, .checkpoint_every = 5}, 5, 5, 10},
        {{.longest = 1000, .phase_steps = 500, .last_step = 800}, 800, 300, 800}, /* nothing left */
        {{.longest = 1000, .phase_steps = 500, .last_step = 800}, 500, 500, 500},
        {{.longest = 3, .phase_steps = 5, .last_step = 5, .event_every = 1, .plain = 1}, 4, 4, 7},
        {{.longest = UINT32_MAX, .phase_steps = UINT64_MAX, .last_step = UINT64_MAX, .event_every = UINT64_MAX},
         1,
         1,
         1ull + UINT32_MAX},
    };
    for (size_t i = 0; i < sizeof c / sizeof c[0]; i++) {
        const pn_words words = {.step = c[i].step, .phase_step = c[i].phase_step};
        const pn_loop loop = begin(&c[i].hyper, &words, 4);
        ck_assert_msg(loop.until == c[i].end, "case %zu: %llu", i, (unsigned long long)loop.until);
        ck_assert(loop.single == (c[i].end > c[i].step));
        ck_assert(loop.unrolled == (c[i].end >= c[i].step + 4));
    }
    const pn_hyper hyper = {.longest = 9, .phase_steps = 100, .last_step = 100};
    const pn_words stopped = {.step = 3, .stop = PN_STOP_LOSS};
    const pn_loop loop = begin(&hyper, &stopped, 1);
    ck_assert(loop.unrolled == 0 && loop.single == 0);
}
END_TEST

/* The flags of a chunk of 11 steps with 4 in the first loop's body: two whole bodies, then three single steps. */
START_TEST(flags_count_down) {
    state s;
    start(&s);
    s.hyper.longest = 11;
    s.hyper.phase_steps = s.hyper.last_step = 100;
    s.hyper.event_every = s.hyper.evaluate_every = 0;
    s.loop = begin(&s.hyper, &s.words, 4);
    ck_assert(s.loop.unrolled == 1 && s.loop.single == 1);
    for (uint64_t n = 1; n <= 11; n++) {
        finish(&s);
        ck_assert(s.loop.unrolled == (11 - n >= 4) && s.loop.single == (n < 11));
    }
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
    tcase_add_test(tests, rules_stop_at_their_step);
    tcase_add_test(tests, plateau);
    tcase_add_test(tests, not_finite);
    tcase_add_test(tests, a_closed_loop_changes_nothing);
    tcase_add_test(tests, chunks_end_where_something_is_due);
    tcase_add_test(tests, flags_count_down);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
