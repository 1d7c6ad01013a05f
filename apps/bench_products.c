/* pinn-bench products: the three matrix products of a layer on a GPU, kernel beside kernel, with their errors. See docs/bench.md.
 *
 * As a training step does them: a list of products replayed as a graph, each product on other buffers than the one before, so that
 * operands come from memory rather than from a cache that still holds them.
 */
#include "bench_products.h"

#include <argp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_arguments.h"
#include "core/clock.h"
#include "core/memory.h"
#include "network/product.h"
#include "pinn_graph.h"
#include "start.h"

enum { COPIES = 4, NODES = 12, CHECKED_ROWS = 256, CHUNK_ROWS = 512 };
static const size_t widths[] = {64, 128, 256, 512};
static const char *const forms[] = {"Z = A W", "dA = dZ W^T", "dW = A^T dZ"};

typedef struct bench {
    size_t rows;
    int repeats;
    pinn_context *context;
    pinn_plane *tall[2 * COPIES], *small; /* [rows, width] and [chunks, width, width] float32 */
} bench;

typedef struct one_product {
    pn_product product;
    bool tf32;
    bool blas; /* else as chosen */
} one_product;

static pinn_status multiply(const pinn_run *run) {
    const one_product *p = run->arguments;
    setenv("PINN_PRODUCTS", p->blas ? "blas" : "", 1);
    return pn_product_launch(&p->product, PN_FLOAT32, p->tf32, pinn_context_blas(run->context), run->stream, run->read[0], run->read[1],
                             run->write[0]);
}

static const pinn_operation operation = {"product", NULL, multiply};

/* ---- planes -------------------------------------------------------------------------------------------------------------------- */

static pinn_status fill(pinn_plane *plane, uint64_t state) {
    const size_t count = pinn_plane_bytes(plane) / sizeof(float);
    float *value = pn_allocate(count, sizeof *value);
    if (!value) return PN_NO_MEMORY("operands");
    for (size_t i = 0; i < count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        value[i] = (float)(state >> 40) / 8388608.0f - 1.0f;
    }
    pinn_status status = pinn_plane_write(plane, 0, value, count * sizeof *value);
    pn_free(value);
    return status;
}

static pinn_status make_planes(bench *b, size_t width) {
    pinn_status status;
    const size_t chunks = b->rows / CHUNK_ROWS;
    for (int i = 0; i < 2 * COPIES; i++) {
        PN_TRY(pinn_plane_create(b->context, "rows", PINN_DEVICE, b->rows * width * sizeof(float), &b->tall[i]));
        PN_TRY(fill(b->tall[i], (uint64_t)i + 1));
    }
    PN_TRY(pinn_plane_create(b->context, "weights", PINN_DEVICE, chunks * width * width * sizeof(float), &b->small));
    PN_TRY(fill(b->small, 99));
fail:
    return status;
}

static void free_planes(bench *b) {
    for (int i = 0; i < 2 * COPIES; i++) {
        pinn_plane_destroy(b->tall[i]);
        b->tall[i] = NULL;
    }
    pinn_plane_destroy(b->small);
    b->small = NULL;
}

/* Operands of the i-th product of a list: tall matrices in turn. */
static void operands(const bench *b, const pn_product *p, int i, pinn_plane **first, pinn_plane **second, pinn_plane **result) {
    pinn_plane *x = b->tall[i % COPIES * 2], *y = b->tall[i % COPIES * 2 + 1];
    *first = x;
    *second = p->transpose_a ? y : b->small;
    *result = p->transpose_a ? b->small : y;
}

/* ---- one product ------------------------------------------------------------------------------------------------------------------ */

static double *read_doubles(const pinn_plane *plane, size_t count) {
    float *raw = pn_allocate(count, sizeof *raw);
    double *value = pn_allocate(count, sizeof *value);
    if (!raw || !value || pinn_plane_read(plane, 0, raw, count * sizeof *raw) != PINN_OK) {
        pn_free(value);
        value = NULL;
    }
    for (size_t i = 0; value && i < count; i++) value[i] = raw[i];
    pn_free(raw);
    return value;
}

/* ||C - AB|| / ||AB|| of the first rows, or of the first of the batch, AB in float64 on the CPU; NaN if it can't be had. */
static double error_of(const bench *b, const pn_product *product) {
    pinn_plane *first, *second, *result;
    pn_product p = *product;
    operands(b, &p, NODES - 1, &first, &second, &result);
    p.batch = 1;
    if (!p.transpose_a && p.m > CHECKED_ROWS) p.m = CHECKED_ROWS;
    double *a = read_doubles(first, p.m * p.k), *w = read_doubles(second, p.k * p.n), *got = read_doubles(result, p.m * p.n);
    double *expected = pn_allocate(p.m * p.n, sizeof *expected), difference = 0, square = 0;
    if (a && w && got && expected) {
        pn_product_run(&p, PN_FLOAT64, a, w, false, expected);
        for (size_t i = 0; i < p.m * p.n; i++) {
            difference += (got[i] - expected[i]) * (got[i] - expected[i]);
            square += expected[i] * expected[i];
        }
    }
    pn_free(a);
    pn_free(w);
    pn_free(got);
    pn_free(expected);
    return sqrt(difference / square);
}

