/* Machine code against the lane functions: the same programs with and without it must give the same bits, for every instruction set this
 * machine has and in both precisions. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/prctl.h>

#include "pointwise/program_code.h"
#include "program_case.h"

#ifndef PR_SET_MDWE /* headers before Linux 6.3 */
#define PR_SET_MDWE 65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif

static const char *const isas[] = {"avx2", "avx512"};
enum { ISAS = sizeof isas / sizeof isas[0], INPUTS = 14, OUTPUTS = 9, POINTS = 3, WIDTH = 45, COUNT = 160 };

static bool use_isa(int index) {
    setenv("PINN_ISA", isas[index], 1);
    return strcmp(pn_program_isa(), isas[index]) == 0;
}

static bool has_native(const pn_program *program) {
    for (size_t s = 0; s < program->stages; s++)
        if (program->stage[s].run) return true;
    return false;
}

/* Mostly plain arithmetic, with functions strewn in that cut it into runs. `reach`: operands come from so many last values, so as many are
 * alive at once. */
static void random_graph(pn_ir *ir, uint32_t *state, size_t reach, pn_value *value) {
    static const pn_op binary[] = {PN_OP_ADD, PN_OP_SUB, PN_OP_MUL, PN_OP_MUL, PN_OP_MIN, PN_OP_MAX, PN_OP_LE, PN_OP_LT};
    static const pn_op unary[] = {PN_OP_SIN, PN_OP_ABS, PN_OP_NEG, PN_OP_TANH};
    for (size_t i = 0; i < INPUTS; i++) value[i] = pn_ir_input(ir, (uint32_t)i);
    for (size_t i = INPUTS; i < COUNT; i++) {
        const size_t near = i < reach ? i : reach;
        const pn_value a = value[i - 1 - (case_random(state) >> 8) % near], b = value[i - 1 - (case_random(state) >> 8) % near];
        const pn_value c = value[i - 1 - (case_random(state) >> 8) % near];
        const uint32_t choice = (case_random(state) >> 8) % 24;
        if (choice < 8)
            value[i] = pn_ir_binary(ir, binary[choice], a, b);
        else if (choice < 10)
            value[i] = pn_ir_unary(ir, unary[(case_random(state) >> 8) % 4], a);
        else if (choice < 11)
            value[i] = pn_ir_div(ir, a, pn_ir_unary(ir, PN_OP_SQRT, pn_ir_binary(ir, PN_OP_MAX, b, pn_ir_const(ir, 0.25))));
        else if (choice < 14)
            value[i] = pn_ir_mul(ir, pn_ir_const(ir, 0.125 * choice - 1.3), a);
        else if (choice < 19)
            value[i] = pn_ir_add(ir, pn_ir_mul(ir, a, b), c);
        else
            value[i] = choice < 22 ? pn_ir_sub(ir, pn_ir_mul(ir, a, b), c) : pn_ir_sub(ir, c, pn_ir_mul(ir, a, b));
        if (i % 4 > 0) continue;
        value[i] = pn_ir_binary(ir, PN_OP_MIN, value[i], pn_ir_const(ir, 2)); /* no overflow */
        value[i] = pn_ir_binary(ir, PN_OP_MAX, value[i], pn_ir_const(ir, -2));
    }
}

typedef struct random_case {
    pn_ir *ir;
    pn_program_spec spec;
    uint32_t slot[INPUTS];
    pn_stride in_stride[INPUTS], out_stride[OUTPUTS];
    pn_output_kind kind[OUTPUTS];
    pn_value output[OUTPUTS];
} random_case;

static void make_case(random_case *c, pn_real real, uint32_t seed) {
    static const pn_stride every_kind[] = {{WIDTH, 1}, {WIDTH, 1}, {0, 1}, {1, 0}, {0, 0}};
    pn_value value[COUNT];
    uint32_t state = seed;
    *c = (random_case){0};
    ck_assert_int_eq(pn_ir_create(&c->ir), PINN_OK);
    random_graph(c->ir, &state, seed % 3 ? 25 : 120, value);
    for (uint32_t i = 0; i < INPUTS; i++) {
        c->slot[i] = i;
        c->in_stride[i] = every_kind[i % 5];
    }
    for (size_t o = 0; o < OUTPUTS; o++) {
        c->output[o] = value[COUNT - 1 - (case_random(&state) >> 8) % 60];
        c->kind[o] = o % 4 == 3 ? PN_SUM_POINTS : o == 8 ? PN_SUM_POINTS_F64 : PN_STORE;
        c->out_stride[o] = c->kind[o] == PN_STORE ? (pn_stride){WIDTH, 1} : (pn_stride){0, 1};
    }
    c->spec = (pn_program_spec){.ir = c->ir, .real = real, .width = WIDTH, .input = c->slot, .input_stride = c->in_stride, .inputs = INPUTS,
                                .output = c->output, .kind = c->kind, .output_stride = c->out_stride, .outputs = OUTPUTS};
}

/* Runs a program of the case, with machine code if `wanted`, and checks that it was `made`. `memory` is [INPUTS + OUTPUTS][POINTS*WIDTH]
 * float64 wide. Output 0 is input 0, output 1 is input 1. */
