/* The vector interpreter against plain float64 arithmetic, for every instruction set this machine has. */
#include <float.h>

#include "pointwise/program_code.h"
#include "program_case.h"

static const char *const isas[] = {"sse2", "avx2", "avx512"};

/* Programs created from now on use this instruction set; false if the machine lacks it. */
static bool use_isa(int index) {
    setenv("PINN_ISA", isas[index], 1);
    return strcmp(pn_program_isa(), isas[index]) == 0;
}

static void run(const pn_program *program, size_t points, const void *const *in, void *const *out) {
    void *scratch = pn_allocate(pn_program_scratch(program), 1);
    ck_assert_ptr_nonnull(scratch);
    pn_program_run(program, points, in, out, scratch);
    pn_free(scratch);
}

/* ---- every operation --------------------------------------------------------------------------------------------------------- */

/* Largest error in units in the last place: 0.5 for what is rounded correctly (compared after rounding: 0), 1 and its own rounding for
 * SLEEF's functions, 3 for tanh; softplus adds exp, log1p and a sum. float64 adds the error of the C library's own reference. */
typedef struct op_case {
    double ulps, low, high; /* random operands from [low, high] */
} op_case;
static const op_case op_cases[PN_OP_COUNT] = {
    [PN_OP_NEG] = {0, -9, 9},       [PN_OP_ABS] = {0, -9, 9},        [PN_OP_SIGN] = {0, -1, 1},     [PN_OP_FLOOR] = {0, -9, 9},
    [PN_OP_SQRT] = {0, 0, 9},       [PN_OP_EXP] = {1.5, -20, 20},    [PN_OP_EXPM1] = {1.5, -5, 5},  [PN_OP_LOG] = {1.5, 1e-9, 9},
    [PN_OP_LOG1P] = {1.5, -0.9, 9}, [PN_OP_SIN] = {1.5, -99, 99},    [PN_OP_COS] = {1.5, -99, 99},  [PN_OP_TAN] = {1.5, -99, 99},
    [PN_OP_ASIN] = {1.5, -1, 1},    [PN_OP_ACOS] = {1.5, -1, 1},     [PN_OP_ATAN] = {1.5, -9, 9},   [PN_OP_SINH] = {1.5, -9, 9},
    [PN_OP_COSH] = {1.5, -9, 9},    [PN_OP_TANH] = {3, -6, 6},       [PN_OP_ERF] = {1.5, -5, 5},    [PN_OP_SOFTPLUS] = {4, -9, 9},
    [PN_OP_ADD] = {0, -9, 9},       [PN_OP_SUB] = {0, -9, 9},        [PN_OP_MUL] = {0, -9, 9},      [PN_OP_DIV] = {0, -9, 9},
    [PN_OP_POW] = {1.5, 0.01, 9},   [PN_OP_ATAN2] = {1.5, -9, 9},    [PN_OP_MIN] = {0, -9, 9},      [PN_OP_MAX] = {0, -9, 9},
    [PN_OP_LT] = {0, -9, 9},        [PN_OP_LE] = {0, -9, 9},         [PN_OP_EQ] = {0, -9, 9},       [PN_OP_SELECT] = {0, -1, 1},
};
static const double edges[] = {0, -0.0, 1, -1, 0.5, -0.5, 0.625, -0.625, 0.6250001, 1e-3, -1e-3, 1e-20, -1e-20, 5, -5, 3, -3, 10, 21, -21};
enum { EDGES = sizeof edges / sizeof edges[0], SAMPLES = 4000 + EDGES };

static double ulps_between(pn_real real, double got, double want) {
    if (isnan(got) && isnan(want)) return 0;
    if (got == want) return 0;
    if (!isfinite(got) || !isfinite(want)) return HUGE_VAL;
    const double small = real == PN_FLOAT32 ? FLT_MIN : DBL_MIN, size = fmax(fabs(want), small);
    int exponent;
    frexp(size, &exponent);
    return fabs(got - want) / ldexp(1, exponent - (real == PN_FLOAT32 ? 24 : 53));
}

