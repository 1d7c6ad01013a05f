/* pinn-bench graph: the graph layer's own costs, on small kernels that do next to nothing. See docs/bench.md.
 *
 * A step is BENCH_KERNELS dependent kernels: about as many as a training step has. The same step is run as plain launches on a
 * stream, as an eager list, as a replayed graph, several steps a replay, and as the body of a loop on the device.
 */
#include "bench_graph.h"

#include <argp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_arguments.h"
#include "core/clock.h"
#include "start.h"

enum { UNROLLED = 8, GPU_COUNT = 4096, CPU_COUNT = 1, MOST_NODES = 1000, KEY_SECONDS = 1000 };

typedef struct timing {
    double best, median; /* microseconds */
} timing;

/* ---- clocks -------------------------------------------------------------------------------------------------------------- */

static double now(void) { return 1e6 * pn_clock(); }

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static timing summary(double *each, int count) {
    qsort(each, (size_t)count, sizeof *each, ascending);
    return (timing){each[0], each[count / 2]};
}

static void print(const graph_bench *b, const char *what, timing t) {
    printf("%-36s %-6s %12.3f %12.3f\n", what, b->executor, t.best, t.median);
    fflush(stdout);
}

/* Something that runs n times and waits. */
typedef pinn_status timed(graph_bench *b, uint64_t n);

static pinn_status replay(graph_bench *b, uint64_t n) { return pinn_graph_launch(b->graph, n); }

#ifdef PINN_HAVE_CUDA
static pinn_status stream(graph_bench *b, uint64_t n) {
    return bench_stream(pinn_context_stream(b->context), pinn_plane_address(b->x), b->sizes.count, n, BENCH_KERNELS);
}
#endif

/* Times `run` over about b->seconds a repetition; microseconds for each of the `steps` that one run holds. */
static pinn_status time_runs(graph_bench *b, timed *run, uint32_t steps, timing *out) {
    double each[BENCH_REPEATS], start;
    uint64_t count = 4;
    pinn_status status = run(b, count); /* builds, and wakes the device */
    for (start = now(); status == PINN_OK; start = now(), count *= 4) {
        status = run(b, count);
        const double took = now() - start;
        if (took < 1e5 * b->seconds) continue;
        count = (uint64_t)fmax(1, (double)count * 1e6 * b->seconds / took);
        break;
    }
    for (int k = 0; status == PINN_OK && k < b->repeats; k++) {
        start = now();
        status = run(b, count);
        each[k] = (now() - start) / (double)count / steps;
    }
    if (status == PINN_OK) *out = summary(each, b->repeats);
    return status;
}

/* Times recording and building, each time from nothing. The first, which loads kernels, is not counted. */
static pinn_status time_build(graph_bench *b, bench_record *record, uint32_t number, timing *recorded, timing *built) {
    double recording[BENCH_REPEATS], building[BENCH_REPEATS];
    for (int k = -1; k < b->repeats; k++) {
        pinn_graph_invalidate(b->graph);
        const double start = now();
        record(b, number);
        const double between = now();
        pinn_status status = pinn_graph_build(b->graph);
        if (status != PINN_OK) return status;
        if (k < 0) continue;
        building[k] = now() - between;
        recording[k] = between - start;
    }
    *recorded = summary(recording, b->repeats);
    *built = summary(building, b->repeats);
    return PINN_OK;
}

/* ---- the table ----------------------------------------------------------------------------------------------------------- */

