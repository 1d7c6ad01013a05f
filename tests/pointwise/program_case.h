/* A program that uses every kind of operand once, its data, and its values computed plainly: what the interpreter, the generated CUDA
 * text and the device are all held against.
 *
 *     v0 = m*s + c        m [points, width], s [1], c [width]
 *     v1 = tanh(v0)*p + g p [points], g rows with a gap
 *     v2 = t - v1*q       t columns of points (transposed), q every fourth of a vector of points
 *     v3 = d*v2 + m       d every second of a vector of columns
 * Outputs: v1, v2 with a gap, v3 transposed, sum v1, float64 sum of v2^2, v1 again, g itself, the number 2.5, the sum of 1.
 */
#ifndef PROGRAM_CASE_H
#define PROGRAM_CASE_H

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "pointwise/program.h"
#include "suite.h"

#define CASE_POINTS 1003 /* column length of transposed operands: at least the points */
#define CASE_INPUTS 8
#define CASE_OUTPUTS 9
#define CASE_SENTINEL -77.0 /* outputs start with it; sums are added to it */

typedef struct program_case {
    pn_real real;
    size_t width, points;
    pn_stride in_stride[CASE_INPUTS], out_stride[CASE_OUTPUTS];
    pn_output_kind kind[CASE_OUTPUTS];
    size_t in_count[CASE_INPUTS], out_count[CASE_OUTPUTS]; /* elements */
    void *in[CASE_INPUTS], *out[CASE_OUTPUTS];             /* exactly so many: reads past the end are the sanitizer's to find */
    pn_program *program;
} program_case;

static inline uint32_t case_random(uint32_t *state) { return *state = *state * 1664525u + 1013904223u; }
static inline double case_uniform(uint32_t *state) { return (double)(case_random(state) >> 8) / (1 << 23) - 1; } /* [-1, 1) */

static inline size_t case_count(pn_stride stride, size_t points, size_t width) {
    return points == 0 ? 0 : (points - 1) * stride.row + (width - 1) * stride.column + 1;
}

static inline bool case_sums_f64(const program_case *c, size_t o) { return c->kind[o] == PN_SUM_POINTS_F64 || c->real == PN_FLOAT64; }

static inline void case_program(program_case *c) {
    pn_ir *ir;
    ck_assert_int_eq(pn_ir_create(&ir), PINN_OK);
    const uint32_t slot[CASE_INPUTS] = {3, 1, 4, 15, 9, 2, 6, 5}; /* m s c p g t q d */
    pn_value x[CASE_INPUTS];
    for (int i = 0; i < CASE_INPUTS; i++) x[i] = pn_ir_input(ir, slot[i]);
    const pn_value v0 = pn_ir_add(ir, pn_ir_mul(ir, x[0], x[1]), x[2]);
    const pn_value v1 = pn_ir_add(ir, pn_ir_mul(ir, pn_ir_unary(ir, PN_OP_TANH, v0), x[3]), x[4]);
    const pn_value v2 = pn_ir_sub(ir, x[5], pn_ir_mul(ir, v1, x[6]));
    const pn_value v3 = pn_ir_add(ir, pn_ir_mul(ir, x[7], v2), x[0]);
    const pn_value output[CASE_OUTPUTS] = {v1, v2, v3, v1, pn_ir_mul(ir, v2, v2), v1, x[4], pn_ir_const(ir, 2.5), pn_ir_const(ir, 1)};
    const pn_program_spec spec = {.ir = ir, .real = c->real, .width = c->width,
                                  .input = slot, .input_stride = c->in_stride, .inputs = CASE_INPUTS,
                                  .output = output, .kind = c->kind, .output_stride = c->out_stride, .outputs = CASE_OUTPUTS};
    ck_assert_int_eq(pn_program_create(&spec, &c->program), PINN_OK);
    pn_ir_destroy(ir);
}

static inline void case_create(program_case *c, pn_real real, size_t width, size_t points) {
    const size_t w = width;
    const pn_stride in[CASE_INPUTS] = {{w, 1}, {0, 0}, {0, 1}, {1, 0}, {w + 5, 1}, {1, CASE_POINTS}, {4, 0}, {0, 2}};
    const pn_stride out[CASE_OUTPUTS] = {{w, 1}, {w + 3, 1}, {1, CASE_POINTS}, {0, 1}, {0, 2}, {w, 1}, {w, 1}, {2 * w, 2}, {0, 1}};
    const pn_output_kind kind[CASE_OUTPUTS] = {PN_STORE, PN_STORE, PN_STORE, PN_SUM_POINTS, PN_SUM_POINTS_F64,
                                               PN_STORE, PN_STORE, PN_STORE, PN_SUM_POINTS};
    uint32_t state = (uint32_t)(1 + width * 31 + points);
    *c = (program_case){.real = real, .width = width, .points = points};
    memcpy(c->in_stride, in, sizeof in);
    memcpy(c->out_stride, out, sizeof out);
    memcpy(c->kind, kind, sizeof kind);
    for (int i = 0; i < CASE_INPUTS; i++) {
        c->in_count[i] = case_count(in[i], points, width);
        c->in[i] = malloc(c->in_count[i] * pn_real_bytes(real) + !c->in_count[i]);
        for (size_t k = 0; k < c->in_count[i]; k++) pn_real_set(real, c->in[i], k, case_uniform(&state));
    }
    for (int o = 0; o < CASE_OUTPUTS; o++) {
        const pn_real kept = case_sums_f64(c, (size_t)o) && kind[o] != PN_STORE ? PN_FLOAT64 : real;
        c->out_count[o] = case_count(out[o], points, width);
        c->out[o] = malloc(c->out_count[o] * pn_real_bytes(kept) + !c->out_count[o]);
        for (size_t k = 0; k < c->out_count[o]; k++) pn_real_set(kept, c->out[o], k, CASE_SENTINEL);
    }
    case_program(c);
}

