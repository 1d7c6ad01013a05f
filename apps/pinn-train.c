/* pinn-train CONFIG: solve the problem of a file. See docs/command-line.md.
 *
 * Exit status: 0 finished by whatever rule, 1 failed while running, 2 wrong configuration or usage, 130 interrupted. */
#include <argp.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pinn.h"
#include "pointwise/program.h"
#include "start.h"

enum { EXIT_FAILED = 1, EXIT_WRONG = 2, EXIT_INTERRUPTED = 130 };
enum { MOST_ASSIGNMENTS = 256 };
enum { KEY_SET = 1000, KEY_SEED, KEY_RESUME, KEY_FORCE, KEY_PLAN, KEY_TUNE, KEY_COMPILE, KEY_JSON };

typedef struct arguments {
    pinn_options options;
    const char *set[MOST_ASSIGNMENTS];
    bool plan, tune, json;
} arguments;

const char *argp_program_version = "pinn-train " PINN_VERSION;

static const struct argp_option options[] = {
    {"out", 'o', "DIR", 0, "Run directory (default: runs/<name of the config>; with --resume of a run's own config.toml, where it lies)", 0},
    {"device", 'd', "DEVICE", 0, "auto (default), cpu, cuda or cuda:N", 0},
    {"set", KEY_SET, "KEY=VALUE", 0, "Replace a value of the file: train.0.steps=500, domain.x=[0,2]; may be repeated", 0},
    {"seed", KEY_SEED, "N", 0, "Replace the file's seed: a whole number from 0 to 2^63 - 1", 0},
    {"resume", KEY_RESUME, NULL, 0, "Go on from the run directory's checkpoint", 0},
    {"force", KEY_FORCE, NULL, 0, "Overwrite an existing run", 0},
    {"plan", KEY_PLAN, NULL, 0, "Print sizes, memory, operations and the recorded step; train nothing", 0},
    {"tune", KEY_TUNE, NULL, 0, "Measure the tiles of the GPU's network pass and write the fastest into CONFIG; train nothing", 0},
    {"compile-for", KEY_COMPILE, "ARCH", 0, "Compile the kernels that a GPU of this architecture (sm_90) would run; needs no GPU, trains nothing", 0},
    {"json", KEY_JSON, NULL, 0, "Print one JSON object at the end on standard output", 0},
    {"quiet", 'q', NULL, 0, "No progress and no notes on standard error", 0},
    HELP_OPTION,
    {0}};

static bool parse_seed(const char *text, uint64_t *seed) {
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || end == text || *end || strchr(text, '-') || value > INT64_MAX) return false;
    *seed = value;
    return true;
}