static void run_case(const random_case *c, bool wanted, bool made, uint32_t seed, double (*memory)[POINTS * WIDTH]) {
    pn_program *program;
    const void *in[INPUTS];
    void *out[OUTPUTS];
    uint32_t state = seed;
    setenv("PINN_NATIVE", wanted ? "1" : "0", 1);
    ck_assert_int_eq(pn_program_create(&c->spec, &program), PINN_OK);
    ck_assert(has_native(program) == made);
    for (size_t i = 0; i < INPUTS + OUTPUTS; i++)
        for (size_t k = 0; k < POINTS * WIDTH; k++) pn_real_set(c->spec.real, memory[i], k, i < INPUTS ? case_uniform(&state) : 0);
    for (size_t i = 0; i < INPUTS; i++) in[i] = memory[i];
    for (size_t o = 0; o < OUTPUTS; o++) out[o] = memory[o < 2 ? o : INPUTS + o];
    void *scratch = pn_allocate(pn_program_scratch(program), 1);
    ck_assert_ptr_nonnull(scratch);
    pn_program_run(program, POINTS, in, out, scratch);
    pn_free(scratch);
    pn_program_destroy(program);
}

START_TEST(same_bits_as_lane_functions) {
    static double native[INPUTS + OUTPUTS][POINTS * WIDTH], lanes[INPUTS + OUTPUTS][POINTS * WIDTH];
    if (!use_isa(_i / 2)) return;
    const pn_real real = _i % 2 ? PN_FLOAT64 : PN_FLOAT32;
    for (uint32_t seed = 1; seed <= 200; seed++) {
        random_case c;
        make_case(&c, real, seed);
        run_case(&c, true, true, seed, native);
        run_case(&c, false, false, seed, lanes);
        size_t differ = 0;
        for (size_t i = 0; i < INPUTS + OUTPUTS; i++)
            for (size_t k = 0; k < POINTS * WIDTH; k++) {
                const pn_real kept = i == INPUTS + 8 ? PN_FLOAT64 : real; /* the float64 sum */
                const double a = pn_real_get(kept, native[i], k), b = pn_real_get(kept, lanes[i], k);
                ck_assert(isfinite(a));
                ck_assert_msg(memcmp(&a, &b, sizeof a) == 0, "%s, seed %u, operand %zu at %zu: %.17g, not %.17g", isas[_i / 2], seed, i, k, a,
                              b);
                differ += a != pn_real_get(kept, native[i], 0);
            }
        ck_assert_uint_gt(differ, WIDTH); /* not of constants alone */
        pn_ir_destroy(c.ir);
    }
}
END_TEST

/* Where the system lets no memory become executable, lane functions do it all, with the same bits. */
START_TEST(forbidden_code_is_done_without) {
    static double with[INPUTS + OUTPUTS][POINTS * WIDTH], without[INPUTS + OUTPUTS][POINTS * WIDTH];
    random_case c;
    if (!use_isa(0)) return;
    make_case(&c, PN_FLOAT32, 1);
    run_case(&c, true, true, 1, with);
    if (prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0) == 0) { /* refused before Linux 6.3 */
        run_case(&c, true, false, 1, without);
        ck_assert_mem_eq(with, without, sizeof with);
    }
    pn_ir_destroy(c.ir);
}
END_TEST

/* Machine code that is running lies in memory that cannot be written. */
START_TEST(code_is_not_writable) {
    random_case c;
    pn_program *program;
    char line[512], access[5] = "";
    if (!use_isa(0)) return;
    setenv("PINN_NATIVE", "1", 1);
    make_case(&c, PN_FLOAT32, 1);
    ck_assert_int_eq(pn_program_create(&c.spec, &program), PINN_OK);
    FILE *maps = fopen("/proc/self/maps", "r");
    ck_assert_ptr_nonnull(maps);
    bool found = false;
    while (!found && fgets(line, sizeof line, maps)) {
        uintptr_t first, end;
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &first, &end, access) != 3) continue;
        found = (uintptr_t)program->native >= first && (uintptr_t)program->native < end;
    }
    fclose(maps);
    ck_assert(found);
    ck_assert_str_eq(access, "r-xp");
    pn_program_destroy(program);
    pn_ir_destroy(c.ir);
}
END_TEST

/* Creation gives back what it took, at whichever allocation memory runs out. */
START_TEST(creation_survives_lack_of_memory) {
    random_case c;
    if (!use_isa(0)) return;
    setenv("PINN_NATIVE", "1", 1);
    make_case(&c, PN_FLOAT32, 2);
    pn_program *program = NULL;
    pinn_status status = PINN_NO_MEMORY;
    for (long n = 0; status != PINN_OK; n++) {
        pn_memory_fail_after(n);
        status = pn_program_create(&c.spec, &program);
        pn_memory_fail_after(-1);
        ck_assert(status == PINN_OK || (status == PINN_NO_MEMORY && !program));
    }
    ck_assert(has_native(program));
    pn_program_destroy(program);
    pn_ir_destroy(c.ir);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("native");
    TCase *tests = tcase_create("native");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, same_bits_as_lane_functions, 0, 2 * ISAS);
    tcase_add_test(tests, forbidden_code_is_done_without);
    tcase_add_test(tests, code_is_not_writable);
    tcase_add_test(tests, creation_survives_lack_of_memory);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