static void check_operation(pn_op op, pn_real real) {
    pn_ir *ir;
    ck_assert_int_eq(pn_ir_create(&ir), PINN_OK);
    const int arity = pn_op_arity(op);
    const uint32_t slot[3] = {0, 1, 2};
    const pn_stride stride[3] = {{1, 0}, {1, 0}, {1, 0}};
    pn_value x[3];
    for (int k = 0; k < 3; k++) x[k] = pn_ir_input(ir, slot[k]);
    const pn_value value = arity == 1   ? pn_ir_unary(ir, op, x[0])
                           : arity == 2 ? pn_ir_binary(ir, op, x[0], x[1])
                                        : pn_ir_select(ir, x[0], x[1], x[2]);
    const pn_output_kind kind = PN_STORE;
    const pn_program_spec spec = {.ir = ir, .real = real, .width = 1, .input = slot, .input_stride = stride, .inputs = 3,
                                  .output = &value, .kind = &kind, .output_stride = stride, .outputs = 1};
    pn_program *program;
    ck_assert_int_eq(pn_program_create(&spec, &program), PINN_OK);
    void *in[3], *out = calloc(SAMPLES, sizeof(double));
    uint32_t state = 7;
    for (int k = 0; k < 3; k++) {
        in[k] = malloc(SAMPLES * sizeof(double));
        for (size_t i = 0; i < SAMPLES; i++) {
            const op_case *range = &op_cases[op];
            double at = range->low + (range->high - range->low) * (case_uniform(&state) + 1) / 2;
            const double edge = edges[(i * (size_t)(k + 1)) % EDGES];
            if (i < EDGES && edge >= range->low && edge <= range->high) at = edge;
            if (op == PN_OP_EQ && i % 2) at = 1;
            if (op == PN_OP_SELECT && k == 0 && i % 2) at = 0;
            pn_real_set(real, in[k], i, at);
        }
    }
    run(program, SAMPLES, (const void *const *)in, &out);
    for (size_t i = 0; i < SAMPLES; i++) {
        double at[3];
        for (int k = 0; k < 3; k++) at[k] = pn_real_get(real, in[k], i);
        double want = pn_ir_evaluate(ir, value, at);
        if (op_cases[op].ulps == 0 && real == PN_FLOAT32) want = (double)(float)want;
        const double got = pn_real_get(real, out, i), error = ulps_between(real, got, want);
        if (!(error <= op_cases[op].ulps + (real == PN_FLOAT64 && op_cases[op].ulps > 0 ? 1 : 0)))
            ck_abort_msg("%s, %s: %s(%.17g, %.17g, %.17g) = %.17g, not %.17g: %.2f ulp", pn_program_isa(),
                         real == PN_FLOAT32 ? "float32" : "float64", pn_op_text(op), at[0], at[1], at[2], got, want, error);
    }
    for (int k = 0; k < 3; k++) free(in[k]);
    free(out);
    pn_program_destroy(program);
    pn_ir_destroy(ir);
}

START_TEST(every_operation) {
    if (!use_isa(_i)) return;
    for (int op = PN_OP_INPUT + 1; op < PN_OP_COUNT; op++) {
        ck_assert_msg(op_cases[op].high > op_cases[op].low, "no test case for %s", pn_op_text((pn_op)op));
        check_operation((pn_op)op, PN_FLOAT32);
        check_operation((pn_op)op, PN_FLOAT64);
    }
}
END_TEST

