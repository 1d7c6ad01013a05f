/* Where trainings stop and what is left then, on the device that the including test names: at exactly the step that a history of
 * every step says, whatever the chunks and the loops' bodies; resumed as if nothing had been; a step that is not finite is not
 * done. */
#ifndef STOP_SUITE_H
#define STOP_SUITE_H

#include "scratch.h"
#include "small_training.h"

static const char quick[] = "train.0.learning_rate=2e-2"; /* the loss falls with ups and downs */

/* ---- the history ----------------------------------------------------------------------------------------------------------- */

typedef struct history { /* of steps 1 to `steps`, element 0 unused; relative_l2 after each step */
    size_t steps;
    double *loss, *norm, *relative_l2;
} history;

static double *column(const char *name, size_t *count) {
    double *read = read_column(in_scratch("history/events.h5"), name, count), *shifted = malloc((*count + 1) * sizeof *shifted);
    shifted[0] = INFINITY;
    memcpy(shifted + 1, read, *count * sizeof *read);
    free(read);
    return shifted;
}

static history *every_step(void) {
    static history h;
    if (h.steps) return &h;
    run_and_destroy(create((const char *const[]){quick, "output.events=1"}, 2, in_scratch("history"), false));
    h.loss = column("/events/loss/total", &h.steps);
    h.norm = column("/events/gradient_norm", &h.steps);
    h.relative_l2 = column("/events/relative_l2/u", &h.steps);
    ck_assert_uint_eq(h.steps, 100);
    return &h;
}

/* The first step from `from` on that is lower than all before it, looking at every `every`-th. */
static size_t record(const double *value, size_t from, size_t every) {
    double lowest = INFINITY;
    for (size_t n = every; n <= 100; n += every) {
        if (value[n] < lowest && n >= from) return n;
        lowest = fmin(lowest, value[n]);
    }
    ck_abort_msg("no such step");
    return 0;
}

static size_t plateau_step(const double *loss, size_t patience, double min_delta) {
    size_t mark = 1;
    for (size_t n = 1; n <= 100; n++) {
        if (loss[n] < loss[mark] * (1 - min_delta)) mark = n;
        if (n - mark >= patience) return n;
    }
    ck_abort_msg("no plateau");
    return 0;
}

/* ---- rules ------------------------------------------------------------------------------------------------------------------ */

typedef struct rule {
    char set[96];
    const char *reason;
    size_t step;
} rule;

enum { RULES = 7 };

static void make_rules(rule *r) {
    const history *h = every_step();
    const size_t loss = record(h->loss, 33, 1), norm = record(h->norm, 7, 1), error = record(h->relative_l2, 25, 10);
    r[0] = (rule){.reason = "loss", .step = loss};
    snprintf(r[0].set, sizeof r[0].set, "stop.loss=%.17g", h->loss[loss]);
    r[1] = (rule){.reason = "gradient_norm", .step = norm};
    snprintf(r[1].set, sizeof r[1].set, "stop.gradient_norm=%.17g", h->norm[norm]);
    r[2] = (rule){.reason = "relative_l2", .step = error};
    snprintf(r[2].set, sizeof r[2].set, "stop.relative_l2=%.17g", h->relative_l2[error]);
    r[3] = (rule){.set = "stop.plateau={patience=4}", .reason = "plateau", .step = plateau_step(h->loss, 4, 1e-3)};
    r[4] = (rule){.set = "stop.step=43", .reason = "step", .step = 43};
    r[5] = (rule){.set = "train.0.steps=100", .reason = "steps", .step = 100};
    r[6] = (rule){.set = "stop.plateau={patience=9, min_delta=0.9}", .reason = "plateau", .step = plateau_step(h->loss, 9, 0.9)};
}

static pinn_result finished(pinn_training *training, const rule *r) {
    pinn_result result;
    must(pinn_training_run(training));
    pinn_training_result(training, &result);
    ck_assert_str_eq(result.stop_reason, r->reason);
    ck_assert_msg(result.steps == r->step, "%s: stopped at %llu, the history says %zu", r->set, (unsigned long long)result.steps,
                  r->step);
    return result;
}