static error_t parse_option(int key, char *value, struct argp_state *state) {
    arguments *a = state->input;
    pinn_options *o = &a->options;
    switch (key) {
    case 'o': o->directory = value; break;
    case 'd': o->device = value; break;
    case 'h': print_help(state); break;
    case 'q': o->progress = NULL, o->message = NULL; break;
    case KEY_SET:
        if (o->set_count == MOST_ASSIGNMENTS) argp_error(state, "at most %d --set", MOST_ASSIGNMENTS);
        a->set[o->set_count++] = value;
        break;
    case KEY_SEED:
        if (!parse_seed(value, &o->seed)) argp_error(state, "--seed %s: a whole number from 0 to 2^63 - 1 is needed", value);
        o->has_seed = true;
        break;
    case KEY_RESUME: o->resume = true; break;
    case KEY_FORCE: o->force = true; break;
    case KEY_PLAN: a->plan = o->plan_only = o->no_directory = true; break;
    case KEY_TUNE:
        a->tune = o->no_directory = true;
        o->tiles = o->lowering = "auto";
        break;
    case KEY_COMPILE:
        o->compile_for = value;
        o->no_directory = true;
        break;
    case KEY_JSON: a->json = true; break;
    case ARGP_KEY_ARG:
        if (o->config) argp_error(state, "one config at a time: \"%s\" comes after \"%s\"", value, o->config);
        o->config = value;
        break;
    case ARGP_KEY_END:
        if (a->plan && a->json) argp_error(state, "--plan prints text, --json the outcome of a run: give one of them");
        if (a->tune && (a->plan || a->json || o->resume || o->force || o->directory))
            argp_error(state, "--tune trains nothing and writes into the config alone: --plan, --json, --out, --resume and --force say otherwise");
        if (o->compile_for && (a->plan || a->tune || a->json || o->resume || o->force || o->directory))
            argp_error(state, "--compile-for trains and writes nothing: --plan, --tune, --json, --out, --resume and --force say otherwise");
        if (!o->config) argp_error(state, "which problem? Give the path of a config, such as configs/heat.toml");
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp argp = {options, parse_option, "CONFIG",
                                 "Solve a differential equation, written as text in a TOML file, with a neural network.", NULL, NULL, NULL};

static void note(void *user, const char *line) {
    (void)user;
    fprintf(stderr, "pinn-train: %s\n", line);
}

/* For the signal handler: the training, once there is one, whether a stop was asked for before, and what it says to that; "": nothing. */
static pinn_training *volatile running;
static volatile sig_atomic_t asked;
static const char *answer = "";

/* A step may be long, and so may the start: the answer comes before they end. */
static void acknowledge(void) {
    const ssize_t written = write(STDERR_FILENO, answer, strlen(answer));
    (void)written; /* nobody to tell */
}

/* The first SIGINT or SIGTERM asks for a clean stop; one that comes more than a second later ends the program at once. What comes
 * sooner is the same wish told twice: some launchers signal a process and then its group. */
static void interrupt(int number) {
    static struct timespec first;
    struct timespec now;
    const int error = errno; /* of whatever is interrupted */
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!asked) {
        first = now;
        asked = 1;
        pinn_training *training = running;
        if (training) pinn_training_interrupt(training);
        acknowledge();
    } else if (now.tv_sec - first.tv_sec > 1 || (now.tv_sec - first.tv_sec == 1 && now.tv_nsec > first.tv_nsec)) {
        signal(number, SIG_DFL);
        raise(number);
    }
    errno = error;
}

/* On a terminal the answer takes the place of the live line, which is drawn anew below it. */
static void catch_signals(bool quiet) {
    static const int caught[] = {SIGINT, SIGTERM};
    static const char text[] = "\r\033[Kpinn-train: stopping after the present steps; a second signal, more than a second from now, ends at once\n";
    enum { ERASE = 4 }; /* bytes that only a terminal is sent */
    if (!quiet) answer = isatty(STDERR_FILENO) ? text : text + ERASE;
    for (int i = 0; i < 2; i++) {
        struct sigaction action = {.sa_handler = interrupt}, before;
        if (sigaction(caught[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(caught[i], &action, NULL);
    }
}

/* Before the run has begun, a file or directory that can't be used is wrong usage, but for want of room; so is what cannot be had here. */
static int exit_status(pinn_status status, bool begun) {
    switch (status) {
    case PINN_OK: return EXIT_SUCCESS;
    case PINN_IO: return begun || pinn_error_is_full() ? EXIT_FAILED : EXIT_WRONG;
    case PINN_UNSUPPORTED: return begun ? EXIT_FAILED : EXIT_WRONG;
    case PINN_CONFIG:
    case PINN_BAD_ARGUMENT: return EXIT_WRONG;
    case PINN_INTERRUPTED: return EXIT_INTERRUPTED;
    default: return EXIT_FAILED;
    }
}

static void summarise(const pinn_training *training) {
    pinn_result r;
    pinn_training_result(training, &r);
    fprintf(stderr, "%llu steps in %.2f s (%s), stopped by %s", (unsigned long long)r.steps, r.seconds, r.device, r.stop_reason);
    for (size_t f = 0; f < r.fields; f++)
        if (r.relative_l2[f] == r.relative_l2[f]) fprintf(stderr, ", relative L2 of %s %.3g", r.field[f], r.relative_l2[f]);
    if (r.directory) fprintf(stderr, "; results in %s", r.directory);
    fputc('\n', stderr);
}

static pinn_status fail_to_print(void) { return pn_fail(PINN_IO, "pinn-train: cannot write to standard output: %s", strerror(errno)); }

static pinn_status print_text(pinn_status status, char *text) {
    if (status != PINN_OK) return status;
    bool good = puts(text) >= 0 && fflush(stdout) == 0;
    if (!good) status = fail_to_print();
    free(text);
    return status;
}

static pinn_status print_json(const pinn_training *training, pinn_status status) {
    char *json = NULL;
    pinn_status made = pinn_training_json(training, status, &json);
    return print_text(made, json);
}

static pinn_status print_plan(const pinn_training *training) {
    char *plan = NULL;
    pinn_status made = pinn_training_plan(training, &plan);
    return print_text(made, plan);
}

/* The fastest tiles go into the file that was measured; with --set it was another problem, so then they are only shown. */
static pinn_status tune(const arguments *a, pinn_training *training) {
    char *table = NULL, *tiles = NULL;
    pinn_status status = a->options.set_count > 0 ? PINN_OK : pinn_config_set_tiles(a->options.config, NULL); /* before the work */
    if (status == PINN_OK) status = pinn_training_tune(training, &table, &tiles);
    if (status == PINN_OK) {
        printf("%s", table);
        if (a->options.set_count > 0)
            printf("fastest, for the problem as --set makes it; write it by hand where it is wanted:\n");
        else
            status = pinn_config_set_tiles(a->options.config, tiles);
        if (a->options.set_count == 0 && status == PINN_OK) printf("written into %s:\n", a->options.config);
        printf("tiles = \"%s\"\n", tiles);
        if (fflush(stdout) != 0 && status == PINN_OK) status = fail_to_print();
    }
    free(table);
    free(tiles);
    return status;
}

/* What failed has been an error: all kernels are there. Without a cache, one that is asked for twice is compiled twice. */
static pinn_status print_compiled(const arguments *a, const pinn_training *training) {
    const size_t all = pn_asked_kernels(), compiled = pn_compiled_kernels() < all ? pn_compiled_kernels() : all;
    enum { BYTES = 512 };
    char *text = malloc(BYTES);
    pinn_result r;
    if (!text) return PINN_NO_MEMORY;
    pinn_training_result(training, &r);
    const char *const before = *r.tiles ? ", tiles \"" : "", *const after = *r.tiles ? "\"" : "";
    int length = snprintf(text, BYTES, "the kernels for %s (%s pass%s%s%s) compile: ", a->options.compile_for, r.lowering, before, r.tiles, after);
    if (length < 0 || length >= BYTES) length = 0;
    if (compiled == 0)
        snprintf(text + length, (size_t)(BYTES - length), "all %zu came from the cache", all);
    else if (compiled == all)
        snprintf(text + length, (size_t)(BYTES - length), "all %zu were compiled now", all);
    else
        snprintf(text + length, (size_t)(BYTES - length), "%zu of %zu %s compiled now, %zu came from the cache", compiled, all, compiled == 1 ? "was" : "were",
                 all - compiled);
    return print_text(PINN_OK, text);
}

int main(int count, char **argument) {
    arguments a = {.options = {.progress = stderr, .message = note}};
    pinn_training *training = NULL;
    argp_err_exit_status = EXIT_WRONG;
    start(argument);
    a.options.set = a.set;
    argp_parse(&argp, count, argument, 0, NULL, &a);
    const bool quiet = a.options.progress == NULL;
    if (!a.tune && !a.plan && !a.options.compile_for) catch_signals(quiet); /* those leave nothing that had to be ended well */

    pinn_status status = check_openmp();
    if (status == PINN_OK) status = pinn_training_create(&a.options, &training);
    if (status == PINN_OK && a.plan)
        status = print_plan(training);
    else if (status == PINN_OK && a.tune)
        status = tune(&a, training);
    else if (status == PINN_OK && a.options.compile_for)
        status = print_compiled(&a, training);
    else if (status == PINN_OK) {
        running = training;
        if (asked) pinn_training_interrupt(training);
        status = pinn_training_run(training);
    }
    const bool begun = training != NULL;
    if (status != PINN_OK && !(quiet && status == PINN_INTERRUPTED)) {
        fflush(stdout);
        fprintf(stderr, "%s\n", pinn_error_message());
    }
    if (a.json && !a.plan && print_json(training, status) != PINN_OK) {
        fprintf(stderr, "%s\n", pinn_error_message());
        if (status == PINN_OK) status = PINN_IO;
    }
    if (training && !a.plan && !a.tune && !a.options.compile_for && !quiet && (status == PINN_OK || status == PINN_INTERRUPTED)) summarise(training);
    running = NULL;
    pinn_training_destroy(training);
    return exit_status(status, begun);
}
