/* pinn-bench scaling: each size of a problem varied alone around one case, u_t + u u_x = nu u_xx on a network 2-64x4-1 at 10^4 points.
 *
 * Problems are written as text, fixed points, a twentieth as many on the boundary as inside, no clipping. Order: the equation's highest
 * derivative (advection, Burgers, Korteweg-de Vries, Kuramoto-Sivashinsky). Dimension: Poisson's equation, whose Laplacian travels as one channel
 * beside the first derivatives.
 *
 * A case whose step would last too long, by its operations and the base case's rate, is left out, and so is one that has no room. */
#include "bench_scaling.h"

#include <argp.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench_steps.h"
#include "core/text.h"
#include "start.h"
#include "train/training.h"

enum { MOST_VALUES = 10, MOST_SETS = 16, KEY_SET = 1000, KEY_SECONDS, KEY_LONGEST, BOUNDARY = 20 };
enum { POINTS, WIDTH, DEPTH, ORDER, DIMENSION, AXES };
#define AXES_ALL "points,width,depth,order,dimension"

static const struct axis {
    const char *name;
    size_t value[MOST_VALUES]; /* ended by 0 */
    size_t reference;          /* the value that `ratio` compares with */
    bool poisson;
} axes[AXES] = {
    [POINTS] = {"points", {1000, 10000, 100000, 1000000, 10000000}, 100000, false},
    [WIDTH] = {"width", {16, 32, 64, 128, 256, 512}, 64, false},
    [DEPTH] = {"depth", {2, 3, 4, 6, 8, 10}, 4, false},
    [ORDER] = {"order", {1, 2, 3, 4}, 2, false},
    [DIMENSION] = {"dimension", {1, 2, 3, 5, 10, 20, 50, 100}, 2, true},
};

typedef struct problem {
    size_t size[AXES];
    bool poisson;
} problem;

static const problem base = {{[POINTS] = 10000, [WIDTH] = 64, [DEPTH] = 4, [ORDER] = 2, [DIMENSION] = 2}, false};

typedef struct arguments {
    const char *executors, *axes;
    const char *set[MOST_SETS];
    size_t sets;
    double seconds, longest; /* of a repetition; of a step. longest 0: by the executor */
    int repeats;
} arguments;

typedef struct outcome {
    bool measured;
    char why[200]; /* it was not */
    int failed;    /* the exit status if that ends the bench */
    char precision[16], lowering[16];
    size_t channels;    /* of an inner point */
    double microseconds, operations, peak_share, bytes; /* of a step, products; device memory that grows with the points */
} outcome;

/* ---- the problem's text -------------------------------------------------------------------------------------------------------- */

static void write_equation(const problem *p, pn_text *text) {
    static const char *const residual[] = {NULL, "u_t + u*u_x", "u_t + u*u_x - 0.0031831*u_xx", "u_t + u*u_x + 0.000484*u_xxx",
                                           "u_t + u*u_x + u_xx + u_xxxx"};
    pn_text_string(text, "title = \"scaling\"\n[domain]\n");
    if (p->poisson)
        for (size_t i = 0; i < p->size[DIMENSION]; i++) pn_text_printf(text, "x%zu = [-1, 1]\n", i);
    else
        pn_text_string(text, "x = [-1, 1]\nt = [-1, 1]\n");
    pn_text_printf(text, "[fields]\nu = {}\n[[equation]]\nname = \"inside\"\nresidual = \"%s\"\n",
                   p->poisson ? "lap(u) + sin(x0)" : residual[p->size[ORDER]]);
}

static void write_problem(const problem *p, pn_text *text) {
    const size_t points = p->size[POINTS];
    write_equation(p, text);
    pn_text_printf(text, "points = %zu\nresample = \"never\"\n", points);
    pn_text_printf(text, "[[condition]]\nname = \"boundary\"\non = \"boundary\"\nresidual = \"u\"\npoints = %zu\nresample = \"never\"\n", points / BOUNDARY);
    pn_text_printf(text, "[network]\nwidth = %zu\ndepth = %zu\nactivation = \"tanh\"\n", p->size[WIDTH], p->size[DEPTH]);
    pn_text_string(text, "[[train]]\nsteps = 10000\nlearning_rate = 1e-3\n[output]\nevaluate = { points = 100 }\n");
}