START_TEST(every_rule_stops_at_exactly_its_step) {
    rule r[RULES];
    make_rules(r);
    const history *h = every_step();
    for (size_t i = 0; i < RULES; i++) {
        char name[32], path[300];
        snprintf(name, sizeof name, "rule-%zu", i);
        pinn_training *stopped = create((const char *const[]){quick, r[i].set}, 2, in_scratch(name), false),
                      *counted = create((const char *const[]){quick}, 1, NULL, false);
        const pinn_result result = finished(stopped, &r[i]);
        must(pinn_training_steps(counted, r[i].step, NULL, NULL));
        assert_same_parameters(stopped, counted); /* the step is done whole, none after it */
        ck_assert_uint_eq(counted->step, r[i].step);
        ck_assert_uint_eq(result.best_step, record(h->loss, result.best_step, 1));
        ck_assert(result.best_loss == h->loss[result.best_step] && result.loss == h->loss[r[i].step]);
        for (size_t n = 1; n <= r[i].step; n++) ck_assert(result.best_loss <= h->loss[n]);
        pinn_training_destroy(stopped);
        pinn_training_destroy(counted);

        size_t rows, errors;
        snprintf(path, sizeof path, "%s/%s/events.h5", scratch, name);
        double *step = read_column(path, "/events/step", &rows), *error = read_column(path, "/events/relative_l2/u", &errors);
        ck_assert_uint_eq(rows, (r[i].step + 9) / 10); /* every tenth and the last */
        ck_assert_uint_eq(errors, rows);
        ck_assert(step[rows - 1] == (double)r[i].step);
        const bool evaluated = r[i].step % 10 == 0 || r[i].step == 43; /* [stop] step is the last step, and that is evaluated */
        ck_assert(evaluated ? error[rows - 1] == h->relative_l2[r[i].step] : isnan(error[rows - 1]));
        free(step);
        free(error);
    }
}
END_TEST

START_TEST(resumed_after_any_rule_equals_straight) {
    rule r[RULES];
    make_rules(r);
    run_and_destroy(create((const char *const[]){quick}, 1, in_scratch("straight"), false));
    for (size_t i = 0; i < 5; i++) { /* another min_delta counts from another mark */
        char name[32], a[300], b[300];
        snprintf(name, sizeof name, "resumed-%zu", i);
        pinn_training *first = create((const char *const[]){quick, r[i].set}, 2, in_scratch(name), false);
        finished(first, &r[i]);
        pinn_training_destroy(first);
        pinn_training *second = create((const char *const[]){quick}, 1, in_scratch(name), true);
        finished(second, &r[5]);
        pinn_training_destroy(second);
        snprintf(a, sizeof a, "%s/straight/checkpoint.h5", scratch);
        snprintf(b, sizeof b, "%s/%s/checkpoint.h5", scratch, name);
        assert_same_datasets(a, b);
    }
}
END_TEST

/* The patience that has run before a checkpoint counts after it. */
START_TEST(patience_goes_on_after_a_resume) {
    rule r[RULES];
    make_rules(r);
    char early[32];
    snprintf(early, sizeof early, "stop.step=%zu", r[3].step - 2);
    run_and_destroy(create((const char *const[]){quick, early}, 2, in_scratch("patience"), false));
    pinn_training *second = create((const char *const[]){quick, r[3].set}, 2, in_scratch("patience"), true);
    const pinn_result result = finished(second, &r[3]);
    ck_assert_uint_eq(result.best_step, record(every_step()->loss, result.best_step, 1));
    ck_assert(result.best_loss == every_step()->loss[result.best_step]);
    pinn_training_destroy(second);
}
END_TEST

/* ---- chunks and bodies ------------------------------------------------------------------------------------------------------ */

static void shape(pinn_training *training, uint32_t unroll, uint64_t longest) {
    training->longest = longest;
    training->unroll = unroll;
    must(pn_machinery_record(training));
}

