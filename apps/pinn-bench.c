/* pinn-bench CONFIG...: times training steps, executor beside executor. pinn-bench graph: the graph layer itself. pinn-bench products: the
 * matrix products of layers on a GPU. See docs/bench.md.
 *
 * A step is the whole recorded step: sampling if points are fresh, forward, residual, backward, optimizer. */
#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench_graph.h"
#include "bench_products.h"
#include "network/peak.h"
#include "pinn.h"
#include "start.h"

enum { MOST_CONFIGS = 64, MOST_REPEATS = 101, WARM_UP = 10, FEW = 100 };
enum { KEY_SET = 1000, KEY_EVENTS };

typedef struct arguments {
    const char *config[MOST_CONFIGS];
    size_t configs;
    const char *set[MOST_CONFIGS];
    size_t sets;
    const char *executors;
    uint64_t steps; /* a repetition; 0: as many as take about half a second */
    int repeats;
    bool events;
} arguments;

const char *argp_program_version = "pinn-bench " PINN_VERSION;

static const struct argp_option options[] = {
    {"executors", 'e', "LIST", 0, "Which, in this order: graph,eager,cpu (default: those this machine has)", 0},
    {"steps", 'n', "N", 0, "Steps a repetition (default: as many as take about half a second)", 0},
    {"repeat", 'r', "N", 0, "Repetitions (default 5)", 0},
    {"set", KEY_SET, "KEY=VALUE", 0, "Replace a value of every config", 0},
    {"events", KEY_EVENTS, NULL, 0, "Also train N steps (default 10000) with events, evaluation and checkpoints, beside one launch of N steps", 0},
    {0}};

static bool good_executors(const char *list) {
    for (;;) {
        size_t length = strcspn(list, ",");
        if (!(length == 5 && strncmp(list, "graph", 5) == 0) && !(length == 5 && strncmp(list, "eager", 5) == 0) &&
            !(length == 3 && strncmp(list, "cpu", 3) == 0))
            return false;
        if (!list[length]) return true;
        list += length + 1;
    }
}

