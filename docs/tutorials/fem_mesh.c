/* Assembly on the host; see fem_mesh.h. */
#include "fem_mesh.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

static double solution(const double *x) { return sin(pi * x[0]) * sin(2 * pi * x[1]); }
static double source(const double *x) { return 5 * pi * pi * solution(x); }

typedef struct triangle {
    int64_t unknown[3];  /* -1 on the edge, where u = 0 */
    double middle[3][2]; /* of the edge opposite to each vertex */
    double gradient[3][2];
    double area;
} triangle;

static void vertex(uint32_t n, uint32_t i, uint32_t j, double x[2], int64_t *unknown) {
    const double s = (double)i / n, t = (double)j / n, bend = 0.08 * sin(2 * pi * s) * sin(2 * pi * t);
    x[0] = s + bend;
    x[1] = t - bend;
    *unknown = i > 0 && i < n && j > 0 && j < n ? (int64_t)(i - 1) * (n - 1) + (j - 1) : -1;
}

/* The lower (`half` 0) or upper (1) triangle of cell (i, j), counterclockwise. */
static triangle take(uint32_t n, uint32_t i, uint32_t j, int half) {
    static const uint32_t corner[2][3][2] = {{{0, 0}, {1, 0}, {1, 1}}, {{0, 0}, {1, 1}, {0, 1}}};
    triangle k;
    double x[3][2];
    for (int a = 0; a < 3; a++) vertex(n, i + corner[half][a][0], j + corner[half][a][1], x[a], &k.unknown[a]);
    k.area = 0.5 * ((x[1][0] - x[0][0]) * (x[2][1] - x[0][1]) - (x[2][0] - x[0][0]) * (x[1][1] - x[0][1]));
    for (int a = 0; a < 3; a++) {
        const double *b = x[(a + 1) % 3], *c = x[(a + 2) % 3];
        k.middle[a][0] = 0.5 * (b[0] + c[0]);
        k.middle[a][1] = 0.5 * (b[1] + c[1]);
        k.gradient[a][0] = (b[1] - c[1]) / (2 * k.area);
        k.gradient[a][1] = (c[0] - b[0]) / (2 * k.area);
    }
    return k;
}

/* Adds to row `row` of a matrix with FEM_ROW slots a row; slots are taken in the order of the elements. */
static void add(uint32_t *used, uint32_t *column, double *value, int64_t row, int64_t to, double amount) {
    uint32_t k = 0;
    while (k < used[row] && column[row * FEM_ROW + k] != to) k++;
    if (k == used[row]) {
        column[row * FEM_ROW + k] = (uint32_t)to;
        value[row * FEM_ROW + k] = 0;
        used[row]++;
    }
    value[row * FEM_ROW + k] += amount;
}

static void assemble(fem_system *s, uint32_t *used) {
    for (uint32_t cell = 0; cell < 2 * s->n * s->n; cell++) {
        const triangle k = take(s->n, cell / 2 / s->n, cell / 2 % s->n, cell % 2);
        for (int a = 0; a < 3; a++) {
            if (k.unknown[a] < 0) continue;
            for (int b = 0; b < 3; b++) {
                const double product = k.gradient[a][0] * k.gradient[b][0] + k.gradient[a][1] * k.gradient[b][1];
                if (k.unknown[b] >= 0) add(used, s->column, s->value, k.unknown[a], k.unknown[b], k.area * product);
                /* Hat function a is 1/2 in the middles of its own two edges, 0 in that of the opposite one. */
                if (b != a) s->load[k.unknown[a]] += k.area / 3 * 0.5 * source(k.middle[b]);
            }
        }
    }
}

_Bool fem_system_create(uint32_t n, fem_system *out) {
    fem_system s = {.n = n, .unknowns = (n - 1) * (n - 1)};
    uint32_t *used = calloc(s.unknowns, sizeof *used);
    s.offset = calloc(s.unknowns + 1, sizeof *s.offset);
    s.column = calloc((size_t)s.unknowns * FEM_ROW, sizeof *s.column);
    s.value = calloc((size_t)s.unknowns * FEM_ROW, sizeof *s.value);
    s.load = calloc(s.unknowns, sizeof *s.load);
    if (!used || !s.offset || !s.column || !s.value || !s.load) {
        free(used);
        fem_system_destroy(&s);
        return 0;
    }
    assemble(&s, used);
    for (uint32_t row = 0; row < s.unknowns; row++) { /* close the gaps */
        const uint32_t to = s.offset[row];
        memmove(s.column + to, s.column + (size_t)row * FEM_ROW, used[row] * sizeof *s.column);
        memmove(s.value + to, s.value + (size_t)row * FEM_ROW, used[row] * sizeof *s.value);
        s.offset[row + 1] = to + used[row];
    }
    free(used);
    *out = s;
    return 1;
}

void fem_system_destroy(fem_system *s) {
    free(s->offset);
    free(s->column);
    free(s->value);
    free(s->load);
    *s = (fem_system){0};
}

double fem_system_error(const fem_system *s, const double *u) {
    double sum = 0;
    for (uint32_t cell = 0; cell < 2 * s->n * s->n; cell++) {
        const triangle k = take(s->n, cell / 2 / s->n, cell / 2 % s->n, cell % 2);
        double at[3];
        for (int a = 0; a < 3; a++) at[a] = k.unknown[a] < 0 ? 0 : u[k.unknown[a]];
        for (int a = 0; a < 3; a++) {
            const double difference = 0.5 * (at[(a + 1) % 3] + at[(a + 2) % 3]) - solution(k.middle[a]);
            sum += k.area / 3 * difference * difference;
        }
    }
    return sqrt(sum);
}