static void assert_same_events(const char *a, const char *b) {
    static const char *const name[] = {"step",          "loss/total",    "loss/heat",
                                       "learning_rate", "gradient_norm", "relative_l2/u"}; /* not the clock */
    for (size_t i = 0; i < sizeof name / sizeof name[0]; i++) {
        char path[64];
        size_t n, m;
        snprintf(path, sizeof path, "/events/%s", name[i]);
        double *x = read_column(a, path, &n), *y = read_column(b, path, &m);
        ck_assert_uint_eq(n, m);
        ck_assert_msg(memcmp(x, y, n * sizeof *x) == 0, "%s: %s differs", b, path);
        free(x);
        free(y);
    }
}

/* A whole run, and one that ends in the midst of a body, for many shapes. */
START_TEST(neither_bodies_nor_chunks_change_a_bit) {
    static const struct {
        uint32_t unroll;
        uint64_t longest;
    } c[] = {{1, UINT32_MAX}, {2, UINT32_MAX}, {8, UINT32_MAX}, {10, UINT32_MAX}, {16, 31}, {3, 7}, {1, 1}, {10, 10}};
    rule r[RULES];
    make_rules(r);
    for (size_t k = 0; k < 3; k++)
        for (size_t i = 0; i < sizeof c / sizeof c[0]; i++) {
            const rule *with = &r[(const size_t[]){5, 0, 3}[k]];
            char name[32], first[32], a[300], b[300];
            snprintf(name, sizeof name, "shape-%zu-%zu", k, i);
            snprintf(first, sizeof first, "shape-%zu-0", k);
            pinn_training *training = create(
                (const char *const[]){quick, with->set, "output.events=3", "output.evaluate.every=50", "output.checkpoint=40"}, 5,
                in_scratch(name), false);
            shape(training, c[i].unroll, c[i].longest);
            finished(training, with);
            pinn_training_destroy(training);
            for (int file = 0; i > 0 && file < 2; file++) {
                snprintf(a, sizeof a, "%s/%s/%s", scratch, first, file ? "checkpoint.h5" : "events.h5");
                snprintf(b, sizeof b, "%s/%s/%s", scratch, name, file ? "checkpoint.h5" : "events.h5");
                file ? assert_same_datasets(a, b) : assert_same_events(a, b);
            }
        }
}
END_TEST

START_TEST(a_launch_counts_exactly) {
    for (uint32_t unroll = 1; unroll <= 10; unroll += 3) {
        pinn_training *whole = create(NULL, 0, NULL, false), *parts = create(NULL, 0, NULL, false);
        shape(whole, unroll, UINT32_MAX);
        shape(parts, unroll, UINT32_MAX);
        must(pinn_training_steps(whole, 137, NULL, NULL)); /* over events, evaluations, checkpoints and the phase's end */
        must(pinn_training_steps(parts, 1, NULL, NULL));
        must(pinn_training_steps(parts, 0, NULL, NULL));
        must(pinn_training_steps(parts, 99, NULL, NULL));
        must(pinn_training_steps(parts, 37, NULL, NULL));
        ck_assert_uint_eq(whole->step, 137);
        ck_assert_uint_eq(parts->step, 137);
        assert_same_parameters(whole, parts);
        pinn_result r;
        pinn_training_result(parts, &r);
        ck_assert_uint_eq(r.graph_launches, 4);
        pinn_training_destroy(whole);
        pinn_training_destroy(parts);
    }
}
END_TEST

/* ---- phases ------------------------------------------------------------------------------------------------------------------ */

static const char phases[] =
    "[domain]\nx = [0, 1]\n[fields]\nu = {}\n[[equation]]\nname = \"e\"\nresidual = \"u_xx + u\"\npoints = 50\n"
    "[[condition]]\nname = \"ends\"\non = [\"x=min\", \"x=max\"]\nresidual = \"u - x\"\npoints = 2\n"
    "[network]\nwidth = 8\ndepth = 2\n[[train]]\nsteps = 27\n[[train]]\nsteps = 40\nlearning_rate = 1e-2\npoints = { e = 70 }\n";