static pinn_status bench_steps(graph_bench *b) {
    static const struct {
        const char *name;
        bench_record *record;
        uint32_t number, steps;
    } row[] = {
        {"replay of 11 kernels", bench_record_nodes, BENCH_KERNELS, 1},
        {"replay of 88 kernels, a step", bench_record_nodes, UNROLLED * BENCH_KERNELS, UNROLLED},
        {"while, 44 kernels a trip, a step", bench_record_while, 0, BENCH_TRIPS * BENCH_BODY},
        {"for, 44 kernels a trip, a step", bench_record_for, 0, BENCH_TRIPS * BENCH_BODY},
        {"11 kernels and copy", bench_record_copy, 0, 1},
        {"11 kernels, copy and host node", bench_record_copy, 1, 1},
    };
    enum { ROWS = sizeof row / sizeof row[0] };
    timing t[ROWS], launches = {0, 0};
    pinn_status status = PINN_OK;
#ifdef PINN_HAVE_CUDA
    if (strcmp(b->executor, "graph") == 0) {
        status = time_runs(b, stream, 1, &launches);
        if (status == PINN_OK)
            printf("%-36s %-6s %12.3f %12.3f\n", "stream launches of 11 kernels", "-", launches.best, launches.median);
    }
#endif
    for (size_t k = 0; status == PINN_OK && k < ROWS; k++) {
        row[k].record(b, row[k].number);
        status = time_runs(b, replay, row[k].steps, &t[k]);
        if (status == PINN_OK) print(b, row[k].name, t[k]);
    }
    if (status != PINN_OK) return status;
    printf(
        "#   copy %.3f us, host node %.3f us a replay; 88-kernel replay / replay %.3f; while / replay %.3f; while / 88-kernel "
        "replay %.3f\n",
        t[4].best - t[0].best, t[5].best - t[4].best, t[1].best / t[0].best, t[2].best / t[0].best, t[2].best / t[1].best);
    if (launches.best > 0) printf("#   stream launches / replay %.2f\n", launches.best / t[0].best);
    return PINN_OK;
}

static pinn_status bench_builds(graph_bench *b) {
    static const struct {
        const char *name;
        bench_record *record;
        uint32_t number;
    } row[] = {{"of 11 nodes", bench_record_nodes, BENCH_KERNELS},
               {"of 88 nodes", bench_record_nodes, UNROLLED * BENCH_KERNELS},
               {"of the while", bench_record_while, 0}};
    for (size_t k = 0; k < sizeof row / sizeof row[0]; k++) {
        timing recorded, built;
        char name[64];
        pinn_status status = time_build(b, row[k].record, row[k].number, &recorded, &built);
        if (status != PINN_OK) return status;
        snprintf(name, sizeof name, "recording %s", row[k].name);
        print(b, name, recorded);
        snprintf(name, sizeof name, "build %s", row[k].name);
        print(b, name, built);
    }
    return PINN_OK;
}

/* Replays of 1 to MOST_NODES nodes, and the slope of the line through them by least squares. */
static pinn_status bench_slope(graph_bench *b) {
    static const uint32_t nodes[] = {1, 2, 5, 10, 20, 50, 100, 200, 500, MOST_NODES};
    enum { COUNT = sizeof nodes / sizeof nodes[0] };
    timing t[COUNT], slope;
    double n = 0, nn = 0, best = 0, nbest = 0, median = 0, nmedian = 0;
    for (int k = 0; k < COUNT; k++) {
        char name[64];
        bench_record_nodes(b, nodes[k]);
        pinn_status status = time_runs(b, replay, 1, &t[k]);
        if (status != PINN_OK) return status;
        snprintf(name, sizeof name, "replay of %u node%s", nodes[k], nodes[k] > 1 ? "s" : "");
        print(b, name, t[k]);
        n += nodes[k] / (double)COUNT;
        best += t[k].best / COUNT;
        median += t[k].median / COUNT;
    }
    for (int k = 0; k < COUNT; k++) {
        const double d = nodes[k] - n;
        nn += d * d;
        nbest += d * (t[k].best - best);
        nmedian += d * (t[k].median - median);
    }
    slope = (timing){nbest / nn, nmedian / nn};
    print(b, "slope from 1 to 1000 nodes, a node", slope);
    return PINN_OK;
}