static error_t parse_option(int key, char *value, struct argp_state *state) {
    arguments *a = state->input;
    char *end = NULL;
    switch (key) {
    case 'e':
        if (!good_executors(value)) argp_error(state, "--executors %s: a list of graph, eager, cpu is needed", value);
        a->executors = value;
        break;
    case 'n':
        errno = 0;
        a->steps = strtoull(value, &end, 10);
        if (errno || *end || strchr(value, '-') || a->steps == 0) argp_error(state, "--steps %s: a positive number is needed", value);
        break;
    case 'r':
        a->repeats = (int)strtol(value, &end, 10);
        if (*end || a->repeats < 1 || a->repeats > MOST_REPEATS) argp_error(state, "--repeat %s: 1 to %d", value, MOST_REPEATS);
        break;
    case KEY_SET:
        if (a->sets == MOST_CONFIGS) argp_error(state, "at most %d --set", MOST_CONFIGS);
        a->set[a->sets++] = value;
        break;
    case KEY_EVENTS: a->events = true; break;
    case ARGP_KEY_ARG:
        if (a->configs == MOST_CONFIGS) argp_error(state, "at most %d configs", MOST_CONFIGS);
        a->config[a->configs++] = value;
        break;
    case ARGP_KEY_END:
        if (a->configs == 0) argp_error(state, "which configs? The speed cases are configs/bench/*.toml");
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp argp = {options, parse_option, "CONFIG...\ngraph\nproducts", "Time training steps, the graph layer itself, or matrix products on a GPU.", NULL, NULL, NULL};

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The best rates of large products so far. A CPU's is measured anew each time, near the steps it is compared with: other programs take part
 * of a CPU, and what they leave changes. */
static pinn_status product_peak(bool cpu, const char *precision, double *out) {
    static double known[2][3]; /* operations/s, [cpu][float32, tf32, float64] */
    const bool wide = strcmp(precision, "float64") == 0, tf32 = strcmp(precision, "tf32") == 0;
    double *best = &known[cpu][wide ? 2 : tf32], rate;
    if (cpu || *best == 0) {
        const pinn_context_options where = {.executor = cpu ? PINN_EXECUTOR_CPU : PINN_EXECUTOR_EAGER};
        pinn_context *context = NULL;
        pinn_status status = pinn_context_create(&where, &context);
        if (status == PINN_OK) status = pn_product_peak(context, wide ? PN_FLOAT64 : PN_FLOAT32, tf32, &rate);
        pinn_context_destroy(context);
        if (status != PINN_OK) return status;
        *best = fmax(*best, rate);
    }
    *out = *best;
    return PINN_OK;
}

static pinn_status create(const arguments *a, const char *config, const char *executor, const char *directory, pinn_training **out) {
    const bool cpu = strcmp(executor, "cpu") == 0;
    const pinn_options o = {.config = config,
                            .set = a->set,
                            .set_count = a->sets,
                            .device = cpu ? "cpu" : "cuda",
                            .executor = cpu ? NULL : executor,
                            .directory = directory,
                            .no_directory = directory == NULL,
                            .force = directory != NULL};
    return pinn_training_create(&o, out);
}

static pinn_status time_steps(const arguments *a, pinn_training *training, bool cpu, uint64_t steps, double *best, double *median, double *enqueue,
                              uint64_t *used) {
    double each[MOST_REPEATS], seconds, enqueued = 0;
    *enqueue = INFINITY;
    pinn_status status = pinn_training_steps(training, WARM_UP, NULL, &seconds);
    if (status == PINN_OK) status = pinn_training_steps(training, WARM_UP, NULL, &seconds);
    if (status != PINN_OK) return status;
    if (steps == 0) steps = (uint64_t)fmin(fmax(0.5 * WARM_UP / seconds, 5), 20000);
    for (int i = 0; i < a->repeats; i++) {
        status = pinn_training_steps(training, steps, NULL, &seconds);
        /* Few enough not to fill the driver's queue, where the thread would wait for the device. */
        if (status == PINN_OK && !cpu) status = pinn_training_steps(training, FEW, &enqueued, NULL);
        if (status != PINN_OK) return status;
        each[i] = 1e6 * seconds / (double)steps;
        *enqueue = fmin(*enqueue, 1e6 * enqueued / FEW);
    }
    qsort(each, (size_t)a->repeats, sizeof *each, ascending);
    *best = each[0];
    *median = each[a->repeats / 2];
    *used = steps;
    return PINN_OK;
}

static pinn_status bench(const arguments *a, const char *config, const char *executor) {
    pinn_training *training = NULL;
    pinn_result r;
    double best, median, enqueue, peak;
    uint64_t steps;
    pinn_status status = create(a, config, executor, NULL, &training);
    if (status == PINN_OK) status = time_steps(a, training, strcmp(executor, "cpu") == 0, a->steps, &best, &median, &enqueue, &steps);
    if (status == PINN_OK) {
        pinn_training_result(training, &r);
        status = product_peak(strcmp(executor, "cpu") == 0, r.precision, &peak);
    }
    if (status == PINN_OK) {
        double rate = 1e6 * r.product_operations / best;
        printf("%-36s %-6s %-8s %11.1f %11.1f ", config, executor, r.precision, best, median);
        if (strcmp(executor, "cpu") == 0)
            printf("%9s ", "-"); /* enqueueing is running there */
        else
            printf("%9.2f ", enqueue);
        printf("%10.4g %10.4g %10.4g %7.1f %%  %s\n", r.product_operations, r.pointwise_operations, r.bytes, 100 * rate / peak, r.device);
        fflush(stdout);
    }
    pinn_training_destroy(training);
    return status;
}

static void remove_run(const char *directory) {
    static const char *const file[] = {"events.h5", "checkpoint.h5", "solution.h5", "config.toml", ".lock"};
    char path[4096];
    for (size_t i = 0; i < sizeof file / sizeof file[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, file[i]);
        unlink(path);
    }
    if (rmdir(directory) != 0) fprintf(stderr, "pinn-bench: %s is left: %s\n", directory, strerror(errno));
}

/* The same number of steps as one launch without events, and as a whole run with all a run writes. */
static pinn_status bench_events(const arguments *a, const char *config, const char *executor) {
    const uint64_t steps = a->steps ? a->steps : 10000;
    char count[64], directory[] = "/tmp/pinn-bench-XXXXXX";
    arguments with = *a;
    pinn_training *plain = NULL, *run = NULL;
    double bare = INFINITY, seconds;
    pinn_result r;
    snprintf(count, sizeof count, "train.0.steps=%llu", (unsigned long long)steps);
    if (with.sets == MOST_CONFIGS) return PINN_OK;
    with.set[with.sets++] = count;
    if (!mkdtemp(directory)) return PINN_OK;
    pinn_status status = create(&with, config, executor, NULL, &plain);
    for (int i = 0; status == PINN_OK && i < 2; i++) {
        status = pinn_training_steps(plain, steps, NULL, &seconds);
        bare = fmin(bare, seconds);
    }
    if (status == PINN_OK) status = create(&with, config, executor, directory, &run);
    if (status == PINN_OK) status = pinn_training_run(run);
    if (status == PINN_OK) {
        pinn_training_result(run, &r);
        printf("%-36s %-6s %llu steps: one launch %.3f s, with events, evaluation and checkpoints %.3f s, ratio %.3f\n", config, executor,
               (unsigned long long)steps, bare, r.seconds, r.seconds / bare);
        fflush(stdout);
    }
    pinn_training_destroy(run);
    pinn_training_destroy(plain);
    remove_run(directory);
    return status;
}

int main(int count, char **argument) {
    if (count > 1 && strcmp(argument[1], "graph") == 0) {
        argument[1] = "pinn-bench graph"; /* the name in its messages */
        return bench_graph(count - 1, argument + 1);
    }
    if (count > 1 && strcmp(argument[1], "products") == 0) {
        argument[1] = "pinn-bench products";
        return bench_products(count - 1, argument + 1);
    }
    arguments a = {.executors = pinn_device_count() > 0 ? "graph,eager,cpu" : "cpu", .repeats = 5};
    argp_err_exit_status = 2;
    start(argument);
    argp_parse(&argp, count, argument, 0, NULL, &a);
    printf("%-36s %-6s %-8s %11s %11s %9s %10s %10s %10s %9s\n", "# config", "on", "", "us a step", "median", "enqueue", "products",
           "pointwise", "bytes", "of peak");
    int failed = 0;
    for (size_t i = 0; i < a.configs; i++) {
        char list[64];
        snprintf(list, sizeof list, "%s", a.executors);
        for (char *rest = list, *executor; (executor = strsep(&rest, ",")) != NULL;) {
            pinn_status status = bench(&a, a.config[i], executor);
            if (status == PINN_OK && a.events) status = bench_events(&a, a.config[i], executor);
            if (status == PINN_OK) continue;
            fprintf(stderr, "%s, %s: %s\n", a.config[i], executor, pinn_error_message());
            failed = status == PINN_CONFIG ? 2 : 1;
        }
    }
    if (ferror(stdout) || fflush(stdout) != 0) {
        fprintf(stderr, "pinn-bench: cannot write to standard output: %s\n", strerror(errno));
        failed = 1;
    }
    return failed;
}