enum { NAME = 64 };

/* A file in memory, which no folder holds and no interrupt leaves behind; `path` is its name while the descriptor, -1 on failure, is open. */
static int open_problem(const problem *p, char path[NAME]) {
    pn_text text = {0};
    write_problem(p, &text);
    int file = pn_text_check(&text) == PINN_OK ? memfd_create("scaling.toml", MFD_CLOEXEC) : -1;
    if (file >= 0 && write(file, pn_text_get(&text), text.length) != (ssize_t)text.length) {
        close(file);
        file = -1;
    }
    snprintf(path, NAME, "/proc/self/fd/%d", file);
    pn_text_free(&text);
    return file;
}

/* ---- one case ------------------------------------------------------------------------------------------------------------------ */

/* With the thread's message, but for the name of a file, `path`, that nobody else has seen. */
static void refuse(outcome *o, const char *path, pinn_status status, bool begun) {
    o->failed = bench_exit_status(status, begun);
    snprintf(o->why, sizeof o->why, "%s", bench_without_name(pinn_error_message(), path));
    o->why[strcspn(o->why, "\n")] = 0;
}

static void describe(const pinn_training *training, outcome *o) {
    pn_pass_cost cost;
    pinn_result r;
    pinn_training_result(training, &r);
    pn_pass_get_cost(training->machinery.pass, &cost);
    snprintf(o->precision, sizeof o->precision, "%s", r.precision);
    snprintf(o->lowering, sizeof o->lowering, "%s", r.lowering);
    o->channels = training->problem->set[0].layout.count;
    o->operations = r.product_operations;
    o->bytes = (double)(pinn_plane_bytes(training->machinery.points) + cost.workspace_bytes + cost.partial_bytes);
}

/* `rate`: operations a microsecond of the base case; 0 for the base case itself. */
static void measure_training(const arguments *a, const char *executor, const char *path, pinn_training *training, double rate, outcome *o) {
    const double longest = a->longest > 0 ? a->longest : strcmp(executor, "cpu") == 0 ? 0.5 : 10;
    bench_time time;
    double peak;
    describe(training, o);
    if (rate > 0 && o->operations / rate > 1e6 * longest) {
        snprintf(o->why, sizeof o->why, "a step would take about %.3g s, more than --longest %g", o->operations / rate / 1e6, longest);
        return;
    }
    pinn_status status = bench_product_peak(executor, o->precision, &peak);
    if (status == PINN_OK) status = bench_time_steps(training, 0, a->seconds, a->repeats, &time);
    if (status != PINN_OK) {
        refuse(o, path, status, true);
        return;
    }
    o->measured = true;
    o->microseconds = time.best;
    o->peak_share = o->operations / (1e-6 * time.best * peak);
}

static void measure(const arguments *a, const char *executor, const problem *p, double rate, outcome *o) {
    char path[NAME];
    pinn_training *training = NULL;
    *o = (outcome){.precision = "-", .lowering = "-"};
    const int file = open_problem(p, path);
    if (file < 0) {
        snprintf(o->why, sizeof o->why, "no problem file can be made in memory");
        o->failed = 1;
        return;
    }
    const pinn_status status = bench_create(path, a->set, a->sets, executor, NULL, &training);
    if (status == PINN_OK)
        measure_training(a, executor, path, training, rate, o);
    else
        refuse(o, path, status, false);
    pinn_training_destroy(training);
    close(file);
}

/* ---- the table ------------------------------------------------------------------------------------------------------------------ */

static double per_point(const problem *p, const outcome *o) { return 1e3 * o->microseconds / (double)p->size[POINTS]; }

/* Once. */
static void print_head(void) {
    static bool printed;
    if (printed) return;
    printed = true;
    printf("%-10s %8s %5s %5s %5s %9s %8s %-6s %-8s %-8s %12s %10s %7s %14s %11s %8s\n", "# axis", "points", "width", "depth", "order", "dimension",
           "channels", "on", "", "pass", "us a step", "ns a point", "ratio", "bytes a point", "products", "of peak");
}