static inline void case_destroy(program_case *c) {
    for (int i = 0; i < CASE_INPUTS; i++) free(c->in[i]);
    for (int o = 0; o < CASE_OUTPUTS; o++) free(c->out[o]);
    pn_program_destroy(c->program);
}

static inline double case_input(const program_case *c, int i, size_t p, size_t j) {
    return pn_real_get(c->real, c->in[i], p * c->in_stride[i].row + j * c->in_stride[i].column);
}

/* What output o adds or stores for lane (p, j). */
static inline void case_reference(const program_case *c, size_t p, size_t j, double value[CASE_OUTPUTS]) {
    double x[CASE_INPUTS];
    for (int i = 0; i < CASE_INPUTS; i++) x[i] = case_input(c, i, p, j);
    const double v0 = x[0] * x[1] + x[2], v1 = tanh(v0) * x[3] + x[4], v2 = x[5] - v1 * x[6], v3 = x[7] * v2 + x[0];
    const double all[CASE_OUTPUTS] = {v1, v2, v3, v1, v2 * v2, v1, x[4], 2.5, 1};
    memcpy(value, all, sizeof all);
}

/* Compares everything in c->out with plain arithmetic, and that what lies between the outputs' elements is untouched. */
static inline void case_verify(const program_case *c) {
    /* |values| < 8 through about ten roundings */
    const double unit = c->real == PN_FLOAT32 ? ldexp(1, -24) : ldexp(1, -53), tolerance = 80 * unit;
    double *sum = calloc(CASE_OUTPUTS * c->width, sizeof *sum), value[CASE_OUTPUTS];
    size_t written[CASE_OUTPUTS] = {0};
    for (size_t p = 0; p < c->points; p++)
        for (size_t j = 0; j < c->width; j++) {
            case_reference(c, p, j, value);
            for (size_t o = 0; o < CASE_OUTPUTS; o++) {
                sum[o * c->width + j] += value[o];
                if (c->kind[o] != PN_STORE) continue;
                const double got = pn_real_get(c->real, c->out[o], p * c->out_stride[o].row + j * c->out_stride[o].column);
                if (!(fabs(got - value[o]) <= tolerance))
                    ck_abort_msg("%zu points, width %zu: output %zu at (%zu, %zu) is %.17g, not %.17g", c->points, c->width, o, p, j, got,
                                 value[o]);
                written[o]++;
            }
        }
    for (size_t o = 0; o < CASE_OUTPUTS && c->points > 0; o++) {
        size_t changed = 0;
        if (c->kind[o] == PN_STORE) {
            for (size_t k = 0; k < c->out_count[o]; k++) changed += pn_real_get(c->real, c->out[o], k) != CASE_SENTINEL;
            ck_assert_uint_eq(changed, written[o]);
            continue;
        }
        for (size_t j = 0; j < c->width; j++) {
            const pn_real kept = case_sums_f64(c, o) ? PN_FLOAT64 : PN_FLOAT32;
            const double got = pn_real_get(kept, c->out[o], j * c->out_stride[o].column), want = CASE_SENTINEL + sum[o * c->width + j];
            /* every value is off by `tolerance`; adding n of them in any order rounds by n * unit * (77 + sum of |values|) at most */
            const double sum_unit = kept == PN_FLOAT32 ? unit : ldexp(1, -53);
            const double n = (double)c->points, most = tolerance * n + sum_unit * n * (77 + 8 * n);
            if (!(fabs(got - want) <= most))
                ck_abort_msg("%zu points, width %zu: sum %zu of column %zu is %.17g, not %.17g", c->points, c->width, o, j, got, want);
        }
    }
    free(sum);
}

/* Adds a kernel's rows of partial sums to the sum outputs, as a reduction would. */
static inline void case_fold(program_case *c, size_t rows, const void *partial_real, const double *partial_f64) {
    size_t at_real = 0, at_f64 = 0, real_row = 0, f64_row = 0;
    for (size_t o = 0; o < CASE_OUTPUTS; o++) {
        real_row += c->kind[o] == PN_SUM_POINTS ? c->width : 0;
        f64_row += c->kind[o] == PN_SUM_POINTS_F64 ? c->width : 0;
    }
    for (size_t o = 0; o < CASE_OUTPUTS; o++)
        for (size_t j = 0; j < c->width && c->kind[o] != PN_STORE && c->points > 0; j++) {
            const bool f64 = c->kind[o] == PN_SUM_POINTS_F64;
            const pn_real kept = case_sums_f64(c, o) ? PN_FLOAT64 : PN_FLOAT32;
            double sum = pn_real_get(kept, c->out[o], j * c->out_stride[o].column);
            for (size_t r = 0; r < rows; r++)
                sum += f64 ? partial_f64[r * f64_row + at_f64 + j] : pn_real_get(c->real, partial_real, r * real_row + at_real + j);
            pn_real_set(kept, c->out[o], j * c->out_stride[o].column, sum);
            if (j == c->width - 1) *(f64 ? &at_f64 : &at_real) += c->width;
        }
}

#endif