static pinn_training *two_phases(const char *more, const char *directory) {
    const char *path = in_scratch("phases.toml"), *const set[] = {"output.events=1", more};
    FILE *file = fopen(path, "w");
    fputs(phases, file);
    fclose(file);
    const pinn_options options = {.config = path, .device = device, .set = set, .set_count = more ? 2 : 1, .directory = directory};
    pinn_training *training = NULL;
    must(pinn_training_create(&options, &training));
    return training;
}

START_TEST(rules_hold_over_phases) {
    size_t count;
    char limit[64], path[300];
    run_and_destroy(two_phases(NULL, in_scratch("phases-all")));
    snprintf(path, sizeof path, "%s/phases-all/events.h5", scratch);
    double *loss = read_column(path, "/events/loss/total", &count), lowest = INFINITY;
    ck_assert_uint_eq(count, 67);
    size_t step = 0; /* the first record in the second phase, after a few steps of it */
    for (size_t n = 1; n <= 67 && !step; n++) {
        if (n > 31 && loss[n - 1] < lowest) step = n;
        lowest = fmin(lowest, loss[n - 1]);
    }
    ck_assert_uint_gt(step, 0);
    snprintf(limit, sizeof limit, "stop.loss=%.17g", loss[step - 1]);
    static const struct {
        uint32_t unroll;
        uint64_t longest;
    } c[] = {{1, UINT32_MAX}, {4, UINT32_MAX}, {10, 5}};
    pinn_training *training[3];
    for (int i = 0; i < 3; i++) {
        char name[32];
        pinn_result r;
        snprintf(name, sizeof name, "phases-%d", i);
        training[i] = two_phases(limit, in_scratch(name));
        training[i]->longest = c[i].longest;
        training[i]->unroll = c[i].unroll;
        must(pn_machinery_record(training[i]));
        must(pinn_training_run(training[i]));
        pinn_training_result(training[i], &r);
        ck_assert_str_eq(r.stop_reason, "loss");
        ck_assert_uint_eq(r.steps, step);
        ck_assert_uint_eq(training[i]->phase_step, step - 27);
    }
    assert_same_parameters(training[0], training[1]);
    assert_same_parameters(training[0], training[2]);
    for (int i = 0; i < 3; i++) pinn_training_destroy(training[i]);
    free(loss);
}
END_TEST

/* ---- not finite -------------------------------------------------------------------------------------------------------------- */

/* Not a number at points with x > 0.9995, which come rarely. */
static const char rare[] = "equation.0.residual=u_t - alpha*u_xx + 1e-6*sqrt(0.9995 - x)";

START_TEST(the_last_good_parameters_stay) {
    static const uint32_t unroll[] = {1, 10, 4};
    uint64_t first = 0;
    for (int i = 0; i < 3; i++) {
        char name[32], text[192], a[300], b[300];
        double x = 0, t = 0;
        int end = 0;
        snprintf(name, sizeof name, "rare-%d", i);
        pinn_training *training = create((const char *const[]){rare, quick}, 2, in_scratch(name), false);
        shape(training, unroll[i], UINT32_MAX);
        ck_assert_int_eq(pinn_training_run(training), PINN_NUMERIC);
        char *message = strdup(pinn_error_message());
        pinn_result r;
        pinn_training_result(training, &r);
        ck_assert_str_eq(r.stop_reason, "nan");
        if (i == 0) first = r.steps;
        ck_assert_msg(r.steps == first && r.steps > 10 && r.steps < 100, "%llu steps", (unsigned long long)r.steps);
        snprintf(text, sizeof text,
                 "loss of term \"heat\" is NaN at step %llu: residual is NaN at x = %%lf, t = %%lf. The step was not done%%n",
                 (unsigned long long)r.steps + 1);
        ck_assert_msg(sscanf(message, text, &x, &t, &end) == 2 && end > 0, "%s", message);
        ck_assert_msg(x > 0.9995 && x <= 1 && t >= 0 && t <= 1, "%s", message);
        free(message);

        snprintf(text, sizeof text, "stop.step=%llu", (unsigned long long)r.steps);
        pinn_training *before = create((const char *const[]){rare, quick, text}, 3, in_scratch("rare-before"), false);
        must(pinn_training_run(before));
        assert_same_parameters(training, before);
        pinn_training_destroy(training);
        pinn_training_destroy(before);
        snprintf(a, sizeof a, "%s/rare-before/checkpoint.h5", scratch);
        snprintf(b, sizeof b, "%s/%s/checkpoint.h5", scratch, name);
        assert_same_datasets(a, b);
        remove_tree(in_scratch("rare-before"));

        size_t rows; /* the record tells which loss it was */
        snprintf(b, sizeof b, "%s/%s/events.h5", scratch, name);
        double *step = read_column(b, "/events/step", &rows), *heat = read_column(b, "/events/loss/heat", &rows),
               *ends = read_column(b, "/events/loss/ends", &rows);
        ck_assert(step[rows - 1] == (double)first + 1 && isnan(heat[rows - 1]) && isfinite(ends[rows - 1]));
        free(step);
        free(heat);
        free(ends);
    }
    pinn_training *again = create((const char *const[]){rare, quick}, 2, in_scratch("rare-0"), true);
    pinn_result r;
    ck_assert_int_eq(pinn_training_run(again), PINN_NUMERIC); /* the same points, the same end */
    pinn_training_result(again, &r);
    ck_assert_uint_eq(r.steps, first);
    pinn_training_destroy(again);
}
END_TEST