/* `reference`: nanoseconds a point of the case that `ratio` compares with; NaN without one. */
static void print_case(const char *axis, const char *executor, const problem *p, const outcome *o, double reference) {
    printf("%-10s %8zu %5zu %5zu ", axis, p->size[POINTS], p->size[WIDTH], p->size[DEPTH]);
    printf("%5zu %9zu %8zu %-6s %-8s %-8s ", p->size[ORDER], p->size[DIMENSION], o->channels, executor, o->precision, o->lowering);
    if (!o->measured)
        printf("skipped: %s\n", o->why);
    else if (isnan(reference))
        printf("%12.1f %10.3f %7s ", o->microseconds, per_point(p, o), "-");
    else
        printf("%12.1f %10.3f %7.3f ", o->microseconds, per_point(p, o), per_point(p, o) / reference);
    if (o->measured) printf("%14.1f %11.4g %6.1f %%\n", o->bytes / (double)p->size[POINTS], o->operations, 100 * o->peak_share);
    fflush(stdout);
}

static problem on_axis(int axis, size_t value) {
    problem p = base;
    p.size[axis] = value;
    p.poisson = axes[axis].poisson;
    return p;
}

/* How far apart the costs of a point are from the reference on. */
static void print_flatness(const char *executor, const double *cost, size_t count) {
    double least = INFINITY, most = 0;
    for (size_t i = 0; i < count; i++) {
        least = fmin(least, cost[i]);
        most = fmax(most, cost[i]);
    }
    if (count > 1)
        printf("# %s: at %zu points and more, %zu sizes, the costs of a point differ by %.1f %%\n", executor, axes[POINTS].reference, count,
               100 * (most / least - 1));
}

/* How many times one is the other. */
static double distance(size_t a, size_t b) { return (double)(a > b ? a : b) / (double)(a > b ? b : a); }

/* Measures the axis's reference case, and while it is skipped the next nearest one, of two the smaller. Its nanoseconds a point; NaN: all were
 * skipped. `tried`: whose outcome is there. */
static double measure_reference(const arguments *a, const char *executor, int axis, double rate, outcome *o, bool *tried) {
    const struct axis *x = &axes[axis];
    for (;;) {
        size_t next = MOST_VALUES;
        for (size_t i = 0; i < MOST_VALUES && x->value[i]; i++)
            if (!tried[i] && (next == MOST_VALUES || distance(x->value[i], x->reference) < distance(x->value[next], x->reference))) next = i;
        if (next == MOST_VALUES) return NAN;
        const problem p = on_axis(axis, x->value[next]);
        measure(a, executor, &p, rate, &o[next]);
        tried[next] = true;
        if (!o[next].measured) continue;
        if (x->value[next] != x->reference)
            printf("# %s: %s %zu, the reference case, is skipped: ratio is to %s %zu\n", executor, x->name, x->reference, x->name, x->value[next]);
        return per_point(&p, &o[next]);
    }
}

static void bench_axis(const arguments *a, const char *executor, int axis, double rate) {
    const struct axis *x = &axes[axis];
    double cost[MOST_VALUES];
    size_t count = 0;
    outcome o[MOST_VALUES];
    bool tried[MOST_VALUES] = {false};
    const double reference = measure_reference(a, executor, axis, rate, o, tried);
    for (size_t i = 0; i < MOST_VALUES && x->value[i]; i++) {
        const problem p = on_axis(axis, x->value[i]);
        if (!tried[i]) measure(a, executor, &p, rate, &o[i]);
        print_case(x->name, executor, &p, &o[i], reference);
        if (o[i].measured && x->value[i] >= x->reference) cost[count++] = per_point(&p, &o[i]);
    }
    if (axis == POINTS) print_flatness(executor, cost, count);
}

/* An exit status: not 0 when not even the base case runs. */
static int bench_executor(const arguments *a, const char *executor) {
    outcome o;
    measure(a, executor, &base, 0, &o);
    if (!o.measured) {
        fprintf(stderr, "%s, base case: %s\n", executor, o.why);
        return o.failed;
    }
    print_head();
    print_case("base", executor, &base, &o, NAN);
    for (int axis = 0; axis < AXES; axis++)
        if (bench_list_holds(a->axes, axes[axis].name)) bench_axis(a, executor, axis, o.operations / o.microseconds);
    return 0;
}

/* ---- the command line ---------------------------------------------------------------------------------------------------------- */

