/* Reference of configs/allen_cahn.toml: u_t = 1e-4 u_xx + 5 (u - u^3) on [-1,1] x [0,1], u(x,0) = x^2 cos(pi x), u_x = 0 at the walls.
 *
 * The start is even and so is the solution, so [0,1] with u_x = 0 at both ends is solved in cosines cos(k pi x). The start has
 * u_x = -2 at the wall, where the condition wants 0: a kink of the even extension, whose coefficients fall only as k^-2 until diffusion
 * rounds it off. Hence many modes. Time: ETDRK4 (Cox & Matthews 2002) with the coefficients' contour integrals of Kassam & Trefethen
 * (2005), diffusion exact. The stated error is the change against half the modes and twice the step, over all output points.
 */
#include <complex.h>
#include <fftw3.h>
#include <stdlib.h>

#include "reference_file.h"

enum { NX = 201, NT = 51, HALF = 100 }; /* output points; HALF intervals on [0,1] */

static const double pi = 3.14159265358979323846;

typedef struct solver {
    int modes;      /* intervals on [0,1]; modes + 1 points and cosines */
    double *n;      /* values at the points, or coefficients: the transform works in place */
    fftw_plan plan; /* DCT-I in place on n, its own inverse up to 2*modes */
    double *e, *e2, *q, *f1, *f2, *f3;
} solver;

/* coefficients of 5 (u - u^3), given u's coefficients */
static void nonlinear(solver *s, const double *coefficient, double *out) {
    int n = s->modes;
    memcpy(s->n, coefficient, (size_t)(n + 1) * sizeof(double));
    for (int k = 1; k < n; k++) s->n[k] *= 0.5; /* DCT-I counts inner terms twice */
    fftw_execute(s->plan);
    for (int i = 0; i <= n; i++) s->n[i] = 5 * (s->n[i] - s->n[i] * s->n[i] * s->n[i]);
    fftw_execute(s->plan);
    for (int k = 0; k <= n; k++) out[k] = s->n[k] / (2 * n) * (k == 0 || k == n ? 1 : 2);
}

static void coefficients(solver *s, double h) {
    enum { CIRCLE = 64 };
    for (int k = 0; k <= s->modes; k++) {
        double l = -1e-4 * pi * pi * k * (double)k;
        double complex q = 0, f1 = 0, f2 = 0, f3 = 0;
        for (int j = 0; j < CIRCLE; j++) {
            double complex z = h * l + cexp(I * pi * (j + 0.5) / CIRCLE), ez = cexp(z), z3 = z * z * z;
            q += (cexp(z / 2) - 1) / z;
            f1 += (-4 - z + ez * (4 - 3 * z + z * z)) / z3;
            f2 += (2 + z + ez * (z - 2)) / z3;
            f3 += (-4 - 3 * z - z * z + ez * (4 - z)) / z3;
        }
        s->e[k] = exp(h * l);
        s->e2[k] = exp(h * l / 2);
        s->q[k] = h * creal(q) / CIRCLE;
        s->f1[k] = h * creal(f1) / CIRCLE;
        s->f2[k] = h * creal(f2) / CIRCLE;
        s->f3[k] = h * creal(f3) / CIRCLE;
    }
}

/* One ETDRK4 step on the coefficients v; a, b, c and the n's are scratch rows. */
static void step(solver *s, double *v, double *scratch) {
    int m = s->modes + 1;
    double *a = scratch, *b = a + m, *c = b + m, *nv = c + m, *na = nv + m, *nb = na + m, *nc = nb + m;
    nonlinear(s, v, nv);
    for (int k = 0; k < m; k++) a[k] = s->e2[k] * v[k] + s->q[k] * nv[k];
    nonlinear(s, a, na);
    for (int k = 0; k < m; k++) b[k] = s->e2[k] * v[k] + s->q[k] * na[k];
    nonlinear(s, b, nb);
    for (int k = 0; k < m; k++) c[k] = s->e2[k] * a[k] + s->q[k] * (2 * nb[k] - nv[k]);
    nonlinear(s, c, nc);
    for (int k = 0; k < m; k++) v[k] = s->e[k] * v[k] + nv[k] * s->f1[k] + 2 * (na[k] + nb[k]) * s->f2[k] + nc[k] * s->f3[k];
}

/* u[HALF+1][NT] on x = 0..1 with `modes` cosines and `steps` steps between two output times. */
static int solve(int modes, int steps, double *u) {
    size_t m = (size_t)modes + 1;
    double *memory = fftw_malloc(15 * m * sizeof(double)), *v = memory + 7 * m, *scratch = memory + 8 * m;
    if (!memory) return 0;
    solver s = {.modes = modes, .n = memory, .e = memory + m, .e2 = memory + 2 * m, .q = memory + 3 * m, .f1 = memory + 4 * m,
                .f2 = memory + 5 * m, .f3 = memory + 6 * m};
    s.plan = fftw_plan_r2r_1d((int)m, s.n, s.n, FFTW_REDFT00, FFTW_ESTIMATE);
    coefficients(&s, 1.0 / (NT - 1) / steps);
    for (int i = 0; i <= modes; i++) {
        double x = (double)i / modes;
        s.n[i] = x * x * cos(pi * x);
    }
    for (int i = 0; i <= HALF; i++) u[i * NT] = s.n[i * (modes / HALF)];
    fftw_execute(s.plan);
    for (int k = 0; k <= modes; k++) v[k] = s.n[k] / (2 * modes) * (k == 0 || k == modes ? 1 : 2);
    for (int j = 1; j < NT; j++) {
        for (int i = 0; i < steps; i++) step(&s, v, scratch);
        memcpy(s.n, v, m * sizeof(double));
        for (int k = 1; k < modes; k++) s.n[k] *= 0.5;
        fftw_execute(s.plan);
        for (int i = 0; i <= HALF; i++) u[i * NT + j] = s.n[i * (modes / HALF)];
    }
    fftw_destroy_plan(s.plan);
    fftw_free(memory);
    return 1;
}

int main(int count, char **argument) {
    if (count != 2) {
        fprintf(stderr, "usage: %s allen_cahn.h5\n", argument[0]);
        return 2;
    }
    static double x[NX], t[NT], fine[(HALF + 1) * NT], coarse[(HALF + 1) * NT], u[NX * NT];
    if (!solve(12800, 400, fine) || !solve(6400, 200, coarse)) return 1;
    for (int i = 0; i < NX; i++) {
        x[i] = -1 + 2.0 * i / (NX - 1);
        memcpy(&u[i * NT], &fine[abs(i - HALF) * NT], NT * sizeof(double));
    }
    for (int j = 0; j < NT; j++) t[j] = (double)j / (NT - 1);
    return write_reference(argument[1], x, NX, t, NT, u, relative_l2(coarse, fine, (HALF + 1) * NT),
                           "cosine spectral method, 12800 modes, ETDRK4 with 20000 steps");
}