START_TEST(special_values) {
    if (!use_isa(_i)) return;
    static const struct {
        pn_op op;
        double at, want;
    } cases[] = {{PN_OP_TANH, INFINITY, 1},  {PN_OP_TANH, -INFINITY, -1}, {PN_OP_TANH, NAN, NAN},   {PN_OP_TANH, 400, 1},
                 {PN_OP_TANH, -0.0, -0.0},   {PN_OP_TANH, 1e-30, 1e-30},  {PN_OP_EXP, -INFINITY, 0}, {PN_OP_EXP, INFINITY, INFINITY},
                 {PN_OP_LOG, 0, -INFINITY},  {PN_OP_LOG, -1, NAN},        {PN_OP_SQRT, -1, NAN},     {PN_OP_ERF, INFINITY, 1},
                 {PN_OP_SOFTPLUS, 90, 90},   {PN_OP_SOFTPLUS, -INFINITY, 0}, {PN_OP_SOFTPLUS, INFINITY, INFINITY},
                 {PN_OP_SIGN, NAN, NAN},     {PN_OP_ABS, -INFINITY, INFINITY}, {PN_OP_FLOOR, -0.25, -1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int real = 0; real < 2; real++) {
            pn_ir *ir;
            ck_assert_int_eq(pn_ir_create(&ir), PINN_OK);
            const uint32_t slot = 0;
            const pn_stride stride = {1, 0};
            const pn_value value = pn_ir_unary(ir, cases[i].op, pn_ir_input(ir, 0));
            const pn_output_kind kind = PN_STORE;
            const pn_program_spec spec = {.ir = ir, .real = (pn_real)real, .width = 1, .input = &slot, .input_stride = &stride, .inputs = 1,
                                          .output = &value, .kind = &kind, .output_stride = &stride, .outputs = 1};
            pn_program *program;
            ck_assert_int_eq(pn_program_create(&spec, &program), PINN_OK);
            double in, out;
            pn_real_set((pn_real)real, &in, 0, cases[i].at);
            run(program, 1, (const void *[]){&in}, (void *[]){&out});
            const double got = pn_real_get((pn_real)real, &out, 0), want = real ? cases[i].want : (double)(float)cases[i].want;
            ck_assert_msg((isnan(got) && isnan(want)) || (got == want && !signbit(got) == !signbit(want)), "%s(%g) = %g, not %g",
                          pn_op_text(cases[i].op), cases[i].at, got, want);
            pn_program_destroy(program);
            pn_ir_destroy(ir);
        }
}
END_TEST

/* ---- operands ------------------------------------------------------------------------------------------------------------------ */

static const size_t case_widths[] = {1, 3, 20, 64, 256, 700, 5000}, case_points[] = {0, 1, 7, 63, 64, 65, 1000};

START_TEST(every_operand) {
    if (!use_isa(_i)) return;
    for (size_t w = 0; w < sizeof case_widths / sizeof case_widths[0]; w++)
        for (size_t n = 0; n < sizeof case_points / sizeof case_points[0]; n++)
            for (int real = 0; real < 2; real++) {
                if (case_widths[w] * case_points[n] > 70000) continue; /* keeps the test quick */
                program_case c;
                case_create(&c, (pn_real)real, case_widths[w], case_points[n]);
                run(c.program, c.points, (const void *const *)c.in, c.out);
                case_verify(&c);
                case_destroy(&c);
            }
}
END_TEST

/* A point's values have the same bits alone, among others, and wherever it lies among them. */
START_TEST(position_does_not_matter) {
    if (!use_isa(_i)) return;
    static const size_t widths[] = {1, 3, 20, 64, 700};
    for (size_t w = 0; w < 5; w++)
        for (int real = 0; real < 2; real++) {
            program_case many, one;
            case_create(&many, (pn_real)real, widths[w], 77);
            case_create(&one, (pn_real)real, widths[w], 1);
            run(many.program, many.points, (const void *const *)many.in, many.out);
            const size_t size = pn_real_bytes((pn_real)real);
            for (size_t p = 0; p < many.points; p++) {
                const void *in[CASE_INPUTS];
                for (int i = 0; i < CASE_INPUTS; i++) in[i] = (const char *)many.in[i] + p * many.in_stride[i].row * size;
                run(one.program, 1, in, one.out);
                for (int o = 0; o < CASE_OUTPUTS; o++)
                    for (size_t j = 0; j < widths[w] && many.kind[o] == PN_STORE; j++) {
                        const size_t column = j * many.out_stride[o].column;
                        ck_assert_mem_eq((char *)many.out[o] + (p * many.out_stride[o].row + column) * size,
                                         (char *)one.out[o] + column * size, size);
                    }
            }
            case_destroy(&many);
            case_destroy(&one);
        }
}
END_TEST

START_TEST(runs_repeat_bit_for_bit) {
    if (!use_isa(_i)) return;
    program_case a, b;
    case_create(&a, PN_FLOAT32, 20, 1000);
    case_create(&b, PN_FLOAT32, 20, 1000);
    run(a.program, 1000, (const void *const *)a.in, a.out);
    run(b.program, 1000, (const void *const *)b.in, b.out);
    ck_assert_mem_eq(a.out[3], b.out[3], 20 * sizeof(float));
    ck_assert_mem_eq(a.out[4], b.out[4], (2 * 19 + 1) * sizeof(double));
    case_destroy(&a);
    case_destroy(&b);
}
END_TEST

/* out k = sum over all i of (i + k + 1) x_i, written over x_k: every output needs every input. */
START_TEST(in_place) {
    if (!use_isa(_i)) return;
    enum { N = 5, POINTS = 77 };
    static const size_t widths[] = {1, 20, 64, 700};
    for (size_t w = 0; w < 4; w++) {
        const size_t width = widths[w], lanes = POINTS * width;
        pn_ir *ir;
        ck_assert_int_eq(pn_ir_create(&ir), PINN_OK);
        uint32_t slot[N];
        pn_stride stride[N];
        pn_output_kind kind[N] = {PN_STORE};
        pn_value output[N];
        for (uint32_t k = 0; k < N; k++) {
            slot[k] = k;
            stride[k] = (pn_stride){width, 1};
            output[k] = pn_ir_const(ir, 0);
            for (uint32_t i = 0; i < N; i++) output[k] = pn_ir_add(ir, output[k], pn_ir_mul(ir, pn_ir_const(ir, i + k + 1), pn_ir_input(ir, i)));
        }
        const pn_program_spec spec = {.ir = ir, .real = PN_FLOAT64, .width = width, .input = slot, .input_stride = stride, .inputs = N,
                                      .output = output, .kind = kind, .output_stride = stride, .outputs = N};
        pn_program *program;
        ck_assert_int_eq(pn_program_create(&spec, &program), PINN_OK);
        double *x[N];
        for (int k = 0; k < N; k++) {
            x[k] = malloc(lanes * sizeof(double));
            for (size_t l = 0; l < lanes; l++) x[k][l] = (double)(l % 97) + k; /* small integers: exact */
        }
        run(program, POINTS, (const void *const *)x, (void *const *)x);
        for (size_t l = 0; l < lanes; l++)
            for (int k = 0; k < N; k++) {
                double want = 0;
                for (int i = 0; i < N; i++) want += (i + k + 1) * ((double)(l % 97) + i);
                ck_assert_double_eq(x[k][l], want);
            }
        for (int k = 0; k < N; k++) free(x[k]);
        pn_program_destroy(program);
        pn_ir_destroy(ir);
    }
}
END_TEST

/* ---- compilation ---------------------------------------------------------------------------------------------------------------- */

enum { RANDOM_INPUTS = 6, RANDOM_OUTPUTS = 7, RANDOM_POINTS = 50 };

/* Adds random operations whose values stay within [-3, 3] or so. */
static void random_graph(pn_ir *ir, uint32_t *state, pn_value *value, size_t count) {
    static const pn_op unary[] = {PN_OP_TANH, PN_OP_SIN, PN_OP_NEG, PN_OP_ERF};
    static const pn_op binary[] = {PN_OP_ADD, PN_OP_SUB, PN_OP_MUL, PN_OP_MUL, PN_OP_ADD, PN_OP_MIN, PN_OP_SUB};
    for (size_t i = 0; i < RANDOM_INPUTS; i++) value[i] = pn_ir_input(ir, (uint32_t)i);
    for (size_t i = RANDOM_INPUTS; i < count; i++) {
        const size_t near = i < 30 ? i : 30;
        const pn_value a = value[i - 1 - (case_random(state) >> 8) % near], b = value[i - 1 - (case_random(state) >> 8) % near];
        const uint32_t choice = (case_random(state) >> 8) % 16;
        if (choice < 4)
            value[i] = pn_ir_unary(ir, unary[choice], a);
        else if (choice < 11)
            value[i] = pn_ir_mul(ir, pn_ir_const(ir, 0.45), pn_ir_binary(ir, binary[choice - 4], a, b));
        else
            value[i] = pn_ir_add(ir, pn_ir_mul(ir, a, pn_ir_const(ir, 0.125 * choice - 1.5)), b);
        if (i % 8 == 0) value[i] = pn_ir_unary(ir, PN_OP_TANH, value[i]);
    }
}

START_TEST(random_programs) {
    if (!use_isa(_i)) return;
    for (uint32_t seed = 1; seed <= 40; seed++) {
        enum { COUNT = 200 };
        pn_ir *ir;
        ck_assert_int_eq(pn_ir_create(&ir), PINN_OK);
        uint32_t state = seed, slot[RANDOM_INPUTS];
        pn_value value[COUNT], output[RANDOM_OUTPUTS];
        pn_stride stride[RANDOM_OUTPUTS];
        pn_output_kind kind[RANDOM_OUTPUTS] = {PN_STORE};
        random_graph(ir, &state, value, COUNT);
        double *in[RANDOM_INPUTS], *out[RANDOM_OUTPUTS];
        for (uint32_t i = 0; i < RANDOM_INPUTS; i++) {
            slot[i] = i;
            in[i] = malloc(RANDOM_POINTS * sizeof(double));
            for (size_t p = 0; p < RANDOM_POINTS; p++) in[i][p] = case_uniform(&state);
        }
        for (size_t o = 0; o < RANDOM_OUTPUTS; o++) {
            output[o] = value[COUNT - 1 - (case_random(&state) >> 8) % 60];
            stride[o] = (pn_stride){1, 0};
            out[o] = malloc(RANDOM_POINTS * sizeof(double));
        }
        const pn_program_spec spec = {.ir = ir, .real = PN_FLOAT64, .width = 1, .input = slot, .input_stride = stride,
                                      .inputs = RANDOM_INPUTS, .output = output, .kind = kind, .output_stride = stride,
                                      .outputs = RANDOM_OUTPUTS};
        pn_program *program;
        ck_assert_int_eq(pn_program_create(&spec, &program), PINN_OK);
        run(program, RANDOM_POINTS, (const void *const *)in, (void *const *)out);
        for (size_t p = 0; p < RANDOM_POINTS; p++) {
            double at[RANDOM_INPUTS];
            for (int i = 0; i < RANDOM_INPUTS; i++) at[i] = in[i][p];
            /* 200 roundings of 1e-16 with factors up to a few: far under 1e-11, and far over what a wrong operand would give */
            for (int o = 0; o < RANDOM_OUTPUTS; o++) ck_assert_double_eq_tol(out[o][p], pn_ir_evaluate(ir, output[o], at), 1e-11);
        }
        for (int i = 0; i < RANDOM_INPUTS; i++) free(in[i]);
        for (int o = 0; o < RANDOM_OUTPUTS; o++) free(out[o]);
        pn_program_destroy(program);
        pn_ir_destroy(ir);
    }
}
END_TEST

/* A sum of many functions of one input, all of which are ready at the start: choosing among them must not take a walk over all of them
 * each time (a lap(lap(u)) of many coordinates is such a program). 3*10^10 steps would run into the suite's time limit. */
START_TEST(many_ready_operations) {
    enum { MANY = 150000 };
    pn_ir *ir;
    ck_assert_int_eq(pn_ir_create(&ir), PINN_OK);
    const uint32_t slot = 0;
    const pn_stride stride = {1, 0};
    const pn_output_kind kind = PN_STORE;
    pn_value sum = pn_ir_const(ir, 0);
    for (int k = 1; k <= MANY; k++)
        sum = pn_ir_add(ir, sum, pn_ir_unary(ir, PN_OP_SIN, pn_ir_mul(ir, pn_ir_const(ir, 1e-3 * k), pn_ir_input(ir, 0))));
    const pn_program_spec spec = {.ir = ir, .real = PN_FLOAT64, .width = 1, .input = &slot, .input_stride = &stride, .inputs = 1,
                                  .output = &sum, .kind = &kind, .output_stride = &stride, .outputs = 1};
    pn_program *program;
    ck_assert_int_eq(pn_program_create(&spec, &program), PINN_OK);
    ck_assert_uint_le(program->registers, 4); /* the running sum and the next function, not a value for each */
    const double in = 0.7;
    double out;
    run(program, 1, (const void *[]){&in}, (void *[]){&out});
    /* 150000 roundings of sums up to some hundreds: 150000 * 500 * 1e-16 */
    ck_assert_double_eq_tol(out, pn_ir_evaluate(ir, sum, &in), 1e-8);
    pn_program_destroy(program);
    pn_ir_destroy(ir);
}
END_TEST

/* a*b + c - d*e: two instructions; what no output needs is not computed and its input not read. */
START_TEST(fuses_and_drops) {
    pn_ir *ir;
    ck_assert_int_eq(pn_ir_create(&ir), PINN_OK);
    const uint32_t slot[6] = {0, 1, 2, 3, 4, 5};
    const pn_stride stride[6] = {{1, 0}, {1, 0}, {1, 0}, {1, 0}, {1, 0}, {1, 0}};
    pn_value x[6];
    for (uint32_t i = 0; i < 6; i++) x[i] = pn_ir_input(ir, i);
    pn_ir_unary(ir, PN_OP_EXP, x[5]);
    const pn_value value = pn_ir_sub(ir, pn_ir_add(ir, pn_ir_mul(ir, x[0], x[1]), x[2]), pn_ir_mul(ir, x[3], x[4]));
    const pn_output_kind kind = PN_STORE;
    pn_program_spec spec = {.ir = ir, .real = PN_FLOAT64, .width = 1, .input = slot, .input_stride = stride, .inputs = 6,
                            .output = &value, .kind = &kind, .output_stride = stride, .outputs = 1};
    pn_program *program;
    ck_assert_int_eq(pn_program_create(&spec, &program), PINN_OK);
    size_t arithmetic, special;
    pn_program_count(program, &arithmetic, &special);
    ck_assert_uint_eq(arithmetic, 4);
    ck_assert_uint_eq(special, 0);
    ck_assert_uint_eq(program->instructions, 2);
    ck_assert_uint_le(program->registers, 1);
    ck_assert(pn_program_uses_input(program, 4));
    ck_assert(!pn_program_uses_input(program, 5));
    double in[5] = {2, 3, 4, 5, 6}, out = 0;
    run(program, 1, (const void *[]){&in[0], &in[1], &in[2], &in[3], &in[4], NULL}, (void *[]){&out});
    ck_assert_double_eq(out, 2 * 3 + 4 - 5 * 6);
    pn_program_destroy(program);

    spec.inputs = 4; /* x4 is missing */
    pn_program *none = NULL;
    ck_assert_int_eq(pn_program_create(&spec, &none), PINN_BAD_ARGUMENT);
    ck_assert_ptr_null(none);
    ck_assert_ptr_nonnull(strstr(pinn_error_message(), "slot 4"));
    spec.inputs = 6;
    spec.width = 0;
    ck_assert_int_eq(pn_program_create(&spec, &none), PINN_BAD_ARGUMENT);
    pn_ir_destroy(ir);
}
END_TEST

START_TEST(creation_survives_lack_of_memory) {
    pn_ir *ir;
    ck_assert_int_eq(pn_ir_create(&ir), PINN_OK);
    const uint32_t slot = 0;
    const pn_stride stride = {1, 0};
    const pn_value value = pn_ir_unary(ir, PN_OP_TANH, pn_ir_input(ir, 0));
    const pn_output_kind kind = PN_STORE;
    const pn_program_spec spec = {.ir = ir, .real = PN_FLOAT64, .width = 1, .input = &slot, .input_stride = &stride, .inputs = 1,
                                  .output = &value, .kind = &kind, .output_stride = &stride, .outputs = 1};
    pn_program *program = NULL;
    pinn_status status = PINN_NO_MEMORY;
    long failures = 0;
    for (; status != PINN_OK; failures++) {
        pn_memory_fail_after(failures);
        status = pn_program_create(&spec, &program);
        pn_memory_fail_after(-1);
        if (status != PINN_OK) {
            ck_assert_int_eq(status, PINN_NO_MEMORY);
            ck_assert_ptr_null(program);
        }
    }
    ck_assert_int_gt(failures, 8);
    pn_program_destroy(program);
    pn_ir_destroy(ir);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("program");
    TCase *lanes = tcase_create("lanes"), *compiler = tcase_create("compiler");
    tcase_set_timeout(lanes, 120);
    tcase_add_loop_test(lanes, every_operation, 0, 3);
    tcase_add_loop_test(lanes, special_values, 0, 3);
    tcase_add_loop_test(lanes, every_operand, 0, 3);
    tcase_add_loop_test(lanes, position_does_not_matter, 0, 3);
    tcase_add_loop_test(lanes, runs_repeat_bit_for_bit, 0, 3);
    tcase_add_loop_test(lanes, in_place, 0, 3);
    tcase_add_loop_test(lanes, random_programs, 0, 3);
    tcase_set_timeout(compiler, 60);
    tcase_add_test(compiler, many_ready_operations);
    tcase_add_test(compiler, fuses_and_drops);
    tcase_add_test(compiler, creation_survives_lack_of_memory);
    suite_add_tcase(suite, lanes);
    suite_add_tcase(suite, compiler);
    return suite_run(suite);
}
