/* A program with one output for every operation of the IR, over three inputs of width 1, and its data. */
#ifndef OPERATION_CASE_H
#define OPERATION_CASE_H

#include "program_case.h"

#define OPERATIONS (PN_OP_COUNT - 2) /* without const and input */
#define OPERATION_POINTS 700

/* Defined only on part of the line: they get an operand from (0.1, 0.9), the others one from (-1.6, 1.6). */
static inline bool operation_is_picky(int op) {
    return op == PN_OP_SQRT || op == PN_OP_LOG || op == PN_OP_ASIN || op == PN_OP_ACOS || op == PN_OP_LOG1P || op == PN_OP_POW;
}

static inline pn_program *operation_program(pn_real real) {
    const uint32_t slot[3] = {0, 1, 2};
    const pn_stride in_stride[3] = {{1, 0}, {1, 0}, {1, 0}};
    pn_stride out_stride[OPERATIONS];
    pn_output_kind kind[OPERATIONS] = {PN_STORE};
    pn_value output[OPERATIONS];
    pn_ir *ir;
    ck_assert_int_eq(pn_ir_create(&ir), PINN_OK);
    for (int op = PN_OP_INPUT + 1, o = 0; op < PN_OP_COUNT; op++, o++) {
        pn_value x[3];
        for (uint32_t k = 0; k < 3; k++) {
            x[k] = pn_ir_input(ir, k);
            if (!operation_is_picky(op)) x[k] = pn_ir_sub(ir, pn_ir_mul(ir, pn_ir_const(ir, 4), x[k]), pn_ir_const(ir, 2));
        }
        output[o] = pn_op_arity((pn_op)op) == 1   ? pn_ir_unary(ir, (pn_op)op, x[0])
                    : pn_op_arity((pn_op)op) == 2 ? pn_ir_binary(ir, (pn_op)op, x[0], x[1])
                                                  : pn_ir_select(ir, pn_ir_binary(ir, PN_OP_LT, x[0], x[1]), x[1], x[2]);
        out_stride[o] = (pn_stride){1, 0};
    }
    const pn_program_spec spec = {.ir = ir, .real = real, .width = 1, .input = slot, .input_stride = in_stride, .inputs = 3,
                                  .output = output, .kind = kind, .output_stride = out_stride, .outputs = OPERATIONS};
    pn_program *program;
    ck_assert_int_eq(pn_program_create(&spec, &program), PINN_OK);
    pn_ir_destroy(ir);
    return program;
}

/* `in`: three arrays of OPERATION_POINTS. Every seventh point has equal operands. */
static inline void operation_data(pn_real real, void *const *in) {
    uint32_t state = 11;
    for (size_t p = 0; p < OPERATION_POINTS; p++)
        for (int k = 0; k < 3; k++)
            pn_real_set(real, in[k], p, k > 0 && p % 7 == 0 ? pn_real_get(real, in[0], p) : 0.5 + 0.4 * case_uniform(&state));
}

/* Compares with the interpreter: 8 units in the last place between two elementary functions (CUDA documents up to 4 in float32, the
 * interpreter has up to 2, softplus takes three steps), none between two arithmetics. */
static inline void operation_compare(const pn_program *program, const void *const *in, void *const *out) {
    const pn_real real = pn_program_real(program);
    const size_t bytes = OPERATION_POINTS * pn_real_bytes(real);
    void *want[OPERATIONS], *scratch = pn_allocate(pn_program_scratch(program), 1);
    for (int o = 0; o < OPERATIONS; o++) want[o] = malloc(bytes);
    pn_program_run(program, OPERATION_POINTS, in, want, scratch);
    for (int o = 0; o < OPERATIONS; o++)
        for (size_t p = 0; p < OPERATION_POINTS; p++) {
            const double a = pn_real_get(real, out[o], p), b = pn_real_get(real, want[o], p);
            const int op = o + PN_OP_INPUT + 1;
            const bool elementary = (op >= PN_OP_EXP && op <= PN_OP_SOFTPLUS) || op == PN_OP_POW || op == PN_OP_ATAN2;
            const double most = elementary ? 8 * fabs(b) * ldexp(1, real == PN_FLOAT32 ? -23 : -52) : 0;
            if (!(fabs(a - b) <= most)) ck_abort_msg("%s at point %zu: %.17g, not %.17g", pn_op_text((pn_op)op), p, a, b);
        }
    for (int o = 0; o < OPERATIONS; o++) free(want[o]);
    pn_free(scratch);
}

#endif