static pinn_status bench_executor(graph_bench *b) {
    const bool cpu = strcmp(b->executor, "cpu") == 0;
    const pinn_context_options options = {.executor = cpu                                 ? PINN_EXECUTOR_CPU
                                                      : strcmp(b->executor, "eager") == 0 ? PINN_EXECUTOR_EAGER
                                                                                          : PINN_EXECUTOR_GRAPH};
    pinn_status status = pinn_context_create(&options, &b->context);
    if (status != PINN_OK) return status;
    b->sizes = (bench_sizes){cpu ? CPU_COUNT : GPU_COUNT, BENCH_TRIPS};
    printf("# %s: %s\n", b->executor, pinn_context_device_name(b->context));
    status = pinn_plane_create(b->context, "x", PINN_DEVICE, b->sizes.count * sizeof(float), &b->x);
    if (status == PINN_OK) status = pinn_plane_create(b->context, "words", PINN_DEVICE, sizeof(bench_words), &b->words);
    if (status == PINN_OK) status = pinn_plane_create(b->context, "home", PINN_PINNED, sizeof(bench_words), &b->home);
    if (status == PINN_OK) status = pinn_graph_create(b->context, "bench", &b->graph);
    if (status == PINN_OK) status = bench_steps(b);
    if (status == PINN_OK) status = bench_builds(b);
    if (status == PINN_OK) status = bench_slope(b);
    pinn_graph_destroy(b->graph);
    pinn_plane_destroy(b->x);
    pinn_plane_destroy(b->words);
    pinn_plane_destroy(b->home);
    pinn_context_destroy(b->context);
    return status;
}

/* ---- the command line ---------------------------------------------------------------------------------------------------- */

typedef struct arguments {
    const char *executors;
    int repeats;
    double seconds;
} arguments;

static const struct argp_option options[] = {
    {"executors", 'e', "LIST", 0, "Any of graph, eager, cpu, timed in the order given (default: those this machine has)", 0},
    {"repeat", 'r', "N", 0, "Repetitions (default 7)", 0},
    {"seconds", KEY_SECONDS, "S", 0, "Length of a repetition (default 0.1)", 0},
    HELP_OPTION,
    {0}};

static error_t parse_option(int key, char *value, struct argp_state *state) {
    arguments *a = state->input;
    switch (key) {
    case 'e': a->executors = bench_parse_executors(state, value); break;
    case 'h': print_help(state); break;
    case 'r': a->repeats = bench_parse_repeats(state, value); break;
    case KEY_SECONDS: a->seconds = bench_parse_seconds(state, "seconds", value, 60); break;
    case ARGP_KEY_ARG: argp_error(state, "'%s': no arguments are expected", value); break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp argp = {options, parse_option, "", "Time the graph layer itself.", NULL, NULL, NULL};

/* Version of the driver, as its own file tells it. */
static void print_driver(void) {
#ifdef PINN_HAVE_CUDA
    const int cuda = bench_driver_version();
    char line[256] = "";
    FILE *file = fopen("/proc/driver/nvidia/version", "r");
    if (file && !fgets(line, sizeof line, file)) line[0] = 0;
    if (file) fclose(file);
    line[strcspn(line, "\n")] = 0;
    if (cuda) printf("# driver for CUDA %d.%d; %s\n", cuda / 1000, cuda % 1000 / 10, line);
#endif
}

int bench_graph(int count, char **argument) {
    arguments a = {pinn_device_count() > 0 ? BENCH_EXECUTORS : "cpu", 7, 0.1};
    char list[64];
    int failed = 0;
    argp_parse(&argp, count, argument, 0, NULL, &a);
    print_driver();
    printf("%-36s %-6s %12s %12s\n", "# what", "on", "best, us", "median, us");
    snprintf(list, sizeof list, "%s", a.executors);
    for (char *rest = list, *executor; (executor = strsep(&rest, ",")) != NULL;) {
        graph_bench b = {.executor = executor, .repeats = a.repeats, .seconds = a.seconds};
        if (bench_executor(&b) == PINN_OK) continue;
        fprintf(stderr, "%s: %s\n", executor, pinn_error_message());
        failed = 1;
    }
    return bench_finish(argument[0], failed);
}
