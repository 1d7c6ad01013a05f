/* pinn-bench CONFIG...: times training steps, executor beside executor. pinn-bench scaling: how a step's time grows with the sizes of a
 * problem. pinn-bench graph: the graph layer itself. pinn-bench products: the matrix products of layers on a GPU. See docs/bench.md.
 *
 * A step is the whole recorded step: sampling if points are fresh, forward, residual, backward, optimizer. */
#include <argp.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench_graph.h"
#include "bench_products.h"
#include "bench_scaling.h"
#include "bench_steps.h"
#include "core/status.h"
#include "core/text.h"
#include "pinn.h"
#include "start.h"

enum { MOST_CONFIGS = 64 };
#define MOST_STEPS UINT32_MAX /* of one launch */
enum { EXIT_INTERRUPTED = 130 };
enum { KEY_SET = 1000, KEY_EVENTS, KEY_NODES };

typedef struct arguments {
    const char *config[MOST_CONFIGS];
    size_t configs;
    const char *set[MOST_CONFIGS + 2]; /* two are --events' */
    size_t sets;
    const char *executors;
    uint64_t steps; /* a repetition; 0: as many as take about half a second */
    int repeats;
    bool events, nodes;
} arguments;

const char *argp_program_version = "pinn-bench " PINN_VERSION;

static const struct argp_option options[] = {
    {"executors", 'e', "LIST", 0, "Any of graph, eager, cpu, timed in the order given (default: those this machine has)", 0},
    {"steps", 'n', "N", 0, "Steps a repetition (default: as many as take about half a second)", 0},
    {"repeat", 'r', "N", 0, "Repetitions (default 5)", 0},
    {"set", KEY_SET, "KEY=VALUE", 0, "Replace a value of every config", 0},
    {"nodes", KEY_NODES, NULL, 0, "Also the share of each node of the step", 0},
    {"events", KEY_EVENTS, NULL, 0, "Also train N steps (default 10000) of the first phase with events, evaluation and checkpoints, beside one launch of N steps", 0},
    HELP_OPTION,
    {0}};