static const struct argp_option options[] = {
    {"executors", 'e', "LIST", 0, "Any of graph, eager, cpu, timed in the order given (default: graph, or cpu without a GPU)", 0},
    {"axes", 'a', "LIST", 0, "Which of " AXES_ALL " (default: all)", 0},
    {"repeat", 'r', "N", 0, "Repetitions (default 3)", 0},
    {"seconds", KEY_SECONDS, "S", 0, "Length of a repetition (default 0.2)", 0},
    {"longest", KEY_LONGEST, "S", 0, "Leave out cases whose step would take longer (default 10, on the CPU 0.5)", 0},
    {"set", KEY_SET, "KEY=VALUE", 0, "Replace a value of every case, such as precision=tf32; not what axes vary, nor the equations", 0},
    HELP_OPTION,
    {0}};

/* Keys that the cases differ by, or that make the problem which the rows are told to be of: "0" is any element. */
static const struct {
    const char *key, *instead;
} own[] = {{"network.width", "--axes width varies it"},
           {"network.depth", "--axes depth varies it"},
           {"equation.0.points", "--axes points varies it"},
           {"condition.0.points", "--axes points varies it with the points inside"},
           {"train.0.points", "--axes points varies all points"},
           {"equation.0.residual", "--axes order varies it"},
           {"condition.0.residual", "it is the same in all cases"},
           {"condition.0.on", "it is the same in all cases"},
           {"domain", "--axes dimension varies it"},
           {"fields", "they are the same in all cases"},
           {"time", "no case has one"}};

/* Whether the keys are the same or one of them is a table that holds the other. `key` has `length` bytes. */
static bool keys_meet(const char *key, size_t length, const char *other) {
    const char *const end = key + length;
    for (;;) {
        const char *const dot = memchr(key, '.', (size_t)(end - key));
        const size_t n = (size_t)((dot ? dot : end) - key), m = strcspn(other, ".");
        const bool element = m == 1 && *other == '0' && n > 0 && strspn(key, "0123456789") == n;
        if (!element && (n != m || strncmp(key, other, n) != 0)) return false;
        if (!dot || !other[m]) return true;
        key = dot + 1;
        other += m + 1;
    }
}

/* What would make rows of other cases than they tell is refused. */
static void check_set(struct argp_state *state, const char *assignment) {
    size_t length = strcspn(assignment, "=");
    while (length && assignment[length - 1] == ' ') length--;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (keys_meet(assignment, length, own[i].key))
            argp_error(state, "--set %s: scaling chooses %s itself: %s. A problem of your own is a file: pinn-bench --set KEY=VALUE CONFIG", assignment,
                       own[i].key, own[i].instead);
}

static error_t parse_option(int key, char *value, struct argp_state *state) {
    arguments *a = state->input;
    switch (key) {
    case 'e': a->executors = bench_parse_executors(state, value); break;
    case 'a':
        if (!bench_list_within(value, AXES_ALL)) argp_error(state, "--axes %s: a list of points, width, depth, order, dimension is needed", value);
        a->axes = value;
        break;
    case 'h': print_help(state); break;
    case 'r': a->repeats = bench_parse_repeats(state, value); break;
    case KEY_SECONDS: a->seconds = bench_parse_seconds(state, "seconds", value, 60); break;
    case KEY_LONGEST: a->longest = bench_parse_seconds(state, "longest", value, 3600); break;
    case KEY_SET:
        if (a->sets == MOST_SETS) argp_error(state, "at most %d --set", MOST_SETS);
        check_set(state, value);
        a->set[a->sets++] = value;
        break;
    case ARGP_KEY_ARG: argp_error(state, "'%s': no arguments are expected", value); break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

int bench_scaling(int count, char **argument) {
    static const struct argp argp = {options, parse_option, "", "Time training steps over points, width, depth, order of derivatives and dimension.",
                                     NULL, NULL, NULL};
    arguments a = {.executors = pinn_device_count() > 0 ? "graph" : "cpu", .axes = AXES_ALL, .seconds = 0.2, .repeats = 3};
    char list[64];
    int failed = 0;
    argp_parse(&argp, count, argument, 0, NULL, &a);
    snprintf(list, sizeof list, "%s", a.executors);
    for (char *rest = list, *executor; (executor = strsep(&rest, ",")) != NULL;) {
        const int status = bench_executor(&a, executor);
        if (status > failed) failed = status;
    }
    return bench_finish(argument[0], failed);
}