static pinn_status time_product(const bench *b, const one_product *p, double *best, double *error) {
    pinn_graph *graph = NULL;
    pinn_status status;
    *best = INFINITY;
    PN_TRY(pinn_graph_create(b->context, "products", &graph));
    PN_TRY(pinn_graph_begin(graph));
    for (int i = 0; i < NODES; i++) {
        pinn_plane *first, *second, *result;
        operands(b, &p->product, i, &first, &second, &result);
        PN_TRY(pinn_graph_operation(graph, &operation, p, sizeof *p, PINN_PLANES(first, second), PINN_PLANES(result)));
    }
    PN_TRY(pinn_graph_launch(graph, 1));
    *error = error_of(b, &p->product);
    for (int r = 0; r < b->repeats; r++) {
        enum { TIMES = 10 };
        const double start = pn_clock();
        PN_TRY(pinn_graph_launch(graph, TIMES));
        *best = fmin(*best, 1e6 * (pn_clock() - start) / (TIMES * NODES));
    }
fail:
    pinn_graph_destroy(graph);
    return status;
}

/* False on failure, which is told. */
static bool print_product(const bench *b, const char *form, const one_product *p) {
    char name[64];
    double best, error;
    const pn_product *s = &p->product;
    const char *accuracy = p->tf32 ? "tf32" : "float32";
    snprintf(name, sizeof name, "%s", p->blas ? "  cuBLAS" : "> chosen");
    const pinn_status status = time_product(b, p, &best, &error);
    if (status != PINN_OK) {
        fprintf(stderr, "%s, %s: %s\n", form, name, pinn_error_message());
        return false;
    }
    const double operations = 2.0 * (double)s->m * (double)s->n * (double)s->k * (double)s->batch;
    printf("%-12s %6zu x %4zu x %4zu x %3zu %-8s %-36s %10.2f %10.1f %10.1e\n", form, s->m, s->n, s->k, s->batch, accuracy, name, best,
           operations / best / 1e6, error);
    fflush(stdout);
    return true;
}

/* ---- the table ------------------------------------------------------------------------------------------------------------------- */

static pn_product layer_product(const bench *b, int form, size_t in, size_t out) {
    if (form == 0) return (pn_product){.m = b->rows, .n = out, .k = in, .batch = 1};
    if (form == 1) return (pn_product){.transpose_b = true, .m = b->rows, .n = in, .k = out, .batch = 1};
    return (pn_product){.transpose_a = true, .m = in, .n = out, .k = CHUNK_ROWS, .batch = b->rows / CHUNK_ROWS,
                        .stride_a = CHUNK_ROWS * in, .stride_b = CHUNK_ROWS * out, .stride_c = in * out};
}

static bool bench_layer(const bench *b, size_t in, size_t out) {
    bool good = true;
    for (int form = 0; form < 3; form++)
        for (int tf32 = 0; tf32 < 2; tf32++) {
            one_product p = {layer_product(b, form, in, out), tf32, true};
            good = print_product(b, forms[form], &p) && good;
            p.blas = false;
            good = good && (tf32 || print_product(b, forms[form], &p)); /* cuBLAS has all of tf32's */
        }
    return good;
}

static const struct argp_option options[] = {{"rows", 'n', "N", 0, "Rows of the stacked matrix (default 33280; a multiple of 512)", 0},
                                             {"repeat", 'r', "N", 0, "Repetitions (default 7)", 0},
                                             HELP_OPTION,
                                             {0}};

static error_t parse_option(int key, char *value, struct argp_state *state) {
    bench *b = state->input;
    switch (key) {
    case 'n':
        b->rows = bench_parse_count(state, "rows", value, 10000000);
        if (b->rows % CHUNK_ROWS) argp_error(state, "--rows %s: a multiple of %d is needed", value, CHUNK_ROWS);
        break;
    case 'h': print_help(state); break;
    case 'r': b->repeats = bench_parse_repeats(state, value); break;
    case ARGP_KEY_ARG: argp_error(state, "'%s': no arguments are expected", value); break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

int bench_products(int count, char **argument) {
    static const struct argp argp = {options, parse_option, "", "Time the matrix products of a network's layers on a GPU.", NULL, NULL, NULL};
    bench b = {.rows = 65 * CHUNK_ROWS, .repeats = 7};
    bool good = true;
    argp_parse(&argp, count, argument, 0, NULL, &b);
    if (pinn_device_count() == 0) {
        fprintf(stderr, "%s: there is no usable GPU here, and it is a GPU's products that are timed\n", argument[0]);
        return 2;
    }
    const pinn_context_options where = {.executor = PINN_EXECUTOR_GRAPH};
    if (pinn_context_create(&where, &b.context) != PINN_OK) {
        fprintf(stderr, "pinn-bench products: %s\n", pinn_error_message());
        return 1;
    }
    printf("# %s\n%-12s %6s   %4s   %4s   %3s %-8s %-36s %10s %10s %10s\n", pinn_context_device_name(b.context), "# product", "m", "n", "k",
           "of", "", "  kernel (> chosen)", "us", "TFLOP/s", "error");
    for (size_t i = 0; good && i < sizeof widths / sizeof widths[0]; i++) {
        good = make_planes(&b, widths[i]) == PINN_OK;
        if (!good) fprintf(stderr, "pinn-bench products: %s\n", pinn_error_message());
        good = good && bench_layer(&b, widths[i], widths[i]);
        if (good && widths[i] == 256) good = bench_layer(&b, widths[i], 1); /* the output layer */
        free_planes(&b);
    }
    pinn_context_destroy(b.context);
    return bench_finish(argument[0], good ? 0 : 1);
}