static error_t parse_option(int key, char *value, struct argp_state *state) {
    arguments *a = state->input;
    switch (key) {
    case 'e': a->executors = bench_parse_executors(state, value); break;
    case 'h': print_help(state); break;
    case 'n': a->steps = bench_parse_count(state, "steps", value, MOST_STEPS); break;
    case 'r': a->repeats = bench_parse_repeats(state, value); break;
    case KEY_SET:
        if (a->sets == MOST_CONFIGS) argp_error(state, "at most %d --set", MOST_CONFIGS);
        a->set[a->sets++] = value;
        break;
    case KEY_NODES: a->nodes = true; break;
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

static const struct argp argp = {options, parse_option, "CONFIG...",
                                 "Time training steps.\vOther benches, each with its own --help; the command word comes first:\n"
                                 "  pinn-bench scaling    how a step's time grows with the sizes of a problem\n"
                                 "  pinn-bench graph      the graph layer itself\n"
                                 "  pinn-bench products   the matrix products of layers on a GPU",
                                 NULL, NULL, NULL};

/* An exit status, as the next one; what failed is told. A message about a place in the file, FILE:LINE:COLUMN, stays whole. */
static int report(const char *config, const char *executor, pinn_status status, bool begun) {
    const char *const message = pinn_error_message(), *const rest = bench_without_name(message, config);
    const size_t length = strlen(config);
    if (status != PINN_OK && rest == message && strncmp(message, config, length) == 0 && message[length] == ':')
        fprintf(stderr, "%s\n", message);
    else if (status != PINN_OK)
        fprintf(stderr, "%s, %s: %s\n", config, executor, rest);
    return bench_exit_status(status, begun);
}

/* Before the first row: what fails before it leaves standard output empty. */
static void print_head(void) {
    static bool printed;
    if (!printed)
        printf("%-36s %-6s %-8s %11s %11s %9s %10s %10s %10s %9s  %-8s %s\n", "# config", "on", "", "us a step", "median", "enqueue", "products",
               "pointwise", "bytes", "of peak", "pass", "device");
    printed = true;
}

static int bench(const arguments *a, const char *config, const char *executor) {
    pinn_training *training = NULL;
    pinn_result r;
    bench_time time;
    double peak;
    pn_text label = {0};
    pinn_status status = bench_create(config, a->set, a->sets, executor, NULL, &training);
    if (status == PINN_OK) status = bench_time_steps(training, a->steps, 0.5, a->repeats, &time);
    if (status == PINN_OK) {
        pinn_training_result(training, &r);
        status = bench_product_peak(executor, r.precision, &peak);
    }
    if (status == PINN_OK) {
        double rate = 1e6 * r.product_operations / time.best;
        print_head();
        printf("%-36s %-6s %-8s %11.1f %11.1f ", config, executor, r.precision, time.best, time.median);
        if (isinf(time.enqueue))
            printf("%9s ", "-");
        else
            printf("%9.2f ", time.enqueue);
        printf("%10.4g %10.4g %10.4g %7.1f %%  %-8s %s\n", r.product_operations, r.pointwise_operations, r.bytes, 100 * rate / peak, r.lowering,
               r.device);
        fflush(stdout);
    }
    if (status == PINN_OK && a->nodes) {
        pn_text_printf(&label, "%-34s %-6s %-8s ", config, executor, r.precision);
        status = pn_text_check(&label);
        if (status == PINN_OK) status = bench_nodes(training, pn_text_get(&label), time.best, peak, a->repeats);
    }
    const int failed = report(config, executor, status, training != NULL);
    pn_text_free(&label);
    pinn_training_destroy(training);
    return failed;
}

/* The training whose run directory must go again, for the signal handler. */
static pinn_training *volatile running;
static volatile sig_atomic_t asked;

static void interrupt(int number) {
    (void)number;
    asked = 1;
    if (running) pinn_training_interrupt(running);
}

/* One that was ignored stays so. The handler holds until the next signal: a second one ends the program at once. */
static void catch_signals(bool caught) {
    static const int number[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT}; /* what terminals and users end programs with */
    for (size_t i = 0; i < sizeof number / sizeof number[0]; i++) {
        struct sigaction action = {.sa_handler = caught ? interrupt : SIG_DFL, .sa_flags = SA_RESETHAND}, before;
        if (sigaction(number[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(number[i], &action, NULL);
    }
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

/* Seconds of a whole run, which must be of so many steps, with all a run writes, in a directory that goes again. */
static pinn_status time_run(const arguments *a, const char *config, const char *executor, uint64_t steps, double *seconds) {
    const char *temporary = getenv("TMPDIR");
    char directory[4000];
    pinn_training *run = NULL;
    pinn_result r;
    snprintf(directory, sizeof directory, "%s/pinn-bench-XXXXXX", temporary && *temporary ? temporary : "/tmp");
    catch_signals(true);
    if (!mkdtemp(directory)) {
        pn_fail(PINN_IO, "%s: cannot make a directory for the run: %s", directory, strerror(errno));
        catch_signals(false);
        return PINN_IO;
    }
    pinn_status status = bench_create(config, a->set, a->sets, executor, directory, &run);
    running = run;
    if (run && asked) pinn_training_interrupt(run);
    if (status == PINN_OK) status = pinn_training_run(run);
    if (status == PINN_OK) {
        pinn_training_result(run, &r);
        if (r.steps != steps)
            status = pn_fail(PINN_INTERNAL, "the run ended by \"%s\" after %llu steps, %llu were to be compared", r.stop_reason,
                             (unsigned long long)r.steps, (unsigned long long)steps);
        *seconds = r.seconds;
    }
    running = NULL;
    pinn_training_destroy(run);
    remove_run(directory);
    catch_signals(false);
    return status;
}

/* The same number of steps as one launch without events, and as a whole run: of the first phase, which the only stop rule left ends. */
static int bench_events(const arguments *a, const char *config, const char *executor) {
    const uint64_t steps = a->steps ? a->steps : 10000;
    char count[64], stop[64];
    arguments with = *a;
    pinn_training *plain = NULL;
    double bare = INFINITY, seconds;
    snprintf(count, sizeof count, "train.0.steps=%llu", (unsigned long long)steps);
    snprintf(stop, sizeof stop, "stop={step=%llu}", (unsigned long long)steps);
    with.set[with.sets++] = count;
    with.set[with.sets++] = stop;
    pinn_status status = bench_create(config, with.set, with.sets, executor, NULL, &plain);
    for (int i = 0; status == PINN_OK && i < 2; i++) {
        status = pinn_training_steps(plain, steps, NULL, &seconds);
        bare = fmin(bare, seconds);
    }
    pinn_training_destroy(plain);
    if (status == PINN_OK) status = time_run(&with, config, executor, steps, &seconds);
    if (status == PINN_INTERRUPTED) return EXIT_INTERRUPTED;
    if (status != PINN_OK) return report(config, executor, status, true);
    printf("%-36s %-6s %llu steps: one launch %.3f s, with events, evaluation and checkpoints %.3f s, ratio %.3f\n", config, executor,
           (unsigned long long)steps, bare, seconds, seconds / bare);
    fflush(stdout);
    return 0;
}

/* Of them `argument` 0 is the name in their messages. */
static const struct { char name[24]; int (*run)(int count, char **argument); } subcommand[] = {
    {"pinn-bench graph", bench_graph}, {"pinn-bench products", bench_products}, {"pinn-bench scaling", bench_scaling}};

/* Whether the file is there: told once, not for every executor. A bare word may be meant for another bench's. */
static bool is_there(const char *config) {
    if (access(config, F_OK) == 0) return true;
    fprintf(stderr, "%s: %s\n", config, strerror(errno));
    if (!strpbrk(config, "./"))
        fprintf(stderr, "  besides files there are the command words scaling, graph and products, each before all options: pinn-bench --help\n");
    return false;
}

/* A command word that stands behind other arguments, whose options the bench of files need not know; NULL without one. What follows an
 * option may be its value (-e graph), and a file may have such a name. */
static const char *late_command(int count, char *const *argument) {
    for (int k = 2; k < count; k++) {
        const char *const before = argument[k - 1];
        const bool value = before[0] == '-' && (strlen(before) == 2 || (before[1] == '-' && !strchr(before, '=')));
        for (size_t i = 0; !value && i < sizeof subcommand / sizeof subcommand[0]; i++)
            if (strcmp(argument[k], strrchr(subcommand[i].name, ' ') + 1) == 0 && access(argument[k], F_OK) != 0) return argument[k];
    }
    return NULL;
}

int main(int count, char **argument) {
    argp_err_exit_status = 2;
    start(argument);
    if (check_openmp() != PINN_OK) {
        fprintf(stderr, "pinn-bench: %s\n", pinn_error_message());
        return 2;
    }
    for (size_t i = 0; count > 1 && i < sizeof subcommand / sizeof subcommand[0]; i++) {
        char name[sizeof subcommand[i].name];
        snprintf(name, sizeof name, "%s", subcommand[i].name);
        if (strcmp(argument[1], strrchr(name, ' ') + 1) != 0) continue;
        argument[1] = name;
        return subcommand[i].run(count - 1, argument + 1);
    }
    const char *const late = late_command(count, argument);
    if (late) {
        fprintf(stderr, "pinn-bench: the command word comes first: pinn-bench %s [OPTION...]\n", late);
        return 2;
    }
    arguments a = {.executors = pinn_device_count() > 0 ? BENCH_EXECUTORS : "cpu", .repeats = 5};
    argp_parse(&argp, count, argument, 0, NULL, &a);
    int failed = 0;
    for (size_t i = 0; i < a.configs; i++) {
        char list[64];
        if (!is_there(a.config[i])) {
            failed = 2;
            continue;
        }
        snprintf(list, sizeof list, "%s", a.executors);
        for (char *rest = list, *executor; (executor = strsep(&rest, ",")) != NULL;) {
            int status = bench(&a, a.config[i], executor);
            if (status == 0 && a.events) status = bench_events(&a, a.config[i], executor);
            if (status > failed) failed = status;
            if (asked) return EXIT_INTERRUPTED;
        }
    }
    return bench_finish("pinn-bench", failed);
}