START_TEST(what_is_not_finite_is_told) {
    static const struct {
        const char *set, *expected;
    } c[] = {
        {"condition.1.residual=log(u - 100)", "loss of term \"start\" is NaN at step 1: residual is NaN at x = "},
        {"equation.0.residual=u_t + exp(200 + u^2)", "loss of term \"heat\" is inf at step 1: residual is inf at x = "},
        {"equation.0.residual=u_t + 1e25*(1 + u^2)",
         "loss of term \"heat\" is inf at step 1: every residual is finite, the largest is "},
        /* The seed of the adjoint, 2 weight/points times the residual, fits float32; what comes back to the weights does not. */
        {"condition.1.weight=3.3e38", "the gradient's norm is "},
    };
    for (size_t i = 0; i < sizeof c / sizeof c[0]; i++) {
        pinn_training *training = create((const char *const[]){c[i].set, "precision=float32"}, 2, NULL, false);
        size_t n;
        double *start = read_parameters(training, &n);
        ck_assert_int_eq(pinn_training_run(training), PINN_NUMERIC);
        ck_assert_msg(strncmp(pinn_error_message(), c[i].expected, strlen(c[i].expected)) == 0, "%s", pinn_error_message());
        if (i == 3) ck_assert_msg(strstr(pinn_error_message(), "a derivative is not: first by layer"), "%s", pinn_error_message());
        double *end = read_parameters(training, &n);
        ck_assert_mem_eq(start, end, n * sizeof *start);
        ck_assert_int_eq(pinn_training_steps(training, 5, NULL, NULL), PINN_NUMERIC); /* benches too */
        ck_assert_uint_eq(training->step, 0);
        free(start);
        free(end);
        pinn_training_destroy(training);
    }
}
END_TEST

/* The tests above as a test case; `more` adds tests of one device. Exit status of the program. */
static int run_stop_suite(const char *name, void (*more)(TCase *)) {
    device = name;
    Suite *suite = suite_create("stopping");
    TCase *group = tcase_create(name);
    tcase_set_timeout(group, 300);
    tcase_add_test(group, every_rule_stops_at_exactly_its_step);
    tcase_add_test(group, resumed_after_any_rule_equals_straight);
    tcase_add_test(group, patience_goes_on_after_a_resume);
    tcase_add_test(group, neither_bodies_nor_chunks_change_a_bit);
    tcase_add_test(group, a_launch_counts_exactly);
    tcase_add_test(group, rules_hold_over_phases);
    tcase_add_test(group, the_last_good_parameters_stay);
    tcase_add_test(group, what_is_not_finite_is_told);
    if (more) more(group);
    suite_add_tcase(suite, group);
    return run_in_scratch(suite);
}

#endif
